"""
The simulated Compute Engine API: reservations and resource policies, as the JSON of its REST API (int64 as strings).

reservation {kind, name, zone, status, specificReservation{count, inUseCount, instanceProperties{machineType}},
             specificReservationRequired, shareSettings{shareType}, selfLink}; an aggregate one has aggregateReservation
             {vmFamily, workloadType, reservedResources[{accelerator{acceleratorCount, acceleratorType}}], inUseResources}
policy      {kind, name, region, workloadPolicy{type, acceleratorTopology}, status, selfLink}
operation   {kind, name, operationType, status, progress, targetLink, region, selfLink}
"""

from typing import TYPE_CHECKING

from cloudsim.values import Json

if TYPE_CHECKING:
    from cloudsim.world import World


class Compute:
    """Compute Engine."""

    def __init__(self, world: "World") -> None:
        self.world = world

    def get_reservation(self, project: str, zone: str, name: str) -> Json:
        """Return a reservation."""
        raise NotImplementedError

    def aggregated_reservations(self, project: str, name: str | None = None) -> dict[str, list[Json]]:
        """Return the reservations of a project by zone name, only those of this *name* if one is given."""
        raise NotImplementedError

    def get_resource_policy(self, project: str, region: str, name: str) -> Json:
        """Return a resource policy."""
        raise NotImplementedError

    def insert_resource_policy(self, project: str, region: str, body: Json) -> Json:
        """Make a resource policy; returns a region operation."""
        raise NotImplementedError

    def get_region_operation(self, project: str, region: str, name: str) -> Json:
        """Return a region operation."""
        raise NotImplementedError
