"""
What IAM lets the caller do: each method needs the permissions that Google's documentation names (gke.md 2.5, 3.3).

1. A world without `permissions` asks nobody; with them, what is not granted is refused before anything happens.
2. Node pools have no permissions of their own: making and deleting one updates the cluster.
3. Whoever makes a node pool must also be allowed to act as its nodes' service account; that refusal is a 400.
4. A cluster's DNS endpoint is a Google service in front of Kubernetes: it asks before Kubernetes does.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import yaml

from cloudsim.errors import SimError

CONNECT = "container.clusters.connect"
ACT_AS = "iam.serviceAccounts.actAs"
NEEDED: Mapping[str, tuple[str, ...]] = {
    "gke.get_cluster": ("container.clusters.get",),
    "gke.list_node_pools": ("container.clusters.get",),
    "gke.get_node_pool": ("container.clusters.get",),
    "gke.create_node_pool": ("container.clusters.update", ACT_AS),
    "gke.delete_node_pool": ("container.clusters.update",),
    "gke.list_operations": ("container.operations.list",),
    "gke.get_operation": ("container.operations.get",),
    "compute.get_reservation": ("compute.reservations.get",),
    "compute.aggregated_reservations": ("compute.reservations.list",),
    "compute.get_resource_policy": ("compute.resourcePolicies.get",),
    "compute.insert_resource_policy": ("compute.resourcePolicies.create",),
    "compute.get_region_operation": ("compute.regionOperations.get",),
}
"""Call -> the permissions it needs; one that stands in no row needs none."""

ROLE = Path(__file__).resolve().parent.parent / "deploy" / "iam" / "falcon-controller.role.yaml"
"""The role that a real project grants; there is no second list."""


def granted() -> frozenset[str]:
    """Return what Falcon is granted: the role, and acting as the nodes' service account."""
    return frozenset({*yaml.safe_load(ROLE.read_text(encoding="utf-8"))["includedPermissions"], ACT_AS})


def refusal(permissions: Collection[str], call: str, target: str) -> SimError | None:
    """Return what Google answers to a call for which a permission is missing; None if there is none."""
    missing = next((permission for permission in NEEDED.get(call, ()) if permission not in permissions), None)
    if missing is None:
        return None
    if missing == ACT_AS:
        text = (
            'The user does not have access to service account "default". '
            "Ask a project owner to grant you the iam.serviceAccountUser role on the service account."
        )
        return SimError("INVALID_ARGUMENT", text, reason="badRequest")
    return SimError("PERMISSION_DENIED", required(missing, target), reason="forbidden")


def required(permission: str, target: str) -> str:
    """Return Google's words for a missing permission: GKE's of a cluster and what is in it, Compute's of the rest."""
    if permission.startswith("container."):
        return f'Required "{permission}" permission(s) for "{target.split("/nodePools/", 1)[0]}".'
    return f"Required '{permission}' permission for '{target}'"
