"""
What people are told of a job's state: the facts of a situation, put into the sentences of messages.py.

1. One function a kind of text; none decides anything.
2. A cloud's own words are shown in full beside our facts (mode, type, topology, cluster).
"""

from collections.abc import Sequence

from falcon_rm.core import pods
from falcon_rm.core.case import Case
from falcon_rm.core.live import LiveWork, Pod
from falcon_rm.core.machine import VANISHED, Phase, PoolSeen, WorkSeen
from falcon_rm.core.messages import Messages, span
from falcon_rm.core.model import Job, TaskSpec
from falcon_rm.core.scene import ACQUIRING, Scene, work_name
from falcon_rm.core.situation import is_stuck, pool_fault
from falcon_rm.core.words import CPU_TOPOLOGY, ErrorKind, Outcome, Reason

# --- while it goes on


def progress(case: Case) -> str | None:
    """Return the text of a job that waits for something; None to leave what stands (in a queue, an end)."""
    job, messages = case.job, case.messages
    phase = case.situation.phase
    if phase in (Phase.TERMINAL, Phase.NEW, Phase.WAITING):
        return None
    unread = PoolSeen.UNKNOWN is case.situation.pool or WorkSeen.UNKNOWN is case.situation.work
    text = end(case) if phase is Phase.ENDING else _standing(job, phase, case.scene, messages)
    if phase is Phase.ENDING and not unread and is_stuck(job, phase, case.scene):
        text = messages.join(text, stuck(case))
    if case.situation.pool is PoolSeen.STOPPING and phase in (*ACQUIRING, Phase.DISPATCHING):
        text = messages.join(text, messages.say("pool-stopping", pool=job.node_pool_name))
    if not unread:
        return text
    name, why = _why_unread(case)
    hint = messages.say("unread-stuck") if phase in (Phase.ENDING, Phase.ABORTING) else None
    return messages.join(text, messages.say("unread", cluster=name, why=why), hint)


def arrived(word: str, job: Job, scene: Scene, messages: Messages) -> str:
    """Return the text of a job that has just reached a reason, or Running."""
    phase = (
        {
            Reason.WAITING_FOR_NODE: Phase.WAITING_FOR_NODE,
            Reason.DISPATCHING: Phase.DISPATCHING,
        }.get(Reason(word))
        if word != "Running"
        else Phase.RUNNING
    )
    return _standing(job, phase or Phase.RUNNING, scene, messages)


def _standing(job: Job, phase: Phase, scene: Scene, messages: Messages) -> str:
    match phase:
        case Phase.PROVISIONING:
            return _provisioning(job, scene, messages)
        case Phase.WAITING_FOR_NODE:
            pool = scene.pool_of(job)
            view = scene.views.get(job.cluster_id or "")
            ready = view.ready_nodes.get(job.node_pool_name or "", 0) if view else 0
            hosts = pool.hosts if pool else 0
            text = messages.say("waiting-for-node", pool=job.node_pool_name, ready=ready, hosts=hosts)
            work = scene.work_of(job)
            sent = work is not None and not scene.is_prepared(job, work)
            return messages.join(text, None if sent else _submit_error(job, scene))
        case Phase.DISPATCHING:
            return _dispatching(job, scene, messages)
        case Phase.RUNNING:
            work = scene.work_of(job)
            asked = job.task.hosts if isinstance(job.task, TaskSpec) else 1
            hosts = work.parallelism if work else asked
            active = min(work.active, hosts) if work and work.active else hosts
            suspended = messages.say("suspended") if work and work.suspended else None
            return suspended or messages.say("running", active=active, hosts=hosts)
    return messages.say("aborting")


def _provisioning(job: Job, scene: Scene, messages: Messages) -> str:
    pool = scene.pool_of(job)
    taken = pool is not None and pool.job_id != job.id
    key = "taking" if taken else "provisioning"
    text = messages.say(key, pool=job.node_pool_name, mode=job.supply_mode)
    fault = pool.error if pool else None
    if fault and fault.kind in (ErrorKind.BUSY, ErrorKind.UNKNOWN) and pool and pool.seen_at is None:
        return messages.join(text, messages.say("busy", text=fault.text))
    return text


def _dispatching(job: Job, scene: Scene, messages: Messages) -> str:
    text = messages.say("dispatching-cpu" if job.topology == CPU_TOPOLOGY else "dispatching")
    work, seen = scene.work_of(job), scene.pods_of(job)
    if work is None or seen is None or scene.is_prepared(job, work):
        return messages.join(text, _submit_error(job, scene))
    if work.suspended:
        return messages.join(text, messages.say("suspended"))
    reasons = _held_up(job, work, seen, scene)
    if not reasons:
        return text
    up = messages.say(
        "pods-not-up", up=pods.count_running(seen), hosts=work.parallelism, pods=messages.held_up(reasons)
    )
    return messages.join(text, up)


def _held_up(job: Job, work: LiveWork, seen: Sequence[Pod], scene: Scene) -> tuple[pods.HeldUp, ...]:
    return pods.held_up(work, seen, scene.views[job.cluster_id or ""].events or (), scene.snapshot.now)


def _why_unread(case: Case) -> tuple[str, str]:
    view = case.scene.views.get(case.job.cluster_id or "")
    if view is None:
        return case.job.cluster_id or "?", "no row in clusters"
    return view.cluster.name, view.problem or f"{view.cluster.status}"


# --- when a pool fails


def facts(case: Case) -> str:
    """Return what was asked for and where: mode, type, topology, cluster."""
    pool, cluster = case.scene.pool_of(case.job), case.cluster
    asked = f"{pool.tpu_type} {pool.topology}" if pool else case.job.topology
    return f"({case.job.supply_mode}, {asked}, {cluster.name if cluster else case.job.cluster_id})"


def pool_trouble(case: Case) -> str:
    """Return why a pool is given up, in the cloud's own words where there are some."""
    job, messages = case.job, case.messages
    match case.situation.pool:
        case PoolSeen.LOST:
            return messages.say("pool-lost", pool=job.node_pool_name)
        case PoolSeen.TAKEN:
            return messages.say("pool-taken", pool=job.node_pool_name)
        case PoolSeen.UP | PoolSeen.EMPTY:
            return messages.say("no-nodes", pool=job.node_pool_name)
        case PoolSeen.NONE | PoolSeen.UNNEEDED | PoolSeen.LEAVING:
            return messages.say("bare")
        case PoolSeen.STOPPING:
            return messages.say("pool-stays", pool=job.node_pool_name)
    pool = case.scene.pool_of(job)
    live = case.scene.live.get((job.cluster_id or "", job.node_pool_name or ""))
    fault = pool_fault(pool, live, case.scene)
    if fault is None and live is None:
        return messages.say("pool-never-came", pool=job.node_pool_name)
    return f"{fault.text if fault else case.situation.pool.value} {facts(case)}"


def pool_failure(reason: str, case: Case) -> str:
    """Return the last words of a job whose pool could not be made."""
    if reason == Reason.NODE_POOL_TIMEOUT:
        limit, pool = span(case.scene.bounds.pool_timeout), case.scene.pool_of(case.job)
        said = pool.error.text if pool and pool.error and pool.seen_at is None else "GKE API timeout"
        return case.messages.say("pool-timeout", limit=limit, text=f"{said} {facts(case)}")
    return case.messages.say("pool-failed", text=pool_trouble(case))


# --- when it ends


def outcome(word: str, case: Case) -> str:
    """Return the text that is written with an outcome."""
    messages = case.messages
    match word:
        case Outcome.SUCCEEDED:
            return ""
        case Outcome.TIMEOUT:
            return messages.say("timeout", limit=case.job.timeout_seconds)
        case Outcome.JOB_SUBMIT_FAILED:
            return messages.say("submit-failed", text=_submit_error(case.job, case.scene))
        case Outcome.YIELD:
            denied = case.situation.work is WorkSeen.DENIED
            text = _submit_error(case.job, case.scene) if denied else pool_trouble(case)
            return messages.say("retry", attempt=case.job.attempt, text=text)
        case Outcome.LOST:
            return messages.say("retry", attempt=case.job.attempt, text=_lost(case))
    return _job_failed(case)


def end(case: Case) -> str:
    """Return the text that was written with the outcome."""
    return case.messages.without_added(case.job.message or "")


def _submit_error(job: Job, scene: Scene) -> str:
    """Return why the Job is not submitted, or not let go."""
    submission = scene.submission_of(job)
    return submission.error.text if submission and submission.error else ""


def _lost(case: Case) -> str:
    job, seen = case.job, case.scene.pods_of(case.job) or ()
    said = next((f"{pod.name}: {pod.disrupted or pod.reason}" for pod in seen if pod.disrupted or pod.reason), None)
    gone = case.situation.pool in VANISHED
    pool = case.messages.say("pool-lost", pool=job.node_pool_name) if gone else None
    known = case.messages.join(pool, said) or job.node_pool_name
    return case.messages.say("lost", text=known or case.messages.say("lost-silently", name=work_name(job)))


def _job_failed(case: Case) -> str:
    """Return why the workload failed: the pod that ended first, what never started, or what the Job itself says."""
    job, scene, messages = case.job, case.scene, case.messages
    work, seen = scene.work_of(job), scene.pods_of(job) or ()
    gone = case.situation.pool in VANISHED
    if case.situation.work is WorkSeen.FAILED_INFRA or gone:
        return _lost(case)
    if work is None:
        return messages.say("job-gone", name=work_name(job))
    if case.situation.work is WorkSeen.STUCK:
        return messages.say("never-started", pods=messages.held_up(_held_up(job, work, seen, scene)))
    end = pods.first_end(seen)
    if end:
        return messages.ended(end)
    failed = work.conditions.get("Failed")
    return messages.say("job-condition", text=f"{failed.reason}: {failed.message}" if failed else work.name)


def stuck(case: Case) -> str:
    """Return what a release hangs on."""
    pool = case.scene.pool_of(case.job)
    text = pool.error.text if pool and pool.error else f"{case.situation.pool.value}, {case.situation.work.value}"
    return case.messages.say("release-stuck", text=text)
