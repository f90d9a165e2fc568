"""
The papers of one control plane: its authority, the server's certificate, people's certificates, kubeconfig files.

1. Everything is made anew for each plane, stands in its folder, and goes with it.
2. A client's certificate names a user (CN) and one group (O); `system:masters` may do everything.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import trustme
from attrs import field, frozen

LOOPBACK = ("127.0.0.1", "localhost")
PEOPLE = {
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", "falcon"),
    "kube-scheduler": ("system:kube-scheduler", "falcon"),
}
"""File -> user and group."""


class Papers:
    """The papers in *folder*."""

    def __init__(self, folder: Path) -> None:
        """Make the authority, the server's certificate and the key that signs service accounts' tokens."""
        self.folder = folder
        self._authority = trustme.CA(organization_name="falcon-kube")
        self.authority = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.authority))
        self.server = self._issue("server", *LOOPBACK)
        self.accounts = self._issue("accounts", "accounts.invalid")[1]
        self.people = {file: self._issue(file, "client.invalid", user=user) for file, user in PEOPLE.items()}

    def _issue(self, file: str, *names: str, user: tuple[str, str] | None = None) -> tuple[Path, Path]:
        common, group = user or (None, None)
        issued = self._authority.issue_cert(*names, common_name=common, organization_name=group)
        certificate, key = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        certificate.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
        key.touch(mode=0o600)
        issued.private_key_pem.write_to_path(str(key))
        return certificate, key

    def kubeconfig(self, person: str, server: str) -> Path:
        """Write a kubeconfig for one of PEOPLE; returns its path."""
        return write_config(self.folder / f"{person}.kubeconfig", {"it": self.context(person, server)})

    def context(self, person: str, server: str) -> "Context":
        """Return how one of PEOPLE reaches the server."""
        certificate, key = self.people[person]
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        return Context(server, self.authority, user)


@frozen
class Context:
    """A server, the file with its CA, and who speaks to it, as kubeconfig files say that."""

    server: str
    authority: Path
    user: Mapping[str, str] = field(factory=dict)


def write_config(path: Path, contexts: Mapping[str, Context]) -> Path:
    """Write a kubeconfig, the first context being the current one; returns its path. JSON is YAML."""
    clusters, users, names = [], [], list(contexts)
    for name, each in contexts.items():
        server = {"server": each.server, "certificate-authority": str(each.authority)}
        clusters.append({"name": name, "cluster": server})
        users.append({"name": name, "user": dict(each.user)})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": clusters,
        "users": users,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in names],
        "current-context": names[0],
    }
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
    return path
