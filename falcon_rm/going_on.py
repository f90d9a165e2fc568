"""
What has to come true before a job leaves where it stands, and who is before it: a part of `falcon-rm explain`.

1. Asked of the scheduler's own functions and of plan()'s own actions; nothing is decided here.
"""

from collections.abc import Iterator

from attrs import frozen

from falcon_rm.core.actions import Change
from falcon_rm.core.line import line
from falcon_rm.core.machine import Phase
from falcon_rm.core.messages import Messages, moment, span
from falcon_rm.core.model import Job, TaskSpec
from falcon_rm.core.plan import Plan
from falcon_rm.core.room import is_full, mode_for
from falcon_rm.core.scene import ACQUIRING, Scene, phase_of, work_name
from falcon_rm.core.steps import FINAL
from falcon_rm.core.tally import Tally
from falcon_rm.core.words import Mode, Reason, Status
from falcon_rm.story import standing

QUEUED = (Reason.WAITING, Reason.CLUSTER_BUSY)
"""Reasons of a job that stands in a queue."""

PLACED = frozenset({*ACQUIRING, Phase.RUNNING, Phase.ENDING, Phase.ABORTING})
"""Phases in which nothing happens to a job before its cluster is read."""


@frozen
class Ahead:
    """A job that waits before this one in its queue."""

    position: int
    actor: str
    job: str


@frozen
class Queue:
    """The queue of a waiting job, as the next pass sees it."""

    acquiring: str | None = None
    ahead: tuple[Ahead, ...] = ()


def starts(change: Change | None) -> bool:
    """Return whether the next pass takes a waiting job out of its queue."""
    return change is not None and change.to_reason not in QUEUED


def has_queue(job: Job) -> bool:
    """Return whether a job stands in the queue of a cluster."""
    return isinstance(job.task, TaskSpec) and job.task.shape is not None and bool(job.cluster_id)


def queue_of(job: Job, plan: Plan, seen: Scene) -> Queue:
    """Return who acquires in the queue of a waiting job, and who waits before it; who claims now counts as started."""
    if phase_of(job) is not Phase.WAITING or not has_queue(job):
        return Queue()
    key = (job.cluster_id or "", job.topology or "")
    claims = {
        each.job_id
        for each in plan.actions
        if isinstance(each, Change) and each.takes_slot and (each.cluster_id, each.topology) == key
    }
    served = {turn.actor: turn.served_at for turn in seen.snapshot.turns if (turn.cluster_id, turn.topology) == key}
    queued = [each for each in seen.waiting.get(key[0], ()) if has_queue(each) and each.topology == key[1]]
    waiting = [each for each in line(queued, served) if each.id not in claims or each is job]
    before = waiting[: next(index for index, each in enumerate(waiting) if each.id == job.id)]
    holder = next((each.id for each in seen.acquiring.get(key, ())), next(iter(claims), None))
    ahead = tuple(Ahead(index + 1, each.actor, each.name or each.id) for index, each in enumerate(before))
    return Queue(holder, ahead)


def left_to(job: Job, plan: Plan, seen: Scene) -> Tally:
    """Return what the next pass leaves to a job: free pools that others take in it are promised."""
    takes = [each for each in plan.actions if isinstance(each, Change) and each.job_id != job.id]
    return Tally(seen, Messages("en"), promised={(each.cluster_id or "", each.takes) for each in takes if each.takes})


def goes_on(job: Job, change: Change | None, queue: Queue, tally: Tally) -> Iterator[str]:
    """Yield what has to come true, all of it, before the job leaves where it stands."""
    phase, bounds = phase_of(job), tally.scene.bounds
    pool, work = job.node_pool_name, work_name(job)
    if phase in {*ACQUIRING, Phase.RUNNING} and change and _moves(change):
        yield "the next pass has moved it on"
        return
    match phase:
        case Phase.NEW:
            if not change or change.to_status != Status.FAILED:
                yield "the next pass has read its spec and chosen a cluster"
        case Phase.WAITING:
            yield from _lets_start(job, change, queue, tally)
        case Phase.PROVISIONING:
            yield f"node pool {pool} is RUNNING, at the latest {span(bounds.pool_timeout)} after it was asked for"
        case Phase.WAITING_FOR_NODE:
            yield f"every node of node pool {pool} is Ready"
        case Phase.DISPATCHING:
            yield f"every pod of K8s Job {work} runs"
        case Phase.RUNNING:
            yield f"K8s Job {work} ends{_limit(job)}"
        case Phase.ENDING:
            yield f"its work and its lease are gone; then it becomes {standing(*FINAL[job.outcome or ''])}"
        case Phase.ABORTING:
            yield "its work and its lease are gone; then it becomes Aborted"
        case _:
            yield "its row makes sense: status, reason and outcome as Falcon writes them"
    if phase in PLACED:
        yield from _is_read(job, tally.scene)


def _is_read(job: Job, seen: Scene) -> Iterator[str]:
    """Yield that its cluster is read, where the job cannot go on before that."""
    view = seen.views.get(job.cluster_id or "")
    if job.cluster_id and (view is None or view.problem or not view.readable):
        yield f"cluster {view.cluster.name if view else job.cluster_id} can be read"


def _moves(change: Change) -> bool:
    """Return whether a job stands elsewhere after a change, or knows how it ended."""
    before, after = (change.from_status, change.from_reason), (change.to_status, change.to_reason)
    return before != after or "outcome" in change.columns


def _lets_start(job: Job, change: Change | None, queue: Queue, tally: Tally) -> Iterator[str]:
    """Yield what a waiting job lacks."""
    task, cluster_id = job.task, job.cluster_id or ""
    if starts(change) or not isinstance(task, TaskSpec):
        yield "the next pass takes it out of its queue"
        return
    fitting, _ = tally.candidates(task)
    view = fitting.get(cluster_id)
    if not fitting:
        yield f"a cluster for {task.tpu_type or 'cpu'} is active, readable and without trouble"
        return
    if view is None or (change and change.cluster_id != cluster_id):
        other = tally.scene.views.get(change.cluster_id or "") if change and change.cluster_id != cluster_id else None
        yield f"the next pass has moved it to the queue of {other.cluster.name if other else 'another cluster'}"
        return
    if until := tally.keeps_off_until(job, cluster_id):
        yield f"{moment(until)} comes"
    if (change.to_reason if change else job.reason) == Reason.CLUSTER_BUSY:
        yield f"reservation {view.cluster.default_reservation} has room for a slice of {task.topology}"
    elif view.reservation is None and mode_for(task, view.cluster) is Mode.RESERVATION:
        yield f"reservation {view.cluster.default_reservation} can be read"
    elif tally.never(job, view):
        yield f"the reservation of some cluster has, or is given, the machines of a whole slice of {task.topology}"
    elif not tally.free_pool(job, cluster_id) and is_full(task, view, tally.scene):
        yield f"reservation {view.cluster.default_reservation} has room for a slice of {task.topology}"
    if queue.acquiring:
        yield f"{queue.acquiring}, which acquires in this queue, runs or gives its slot up"
    if queue.ahead:
        yield f"the {len(queue.ahead)} ahead have started, or cannot start now and are passed over"
    elif not queue.acquiring:
        yield "a pass finds it first in its queue, and able to start"


def _limit(job: Job) -> str:
    if job.timeout_seconds is None or job.timeout_seconds <= 0 or job.dispatched_at is None:
        return ""
    return f", at the latest {moment(job.dispatched_at + job.timeout_seconds)}"
