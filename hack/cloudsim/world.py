"""
One simulated world: Google Kubernetes Engine, Compute and the Kubernetes of each cluster, on one clock.

1. Everything happens under `lock`, in calls that pass the seam or in what the agenda holds.
2. Time is `now`, moved by `advance` alone. Chance is `random`, one seeded source.
3. `fork()` gives an independent copy: what is done to one is not seen by the other.
"""

import json
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from attrs import define, field

from cloudsim.chance import Chance
from cloudsim.clock import Agenda
from cloudsim.compute import Compute, ReservationRecord
from cloudsim.errors import SimError
from cloudsim.faults import Call, Faults, pass_seam
from cloudsim.gke import Gke
from cloudsim.gke_supply import Quota
from cloudsim.iam import refusal
from cloudsim.kube import Kube
from cloudsim.kube_pods import index_of
from cloudsim.onlookers import Onlookers
from cloudsim.tempo import Tempo
from cloudsim.values import Json
from cloudsim.workload import ANNOTATION, ATTEMPT, JOB_ID, Workload, for_pod, workload


@define(slots=False, eq=False)
class SimCluster:
    """A GKE cluster. The servers write the endpoints and the certificate when they know them."""

    path: str  # projects/P/locations/L/clusters/C
    zones: tuple[str, ...]
    machines: tuple[str, ...] | None = None  # machine types sold there; None: all
    ip_endpoint: str | None = None  # host or host:port
    ca_certificate: str | None = None  # base64 of PEM, as masterAuth.clusterCaCertificate has it
    dns_endpoint: str | None = None
    version: str = "1.35.3-gke.2347000"
    denied: set[tuple[str, str]] = field(factory=set)  # verb and kind that Kubernetes does not allow the caller
    gcs_fuse: bool = True  # the add-on
    workload_pool: str | None = None  # of Workload Identity; add_cluster sets the project's own
    upgrading_until: float | None = None  # GKE's own upgrade: pool operations are refused
    gone: bool = False  # GKE answers 404 for it

    @property
    def project(self) -> str:
        """The project's id."""
        return self.path.split("/")[1]

    @property
    def location(self) -> str:
        """The region or zone."""
        return self.path.split("/")[3]

    @property
    def name(self) -> str:
        """The cluster's own name."""
        return self.path.split("/")[5]


class World:
    """The world. `gke`, `compute` and `kube(path)` are its three kinds of API."""

    def __init__(self, seed: int = 0, start: float = 1_800_000_000.0, tempo: Tempo | None = None) -> None:
        self.lock = threading.RLock()
        self.now = start
        self.random = Chance(seed)
        self.tempo = tempo or Tempo()
        self.agenda = Agenda()
        self.calls: list[Call] = []
        self.effects: list[Call] = []  # those that changed something
        self.faults = Faults()
        self.clusters: dict[str, SimCluster] = {}
        self.default_workload = Workload()
        self.scripts_by_job_id: dict[str, Workload] = {}
        self.scripts: list[tuple[Callable[[Json], bool], Workload]] = []
        self.permissions: frozenset[str] | None = None  # what IAM grants the caller; None: everything
        self.buckets: dict[str, Json] = {}  # name -> {uniform, bindings}
        self.gke = Gke(self)
        self.compute = Compute(self)
        self._kubes: dict[str, Kube] = {}

    # time

    def after(self, seconds: float, act: Callable[..., None], *arguments: Any) -> None:
        """Let *act* happen in so many seconds."""
        self.agenda.add(self.now + seconds, act, arguments)

    def advance(self, seconds: float) -> None:
        """Let time pass, and everything that falls due meanwhile happen, in order."""
        with self.lock:
            until = self.now + seconds
            while (item := self.agenda.pop(until)) is not None:
                at, act, arguments = item
                self.now = max(self.now, at)
                act(*arguments)
            self.now = until

    def fork(self) -> "World":
        """Return an independent copy."""
        from cloudsim.fork import fork

        return fork(self)

    def let_go(self) -> None:
        """End a world that nobody looks at: its parts know each other, and would be found to be garbage late."""
        for part in (*self._kubes.values(), self.gke, self):
            part.__dict__.clear()

    # the seam

    def call(self, name: str, target: str, act: Callable[..., Any], *arguments: Any, mutating: bool = False) -> Any:
        """Pass a call through the seam: logged, struck by a fault if one was set for it, refused if IAM says so."""
        if self.permissions is not None and (error := refusal(self.permissions, name, target)) is not None:
            act = partial(_refuse, error)
        return pass_seam(self, Call(name, target, mutating, self.now, arguments), act)

    # what there is

    def add_cluster(
        self,
        path: str,
        zones: Sequence[str] = (),
        machines: Sequence[str] | None = None,
        *,
        ip_endpoint: str | None = "127.0.0.1",
        ca_certificate: str | None = None,
        dns_endpoint: str | None = None,
    ) -> SimCluster:
        """Make a cluster with one CPU pool. *zones*: its locations; by default one zone."""
        with self.lock:
            location = path.split("/")[3]
            where = tuple(zones) or ((location,) if location.count("-") == 2 else (f"{location}-a",))
            sold = None if machines is None else tuple(machines)
            cluster = SimCluster(path, where, sold, ip_endpoint, ca_certificate, dns_endpoint)
            cluster.workload_pool = f"{cluster.project}.svc.id.goog"
            self.clusters[path] = cluster
            self._kubes[path] = Kube(self, cluster)
            self.gke.pools.add_ready(path, {"name": "default-pool", "initialNodeCount": 1}, where[0])
            return cluster

    @property
    def onlookers(self) -> Onlookers:
        """What those are told who only look."""
        return Onlookers(self)

    def kube(self, path: str) -> Kube:
        """Return the Kubernetes of a cluster; KeyError if there is no such cluster."""
        return self._kubes[path]

    def use_kube(self, path: str, kube: Kube) -> None:
        """Let another Kubernetes stand in the place of a cluster's."""
        self._kubes[path] = kube

    def add_reservation(
        self,
        project: str,
        zone: str,
        name: str,
        machine_type: str,
        count: int,
        *,
        in_use: int = 0,
        lag: float | None = None,
        aggregate: bool = False,
        shared_with: Sequence[str] = (),
    ) -> ReservationRecord:
        """Make a reservation of *count* VMs (chips, if *aggregate*); *in_use* of them by others."""
        record = ReservationRecord(
            project,
            zone,
            name,
            machine_type,
            count,
            others=in_use,
            shown=in_use,
            lag=lag,
            aggregate=aggregate,
            shared_with=tuple(shared_with),
        )
        with self.lock:
            self.compute.reservations[(project, zone, name)] = record
        return record

    def set_capacity(self, zone: str, mode: str, machine: str, chips: int | None) -> None:
        """Say how many chips of a machine type "on-demand" or "flex-start" has; None: as many as asked for."""
        with self.lock:
            if chips is None:
                self.gke.pools.supply.capacities.pop((zone, mode, machine), None)
            else:
                self.gke.pools.supply.capacities[(zone, mode, machine)] = chips
            self.gke.pools.retry()

    def set_quota(
        self,
        project: str,
        machine: str,
        chips: int | None,
        *,
        late: bool = False,
        metric: str = "TPUS_PER_TPU_FAMILY",
    ) -> None:
        """Limit a project's chips of a machine type; *late*: the refusal comes in the operation, not at once."""
        with self.lock:
            if chips is None:
                self.gke.pools.supply.quotas.pop((project, machine), None)
            else:
                self.gke.pools.supply.quotas[(project, machine)] = Quota(chips, metric, late)

    # what containers do

    def script(self, matcher: Callable[[Json], bool], chosen: Workload) -> None:
        """Say what the pods do for which *matcher*(pod) holds; the latest script that fits wins."""
        self.scripts.append((matcher, chosen))

    def workload_of(self, pod: Json) -> Workload:
        """Return what a pod's container does."""
        metadata = pod["metadata"]
        labels, index = metadata.get("labels") or {}, index_of(pod)
        chosen = self._script_of(pod)
        return for_pod(chosen, labels.get(ATTEMPT), index)

    def _script_of(self, pod: Json) -> Workload:
        metadata = pod["metadata"]
        if (text := (metadata.get("annotations") or {}).get(ANNOTATION)) is not None:
            return workload(json.loads(text))
        job_id = (metadata.get("labels") or {}).get(JOB_ID)
        if job_id in self.scripts_by_job_id:
            return self.scripts_by_job_id[job_id]
        for matcher, chosen in reversed(self.scripts):
            if matcher(pod):
                return chosen
        return self.default_workload


def _refuse(error: SimError, *_: Any) -> None:
    """Stand for a method that may not be called."""
    raise error
