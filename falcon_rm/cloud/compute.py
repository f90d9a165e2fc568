"""
Google Compute Engine: reservations and workload policies (google-cloud-compute over REST).

1. Counts that make no sense are unknown, not room (gke.md 5). So is an answer from which a zone is missing.
2. A workload policy is made once for a topology and region and shared; one of that name with other content is never
   used and never touched (P40).
3. The library is imported at the first call: that takes seconds, and most passes need no answer from here.
"""

import threading
from collections.abc import Iterable
from typing import Any

from falcon_rm.cloud.asked import Name
from falcon_rm.cloud.credential import Credential
from falcon_rm.cloud.errors import bounded, translating
from falcon_rm.cloud.retry import Deadline, ask, within
from falcon_rm.core.errors import Call, classify
from falcon_rm.core.live import Reservation
from falcon_rm.core.words import CloudError, ErrorKind

POLICY_TYPE = "HIGH_THROUGHPUT"
POLICY_MOVING = ("CREATING", "DELETING")

HARMLESS_WARNINGS = ("", "NO_RESULTS_ON_PAGE")
"""What a zone without reservations says; every other warning means that something is missing."""


def reservation(raw: Any, *, project: str, name: str) -> Reservation:
    """
    Return a reservation as Compute shows it.

    Args:
        raw: compute_v1.Reservation.
        project: its owner.
        name: its name.

    Raises:
        CloudError: UNKNOWN, if it counts neither VMs nor chips, or its numbers cannot be.
    """
    machine_type = None
    if "specific_reservation" in raw:
        unit, machines = "vm", raw.specific_reservation
        total, used = machines.count, machines.in_use_count
        machine_type = machines.instance_properties.machine_type.rsplit("/", 1)[-1] or None
    elif "aggregate_reservation" in raw:
        unit = "chip"
        total = _chips(raw.aggregate_reservation.reserved_resources)
        used = _chips(raw.aggregate_reservation.in_use_resources)
    else:
        raise CloudError(ErrorKind.UNKNOWN, f"reservation {name} counts neither VMs nor chips")
    if not 0 <= used <= total:
        raise CloudError(ErrorKind.UNKNOWN, f"reservation {name} says {used} of {total} in use")
    return Reservation(
        path=f"projects/{project}/reservations/{name}",
        ready=raw.status == "READY",
        unit=unit,
        total=total,
        used=used,
        machine_type=machine_type,
    )


def _chips(resources: Iterable[Any]) -> int:
    return sum(int(resource.accelerator.accelerator_count) for resource in resources)


def zones_with(pages: Iterable[Any], name: str) -> tuple[str, ...]:
    """
    Return the zones that have a reservation of this name.

    Args:
        pages: compute_v1.ReservationAggregatedList, each.
        name: the reservation.

    Raises:
        CloudError: UNKNOWN, if any zone did not answer.
    """
    zones = []
    for page in pages:
        missing = list(page.unreachables)
        for scope, part in page.items.items():
            if part.warning.code not in HARMLESS_WARNINGS:
                missing.append(f"{scope} ({part.warning.code})")
            if any(entry.name == name for entry in part.reservations):
                zones.append(scope.removeprefix("zones/"))
        if missing or page.warning.code not in HARMLESS_WARNINGS:
            where = ", ".join(missing) or page.warning.code
            raise CloudError(ErrorKind.UNKNOWN, bounded(f"the list of reservations is incomplete: {where}"))
    return tuple(sorted(zones))


RESERVATIONS, POLICIES = "ReservationsClient", "ResourcePoliciesClient"


class ComputeAdapter:
    """
    Compute for one pass.

    Args:
        credential: shared by all clients.
        endpoint: host:port of another API server than Google's own; https unless it names a scheme.
        read_seconds: bound of a call that reads.
        write_seconds: bound of making a policy.
    """

    def __init__(
        self,
        *,
        credential: Credential,
        endpoint: str | None = None,
        read_seconds: float = 8,
        write_seconds: float = 30,
    ) -> None:
        self._credential = credential
        self._endpoint = endpoint
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}

    def get_reservation(self, project: str, zone: str, name: str) -> Reservation:
        """Return a reservation; raises GONE if there is none of this name."""
        deadline = Deadline(self._read_seconds)
        request = {"project": project, "zone": zone, "reservation": name}
        raw = self._call("read", RESERVATIONS, "get", request, deadline)
        return reservation(raw, project=project, name=name)

    def find_reservation(self, project: str, name: str) -> tuple[str, ...]:
        """Return the zones that have a reservation of this name."""
        deadline = Deadline(self._read_seconds)
        request = {"project": project, "filter": f"name = {name}"}

        def send() -> tuple[str, ...]:
            with translating("read"):
                listing = self._client(RESERVATIONS).aggregated_list
                return zones_with(listing(request=request, retry=None, timeout=deadline.left()).pages, name)

        asked = _name(RESERVATIONS, "aggregated_list")
        return ask(lambda: within(deadline, send), name=asked, call="read", credential=self._credential)

    def ensure_policy(self, *, project: str, region: str, name: str, topology: str) -> None:
        """
        Make the workload policy of a topology, unless it is there.

        Raises:
            CloudError: PERMANENT, if a policy of that name has other content; BUSY, while it is being made.
        """
        deadline = Deadline(self._write_seconds)
        place = {"project": project, "region": region}
        if self._has_policy(place, name, topology, deadline):
            return
        body = {"name": name, "workload_policy": {"type_": POLICY_TYPE, "accelerator_topology": topology}}
        request = {**place, "resource_policy_resource": body}
        try:
            made = self._call("create", POLICIES, "insert_unary", request, deadline)
        except CloudError as error:
            if error.kind is not ErrorKind.EXISTS:  # somebody was first
                raise
        else:
            _raise_failure(made)
        if not self._has_policy(place, name, topology, deadline):
            raise CloudError(ErrorKind.BUSY, f"policy {name} is being made")

    def _has_policy(self, place: dict[str, str], name: str, topology: str, deadline: Deadline) -> bool:
        request = {**place, "resource_policy": name}
        try:
            found = self._call("read", POLICIES, "get", request, deadline)
        except CloudError as error:
            if error.kind is ErrorKind.GONE:
                return False
            raise
        content = found.workload_policy
        if (content.type_, content.accelerator_topology) != (POLICY_TYPE, topology):
            has = f"{content.type_} {content.accelerator_topology}".strip() or "no workload policy"
            text = f"policy {name} has other content: {has}, needed {POLICY_TYPE} {topology}"
            raise CloudError(ErrorKind.PERMANENT, bounded(text))
        if found.status in POLICY_MOVING:
            raise CloudError(ErrorKind.BUSY, f"policy {name} is {found.status}")
        return True

    def _call(self, call: Call, kind: str, method: str, request: dict[str, Any], deadline: Deadline) -> Any:
        def send() -> Any:
            with translating(call):
                return getattr(self._client(kind), method)(request=request, retry=None, timeout=deadline.left())

        name = _name(kind, method)
        return ask(lambda: within(deadline, send), name=name, call=call, credential=self._credential)

    def _client(self, kind: str) -> Any:
        with self._lock:
            if kind not in self._clients:
                from google.cloud import compute_v1  # noqa: PLC0415 - seconds, see rule 3

                options = {"api_endpoint": self._endpoint} if self._endpoint else None
                made = getattr(compute_v1, kind)(credentials=self._credential.google(), client_options=options)
                self._clients[kind] = made
            return self._clients[kind]

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for client in self._clients.values():
                client.transport.close()


def _name(kind: str, method: str) -> Name:
    return Name("compute", f"{kind.removesuffix('Client')}.{method}")


def _raise_failure(made: Any) -> None:
    """Raise what an operation that has ended says; one that runs on says nothing."""
    if made.error.errors:
        text = bounded("; ".join(f"{entry.code}: {entry.message}" for entry in made.error.errors))
        raise CloudError(classify(call="operation", code="", text=text), text)
