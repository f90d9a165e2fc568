"""
A small client of one API server: JSON in, status and JSON out, every refusal an ordinary answer.

It is not the product's client on purpose: what the product is tested against is looked at by other means.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
from attrs import field, frozen

Json = dict[str, Any]
SECONDS = 30.0
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


@frozen
class Answer:
    """What the server said."""

    status: int
    body: Json
    headers: Mapping[str, str] = field(factory=dict)

    @property
    def ok(self) -> bool:
        """Whether it did what was asked."""
        return self.status < 300


def read(body: bytes) -> Json:
    """Return a body, as `raw` if it is no JSON object."""
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"raw": body.decode(errors="replace")}


class Client:
    """One server, one identity: a client certificate, a bearer token, or nobody."""

    def __init__(
        self,
        url: str,
        authority: Path,
        *,
        certificate: tuple[Path, Path] | None = None,
        token: str | None = None,
    ) -> None:
        """
        Connect to nothing yet.

        Args:
            url: https://host:port.
            authority: a file with the CA of the server.
            certificate: files of a client's certificate and key.
            token: a bearer token.
        """
        self.url = url
        self.headers = {"Accept": "application/json"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
        cert, key = certificate or (None, None)
        self._pool = urllib3.PoolManager(
            ca_certs=str(authority),
            cert_file=None if cert is None else str(cert),
            key_file=None if key is None else str(key),
            timeout=SECONDS,
            retries=False,
            maxsize=4,
        )

    def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: Mapping[str, object] | None = None,
        *,
        content: str = "application/json",
        accept: str | None = None,
    ) -> Answer:
        """Send one request. Raises urllib3's HTTPError if there is no answer."""
        url = f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {**self.headers, "Content-Type": content} | ({} if accept is None else {"Accept": accept})
        answer = self._pool.request(method, url, body=None if body is None else json.dumps(body), headers=headers)
        return Answer(answer.status, read(answer.data), dict(answer.headers))

    def must(self, method: str, path: str, body: Json | None = None, **more: Any) -> Json:
        """Send one request that has to be carried out; raises AssertionError with the server's words."""
        answer = self.call(method, path, body, **more)
        if not answer.ok:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.body.get('message', answer.body)}")
        return answer.body

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()
