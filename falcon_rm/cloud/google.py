"""
What Google Cloud lets us and the pods do: Resource Manager and Cloud Storage over REST, by google-auth's own session.

1. Every call reads, and is bounded like every other.
2. testIamPermissions tells what we may do on a whole project; what is granted on a part of it alone is not seen there.
"""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

import google.api_core.exceptions
import google.auth.transport.requests

from falcon_rm.cloud.asked import Name
from falcon_rm.cloud.credential import Credential
from falcon_rm.cloud.errors import bounded, translating
from falcon_rm.cloud.retry import Deadline, ask, within
from falcon_rm.core.words import CloudError, ErrorKind

RESOURCE_MANAGER, STORAGE = "cloudresourcemanager.googleapis.com", "storage.googleapis.com"

POLICY_VERSION = 3
"""With this one conditions are shown; an older one would hide that there are some."""

PERMITTED = Name("resource-manager", "testIamPermissions")
BUCKET, POLICY = Name("storage", "buckets.get"), Name("storage", "buckets.getIamPolicy")


class GoogleAdapter:
    """
    Google Cloud, for one look.

    Args:
        credential: the process's own.
        resource_manager: another Resource Manager than Google's own: host:port, https unless it names a scheme.
        storage: the same for Cloud Storage.
        read_seconds: bound of a call.
    """

    def __init__(
        self,
        *,
        credential: Credential,
        resource_manager: str | None = None,
        storage: str | None = None,
        read_seconds: float = 8,
    ) -> None:
        self._credential = credential
        self._resource_manager = _url(resource_manager or RESOURCE_MANAGER)
        self._storage = _url(storage or STORAGE)
        self._read_seconds = read_seconds

    def member(self) -> str:
        """
        Return how IAM calls us; a person's credential does not say, so a command has to be completed.

        Raises:
            CloudError: there is no credential, or it gets no token.
        """
        within(Deadline(self._read_seconds), self._credential.token)
        email = getattr(self._credential.google(), "service_account_email", None)
        return f"serviceAccount:{email}" if email and "@" in email else "user:YOU"

    def permitted(self, project: str, permissions: Collection[str]) -> frozenset[str]:
        """Return those of the permissions that we have on a project."""
        url = f"{self._resource_manager}/v1/projects/{quote(project, safe='')}:testIamPermissions"
        answer = self._call(PERMITTED, "POST", url, {"permissions": sorted(permissions)})
        return frozenset(str(each) for each in answer.get("permissions") or ())

    def is_uniform(self, bucket: str) -> bool:
        """Return whether access to a bucket is uniform; raises GONE if there is none of this name."""
        answer = self._call(BUCKET, "GET", f"{self._storage}/storage/v1/b/{quote(bucket, safe='')}?projection=noAcl")
        uniform = (answer.get("iamConfiguration") or {}).get("uniformBucketLevelAccess") or {}
        return uniform.get("enabled") is True

    def members(self, bucket: str) -> Mapping[str, frozenset[str]]:
        """Return role -> members of a bucket's own policy, without those under a condition."""
        url = f"{self._storage}/storage/v1/b/{quote(bucket, safe='')}/iam"
        answer = self._call(POLICY, "GET", f"{url}?optionsRequestedPolicyVersion={POLICY_VERSION}")
        roles: dict[str, frozenset[str]] = {}
        for binding in answer.get("bindings") or ():
            if not binding.get("condition"):
                role = str(binding.get("role"))
                roles[role] = roles.get(role, frozenset()) | frozenset(map(str, binding.get("members") or ()))
        return roles

    def _call(self, name: Name, method: str, url: str, body: Mapping[str, object] | None = None) -> Mapping[str, Any]:
        deadline = Deadline(self._read_seconds)

        def send() -> Mapping[str, Any]:
            with translating("read"):
                session: Any = google.auth.transport.requests.AuthorizedSession(self._credential.google())  # type: ignore[no-untyped-call]
                with session:
                    response = session.request(method, url, json=body, timeout=deadline.left())
                failure: Any = google.api_core.exceptions.from_http_response
                if not response.ok:
                    raise failure(response)
                answer = response.json()
            if not isinstance(answer, dict):
                raise CloudError(ErrorKind.UNKNOWN, bounded(f"no object: {answer}"))
            return answer

        return ask(lambda: within(deadline, send), name=name, call="read", credential=self._credential)


def _url(endpoint: str) -> str:
    return endpoint if "://" in endpoint else f"https://{endpoint}"
