"""
The one Google credential of this process.

1. It is found once (application default credentials) and refreshes itself; every client shares it.
2. Tokens are asked for at every request, never kept by anybody else (P100).
3. A token is never shown: not in a text, not in a repr.
"""

import threading
from collections.abc import Callable
from functools import partial

import google.auth
import google.auth.credentials
import google.auth.transport.requests

from falcon_rm.cloud.errors import translating

SCOPES = ("https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email")
"""The second one is for Kubernetes: RBAC may be bound to the account's e-mail (gke.md 4.2)."""

Found = google.auth.credentials.Credentials


def application_default() -> Found:
    """Return the credentials that Google's own rules find here, with our scopes."""
    credentials, _ = google.auth.default(scopes=SCOPES)
    return credentials


class Credential:
    """A credential for all clients and all threads."""

    def __init__(self, *, find: Callable[[], Found] = application_default, timeout_seconds: float = 8) -> None:
        self._find = find
        self._request = partial(google.auth.transport.requests.Request(), timeout=timeout_seconds)
        self._lock = threading.Lock()
        self._found: Found | None = None

    def google(self) -> Found:
        """
        Return the credentials for Google's own clients, which refresh them by themselves.

        Raises:
            CloudError: UNKNOWN, if there are none (the metadata server may need some seconds after a pod's start).
        """
        with self._lock:
            return self._ready()

    def token(self) -> str:
        """
        Return a token that is good now.

        Raises:
            CloudError: UNKNOWN, if none is to be had.
        """
        with self._lock, translating("read"):
            found = self._ready()
            if not found.valid:
                found.refresh(self._request)  # type: ignore[no-untyped-call]
            return str(found.token)

    def renew(self) -> None:
        """
        Fetch a new token though the old one looks good: somebody refused it.

        Raises:
            CloudError: UNKNOWN, if none is to be had.
        """
        with self._lock, translating("read"):
            self._ready().refresh(self._request)  # type: ignore[no-untyped-call]

    def _ready(self) -> Found:
        if self._found is None:
            with translating("read"):
                self._found = self._find()
        return self._found
