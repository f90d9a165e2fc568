"""What Falcon may do in a cluster, exactly: the Kubernetes half of what an operator grants it."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from control_plane.client import Client, Json

ROLES = Path(__file__).resolve().parent.parent / "deploy" / "edge" / "cluster-roles.yaml"
"""What an administrator applies to a real cluster; there is no second list."""

RIGHTS = tuple(
    (rule["apiGroups"][0], rule["resources"][0], tuple(rule["verbs"]))
    for role in yaml.safe_load_all(ROLES.read_text(encoding="utf-8"))
    for rule in role["rules"]
)
"""API group, resource, verbs."""

Rights = Iterable[tuple[str, str, Iterable[str]]]
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def rules(rights: Rights) -> list[Json]:
    """Return rights as a ClusterRole has them."""
    return [{"apiGroups": [group], "resources": [kind], "verbs": list(verbs)} for group, kind, verbs in rights if verbs]


def grant(client: Client, user: str, rights: Rights = RIGHTS, name: str = "falcon-rm") -> None:
    """Let *user* do this and nothing else; *client* may do everything."""
    role: Json = {"metadata": {"name": name}, "rules": rules(rights)}
    binding: Json = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    client.must("POST", f"{RBAC}/clusterroles", role)
    client.must("POST", f"{RBAC}/clusterrolebindings", binding)
