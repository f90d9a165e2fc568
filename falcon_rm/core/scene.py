"""
A Snapshot with its indexes: the one place that says how rows and cloud objects are joined.

1. Built once a pass; nothing in it changes afterwards.
2. A pool joins its ledger row by (cluster id, name), a Kubernetes Job its attempt by name and labels.
3. Ours = the name's prefix and both ownership labels (names.is_ours); everything else is only counted.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from attrs import Factory, evolve, frozen

from falcon_rm.core import names
from falcon_rm.core.live import LivePool, LiveWork, Operation, Pod
from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Bounds, ClusterView, Failure, Job, Pool, Slot, Snapshot, Submission, TaskSpec
from falcon_rm.core.words import CPU_TOPOLOGY, ClusterStatus, Mode, Outcome, PoolState, PoolStatus, Reason, Status

Key = tuple[str, str]
K = TypeVar("K")
V = TypeVar("V")

PHASE: Mapping[tuple[str, str | None], Phase] = {
    (Status.PENDING, None): Phase.NEW,
    (Status.PENDING, ""): Phase.NEW,
    (Status.PENDING, Reason.WAITING): Phase.WAITING,
    (Status.PENDING, Reason.CLUSTER_BUSY): Phase.WAITING,
    (Status.PENDING, Reason.PROVISIONING): Phase.PROVISIONING,
    (Status.PENDING, Reason.WAITING_FOR_NODE): Phase.WAITING_FOR_NODE,
    (Status.PENDING, Reason.DISPATCHING): Phase.DISPATCHING,
}
TERMINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.ABORTED})
OUTCOMES = frozenset(Outcome)
ACQUIRING = frozenset({Phase.PROVISIONING, Phase.WAITING_FOR_NODE, Phase.DISPATCHING})


def phase_of(job: Job) -> Phase | None:
    """Return where a job stands; None for a row that makes no sense (unknown status, reason or outcome)."""
    if job.status in TERMINAL:
        return Phase.TERMINAL
    if job.status == Status.ABORTING:
        return Phase.ABORTING
    if job.outcome:
        return Phase.ENDING if job.outcome in OUTCOMES else None
    if job.status == Status.RUNNING:
        return Phase.RUNNING
    return PHASE.get((job.status, job.reason))


def work_name(job: Job) -> str:
    """Return the name of the Kubernetes Job of the current attempt; "" before the first."""
    return names.cloud_name(job.id, job.attempt) if job.attempt > 0 else ""


@frozen
class Scene:
    """The Snapshot of one pass, indexed."""

    snapshot: Snapshot
    jobs: Mapping[str, Job]
    phases: Mapping[str, Phase | None]
    views: Mapping[str, ClusterView]
    pools: Mapping[Key, Pool]
    live: Mapping[Key, LivePool]
    works: Mapping[Key, LiveWork]
    pods: Mapping[Key, tuple[Pod, ...]]
    operations: Mapping[Key, Operation]  # a pool's newest create operation
    submissions: Mapping[Key, Submission]
    failures: Mapping[Key, tuple[Failure, ...]]  # by (job, cluster)
    slots: Mapping[Key, Slot]
    waiting: Mapping[str, tuple[Job, ...]]  # by cluster id
    acquiring: Mapping[Key, tuple[Job, ...]]  # by (cluster id, topology)
    free: Mapping[str, tuple[Pool, ...]] = Factory(dict)  # by cluster id

    @property
    def bounds(self) -> Bounds:
        """The bounds in force."""
        return self.snapshot.bounds

    def age(self, at: float | None) -> float:
        """Return seconds since *at*, never below 0; 0 if it never was."""
        return max(0.0, self.snapshot.now - at) if at is not None else 0.0

    def ours(self, cluster_id: str, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pool or Job was made by this installation for this row of `clusters`."""
        return names.is_ours(name, labels, instance=self.snapshot.instance, cluster_id=cluster_id)

    def work_of(self, job: Job) -> LiveWork | None:
        """Return the listed Kubernetes Job of the current attempt; None if the list lacks it or was not read."""
        work = self.works.get((job.cluster_id or "", work_name(job)))
        return work if work and names.is_of(work.labels, job.id, job.attempt) else None

    def pods_of(self, job: Job) -> tuple[Pod, ...] | None:
        """Return the pods of the current attempt; None if they were not looked at or the read failed."""
        name = work_name(job)
        view = self.views.get(job.cluster_id or "")
        if view is None or view.pods is None or name not in view.looked_at:
            return None
        return self.pods.get((job.cluster_id or "", name), ())

    def submission_of(self, job: Job) -> Submission | None:
        """Return what the ledger keeps of the current attempt's Kubernetes Job; None if it was never asked for."""
        return self.submissions.get((job.cluster_id or "", work_name(job)))

    def is_prepared(self, job: Job, work: LiveWork) -> bool:
        """Return whether a listed Job stands suspended as Falcon made it: what others suspend later, they resume."""
        submission = self.submission_of(job)
        return work.suspended and (submission is None or submission.resumed_at is None)

    def pool_of(self, job: Job) -> Pool | None:
        """Return the ledger row of the pool that the job's row names."""
        return self.pools.get((job.cluster_id or "", job.node_pool_name or ""))

    def create_operation(self, cluster_id: str, name: str) -> Operation | None:
        """Return the newest create operation of a pool."""
        return self.operations.get((cluster_id, name))

    def trouble(self, cluster_id: str) -> Failure | None:
        """Return the cluster's own latest trouble if it is younger than the pause, else None."""
        recent = [
            failure
            for failure in self.snapshot.troubles
            if failure.cluster_id == cluster_id and self.age(failure.at) < self.bounds.cluster_pause
        ]
        return max(recent, key=lambda failure: failure.at, default=None)

    def is_idle_too_long(self, pool: Pool) -> bool:
        """Return whether a free pool is older than FALCON_IDLE of its mode."""
        limit = self.bounds.idle_flex if pool.mode is Mode.FLEX_START else self.bounds.idle
        return pool.idle_at is not None and self.age(pool.idle_at) > limit

    def free_pools(self, cluster_id: str) -> tuple[Pool, ...]:
        """Return the pools of a cluster that a waiting job could take, the furthest along first."""
        return self.free.get(cluster_id, ())

    def progress(self, pool: Pool) -> int:
        """Return how far a free pool is: 3 ready, 2 up, 1 creating, 0 not to be used (leased, broken, small, old)."""
        live = self.live.get((pool.cluster_id, pool.name))
        if pool.state is not PoolState.ACTIVE or pool.lease or pool.found or live is None:
            return 0
        if not self.ours(pool.cluster_id, pool.name, live.labels) or self.is_idle_too_long(pool):
            return 0
        if live.hosts < pool.hosts:
            return 0
        if live.status is PoolStatus.PROVISIONING:
            return 0 if self.age(pool.requested_at) > self.bounds.pool_timeout else 1
        if live.status in (PoolStatus.RUNNING, PoolStatus.RECONCILING):
            nodes = self.views[pool.cluster_id].ready_nodes.get(pool.name, pool.hosts)
            return 3 if pool.ready_at is not None and nodes >= pool.hosts else 2
        return 0


def fits(pool: Pool, task: TaskSpec) -> bool:
    """Return whether a pool has the job's shape, machine and (if it named one) mode."""
    shape = task.shape
    return (
        shape is not None
        and (pool.tpu_type, pool.topology, pool.machine_type) == (shape.tpu_type, shape.topology, shape.machine_type)
        and task.mode in (None, pool.mode)
    )


def scene(snapshot: Snapshot) -> Scene:
    """Index a Snapshot."""
    phases = {job.id: phase_of(job) for job in snapshot.jobs}
    views = {view.cluster.id: view for view in snapshot.views}
    pods: dict[Key, list[Pod]] = defaultdict(list)
    operations: dict[Key, Operation] = {}
    failures: dict[Key, list[Failure]] = defaultdict(list)
    waiting: dict[str, list[Job]] = defaultdict(list)
    acquiring: dict[Key, list[Job]] = defaultdict(list)
    for view in snapshot.views:
        for pod in view.pods or ():
            pods[view.cluster.id, pod.work].append(pod)
        for operation in sorted(view.operations or (), key=lambda operation: (operation.started, operation.name)):
            # The link may name the project by its number: a location's operations are told apart by cluster and pool.
            *_, kind, cluster, _, pool = ["", "", "", "", *operation.target.split("/")]
            if (kind, cluster) == ("clusters", view.cluster.gke):
                operations[view.cluster.id, pool] = operation
    for failure in snapshot.failures:
        failures[failure.job_id, failure.cluster_id].append(failure)
    for job in snapshot.jobs:
        if phases[job.id] is Phase.WAITING and job.cluster_id:
            waiting[job.cluster_id].append(job)
        elif phases[job.id] in ACQUIRING and job.cluster_id and job.topology and job.topology != CPU_TOPOLOGY:
            acquiring[job.cluster_id, job.topology].append(job)
    indexed = Scene(
        snapshot=snapshot,
        jobs={job.id: job for job in snapshot.jobs},
        phases=phases,
        views=views,
        pools={(pool.cluster_id, pool.name): pool for pool in snapshot.pools},
        live={(view.cluster.id, pool.name): pool for view in snapshot.views for pool in view.pools or ()},
        works={(view.cluster.id, work.name): work for view in snapshot.views for work in view.works or ()},
        pods=_frozen(pods),
        operations=operations,
        submissions={(row.cluster_id, row.name): row for row in snapshot.submissions},
        failures=_frozen(failures),
        slots={(slot.cluster_id, slot.topology): slot for slot in snapshot.slots},
        waiting=_frozen(waiting),
        acquiring=_frozen(acquiring),
    )
    return evolve(indexed, free=_free(indexed))


def _free(seen: Scene) -> dict[str, tuple[Pool, ...]]:
    """Return the pools that a waiting job could take, of each active cluster that was read."""
    found: dict[str, list[tuple[int, str, Pool]]] = defaultdict(list)
    for pool in seen.pools.values():
        view = seen.views.get(pool.cluster_id)
        if view is None or view.pools is None or view.cluster.status is not ClusterStatus.ACTIVE:
            continue
        progress = seen.progress(pool)
        if progress > 0:
            found[pool.cluster_id].append((-progress, pool.name, pool))
    return {cluster_id: tuple(pool for *_, pool in sorted(pools, key=_further)) for cluster_id, pools in found.items()}


def _further(free: tuple[int, str, Pool]) -> tuple[int, str]:
    return free[:2]


def _frozen(lists: Mapping[K, Sequence[V]]) -> dict[K, tuple[V, ...]]:
    return {key: tuple(values) for key, values in lists.items()}
