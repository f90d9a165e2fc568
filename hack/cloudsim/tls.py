"""
Certificates: an authority of its own for Google's endpoints and one for each Kubernetes cluster.

1. Keys are made anew for each run and kept nowhere; only the authorities' certificates are written to files.
2. A server certificate is for 127.0.0.1 and localhost: nothing here is meant to be reached from another machine.
"""

import ssl
from pathlib import Path

import trustme

LOOPBACK = ("127.0.0.1", "localhost")


class Authority:
    """A certificate authority and the one server certificate it has signed."""

    def __init__(self, directory: Path, name: str) -> None:
        """Make the authority *name*; its certificate is written to `<directory>/<name>.pem`."""
        authority = trustme.CA(organization_name=name)
        self._leaf = authority.issue_cert(*LOOPBACK)
        self.pem = authority.cert_pem.bytes()
        self.path = directory / f"{name}.pem"
        self.path.write_bytes(self.pem)

    def context(self) -> ssl.SSLContext:
        """Return what an HTTPS server needs."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._leaf.configure_cert(context)
        return context

    def key_and_chain(self) -> tuple[bytes, bytes]:
        """Return private key and certificate chain in PEM, which is what a gRPC server needs."""
        return self._leaf.private_key_pem.bytes(), b"".join(part.bytes() for part in self._leaf.cert_chain_pems)
