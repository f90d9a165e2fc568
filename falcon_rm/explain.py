"""
What `falcon-rm explain` tells of one job: where it stands, why, what would let it go on.

1. The reason is the message that plan() writes, and what comes next are plan()'s own actions: there is no second
   explanation (P108). Order, back-off and candidates are asked of the scheduler's own functions.
2. Pure: snapshot, plan and rows of history in, a value out; the text is made from the value alone.
3. Labels are English; the message is in the language it is written in.
"""

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from falcon_rm.core.actions import Change
from falcon_rm.core.live import Pod
from falcon_rm.core.machine import Phase
from falcon_rm.core.manifest import log_object
from falcon_rm.core.messages import moment
from falcon_rm.core.model import Bounds, Cluster, Job, Snapshot, TaskSpec
from falcon_rm.core.plan import Plan
from falcon_rm.core.scene import TERMINAL, Scene, phase_of, scene, work_name
from falcon_rm.core.words import CPU_TOPOLOGY, Status
from falcon_rm.going_on import Ahead, goes_on, has_queue, left_to, queue_of, starts
from falcon_rm.report import NONE, age, describe, table
from falcon_rm.story import Entry, History, Lease, standing
from falcon_rm.story import lines as story_lines

AHEAD_SHOWN = 10


@frozen
class PodSeen:
    """A pod of a job, the node it is on, and where its log stands."""

    name: str
    phase: str
    node: str | None
    log: str | None


@frozen
class Explanation:
    """All that is told of one job."""

    job: str
    status: str
    reason: str | None
    message: str  # what plan() writes, or what stands
    now: float
    since: float | None = None
    name: str | None = None
    actor: str | None = None
    cluster: str | None = None
    topology: str | None = None
    pool: str | None = None
    work: str | None = None
    becomes: str | None = None  # Status/Reason after the next pass; None: over
    next_pass: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # why this pass leaves it alone
    goes_on: tuple[str, ...] = ()
    acquiring: str | None = None  # who holds the slot of its queue, or takes it in the next pass
    position: int | None = None
    ahead: tuple[Ahead, ...] = ()
    next_try: float | None = None
    attempts: tuple[Lease, ...] = ()
    failures: tuple[str, ...] = ()  # how much of what may fail has failed
    logs: str | None = None  # where its pods' logs stand; * for a pod's name
    pods: tuple[PodSeen, ...] | None = None  # None: it runs none, or they could not be read
    pods_problem: str | None = None
    story: tuple[Entry, ...] = ()


def explain(
    job: Job,
    snapshot: Snapshot,
    plan: Plan,
    history: History,
    *,
    pods: Sequence[Pod] | None = None,
    pods_problem: str | None = None,
) -> Explanation:
    """
    Explain a live job.

    Args:
        job: a job of the snapshot.
        snapshot: what was seen.
        plan: what plan() makes of it.
        history: what is kept of the job.
        pods: its pods, if they were asked for.
        pods_problem: why they could not be read.
    """
    seen = scene(snapshot)
    change = next((each for each in plan.actions if isinstance(each, Change) and each.job_id == job.id), None)
    told = change.message if change and change.message is not None else job.message
    queue, tally = queue_of(job, plan, seen), left_to(job, plan, seen)
    waits = phase_of(job) is Phase.WAITING
    view = seen.views.get(job.cluster_id or "")
    return Explanation(
        job=job.id,
        status=job.status,
        reason=_shown_reason(job),
        message=told or "",
        now=snapshot.now,
        since=_since(job, history),
        name=job.name,
        actor=job.actor,
        cluster=view.cluster.name if view else job.cluster_id,
        topology=job.topology,
        pool=job.node_pool_name,
        work=work_name(job) or None,
        becomes=standing(change.to_status, change.to_reason) if change else standing(job.status, _shown_reason(job)),
        next_pass=tuple(_next_pass(job, plan)),
        notes=tuple(each.why for each in plan.unknown if (each.kind, each.name) == ("job", job.id)),
        goes_on=tuple(goes_on(job, change, queue, tally)),
        acquiring=queue.acquiring,
        position=len(queue.ahead) + 1 if waits and has_queue(job) and not starts(change) else None,
        ahead=() if starts(change) else queue.ahead,
        next_try=tally.keeps_off_until(job, job.cluster_id or "") if waits else None,
        attempts=history.leases,
        failures=tuple(_failures(job, seen.bounds)),
        logs=_logs(job, view.cluster if view else None, seen.bounds) if job.attempt else None,
        pods=None if pods is None else tuple(_pod(pod, job, seen) for pod in pods),
        pods_problem=pods_problem,
    )


def explain_ended(
    job_id: str, history: History, clusters: Mapping[str, Cluster], bounds: Bounds, story: Sequence[Entry] = ()
) -> Explanation:
    """
    Explain a job that is over, or whose row is gone, from what is kept of it.

    Args:
        job_id: whose end is told.
        history: what is kept of it.
        clusters: the registry by id.
        bounds: where logs are written.
        story: all that happened to it and its pools; without it its events alone are told.
    """
    job, last = history.job, history.events[-1] if history.events else None
    cluster_id = job.cluster_id if job else last.cluster_id if last else None
    cluster = clusters.get(cluster_id or "")
    message = job.message if job else last.message if last else None
    return Explanation(
        job=job_id,
        status=job.status if job else last.to_status if last else NONE,
        reason=_shown_reason(job) if job else last.to_reason if last else None,
        message=message or "",
        now=history.now,
        since=last.at if last else None,
        name=job.name if job else None,
        actor=job.actor if job else None,
        cluster=cluster.name if cluster else cluster_id,
        topology=job.topology if job else None,
        notes=() if job else ("the row of this job was deleted",),
        attempts=history.leases,
        logs=_logs(job, cluster, bounds) if job and job.dispatched_at else None,
        story=tuple(story) or history.events,
    )


def is_over(job: Job | None) -> bool:
    """Return whether nothing but the story of a job is left to tell."""
    return job is None or job.status in TERMINAL


# --- facts


def _shown_reason(job: Job) -> str | None:
    return job.reason if job.status in (Status.PENDING, Status.FAILED) else None  # upstream's Aborting leaves one


def _since(job: Job, history: History) -> float:
    """Return since when it stands where it does."""
    if job.status == Status.ABORTING and job.aborting_at is not None:
        return job.aborting_at
    return history.events[-1].at if history.events else job.created_at


def _next_pass(job: Job, plan: Plan) -> Iterator[str]:
    for each in (
        describe(action) for action in plan.actions if not isinstance(action, Change) or action.job_id == job.id
    ):
        if each.job == job.id:
            yield f"{each.sign} {each.kind} {each.name}: {each.what}" + (f" ({each.why})" if each.why else "")


def _failures(job: Job, bounds: Bounds) -> Iterator[str]:
    """Yield what has failed of what may."""
    if job.pool_failures:
        yield f"{job.pool_failures} of {bounds.pool_attempts} pools that may fail"
    if job.losses and isinstance(job.task, TaskSpec):
        yield f"{job.losses} runs lost with their nodes; {job.task.max_retries} may be"


def _logs(job: Job, cluster: Cluster | None, bounds: Bounds, pod: str = "*") -> str | None:
    if cluster is None or not isinstance(job.task, TaskSpec):
        return None
    return log_object(job, job.task, cluster, bounds.log_path_template, pod)


def _pod(pod: Pod, job: Job, seen: Scene) -> PodSeen:
    view = seen.views.get(job.cluster_id or "")
    log = _logs(job, view.cluster if view else None, seen.bounds, pod.name)
    return PodSeen(pod.name, pod.phase, pod.node, log)


# --- the text


def text(told: Explanation, clusters: Mapping[str, str]) -> str:
    """Return an explanation for people; *clusters* has names by id."""
    parts = ["\n".join(f"{label + ':':<12}{words}" for label, words in _facts(told, clusters))]
    if told.ahead:
        more = len(told.ahead) - AHEAD_SHOWN
        rows = [(f"#{each.position}", each.actor, each.job) for each in told.ahead[:AHEAD_SHOWN]]
        parts.append(table(("AHEAD", "ACTOR", "JOB"), rows) + (f"\n... and {more} more" if more > 0 else ""))
    if told.attempts:
        parts.append(_attempts(told, clusters))
    if told.pods:
        pods = [(pod.name, pod.phase, pod.node, pod.log) for pod in told.pods]
        parts.append(table(("POD", "PHASE", "NODE", "LOG"), pods))
    if told.story:
        parts.append("\n".join(story_lines(told.story, clusters)))
    return "\n\n".join(parts)


def _facts(told: Explanation, clusters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield "Job", told.job + (f" ({told.name})" if told.name and told.name != told.job else "")
    if told.actor is not None:
        yield "Actor", told.actor
    yield "Status", standing(told.status, told.reason)
    if told.since is not None:
        yield "Since", f"{moment(told.since)} ({age(told.now - told.since)})"
    queue = f", queue {told.topology}" if told.cluster and told.topology not in {None, CPU_TOPOLOGY} else ""
    yield "Cluster", (clusters.get(told.cluster or "", told.cluster) or NONE) + queue
    yield "Message", told.message or NONE
    for note in told.notes:
        yield "Note", note
    if told.position is not None:
        yield "Position", f"#{told.position}"
    for index, needed in enumerate(told.goes_on):
        yield "Goes on", ("when " if index == 0 else "and ") + needed
    for each in told.next_pass:
        yield "Next pass", each
    for each in told.failures:
        yield "Failures", each
    if told.next_try is not None:
        yield "Next try", f"after {moment(told.next_try)}"
    if told.logs and not told.pods:
        yield "Logs", told.logs
    if told.pods_problem:
        yield "Pods", f"could not be read: {told.pods_problem}"


def _attempts(told: Explanation, clusters: Mapping[str, str]) -> str:
    rows = [
        (
            lease.attempt,
            lease.pool,
            clusters.get(lease.cluster_id, lease.cluster_id),
            lease.mode,
            moment(lease.from_at),
            moment(lease.until_at) if lease.until_at is not None else None,
            lease.ended,
            lease.ended_text,
        )
        for lease in told.attempts
    ]
    return table(("ATTEMPT", "POOL", "CLUSTER", "MODE", "FROM", "UNTIL", "ENDED", "ERROR"), rows)
