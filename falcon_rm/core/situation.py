"""
What a pass can see of one job, as the enums that machine.py decides on.

1. What could not be read is UNKNOWN; only a complete list shows an absence.
2. What is there now beats what an error or a deadline says: a pool that came up after its create failed is up.
3. A deadline is an age by the database's clock against one bound of the phase.
"""

from collections.abc import Sequence

from falcon_rm.core import names, pods
from falcon_rm.core.errors import classify
from falcon_rm.core.live import LivePool, LiveWork, Pod
from falcon_rm.core.machine import Chance, Phase, PoolSeen, Situation, Timing, WorkSeen
from falcon_rm.core.messages import Messages
from falcon_rm.core.model import Fault, Job, Pool, Submission, TaskSpec
from falcon_rm.core.room import never
from falcon_rm.core.scene import ACQUIRING, Scene, fits
from falcon_rm.core.tally import candidates
from falcon_rm.core.words import CPU_TOPOLOGY, ErrorKind, Mode, Outcome, PoolState, PoolStatus, Reason

LEAVING = frozenset({Phase.ENDING, Phase.ABORTING})
CLOCKS_APART = 30.0
"""Seconds that a cluster's clock may be ahead of the database's; of one that is further ahead no time counts."""
FAILED_POOL = {
    ErrorKind.FULL: PoolSeen.FULL,
    ErrorKind.CAPACITY: PoolSeen.BROKEN,
    ErrorKind.QUOTA: PoolSeen.BROKEN,
    ErrorKind.PERMANENT: PoolSeen.REFUSED,
    ErrorKind.CLUSTER: PoolSeen.TROUBLE,
}
"""What a failed pool is, by the kind of its error; the other kinds say nothing about it."""


def situation(job: Job, phase: Phase, scene: Scene) -> Situation:
    """Return the case of the table that this job is in."""
    if phase in (Phase.NEW, Phase.WAITING, Phase.TERMINAL):
        return Situation(phase, PoolSeen.NONE, WorkSeen.ABSENT, Timing.ON_TIME, left=True, chance=Chance.NONE)
    pool = see_pool(job, phase, scene)
    work = see_work(job, phase, scene)
    return Situation(
        phase,
        pool,
        work,
        see_timing(job, phase, work, scene),
        has_budget(job, phase, scene),
        see_chance(job, phase, pool, scene),
    )


# --- the pool


def see_pool(job: Job, phase: Phase, scene: Scene) -> PoolSeen:
    """Return what this pass knows of the job's node pool."""
    if job.topology == CPU_TOPOLOGY:
        return PoolSeen.UNNEEDED
    if not job.node_pool_name:
        return PoolSeen.NONE
    ledger = scene.pool_of(job)
    if ledger and ledger.lease != job.id:
        return _see_given_up(ledger, phase, scene)
    view = scene.views.get(job.cluster_id or "")
    if view is None or view.pools is None:
        return PoolSeen.UNKNOWN
    if ledger is None and phase in LEAVING:
        return PoolSeen.NONE  # nothing to give up; what the name lists, the sweep enters or leaves alone
    live = scene.live.get((view.cluster.id, job.node_pool_name))
    if live is None:
        return _see_missing(job, ledger, scene)
    if not _is_as_written(live, ledger, job, scene):
        return PoolSeen.TAKEN
    return _see_listed(live, ledger, job, phase, scene)


def _see_given_up(ledger: Pool, phase: Phase, scene: Scene) -> PoolSeen:
    """Return what became of a pool whose lease the job does not hold any more."""
    if phase not in LEAVING:
        return PoolSeen.LOST
    if ledger.state is not PoolState.DELETING:
        return PoolSeen.NONE
    view = scene.views.get(ledger.cluster_id)
    if view is None or view.pools is None:
        return PoolSeen.UNKNOWN
    live = scene.live.get((ledger.cluster_id, ledger.name))
    left = live is not None and scene.ours(ledger.cluster_id, live.name, live.labels)
    return PoolSeen.LEAVING if left or may_still_show(ledger, scene) else PoolSeen.NONE


def _is_as_written(live: LivePool, ledger: Pool | None, job: Job, scene: Scene) -> bool:
    """Return whether a listed pool is ours and, under a name of this job, was made for the attempt the ledger says."""
    own = ledger is not None and ledger.job_id == job.id
    of_attempt = not own or names.is_of(live.labels, job.id, ledger.attempt if ledger else 0)
    return of_attempt and scene.ours(job.cluster_id or "", live.name, live.labels)


def may_still_show(ledger: Pool, scene: Scene) -> bool:
    """Return whether a pool that no list has yet may be on its way: just asked for, or its create still runs."""
    operation = scene.create_operation(ledger.cluster_id, ledger.name)
    if operation and not operation.done:
        return True
    asked = ledger.requested_at is not None and ledger.seen_at is None
    return (
        asked and not (operation and operation.done) and scene.age(ledger.requested_at) < scene.bounds.visibility_grace
    )


def _see_missing(job: Job, ledger: Pool | None, scene: Scene) -> PoolSeen:
    if ledger is None:
        return PoolSeen.LOST
    if ledger.seen_at is not None:
        return PoolSeen.LOST
    fault = pool_fault(ledger, None, scene)
    operation = scene.create_operation(ledger.cluster_id, ledger.name)
    if operation and not operation.done:
        return PoolSeen.HIDDEN
    if fault and fault.kind in FAILED_POOL:
        return FAILED_POOL[fault.kind]
    if fault and fault.kind is ErrorKind.BUSY:
        return PoolSeen.PUT_OFF
    if fault and fault.kind is ErrorKind.UNKNOWN:
        return PoolSeen.ABSENT
    if may_still_show(ledger, scene):
        return PoolSeen.HIDDEN
    taken = ledger.requested_at is not None and scene.age(job.provisioning_at) > scene.bounds.pool_timeout
    return PoolSeen.BROKEN if taken else PoolSeen.ABSENT  # taken time and again, and it never came


def _see_listed(live: LivePool, ledger: Pool | None, job: Job, phase: Phase, scene: Scene) -> PoolSeen:
    cluster_id = job.cluster_id or ""
    match live.status:
        case PoolStatus.STOPPING:
            return PoolSeen.STOPPING
        case PoolStatus.UNKNOWN:
            return PoolSeen.UNKNOWN
        case PoolStatus.PROVISIONING:
            operation = scene.create_operation(cluster_id, live.name)
            return _failed(live, ledger, scene) if operation and operation.error else PoolSeen.CREATING
        case PoolStatus.ERROR:
            return _failed(live, ledger, scene)
    if phase not in ACQUIRING:
        return PoolSeen.READY
    ready = scene.views[cluster_id].ready_nodes.get(live.name)
    hosts = ledger.hosts if ledger else live.hosts
    if ready is None:
        return PoolSeen.UNKNOWN
    if ready >= hosts:
        return PoolSeen.READY
    if live.status is PoolStatus.RUNNING_WITH_ERROR:
        return _failed(live, ledger, scene)
    if live.hosts < hosts:
        return PoolSeen.BROKEN  # made smaller by hand: the rest will never come
    return PoolSeen.EMPTY if live.mode is Mode.FLEX_START else PoolSeen.UP


def _failed(live: LivePool, ledger: Pool | None, scene: Scene) -> PoolSeen:
    fault = pool_fault(ledger, live, scene)
    return FAILED_POOL.get(fault.kind, PoolSeen.BROKEN) if fault else PoolSeen.BROKEN


def pool_fault(ledger: Pool | None, live: LivePool | None, scene: Scene) -> Fault | None:
    """Return why a pool is not well: its create operation's error, its own words, else what the ledger keeps."""
    if ledger is None:
        return None
    operation = scene.create_operation(ledger.cluster_id, ledger.name)
    text = (operation.error if operation else None) or ("; ".join(live.errors) if live else "")
    if text:
        return Fault(classify(call="operation", code="", text=text), text, scene.snapshot.now)
    return ledger.error


# --- the work


def see_work(job: Job, phase: Phase, scene: Scene) -> WorkSeen:
    """Return what this pass knows of the Kubernetes Job of the current attempt."""
    submission = scene.submission_of(job)
    never_asked = not job.job_uid and (submission is None or (phase is Phase.ABORTING and _waited(job)))
    view = scene.views.get(job.cluster_id or "")
    if view is None or view.works is None:
        may_be_sent = phase in (Phase.DISPATCHING, Phase.WAITING_FOR_NODE)
        return WorkSeen.ABSENT if never_asked and not may_be_sent else WorkSeen.UNKNOWN
    live = scene.work_of(job)
    if live is None:
        return _see_missing_work(job, phase, scene)
    if live.deleting:
        return WorkSeen.STOPPING
    if phase not in LEAVING and job.job_uid and live.uid != job.job_uid:
        return WorkSeen.GONE
    if phase not in LEAVING and phase is not Phase.RUNNING and not job.job_uid:
        return _see_refused(submission) or WorkSeen.UNRECORDED  # its Service may be what is refused
    if phase not in LEAVING and scene.is_prepared(job, live):
        return _see_refused(submission) or (WorkSeen.PREPARED if job.job_uid else WorkSeen.ABSENT)
    return _see_ended(job, phase, live, scene) or _see_alive(job, phase, live, scene)


def _waited(job: Job) -> bool:
    """Return whether a job owned no attempt when its abort was asked for, which leaves the reason that stood."""
    named_no_pool = job.topology != CPU_TOPOLOGY and not job.node_pool_name
    return named_no_pool or job.reason in (Reason.WAITING, Reason.CLUSTER_BUSY)


def _see_missing_work(job: Job, phase: Phase, scene: Scene) -> WorkSeen:
    submission = scene.submission_of(job)
    if submission is None and not job.job_uid:
        return WorkSeen.ABSENT
    if phase in LEAVING:
        left = scene.pods_of(job)
        if left is None:
            return WorkSeen.UNKNOWN
        if left:
            return WorkSeen.STOPPING
    if job.job_uid:
        return WorkSeen.GONE
    return _see_refused(submission) or WorkSeen.ABSENT


def _see_refused(submission: Submission | None) -> WorkSeen | None:
    """Return why a Job will not be, or not be let go; None if it may be asked for again."""
    kind = submission.error.kind if submission and submission.error else None
    return {ErrorKind.PERMANENT: WorkSeen.REFUSED, ErrorKind.CLUSTER: WorkSeen.DENIED}.get(kind) if kind else None


def _see_ended(job: Job, phase: Phase, live: LiveWork, scene: Scene) -> WorkSeen | None:
    """Return how the Job ended, by its conditions alone; None if it has not."""
    ended = {kind for kind in ("Complete", "Failed") if kind in live.conditions and live.conditions[kind].status}
    if not ended:
        return None
    seen = scene.pods_of(job)
    if seen is None and (phase in LEAVING or "Failed" in ended):
        return WorkSeen.UNKNOWN
    if phase in LEAVING and any(pod.phase in ("Pending", "Running") for pod in seen or ()):
        return WorkSeen.RUNNING  # pods outlive the Job's end: they are stopped with it
    if "Failed" not in ended:
        return WorkSeen.SUCCEEDED
    return WorkSeen.FAILED_INFRA if pods.is_infrastructure(live, seen or ()) else WorkSeen.FAILED_APP


def _see_alive(job: Job, phase: Phase, live: LiveWork, scene: Scene) -> WorkSeen:
    if phase in LEAVING:
        return WorkSeen.RUNNING
    if phase is Phase.RUNNING:
        return WorkSeen.FAILED_INFRA if _lost_a_host(job, live, scene) else WorkSeen.RUNNING
    seen = scene.pods_of(job)
    if seen is None:
        return WorkSeen.UNKNOWN
    if pods.count_running(seen) >= live.parallelism:
        return WorkSeen.RUNNING
    if phase is Phase.DISPATCHING and job.dispatched_at is None:
        return WorkSeen.UNRECORDED  # by hand: no bound would ever end it
    submission = scene.submission_of(job)
    let_go = max(job.dispatched_at or 0, (submission and submission.resumed_at) or 0)
    late = job.dispatched_at is not None and _is_late(let_go, job, live, seen, scene)
    return WorkSeen.STUCK if late else WorkSeen.STARTING


def _is_late(let_go: float, job: Job, live: LiveWork, seen: Sequence[Pod], scene: Scene) -> bool:
    """Return whether anything holds pods up past its deadline: the longest one while the events cannot be read."""
    events = scene.views[job.cluster_id or ""].events
    longest = max(pods.limits(scene.bounds).values())
    for reason in pods.held_up(live, seen, events or (), scene.snapshot.now):
        limit = longest if events is None else reason.limit(scene.bounds)
        if scene.age(_held_since(let_go, reason.since, scene)) > limit:
            return True
    return False


def _held_since(let_go: float, said: float | None, scene: Scene) -> float:
    """Return since when a pod is held up: as Kubernetes says, if its clock can be compared with the database's."""
    comparable = said is not None and said < scene.snapshot.now + CLOCKS_APART
    return max(let_go, said or 0) if comparable else let_go


def is_short(work: LiveWork) -> bool:
    """Return whether a running Job has fewer pods well than it should: its pods and nodes are worth a look."""
    return min(work.active, work.ready) + work.succeeded < work.parallelism


def _lost_a_host(job: Job, live: LiveWork, scene: Scene) -> bool:
    """Return whether a host is gone with its pod while the Job says nothing: its peers would hang."""
    seen = scene.pods_of(job)
    pool = (job.cluster_id or "", job.node_pool_name or "")
    ready = scene.views[pool[0]].ready_nodes.get(pool[1]) if pool in scene.live else 0
    if seen is None or ready is None or not is_short(live):
        return False
    task = job.task
    hosts = task.hosts if isinstance(task, TaskSpec) else live.parallelism
    return ready < hosts and len([pod for pod in seen if not pod.deleting]) < live.parallelism


# --- deadlines, budgets, neighbours


def see_timing(job: Job, phase: Phase, work: WorkSeen, scene: Scene) -> Timing:
    """Return whether the bound of this phase has passed; until a Job is submitted its nodes are waited for."""
    bounds, pool = scene.bounds, scene.pool_of(job)
    if phase is Phase.PROVISIONING:
        since = _creation_began(job, pool, scene)
        return _late(since > 0 and scene.age(since) > bounds.pool_timeout)
    if phase is Phase.WAITING_FOR_NODE or (phase is Phase.DISPATCHING and work is WorkSeen.ABSENT):
        since = max(job.provisioning_at or 0, (pool and pool.up_at) or 0, (pool and pool.leased_at) or 0)
        limit = bounds.node_wait_flex if pool and pool.mode is Mode.FLEX_START else bounds.node_wait
        return _late(since > 0 and scene.age(since) > limit)
    if phase in (Phase.DISPATCHING, Phase.RUNNING):
        limit = job.timeout_seconds or 0  # below 0, by hand: none either
        return _late(limit > 0 and job.dispatched_at is not None and scene.age(job.dispatched_at) > limit)
    return _see_release(job, phase, scene)


def _creation_began(job: Job, pool: Pool | None, scene: Scene) -> float:
    """Return since when a pool is made; from its claim if every create was in vain so far, 0 before the first."""
    claimed = job.provisioning_at or 0
    operation = scene.create_operation(pool.cluster_id, pool.name) if pool else None
    if pool is None or pool.seen_at is not None or (operation and not operation.done):
        return max(claimed, (pool and pool.requested_at) or 0)
    return claimed if pool.error else 0


def _see_release(job: Job, phase: Phase, scene: Scene) -> Timing:
    """
    Return how the release goes: LATE when pods outlive their stop, OVERDUE when a stage takes too long.

    A retry is never overdue: an attempt must be gone before the next one may exist.
    """
    may_end_anyway = phase is Phase.ABORTING or job.outcome not in (Outcome.LOST, Outcome.YIELD)
    if may_end_anyway and is_stuck(job, phase, scene):
        return Timing.OVERDUE
    stopped = _stopped_at(job, phase, scene)
    grace = job.task.grace_seconds if isinstance(job.task, TaskSpec) else 0
    return _late(stopped is not None and scene.age(stopped) > grace + scene.bounds.stop_extra)


def is_stuck(job: Job, phase: Phase, scene: Scene) -> bool:
    """Return whether a stage of a release that was asked for takes longer than its bound."""
    pool, stopped = scene.pool_of(job), _stopped_at(job, phase, scene)
    released = pool.idle_at if pool and pool.lease != job.id else None
    stage = max((at for at in (_ended_at(job, phase), stopped, released) if at is not None), default=None)
    attempted = stopped is not None or released is not None
    return attempted and scene.age(stage) > scene.bounds.release_timeout


def _stopped_at(job: Job, phase: Phase, scene: Scene) -> float | None:
    """Return when the work was asked to stop; if others did, there is nothing to ask, and pods may be left."""
    submission, live = scene.submission_of(job), scene.work_of(job)
    stopped = submission.stop_at if submission else None
    by_others = stopped is None and (live is None or live.deleting)
    return _ended_at(job, phase) if by_others else stopped


def _ended_at(job: Job, phase: Phase) -> float | None:
    return job.aborting_at if phase is Phase.ABORTING else job.finished_at


def _late(passed: bool) -> Timing:
    return Timing.LATE if passed else Timing.ON_TIME


def has_budget(job: Job, phase: Phase, scene: Scene) -> bool:
    """Return whether one more failure is allowed: a lost run while running, a pool that could not be made before."""
    if phase is Phase.RUNNING:
        return isinstance(job.task, TaskSpec) and job.losses < job.task.max_retries
    return job.pool_failures + 1 < scene.bounds.pool_attempts


OWN_PROGRESS = {PoolSeen.CREATING: 1, PoolSeen.UP: 2, PoolSeen.EMPTY: 2}


def see_chance(job: Job, phase: Phase, pool: PoolSeen, scene: Scene) -> Chance:
    """Return whether a free pool is further along, else whether another topology waits that this cluster can start."""
    if phase not in (Phase.PROVISIONING, Phase.WAITING_FOR_NODE) or not isinstance(job.task, TaskSpec):
        return Chance.NONE
    if better_pool(job, pool, scene):
        return Chance.BETTER
    return Chance.CONTESTED if _is_contested(job, scene) else Chance.NONE


def _is_contested(job: Job, scene: Scene) -> bool:
    """Return whether a job of another topology waits in this cluster, which could start it some day."""
    cluster_id, messages = job.cluster_id or "", Messages(scene.bounds.language)
    others = [each.task for each in scene.waiting.get(cluster_id, ()) if each.topology != job.topology]
    kinds = {(each.tpu_type, each.shape, each.mode): each for each in others if isinstance(each, TaskSpec)}
    takers = ((task, candidates(task, scene, messages)[0].get(cluster_id)) for task in kinds.values() if task.shape)
    return any(view is not None and never(task, view, messages) is None for task, view in takers)


def better_pool(job: Job, pool: PoolSeen, scene: Scene) -> Pool | None:
    """Return the free pool that an acquiring job should take instead of its own, if one is seen to be further along."""
    assert isinstance(job.task, TaskSpec)
    view = scene.views.get(job.cluster_id or "")
    if view is None or not view.readable:
        return None
    own = OWN_PROGRESS.get(pool, 0)
    task = job.task
    free = [p for p in scene.free_pools(job.cluster_id or "") if fits(p, task) and scene.progress(p) > own]
    return free[0] if free else None
