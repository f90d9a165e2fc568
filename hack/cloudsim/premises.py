"""
What a process that uses the simulated cloud learns once and keeps: the metadata server and Google's authority.

1. The environment must be set before the process imports google-auth and gRPC, which read it once.
2. With it Google's unchanged libraries can reach nothing but the simulated cloud.
"""

from pathlib import Path

from cloudsim.metadata import LIFETIME, MetadataServer, Tokens
from cloudsim.tls import LOOPBACK, Authority


class Premises:
    """The metadata server and Google's certificate authority."""

    def __init__(self, directory: Path, token_lifetime: float = LIFETIME) -> None:
        """Start the metadata server; certificates go to *directory*."""
        self.directory = directory
        self.authority = Authority(directory, "google")
        self.metadata = MetadataServer(token_lifetime)

    @property
    def tokens(self) -> Tokens:
        """What was handed out; `expire()` makes all of it stale."""
        return self.metadata.tokens

    def environment(self) -> dict[str, str]:
        """Return what makes Google's libraries, unchanged, use these premises and nothing else."""
        authorities = str(self.authority.path)
        return {
            "GCE_METADATA_HOST": self.metadata.address,
            "GCE_METADATA_IP": self.metadata.address,
            "NO_GCE_CHECK": "false",
            "GOOGLE_APPLICATION_CREDENTIALS": "",
            "CLOUDSDK_CONFIG": str(self.directory / "no-gcloud"),
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": authorities,
            "REQUESTS_CA_BUNDLE": authorities,
            "SSL_CERT_FILE": authorities,
            "NO_PROXY": ",".join(LOOPBACK),
            "no_proxy": ",".join(LOOPBACK),
        }

    def stop(self) -> None:
        """Stop the metadata server."""
        self.metadata.stop()
