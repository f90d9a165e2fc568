"""
The webhook by which a real API server asks whether a bearer token is good: Google's, as every other door knows it.

1. A fresh token is the service account's; a stale or unknown one is nobody's, and the API server answers 401.
2. An API server keeps a good answer for 10 seconds, as it does in production: there a token is stale a little later.
"""

import ssl
from pathlib import Path

from control_plane.papers import Context, write_config

from cloudsim.doors_http import Answer, HttpDoor, Request, json_answer
from cloudsim.metadata import EMAIL, Tokens


class TokenReviewDoor:
    """The running webhook; the system chooses its `port`."""

    def __init__(self, tokens: Tokens, tls: ssl.SSLContext, authority: Path) -> None:
        """Listen at once; *authority* is the file with the CA that signed the certificate of *tls*."""
        self._tokens = tokens
        self._authority = authority
        self._door = HttpDoor(self._handle, tls)
        self.port = self._door.port

    def stop(self) -> None:
        """Close the port."""
        self._door.stop()

    def config(self, folder: Path) -> Path:
        """Write the configuration that an API server wants into *folder*; returns its path."""
        where = Context(f"https://127.0.0.1:{self.port}/", self._authority)
        return write_config(folder / "token-review.kubeconfig", {"it": where})

    def _handle(self, request: Request) -> Answer:
        review = request.json()
        refusal = self._tokens.refusal(f"Bearer {review['spec']['token']}")
        status: dict[str, object] = {"authenticated": False, "error": f"the token is {refusal}"}
        if refusal is None:
            status = {"authenticated": True, "user": {"username": EMAIL}}
        return json_answer(200, {"apiVersion": review["apiVersion"], "kind": "TokenReview", "status": status})
