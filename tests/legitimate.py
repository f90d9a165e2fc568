"""
The headline of proof.md 3 as an oracle: every job is terminal or waits for what is true of the world, nothing of ours
leaks, and a world at rest stays at rest.

1. Judged by the rows against the simulated world itself; nothing is asked of the planner but its plan at rest.
2. A cluster that is offline, gone or cut off excuses its own jobs and objects, nobody else's.
"""

from collections.abc import Callable, Iterator

from cloudsim.gke_check import mode_of
from cloudsim.gke_pools import Pool as SimPool
from world import Falcon

from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Cluster, InvalidSpec, Job, Pool, TaskSpec
from falcon_rm.core.names import ATTEMPT, CLUSTER_ID, INSTANCE, JOB_ID, PREFIX, cloud_name
from falcon_rm.core.room import reservation_path
from falcon_rm.core.scene import ACQUIRING, TERMINAL, fits, phase_of
from falcon_rm.core.words import ClusterStatus, Mode, PoolState

FURTHER_PASSES = 100


def problems(falcon: Falcon) -> list[str]:
    """Return what is wrong with a world in which everything has had its time; nothing, if all is well."""
    return [*_jobs(falcon), *_leaks(falcon)]


def stays_at_rest(falcon: Falcon, passes: int = FURTHER_PASSES) -> None:
    """Make further passes, the interval between them: none plans anything, none changes what matters."""
    mark = falcon.fingerprint()
    for _ in range(passes):
        made = falcon.step()
        assert () == made.plan.actions, f"at rest it plans {made.plan.actions}"
        falcon.wait()
    assert not problems(falcon), problems(falcon)
    assert not falcon.is_over() or mark == falcon.fingerprint(), "at rest it changes"


def is_blind(falcon: Falcon, row: Cluster) -> bool:
    """Return whether nothing of a cluster can be read: offline, gone or cut off."""
    sim = falcon.sim.clusters.get(row.path)
    cut = any(fault.times is None for fault in falcon.sim.faults.set_up)
    return row.status is ClusterStatus.OFFLINE or sim is None or sim.gone or cut


# --- jobs


def _jobs(falcon: Falcon) -> Iterator[str]:
    for job in falcon.store.jobs.values():
        phase = phase_of(job)
        if phase is None or phase is Phase.TERMINAL:
            continue
        row = falcon.store.clusters.get(job.cluster_id or "")
        if phase not in (Phase.NEW, Phase.WAITING):
            if row is None:
                yield f"{job.id} is {job.status}/{job.reason}: its cluster is not there"
                continue
            if is_blind(falcon, row):
                continue
        reason = REASONS[phase](falcon, job)
        if reason:
            yield f"{job.id} is {job.status}/{job.reason}: {reason}"


def _new(falcon: Falcon, job: Job) -> str | None:
    return "it was never looked at"


def _waiting(falcon: Falcon, job: Job) -> str | None:
    """Why a job may not wait; None if the slot is another's, a time is ahead, no cluster fits, or room is short."""
    task, store = job.task, falcon.store
    if isinstance(task, InvalidSpec):
        return "its spec is invalid"
    able = [row for row in store.clusters.values() if _can_serve(falcon, row, task)]
    if not able:
        return None
    if job.retry_at is not None and job.retry_at > store.now:
        return None
    row = store.clusters.get(job.cluster_id or "")
    if row not in able:
        return "its cluster is no candidate and another one is"
    slot = store.slots.get((row.id, task.topology))
    if slot is not None and slot.holder not in (None, job.id):
        return None
    if _is_backing_off(falcon, job, row):
        return None
    if _mode(task, row) is Mode.RESERVATION and _is_short(falcon, job, task, row):
        return None
    return "nothing keeps it from starting"


def _can_serve(falcon: Falcon, row: Cluster, task: TaskSpec) -> bool:
    known_type = task.tpu_type in (None, row.tpu_type)
    has_mode = task.mode is not Mode.RESERVATION or row.default_reservation is not None
    active = row.status is ClusterStatus.ACTIVE and not is_blind(falcon, row)
    pause = falcon.bounds.cluster_pause
    troubled = any(
        trouble.cluster_id == row.id and falcon.store.now - trouble.at < pause
        for trouble in falcon.store.read().troubles
    )
    return known_type and has_mode and active and not troubled


def _is_backing_off(falcon: Falcon, job: Job, row: Cluster) -> bool:
    failures = falcon.store.read().failures
    ended = [failure.at for failure in failures if (failure.job_id, failure.cluster_id) == (job.id, row.id)]
    return bool(ended) and max(ended) + falcon.bounds.backoff_max > falcon.store.now


def _mode(task: TaskSpec, row: Cluster) -> Mode:
    return task.mode or (Mode.RESERVATION if row.default_reservation else Mode.FLEX_START)


def _is_short(falcon: Falcon, job: Job, task: TaskSpec, row: Cluster) -> bool:
    """Return whether a reservation lacks room for a slice, or keeps it for a job that waits longer."""
    name = (reservation_path(row) or "").split("/")[3]
    records = [record for record in falcon.sim.compute.reservations.values() if record.name == name]
    hosts = task.shape.hosts if task.shape else 0
    roomy = [r for r in records if r.ready and r.count - max(r.shown, r.others + r.pools) >= hosts]
    if not roomy:
        return True
    others = [other for other in falcon.store.jobs.values() if other.id != job.id]
    return any(other.reason == "ClusterBusy" and other.status == "Pending" for other in others)


def _provisioning(falcon: Falcon, job: Job) -> str | None:
    pool, ledger = _pool_of(falcon, job)
    if job.provisioning_at is None or falcon.store.now - job.provisioning_at > _longest(falcon):
        return "its pool is overdue"
    if pool is not None and pool.status == "RUNNING":
        return "its pool is up"
    return None if ledger is not None and ledger.lease == job.id else "it has no pool"


def _longest(falcon: Falcon) -> float:
    """Return how long a pool may be under way: one that was taken over was asked for earlier."""
    return falcon.bounds.pool_timeout + falcon.bounds.visibility_grace


def _waiting_for_node(falcon: Falcon, job: Job) -> str | None:
    pool, _ = _pool_of(falcon, job)
    if pool is None:
        return "its pool is gone"
    ready = [name for name in pool.nodes if _is_ready(falcon, pool, name)]
    return "all its nodes are ready" if len(ready) >= pool.hosts else None


def _is_ready(falcon: Falcon, pool: SimPool, name: str) -> bool:
    node = falcon.sim.kube(pool.path).store.find("nodes", None, name)
    return node is not None and node["status"]["conditions"][0]["status"] == "True"


def _working(falcon: Falcon, job: Job) -> str | None:
    row = falcon.store.clusters[job.cluster_id or ""]
    name = cloud_name(job.id, job.attempt)
    work = falcon.sim.kube(row.path).store.find("jobs", "falcon-jobs", name)
    if work is None:
        return "its Job is gone"
    ended = {item["type"] for item in work["status"].get("conditions", ()) if item["status"] == "True"}
    if ended & {"Complete", "Failed"}:
        return "its Job has ended"
    late = job.timeout_seconds and falcon.store.now - (job.dispatched_at or falcon.store.now) > job.timeout_seconds
    return "its time is over" if late else None


def _releasing(falcon: Falcon, job: Job) -> str | None:
    pool, ledger = _pool_of(falcon, job)
    if pool is not None and ledger is not None and pool.status == "STOPPING":
        return None
    return "nothing is being released"


def _pool_of(falcon: Falcon, job: Job) -> tuple[SimPool | None, Pool | None]:
    row = falcon.store.clusters[job.cluster_id or ""]
    name = job.node_pool_name or ""
    return falcon.sim.gke.pools.all.get((row.path, name)), falcon.store.pools.get((row.id, name))


REASONS: dict[Phase, Callable[[Falcon, Job], str | None]] = {
    Phase.NEW: _new,
    Phase.WAITING: _waiting,
    Phase.PROVISIONING: _provisioning,
    Phase.WAITING_FOR_NODE: _waiting_for_node,
    Phase.DISPATCHING: _working,
    Phase.RUNNING: _working,
    Phase.ENDING: _releasing,
    Phase.ABORTING: _releasing,
}
"""Phase -> why a job may not stand in it for long; None if it may."""


# --- what is left


def _leaks(falcon: Falcon) -> Iterator[str]:
    yield from _leaked_pools(falcon)
    yield from _leaked_objects(falcon)
    store = falcon.store
    for slot in store.slots.values():
        holder = store.jobs.get(slot.holder or "")
        if slot.holder and (holder is None or phase_of(holder) not in ACQUIRING):
            yield f"slot {slot.cluster_id}/{slot.topology} is held by {slot.holder}, who does not acquire"
    for pool in store.pools.values():
        row = store.clusters.get(pool.cluster_id)
        if pool.state is PoolState.DELETED or row is None or is_blind(falcon, row):
            continue
        if (row.path, pool.name) not in falcon.sim.gke.pools.all and not _is_awaited(falcon, pool):
            yield f"ledger row {pool.name} is {pool.state} and has no pool"


def _is_awaited(falcon: Falcon, pool: Pool) -> bool:
    """Return whether a pool is yet to be asked for; of a row that makes no sense nobody knows, it keeps what it has."""
    holder = falcon.store.jobs.get(pool.lease or "")
    return holder is not None and phase_of(holder) in (Phase.PROVISIONING, None)


def _leaked_pools(falcon: Falcon) -> Iterator[str]:
    rows = {row.id: row for row in falcon.store.clusters.values()}
    for (path, name), pool in falcon.sim.gke.pools.all.items():
        labels = pool.spec.get("config", {}).get("labels", {})
        row = rows.get(labels.get(CLUSTER_ID, ""))
        ours = name.startswith(PREFIX) and labels.get(INSTANCE) == falcon.store.instance
        if not ours or row is None or row.path != path or is_blind(falcon, row):
            continue
        ledger = falcon.store.pools.get((row.id, name))
        if ledger is None:
            yield f"pool {name} has no ledger row"
        elif ledger.lease:
            holder = falcon.store.jobs.get(ledger.lease)
            if holder is None or holder.status in TERMINAL:
                yield f"pool {name} is leased by {ledger.lease}, who is over"
        elif not ledger.found and not _is_wanted(falcon, ledger):
            yield f"pool {name} ({mode_of(pool.spec)}) is free, and no waiting job fits it"


def _is_wanted(falcon: Falcon, ledger: Pool) -> bool:
    return any(
        phase_of(job) is Phase.WAITING
        and job.cluster_id == ledger.cluster_id
        and isinstance(job.task, TaskSpec)
        and fits(ledger, job.task)
        for job in falcon.store.jobs.values()
    )


def _leaked_objects(falcon: Falcon) -> Iterator[str]:
    for row in falcon.store.clusters.values():
        if is_blind(falcon, row):
            continue
        objects = falcon.sim.kube(row.path).store.objects
        for kind in ("jobs", "services"):
            for item in objects[kind].values():
                labels = item["metadata"].get("labels") or {}
                ours = labels.get(INSTANCE) == falcon.store.instance and labels.get(CLUSTER_ID) == row.id
                if ours and not _is_of_a_live_job(falcon, labels):
                    yield f"{kind} {item['metadata']['name']} is left in {row.id}"


def _is_of_a_live_job(falcon: Falcon, labels: dict[str, str]) -> bool:
    job = falcon.store.jobs.get(labels.get(JOB_ID, ""))
    waits = job is not None and phase_of(job) in (Phase.NEW, Phase.WAITING)
    return job is not None and not waits and job.status not in TERMINAL and str(job.attempt) == labels.get(ATTEMPT)
