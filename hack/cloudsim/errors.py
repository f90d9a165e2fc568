"""
The errors that the simulated servers answer, as values a door turns into gRPC, REST or a Kubernetes Status.

1. A door sends exactly these texts and codes; nothing else leaves the world.
2. Hang is no answer at all: a server keeps the caller waiting, the direct door says that the call timed out.
"""

from collections.abc import Mapping, Sequence

HTTP_OF_CODE = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


class SimError(Exception):
    """An answer of GKE or Compute: gRPC code name, text, HTTP status, and the *reason* word of REST errors."""

    def __init__(self, code: str, message: str, http: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.http = HTTP_OF_CODE[code] if http is None else http
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.http} {self.code}: {self.message}"


class KubeError(Exception):
    """An answer of a Kubernetes API server. *raw* is a body that is no Status at all, e.g. a proxy's HTML page."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        causes: Sequence[dict[str, str]] = (),
        retry_after: int | None = None,
        raw: str | None = None,
        details: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.raw = raw
        self.token = token  # by which a list may go on
        self.details = None if details is None else dict(details)

    def body(self) -> dict[str, object]:
        """Return the Status object of this answer; what it does not say is left out."""
        details: dict[str, object] = dict(self.details or {})
        if self.causes:
            details["causes"] = [dict(cause) for cause in self.causes]
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {} if self.token is None else {"continue": self.token},
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            **({} if self.details is None and not details else {"details": details}),
            "code": self.status,
        }

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}"


class Hang(Exception):
    """The call never answers. Whether it had, or will have, an effect is not known to the caller."""
