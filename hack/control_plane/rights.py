"""What Falcon may do in a cluster, exactly: the Kubernetes half of what an operator grants it."""

from collections.abc import Iterable

from control_plane.client import Client, Json

RIGHTS = (
    ("batch", "jobs", ("get", "list", "create", "delete")),
    ("", "pods", ("list",)),
    ("", "events", ("list",)),
    ("", "nodes", ("list",)),
    ("", "services", ("get", "create")),
    ("", "serviceaccounts", ("get", "create")),
    ("", "namespaces", ("create",)),
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
