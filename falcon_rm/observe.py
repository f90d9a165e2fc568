"""
Read the world once: rows, then pools, then workloads, and the ids that a sweep would judge once more.

1. Reads only. What cannot be read whole stays None in the snapshot: unknown, never absent.
2. Clusters are read side by side, each in a thread that its deadline leaves behind: a hanging one costs the others
   nothing, and nobody waits for it at the end of the process.
3. Pods, events and nodes are read only for jobs whose next step depends on them; operations only while a pool of ours
   is creating, hidden or broken; a reservation only where a waiting job asks for it.
4. An offline cluster is not read at all.
5. What was seen once counts as gone only if two lists, one right after the other, lack it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from threading import Semaphore, Thread
from typing import Any

import structlog
from attrs import evolve

from falcon_rm.core import names, pods
from falcon_rm.core.live import KubeEvent, LivePool, LiveWork, Pod, Reservation
from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Bounds, Cluster, ClusterView, Job, Pool, Snapshot, TaskSpec
from falcon_rm.core.room import mode_for, reservation_path
from falcon_rm.core.scene import ACQUIRING, phase_of, work_name
from falcon_rm.core.shapes import parse_type
from falcon_rm.core.situation import is_short
from falcon_rm.core.words import CloudError, ClusterStatus, ErrorKind, Mode, PoolState, PoolStatus
from falcon_rm.ports import Clouds, Compute, Kubernetes, Rows, Store

THREADS = 16
NAMES_A_CALL = 50
LOG = structlog.get_logger()

Readers = Callable[[], Executor]


class SideBySide(Executor):
    """Reads clusters side by side. The threads of ThreadPoolExecutor would be waited for at the end of the process."""

    def __init__(self) -> None:
        self._places = Semaphore(THREADS)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call in a thread of its own, as soon as there is a place."""
        answer: Future[Any] = Future()
        work = (answer, lambda: fn(*args, **kwargs))
        Thread(target=self._carry, args=work, name="observe", daemon=True).start()
        return answer

    def _carry(self, answer: Future[Any], work: Callable[[], Any]) -> None:
        with self._places:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(work())
            except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
                answer.set_exception(error)


def observe(store: Store, clouds: Clouds, bounds: Bounds, *, seconds: float, readers: Readers = SideBySide) -> Snapshot:
    """
    Return what one pass can see.

    Args:
        seconds: how long the clouds may take; a cluster that is later is unknown.
        readers: what reads the clusters, made anew for each pass.

    Raises:
        StoreDown: the database could not be read; there is no pass.
    """
    rows = store.read()
    views = _read_clusters(rows, clouds, seconds, readers())
    pools = (*rows.pools, *_named_again(store, rows, views))
    return Snapshot(
        now=rows.now,
        instance=rows.instance,
        bounds=bounds,
        jobs=rows.jobs,
        views=views,
        pools=pools,
        submissions=rows.submissions,
        slots=rows.slots,
        turns=rows.turns,
        failures=rows.failures,
        troubles=rows.troubles,
        later=store.statuses(_judged(rows, pools, views)),
    )


def _read_clusters(rows: Rows, clouds: Clouds, seconds: float, threads: Executor) -> tuple[ClusterView, ...]:
    """Read every cluster in its own thread; one that is late, or whose answers make no sense, is unknown."""
    readers: dict[Future[ClusterView], Cluster] = {}
    for cluster in rows.clusters:
        readers[threads.submit(_Reader(cluster, rows, clouds).read)] = cluster
    wait(readers, timeout=seconds)
    views = []
    for reader, cluster in readers.items():
        if not reader.done():
            views.append(_unread(cluster, f"no answer within {seconds:g} s", rows))
            continue
        error = reader.exception()
        if error is not None:  # one cluster's strange answers are fenced off here
            LOG.error("Could not make sense of a cluster", cluster=cluster.name, exc_info=error)
            views.append(_unread(cluster, f"strange answer: {type(error).__name__}: {error}", rows))
        else:
            views.append(reader.result())
    for reader in readers:
        reader.cancel()  # one that found no place in time
    return tuple(views)


def _unread(cluster: Cluster, problem: str, rows: Rows) -> ClusterView:
    health, zone = rows.health.get(cluster.id, (None, None))
    return ClusterView(cluster, problem=problem, health=health, known_zone=zone)


def _named_again(store: Store, rows: Rows, views: Sequence[ClusterView]) -> tuple[Pool, ...]:
    """Return ledger rows of listed pools that the first read left out since they are closed."""
    known = {(pool.cluster_id, pool.name) for pool in rows.pools}
    found: list[Pool] = []
    for view in views:
        ours = [
            pool.name
            for pool in view.pools or ()
            if (view.cluster.id, pool.name) not in known
            and names.is_ours(pool.name, pool.labels, instance=rows.instance, cluster_id=view.cluster.id)
        ]
        if ours:
            found += store.pools_named(view.cluster.id, ours)
    return tuple(found)


def _judged(rows: Rows, pools: Sequence[Pool], views: Sequence[ClusterView]) -> set[str]:
    """Return the ids of jobs that something of ours belongs to, but that are not among the live rows."""
    live = {job.id for job in rows.jobs}
    named = {pool.lease for pool in pools if pool.lease} | {slot.holder for slot in rows.slots if slot.holder}
    for view in views:
        named |= {work.annotations.get(names.JOB_ID) or work.labels.get(names.JOB_ID, "") for work in view.works or ()}
    return named - live


def find_zone(
    cluster: Cluster, locations: Sequence[str], known: str | None, compute: Compute
) -> tuple[str | None, str | None]:
    """
    Return the zone of new pools, or what is wrong: as set, the location, the known one, the reservation's, the first.

    Args:
        cluster: whose pools.
        locations: the cluster's own zones.
        known: what an earlier pass found.
        compute: asked where the reservation is, if that is not known.
    """
    if cluster.zone:
        return cluster.zone, None
    if cluster.location.count("-") > 1:
        return cluster.location, None
    if known and (known in locations or cluster.default_reservation):
        return known, None
    path = reservation_path(cluster)
    if path:
        _, project, _, name, *_ = path.split("/")
        zones = compute.find_reservation(project, name)
        if len(zones) != 1:
            return None, f"reservation {path} found in {len(zones)} zones: set the cluster's zone"
        return zones[0], None
    return (locations[0], None) if locations else (None, "a region without a usable zone: set the cluster's zone")


class _Reader:
    """Reads one cluster; every failure of a cloud becomes the view's problem and leaves the rest unknown."""

    def __init__(self, cluster: Cluster, rows: Rows, clouds: Clouds) -> None:
        self.cluster = cluster
        self.rows = rows
        self.clouds = clouds
        self.health, self.known_zone = rows.health.get(cluster.id, (None, None))
        self.jobs = [(job, phase_of(job)) for job in rows.jobs if job.cluster_id == cluster.id]
        self.ledger = {pool.name: pool for pool in rows.pools if pool.cluster_id == cluster.id}

    def read(self) -> ClusterView:
        """Return what can be seen of the cluster."""
        view = ClusterView(self.cluster, health=self.health, known_zone=self.known_zone)
        if self.cluster.status is ClusterStatus.OFFLINE:
            return evolve(view, problem="offline")
        if parse_type(self.cluster.tpu_type) != self.cluster.tpu_type:
            return evolve(view, problem=f"unknown TPU type {self.cluster.tpu_type!r}")
        try:
            return self._read(view)
        except CloudError as error:
            return evolve(view, problem=error.text)

    def _read(self, view: ClusterView) -> ClusterView:
        info = self.clouds.gke.get_cluster(self.cluster)
        zone, zone_problem = find_zone(self.cluster, info.locations, self.known_zone, self.clouds.compute)
        view = evolve(view, zone=zone, problem=zone_problem, pools=self._pools())
        if self._looks_at_operations(view.pools or ()):
            try:
                location = self.cluster.location
                view = evolve(view, operations=self.clouds.gke.list_operations(self.cluster.project, location))
            except CloudError as error:
                return evolve(view, pools=None, problem=error.text)
        if zone and self._looks_at_reservation():
            try:
                view = self._with_reservation(zone, info.locations, view)
            except CloudError as error:
                view = evolve(view, room_problem=error.text)
        kube = self.clouds.kubernetes(self.cluster, info)
        try:
            return self._read_kubernetes(kube, view)
        except CloudError as error:
            return evolve(view, problem=f"Kubernetes: {error.text}")

    def _pools(self) -> tuple[LivePool, ...]:
        """Return the cluster's pools; asked for again if one that was seen is missing."""
        listed = self.clouds.gke.list_pools(self.cluster)
        seen = {pool.name for pool in self.ledger.values() if pool.seen_at is not None}
        if seen <= {pool.name for pool in listed}:
            return listed
        again = self.clouds.gke.list_pools(self.cluster)
        return tuple({pool.name: pool for pool in (*listed, *again)}.values())

    # --- the reservation

    def _looks_at_reservation(self) -> bool:
        """Return whether a job waits that this cluster's reservation could serve."""
        if not self.cluster.default_reservation or self.cluster.status is not ClusterStatus.ACTIVE:
            return False
        return any(
            isinstance(job.task, TaskSpec)
            and job.task.tpu_type == self.cluster.tpu_type
            and mode_for(job.task, self.cluster) is Mode.RESERVATION
            and phase_of(job) is Phase.WAITING
            for job in self.rows.jobs
        )

    def _with_reservation(self, zone: str, locations: Sequence[str], view: ClusterView) -> ClusterView:
        """Return the view with the reservation; one that is not in the zone known from before is looked for anew."""
        try:
            return evolve(view, reservation=self._reservation(zone))
        except CloudError as error:
            if error.kind is not ErrorKind.GONE or zone != self.known_zone:
                raise
            other, problem = find_zone(self.cluster, locations, None, self.clouds.compute)
            if other == zone:
                raise
        if other is None:
            return evolve(view, room_problem=problem)  # the zone stays good for all that needs no reservation
        return evolve(view, zone=other, reservation=self._reservation(other))

    def _reservation(self, zone: str) -> Reservation:
        _, project, _, name, *_ = (reservation_path(self.cluster) or "").split("/")
        return evolve(
            self.clouds.compute.get_reservation(project, zone, name), path=reservation_path(self.cluster) or ""
        )

    def _looks_at_operations(self, listed: Sequence[LivePool]) -> bool:
        """Return whether a pool of ours is creating, hidden or broken."""
        status = {pool.name: pool.status for pool in listed}
        well = (PoolStatus.RUNNING, PoolStatus.RECONCILING, PoolStatus.STOPPING)
        return any(
            status.get(pool.name) not in well and pool.state is not PoolState.DELETED and pool.requested_at is not None
            for pool in self.ledger.values()
        )

    # --- Kubernetes

    def _read_kubernetes(self, kube: Kubernetes, view: ClusterView) -> ClusterView:
        works = self._works(kube)
        by_name = {work.name: work for work in works}
        looked = {
            work_name(job): job
            for job, phase in self.jobs
            if self._looks_at_pods(job, phase, by_name.get(work_name(job)))
        }
        found = self._pods(kube, sorted(looked)) if looked else None
        slow = self._slow(looked, by_name, found or ())
        return evolve(
            view,
            works=works,
            looked_at=frozenset(looked),
            pods=found,
            events=self._events(kube, slow) if slow else (),
            ready_nodes=self._ready_nodes(kube, view.pools or (), looked),
        )

    def _works(self, kube: Kubernetes) -> tuple[LiveWork, ...]:
        """Return our Jobs; asked for again if one whose UID is in a row is missing."""
        ours = names.selector(self.rows.instance, self.cluster.id)
        listed = kube.list_works(ours)
        seen = {work_name(job) for job, _ in self.jobs if job.job_uid}
        if seen <= {work.name for work in listed}:
            return listed
        return tuple({work.name: work for work in (*listed, *kube.list_works(ours))}.values())

    def _pods(self, kube: Kubernetes, looked: Sequence[str]) -> tuple[Pod, ...]:
        """Return the pods of these Jobs; a selector names a bounded number of them."""
        ours = names.selector(self.rows.instance, self.cluster.id)
        found: list[Pod] = []
        for start in range(0, len(looked), NAMES_A_CALL):
            found += kube.list_pods(f"{ours},job-name in ({','.join(looked[start : start + NAMES_A_CALL])})")
        return tuple(found)

    def _events(self, kube: Kubernetes, slow: Collection[str]) -> tuple[KubeEvent, ...] | None:
        """Return the warnings about these Jobs and pods; that they cannot be read hides nothing else."""
        try:
            return kube.list_events(slow)
        except CloudError as error:
            LOG.warning("Could not read a cluster's events", cluster=self.cluster.name, error=error.text)
            return None

    def _looks_at_pods(self, job: Job, phase: Phase | None, work: LiveWork | None) -> bool:
        """Return whether a job's next step depends on its pods."""
        if phase in (Phase.ENDING, Phase.ABORTING):
            return job.attempt > 0
        if work is None or phase not in (*ACQUIRING, Phase.RUNNING):
            return False
        failed = "Failed" in work.conditions and work.conditions["Failed"].status
        return phase is not Phase.RUNNING or failed or is_short(work)

    def _slow(self, looked: Mapping[str, Job], works: Mapping[str, LiveWork], found: Sequence[Pod]) -> Collection[str]:
        """Return names of Jobs and pods whose events may say why they do not start."""
        slow: list[str] = []
        for name, job in looked.items():
            seen = [pod for pod in found if pod.work == name]
            starting = name in works and phase_of(job) is Phase.DISPATCHING
            if starting and pods.count_running(seen) < works[name].parallelism:
                slow += [name, *(pod.name for pod in seen if pod.phase == "Pending")]
        return slow

    def _ready_nodes(self, kube: Kubernetes, listed: Sequence[LivePool], looked: Collection[str]) -> Mapping[str, int]:
        """Return how many nodes are Ready, by pool, of those whose nodes decide."""
        counts = dict.fromkeys(self._looks_at_nodes(listed, looked), 0)
        if counts:
            for pool in kube.list_ready_nodes(sorted(counts)).values():
                counts[pool] = counts.get(pool, 0) + 1
        return counts

    def _looks_at_nodes(self, listed: Sequence[LivePool], looked: Collection[str]) -> set[str]:
        """Return the pools whose nodes decide: of acquiring jobs, of running ones short of pods, and the free ones."""
        up = {pool.name for pool in listed if pool.status is not PoolStatus.STOPPING}
        wanted = {job.node_pool_name for job, phase in self.jobs if phase in ACQUIRING}
        wanted |= {
            job.node_pool_name for job, phase in self.jobs if phase is Phase.RUNNING and work_name(job) in looked
        }
        wanted |= {pool.name for pool in self.ledger.values() if pool.lease is None and pool.state is PoolState.ACTIVE}
        return {name for name in wanted if name in up and name is not None}
