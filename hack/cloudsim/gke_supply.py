"""
Where the simulated GKE finds machines: capacity of zones, quota of projects, room in reservations.

1. A full reservation and, unless it is `late`, a quota refuse a create at once; a zone without machines only later.
2. What a pool holds is counted from the grant on, whether or not its nodes have registered.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from cloudsim.errors import SimError
from cloudsim.gke_check import affinity_of, late_refusal, machine_of
from cloudsim.machines import Machine
from cloudsim.values import Json

if TYPE_CHECKING:
    from cloudsim.compute import ReservationRecord
    from cloudsim.gke_pools import Pool
    from cloudsim.world import World

INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 3, 8
Refusal = tuple[int, str, str]  # google.rpc.Code, text, code of the pool's condition


@frozen
class Quota:
    """A limit on the chips of one machine type in a project."""

    chips: int
    metric: str
    late: bool = False  # the refusal stands in the operation


def region_of(location: str) -> str:
    """Return the region of a region or zone."""
    return location if location.count("-") == 1 else location.rsplit("-", 1)[0]


class Supply:
    """Machines, and who may have them."""

    def __init__(self, world: "World", pools: Mapping[tuple[str, str], "Pool"]) -> None:
        self.world = world
        self.pools = pools
        self.capacities: dict[tuple[str, str, str], int] = {}  # zone, mode, machine type -> chips
        self.quotas: dict[tuple[str, str], Quota] = {}  # project, machine type

    # what a request names

    def policy(self, path: str, spec: Json) -> Json | None:
        """Return the resource policy that a pool names, None if there is none or it names none."""
        _, project, _, location, *_ = path.split("/")
        name = spec.get("placementPolicy", {}).get("policyName")
        return self.world.compute.policy(project, region_of(location), str(name)) if name else None

    def reservation(self, path: str, spec: Json, zone: str) -> "ReservationRecord":
        """Return the reservation that a pool names, or answer that there is none."""
        value = str(spec["config"]["reservationAffinity"]["values"][0])
        words = value.split("/")
        shared = words[0] == "projects" and len(words) >= 4
        owner, name = (words[1], words[3]) if shared else (path.split("/")[1], value)
        record = self.world.compute.reservation(owner, zone, name)
        if record is None:
            where = f'node pool "{spec["name"]}" at zone "{zone}"'
            text = f'Google Compute Engine: reservation "{name}" not found for {where}'
            raise SimError("NOT_FOUND", text, reason="notFound")
        return record

    # refusals at once

    def refuse(self, path: str, spec: Json, zone: str) -> None:
        """Refuse a pool whose reservation or policy is not there or full, or that is over a quota."""
        _, project, _, location, *_ = path.split("/")
        policy, machine = spec.get("placementPolicy", {}).get("policyName"), machine_of(spec)
        if policy and self.policy(path, spec) is None:
            where = f"projects/{project}/regions/{region_of(location)}/resourcePolicies/{policy}"
            raise SimError("INVALID_ARGUMENT", f"Resource policy {where} not found.")
        if machine is None:
            return
        if affinity_of(spec) == "SPECIFIC_RESERVATION":
            self._refuse_full(self.reservation(path, spec, zone), machine, spec, zone)
        else:
            self._refuse_quota(project, machine, spec)

    def _refuse_full(self, record: "ReservationRecord", machine: Machine, spec: Json, zone: str) -> None:
        need = spec.get("initialNodeCount", 0)
        short = need - max(0, record.free) // record.unit(machine)
        if record.ready and record.fits(machine) and short > 0:
            raise SimError(
                "RESOURCE_EXHAUSTED",
                "Reservation does not have enough resources for the request: specific reservation "
                f'"{record.name}" is insufficient for node pool "{spec["name"]}" at zone "{zone}": '
                f"required {need} and short of {short} VM count of machine type {machine.name}",
                reason="resourceExhausted",
            )

    def _refuse_quota(self, project: str, machine: Machine, spec: Json) -> None:
        limit = self.quotas.get((project, machine.name))
        chips, used = spec.get("initialNodeCount", 0) * machine.chips, self.used(project, machine)
        if limit is not None and not limit.late and used + chips > limit.chips:
            raise SimError(
                "PERMISSION_DENIED",
                f'Insufficient regional quota to satisfy request: resource "{limit.metric}": request requires '
                f"'{chips}.0' and is short '{used + chips - limit.chips}.0'. project has a quota of '{limit.chips}.0' "
                f"with '{max(0, limit.chips - used)}.0' available.",
                reason="forbidden",
            )

    def used(self, project: str, machine: Machine) -> int:
        """Return the chips of a type that count against a project's quota."""
        return sum(
            pool.chips
            for pool in self.pools.values()
            if pool.granted and pool.machine is machine and pool.reservation is None and pool.project == project
        )

    # refusals in the operation

    def late_refusal(self, pool: "Pool") -> Refusal | None:
        """Return what goes wrong after the create was accepted, None if nothing does."""
        if (text := late_refusal(pool.spec, self.policy(pool.path, pool.spec))) is not None:
            return INVALID_ARGUMENT, text, ""
        if pool.machine is None:
            return None
        if pool.reservation is not None:
            return self.reservation(pool.path, pool.spec, pool.zone).refusal(pool.project, pool.machine)
        limit = self.quotas.get((pool.project, pool.machine_type))
        if limit is None or not limit.late or pool.flex:
            return None
        if self.used(pool.project, pool.machine) + pool.chips <= limit.chips:
            return None
        cause = f"Quota '{limit.metric}' exceeded. Limit: {limit.chips}.0"
        text = not_all_running(pool, "43.56s", "GCE_QUOTA_EXCEEDED", cause)
        return RESOURCE_EXHAUSTED, f"Insufficient quota to satisfy the request: {text}", "GCE_QUOTA_EXCEEDED"

    def stockout(self, pool: "Pool") -> Refusal:
        """Return what GKE says when it has looked for machines long enough."""
        minutes, seconds = divmod(int(self.world.tempo.stockout_seconds), 60)
        cause = (
            f"The zone 'projects/{pool.project}/zones/{pool.zone}' does not have enough resources available to fulfill "
            "the request. Try a different zone, or try again later."
        )
        text = not_all_running(pool, f"{minutes}m{seconds}s", "GCE_STOCKOUT", cause)
        return RESOURCE_EXHAUSTED, f"Google Compute Engine: {text}", "GCE_STOCKOUT"

    # grants

    def grant(self, pool: "Pool") -> bool:
        """Give a pool its machines, if there are so many."""
        key = (pool.zone, pool.mode, pool.machine_type)
        limit = self.capacities.get(key)
        if limit is not None:
            granted = (item for item in self.pools.values() if item.granted)
            used = sum(item.chips for item in granted if (item.zone, item.mode, item.machine_type) == key)
            if used + pool.chips > limit:
                return False
        if pool.reservation is not None and pool.machine is not None:
            record = self.world.compute.reservation(pool.reservation[0], pool.zone, pool.reservation[1])
            if record is None or record.free < pool.hosts * record.unit(pool.machine):
                return False
        pool.granted, pool.waiting = True, False
        self.world.compute.counted(pool)
        return True

    def give_back(self, pool: "Pool") -> None:
        """Take the machines of a pool back."""
        if pool.granted:
            pool.granted = False
            self.world.compute.counted(pool)


def not_all_running(pool: "Pool", took: str, code: str, cause: str) -> str:
    """Return the sentence in which GKE reports that instances did not come up."""
    instance = f"gke-{pool.path.split('/')[5][:16]}-{pool.name[:16]}-0000"
    return (
        f"Not all instances running in IGM after {took}. Expected {pool.hosts}, running 0, transitioning "
        f"{pool.hosts}. Current errors: [{code}]: Instance '{instance}' creation failed: {cause}"
    )
