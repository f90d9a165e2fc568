"""
The simulated Kubernetes API of one cluster: plain Kubernetes JSON in and out, KubeError for every refusal.

kinds: namespaces serviceaccounts services jobs pods nodes events. A namespace of None is "all namespaces" in `list`,
and the only one for namespaces and nodes. `delete` takes a DeleteOptions object and returns the object being deleted,
or a Status if it is gone at once. A list is a List object: {kind, apiVersion, metadata{resourceVersion, continue,
remainingItemCount}, items}.
"""

from typing import TYPE_CHECKING

from cloudsim.values import Json

if TYPE_CHECKING:
    from cloudsim.world import SimCluster, World


class Kube:
    """One cluster's API server with its controllers, scheduler and kubelets."""

    def __init__(self, world: "World", cluster: "SimCluster") -> None:
        self.world = world
        self.cluster = cluster

    def create(self, kind: str, namespace: str | None, obj: Json) -> Json:
        """Create an object; returns it as stored."""
        raise NotImplementedError

    def get(self, kind: str, namespace: str | None, name: str) -> Json:
        """Return an object."""
        raise NotImplementedError

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int | None = None,
        continue_: str | None = None,
    ) -> Json:
        """Return a List object."""
        raise NotImplementedError

    def delete(self, kind: str, namespace: str | None, name: str, options: Json | None = None) -> Json:
        """Delete an object by the DeleteOptions *options*: preconditions, propagationPolicy, gracePeriodSeconds."""
        raise NotImplementedError

    def log(self, namespace: str, pod: str) -> str:
        """Return what the main container of a pod wrote."""
        raise NotImplementedError
