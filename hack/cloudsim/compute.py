"""
The simulated Compute Engine API: reservations and resource policies, as the JSON of its REST API (int64 as strings).

reservation {kind, name, zone, status, specificReservation{count, inUseCount, instanceProperties{machineType}},
             specificReservationRequired, shareSettings{shareType}, selfLink}; an aggregate one has aggregateReservation
             {vmFamily, workloadType, reservedResources[{accelerator{acceleratorCount, acceleratorType}}],
             inUseResources[...]} in place of specificReservation
policy      {kind, name, region, workloadPolicy{type, acceleratorTopology}, status, selfLink}
operation   {kind, name, operationType, status, progress, targetLink, region, selfLink}

1. What a reservation shows as in use lags behind what is in use; the room a create finds does not.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from attrs import define

from cloudsim.errors import SimError
from cloudsim.machines import MACHINES, VM_FAMILIES, Machine
from cloudsim.values import Json, clone, rfc3339

if TYPE_CHECKING:
    from cloudsim.gke_pools import Pool
    from cloudsim.world import World

API = "https://www.googleapis.com/compute/v1/"
POLICY_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
INVALID_ARGUMENT, FAILED_PRECONDITION = 3, 9


@define(slots=False, eq=False)
class ReservationRecord:
    """A reservation. *count*, *others* and *pools* are VMs, or chips of an aggregate one."""

    project: str
    zone: str
    name: str
    machine_type: str
    count: int
    others: int = 0  # in use by those who are not in this world
    pools: int = 0  # in use by node pools
    shown: int = 0  # what inUseCount says
    lag: float | None = None
    aggregate: bool = False
    shared_with: tuple[str, ...] = ()
    status: str = "READY"

    @property
    def ready(self) -> bool:
        """Whether machines can be drawn from it."""
        return self.status == "READY"

    @property
    def free(self) -> int:
        """What is really free."""
        return self.count - self.others - self.pools

    def unit(self, machine: Machine) -> int:
        """Return how much of it one VM takes."""
        return machine.chips if self.aggregate else 1

    def fits(self, machine: Machine) -> bool:
        """Whether it is of this machine type; an aggregate one, of its family."""
        same_family = MACHINES[self.machine_type].family == machine.family
        return same_family if self.aggregate else self.machine_type == machine.name

    def refusal(self, project: str, machine: Machine) -> tuple[int, str, str] | None:
        """Return code, text and condition of what GKE finds wrong when it makes the machines."""
        if not self.ready:
            text = f"Reservation {self.name} cannot be used: it requires reservation to be in READY state."
            return FAILED_PRECONDITION, text, ""
        if project != self.project and project not in self.shared_with:
            return INVALID_ARGUMENT, "The reservation must exist in the same project as the instance.", ""
        if not self.fits(machine):
            return INVALID_ARGUMENT, f"Reservation '{self.name}' is incorrect for the requested resources.", ""
        return None


class Compute:
    """Compute Engine."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.reservations: dict[tuple[str, str, str], ReservationRecord] = {}
        self.policies: dict[tuple[str, str, str], Json] = {}
        self.operations: dict[tuple[str, str, str], Json] = {}

    # what clients may call

    def get_reservation(self, project: str, zone: str, name: str) -> Json:
        """Return a reservation."""
        target = f"projects/{project}/zones/{zone}/reservations/{name}"
        call = self.world.call
        return cast(Json, call("compute.get_reservation", target, self._get_reservation, project, zone, name))

    def aggregated_reservations(self, project: str, name: str | None = None) -> dict[str, list[Json]]:
        """Return the reservations of a project by zone name, only those of this *name* if one is given."""
        call = self.world.call(
            "compute.aggregated_reservations", f"projects/{project}", self._aggregated, project, name
        )
        return cast(dict[str, list[Json]], call)

    def get_resource_policy(self, project: str, region: str, name: str) -> Json:
        """Return a resource policy."""
        target = f"projects/{project}/regions/{region}/resourcePolicies/{name}"
        call = self.world.call
        return cast(Json, call("compute.get_resource_policy", target, self._get_policy, project, region, name))

    def insert_resource_policy(self, project: str, region: str, body: Json) -> Json:
        """Make a resource policy; returns a region operation."""
        target = f"projects/{project}/regions/{region}/resourcePolicies/{body.get('name', '')}"
        act, name = self._insert_policy, "compute.insert_resource_policy"
        return cast(Json, self.world.call(name, target, act, project, region, clone(body), mutating=True))

    def get_region_operation(self, project: str, region: str, name: str) -> Json:
        """Return a region operation."""
        target = f"projects/{project}/regions/{region}/operations/{name}"
        call = self.world.call
        return cast(Json, call("compute.get_region_operation", target, self._get_operation, project, region, name))

    # what tests and other users of the project do

    def set_reservation(
        self,
        project: str,
        zone: str,
        name: str,
        *,
        count: int | None = None,
        in_use: int | None = None,
        status: str | None = None,
    ) -> None:
        """Change the size of a reservation, what others use of it, or its status."""
        with self.world.lock:
            record = self.reservations[(project, zone, name)]
            record.count = record.count if count is None else count
            record.others = record.others if in_use is None else in_use
            record.status = record.status if status is None else status
            self._show_later(record)
            self.world.gke.pools.retry()

    # what GKE asks

    def reservation(self, project: str, zone: str, name: str) -> ReservationRecord | None:
        """Return a reservation, None if there is none."""
        return self.reservations.get((project, zone, name))

    def policy(self, project: str, region: str, name: str) -> Json | None:
        """Return a resource policy, None if there is none."""
        return self.policies.get((project, region, name))

    def counted(self, pool: "Pool") -> None:
        """Take note that a pool got its machines or gave them up."""
        if pool.reservation is None or pool.machine is None:
            return
        record = self.reservations.get((pool.reservation[0], pool.zone, pool.reservation[1]))
        if record is not None:
            record.pools += pool.hosts * record.unit(pool.machine) * (1 if pool.granted else -1)
            self._show_later(record)

    def _show_later(self, record: ReservationRecord) -> None:
        lag = self.world.tempo.reservation_lag_seconds if record.lag is None else record.lag
        self.world.after(lag, self._show, record, record.others + record.pools)

    def _show(self, record: ReservationRecord, used: int) -> None:
        record.shown = used

    # the answers

    def _missing(self, path: str) -> SimError:
        return SimError("NOT_FOUND", f"The resource '{path}' was not found", reason="notFound")

    def _get_reservation(self, project: str, zone: str, name: str) -> Json:
        record = self.reservations.get((project, zone, name))
        if record is None:
            raise self._missing(f"projects/{project}/zones/{zone}/reservations/{name}")
        return shown(record)

    def _aggregated(self, project: str, name: str | None) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for record in self.reservations.values():
            if record.project == project and name in (None, record.name):
                found.setdefault(record.zone, []).append(shown(record))
        return found

    def _get_policy(self, project: str, region: str, name: str) -> Json:
        policy = self.policies.get((project, region, name))
        if policy is None:
            raise self._missing(f"projects/{project}/regions/{region}/resourcePolicies/{name}")
        return cast(Json, clone(policy))

    def _insert_policy(self, project: str, region: str, body: Json) -> Json:
        name = str(body.get("name", ""))
        path = f"projects/{project}/regions/{region}/resourcePolicies/{name}"
        if not POLICY_NAME.fullmatch(name):
            raise SimError("INVALID_ARGUMENT", f"Invalid value for field 'resource.name': '{name}'.", reason="invalid")
        if (project, region, name) in self.policies:
            raise SimError("ALREADY_EXISTS", f"The resource '{path}' already exists", reason="alreadyExists")
        here = f"{API}projects/{project}/regions/{region}"
        self.policies[(project, region, name)] = {
            **body,
            "kind": "compute#resourcePolicy",
            "region": here,
            "selfLink": API + path,
            "status": "READY",
            "creationTimestamp": rfc3339(self.world.now),
        }
        operation: Json = {
            "kind": "compute#operation",
            "name": f"operation-{int(self.world.now * 1000)}-{self.world.random.getrandbits(32):08x}",
            "operationType": "insert",
            "status": "DONE",
            "progress": 100,
            "targetLink": API + path,
            "region": here,
        }
        operation["selfLink"] = f"{here}/operations/{operation['name']}"
        self.operations[(project, region, operation["name"])] = operation
        return cast(Json, clone(operation))

    def _get_operation(self, project: str, region: str, name: str) -> Json:
        operation = self.operations.get((project, region, name))
        if operation is None:
            raise self._missing(f"projects/{project}/regions/{region}/operations/{name}")
        return cast(Json, clone(operation))


def resources(record: ReservationRecord, kind: str, chips: int) -> Sequence[Json]:
    """Return the accelerators of an aggregate reservation."""
    path = f"projects/{record.project}/zones/{record.zone}/acceleratorTypes/{kind}"
    return [{"accelerator": {"acceleratorCount": chips, "acceleratorType": path}}]


def shown(record: ReservationRecord) -> Json:
    """Return a reservation as the API shows it."""
    zone = f"{API}projects/{record.project}/zones/{record.zone}"
    share: Json = {"shareType": "LOCAL"}
    if record.shared_with:
        projects = {project: {"projectId": project} for project in record.shared_with}
        share = {"shareType": "SPECIFIC_PROJECTS", "projectMap": projects}
    answer: Json = {
        "kind": "compute#reservation",
        "name": record.name,
        "zone": zone,
        "selfLink": f"{zone}/reservations/{record.name}",
        "status": record.status,
        "specificReservationRequired": True,
        "shareSettings": share,
    }
    if record.aggregate:
        family, kind = VM_FAMILIES[MACHINES[record.machine_type].family]
        answer["aggregateReservation"] = {
            "vmFamily": family,
            "workloadType": "BATCH",
            "reservedResources": resources(record, kind, record.count),
            "inUseResources": resources(record, kind, record.shown) if record.shown else [],
        }
    else:
        answer["specificReservation"] = {
            "count": str(record.count),
            "inUseCount": str(record.shown),
            "assuredCount": str(record.count),
            "instanceProperties": {"machineType": record.machine_type},
        }
    return answer
