"""
The metadata server of a Google machine, and the tokens it has handed out.

1. A token is good for its lifetime in real time, as google-auth counts; then every door refuses it.
2. Like the real server it hands out the same token again, and a new one in good time before the old one ends.
3. Who asks without the header `Metadata-Flavor: Google` is refused, as there.
"""

import secrets
import threading
import time
from collections.abc import Mapping

from cloudsim.doors_http import Answer, HttpDoor, Request, json_answer

PROJECT = "sim-project"
PROJECT_NUMBER = "123456789012"
EMAIL = f"falcon-rm@{PROJECT}.iam.gserviceaccount.com"
SCOPES = ("https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email")
FLAVOR = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
LIFETIME = 3600.0  # seconds; google-auth takes a token that has less than 225 for ended, and asks anew at every request
RENEWED_BEFORE_END = 300.0  # seconds; at most 80 % of the lifetime


class Tokens:
    """Every token ever handed out."""

    def __init__(self, lifetime: float) -> None:
        """Hand out tokens that are good for *lifetime* seconds."""
        self.lifetime = lifetime
        self._lock = threading.Lock()
        self._current = ""
        self._until: dict[str, float] = {}

    def hand_out(self) -> tuple[str, float]:
        """Return a token and the seconds it has left."""
        with self._lock:
            now = time.monotonic()
            left = self._until.get(self._current, now) - now
            if left <= min(RENEWED_BEFORE_END, 0.8 * self.lifetime):
                self._current, left = f"ya29.{secrets.token_urlsafe(24)}", self.lifetime
                self._until[self._current] = now + left
            return self._current, left

    def expire(self) -> None:
        """Let every token handed out so far be stale."""
        with self._lock:
            self._until = dict.fromkeys(self._until, time.monotonic())

    def refusal(self, authorization: str | None) -> str | None:
        """Return why an Authorization header is refused (missing, unknown, stale), or None if it is good."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return "missing"
        with self._lock:
            until = self._until.get(token)
        if until is None:
            return "unknown"
        return "stale" if until <= time.monotonic() else None


class MetadataServer:
    """The server; `address` is what GCE_METADATA_HOST wants."""

    def __init__(self, lifetime: float = LIFETIME) -> None:
        """Listen at once; tokens are good for *lifetime* seconds."""
        self.tokens = Tokens(lifetime)
        self._door = HttpDoor(self._handle)
        self.address = f"127.0.0.1:{self._door.port}"

    def stop(self) -> None:
        """Close the port."""
        self._door.stop()

    def _handle(self, request: Request) -> Answer:
        if request.headers.get("metadata-flavor") != "Google":
            return _text(403, "Missing Metadata-Flavor:Google header.\n")
        match request.path:
            case () | ("computeMetadata",) | ("computeMetadata", "v1"):
                return _text(200, "computeMetadata/\n")
            case ("computeMetadata", "v1", "instance", "service-accounts", name, *rest) if name in ("default", EMAIL):
                return self._account(rest, request.query)
            case ("computeMetadata", "v1", *rest) if (text := TEXTS.get("/".join(rest))) is not None:
                return _text(200, text)
        return _text(404, "not found\n")

    def _account(self, rest: list[str], query: Mapping[str, str]) -> Answer:
        match rest:
            case ["token"]:
                token, left = self.tokens.hand_out()
                value = {"access_token": token, "expires_in": int(left), "token_type": "Bearer"}
                return json_answer(200, value, FLAVOR)
            case ["email"]:
                return _text(200, EMAIL)
            case ["scopes"]:
                return _text(200, "\n".join(SCOPES) + "\n")
            case [] if query.get("recursive") == "true":
                return json_answer(200, {"aliases": ["default"], "email": EMAIL, "scopes": list(SCOPES)}, FLAVOR)
            case []:
                return _text(200, "aliases\nemail\nscopes\ntoken\n")
        return _text(404, "not found\n")


TEXTS = {
    "project/project-id": PROJECT,
    "project/numeric-project-id": PROJECT_NUMBER,
    "universe/universe-domain": "googleapis.com",
}


def _text(status: int, text: str) -> Answer:
    return Answer(status, text.encode(), "application/text", FLAVOR)
