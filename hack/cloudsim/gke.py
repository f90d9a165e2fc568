"""
The simulated google.container.v1.ClusterManager. Arguments and answers are proto3 JSON of its messages: camelCase,
enums by name, Durations as "600s", zeros left out.

cluster   {name, location, locations[], status, endpoint, masterAuth{clusterCaCertificate}, currentMasterVersion,
           controlPlaneEndpointsConfig{dnsEndpointConfig{endpoint, allowExternalTraffic}, ipEndpointsConfig{enabled}}}
node pool {name, status, config{machineType, labels{}, ...}, initialNodeCount, locations[], placementPolicy{},
           autoscaling{}, management{}, statusMessage, conditions[{canonicalCode, message}], instanceGroupUrls[], selfLink}
operation {name, operationType, status, targetLink, selfLink, location, startTime, endTime, error{code, message}}
"""

from typing import TYPE_CHECKING

from cloudsim.faults import Answer
from cloudsim.values import Json

if TYPE_CHECKING:
    from cloudsim.world import World


class Gke:
    """Google Kubernetes Engine. *path* is projects/P/locations/L/clusters/C."""

    def __init__(self, world: "World") -> None:
        self.world = world

    def get_cluster(self, path: str) -> Json:
        """Return a cluster."""
        raise NotImplementedError

    def list_node_pools(self, path: str) -> list[Json]:
        """Return the node pools of a cluster."""
        raise NotImplementedError

    def get_node_pool(self, path: str, name: str) -> Json:
        """Return one node pool."""
        raise NotImplementedError

    def create_node_pool(self, path: str, node_pool: Json) -> Json:
        """Begin to make a node pool; returns the operation."""
        raise NotImplementedError

    def delete_node_pool(self, path: str, name: str) -> Json:
        """Begin to delete a node pool; returns the operation."""
        raise NotImplementedError

    def list_operations(self, parent: str) -> Answer:
        """Return the operations of projects/P/locations/L, the newest first; `missing_zones` says what lacks."""
        raise NotImplementedError

    def get_operation(self, name: str) -> Json:
        """Return the operation projects/P/locations/L/operations/OP."""
        raise NotImplementedError
