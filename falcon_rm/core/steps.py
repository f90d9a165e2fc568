"""
How a step of the machine becomes an action: the transaction, or the one call, that carries it out.

1. One function a verb; each returns at most one action. It fills in what the step says, it decides nothing.
2. What is written with a status (slot, lease, counters, outcome) is written in the same Change.
3. Names, modes and manifests are worked out here, so that apply has nothing to look up.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import evolve

from falcon_rm.core import dispatch, names, narrate
from falcon_rm.core.actions import NOW, Action, CreatePool, ResumeWork, SubmitWork, Value
from falcon_rm.core.backoff import backoff, backoff_ends, failed_leases
from falcon_rm.core.case import Case
from falcon_rm.core.machine import Chance, Phase, PoolSeen, Timing, Verb
from falcon_rm.core.model import InvalidSpec, Pool
from falcon_rm.core.room import reservation_path
from falcon_rm.core.schedule import Decision, Kind
from falcon_rm.core.situation import better_pool
from falcon_rm.core.words import ErrorKind, Mode, Outcome, Reason, Status

FINAL: Mapping[str, tuple[Status, Reason | None]] = {
    Outcome.SUCCEEDED: (Status.SUCCEEDED, None),
    Outcome.JOB_FAILED: (Status.FAILED, Reason.JOB_FAILED),
    Outcome.JOB_SUBMIT_FAILED: (Status.FAILED, Reason.JOB_SUBMIT_FAILED),
    Outcome.TIMEOUT: (Status.FAILED, Reason.TIMEOUT),
    Outcome.LOST: (Status.PENDING, Reason.WAITING),
    Outcome.YIELD: (Status.PENDING, Reason.WAITING),
}
"""The status that each outcome names."""

BARE: Mapping[str, Value] = {"node_pool_name": None, "job_uid": None, "dispatched_at": None, "outcome": None}
"""What a row that owns nothing holds."""


def act(case: Case) -> Iterator[Action]:
    """Yield the action of a step, and beside a call that may be refused for long what people are told."""
    action = _act(case)
    told = _wait(case) if isinstance(action, CreatePool | SubmitWork | ResumeWork) else None
    yield from (step for step in (told, action) if step)


def _act(case: Case) -> Action | None:
    if isinstance(case.job.task, InvalidSpec) and case.step.verb in (Verb.CREATE, Verb.TAKE, Verb.SUBMIT):
        return _spoilt(case.job.task, case)
    return VERBS[case.step.verb](case)


def _spoilt(fault: InvalidSpec, case: Case) -> Action:
    """End an attempt whose spec was spoilt by hand under way: what it owns goes as with any other end."""
    return case.change(
        f"{fault.field} is invalid",
        message=case.messages.invalid(fault),
        columns={"outcome": Outcome.JOB_SUBMIT_FAILED, "finished_at": NOW},
        frees_slot=True,
    )


# --- waiting


def _wait(case: Case) -> Action | None:
    """Refresh the text for people; write nothing if its facts are the same."""
    text = narrate.progress(case)
    if text is None or text == (case.job.message or ""):
        return None
    return case.change("what it waits for", message=text)


def _queue(case: Case) -> Action | None:
    job, decision = case.job, case.decision
    if isinstance(job.task, InvalidSpec):
        return case.change(
            f"{job.task.field} is invalid",
            to_status=Status.FAILED,
            to_reason=Reason.INVALID_SPEC,
            message=case.messages.invalid(job.task),
            columns={"finished_at": NOW},
        )
    assert decision is not None
    if decision.kind is Kind.CLAIM:
        return _claim(case, decision)
    reason = Reason.CLUSTER_BUSY if decision.kind is Kind.BUSY else decision.reason
    columns: dict[str, Value] = {}
    if job.queued_at is None:
        columns |= {"queued_at": NOW}
    if job.topology != case.task.topology:
        columns |= {"topology": case.task.topology}
    if decision.kind is Kind.PLACE and decision.cluster_id != job.cluster_id:
        columns |= {"cluster_id": decision.cluster_id, "retry_at": None}
    change = case.change(
        "joins a queue" if decision.kind is Kind.PLACE else "waits",
        to_reason=reason,
        message=decision.message if decision.message != job.message else None,
        columns=columns,
        cluster_id=decision.cluster_id or job.cluster_id,
        topology=case.task.topology,
    )
    return None if change.only_message and change.message is None else change


def _claim(case: Case, decision: Decision) -> Action:
    """Take the slot together with a free pool, or with the name of a new one; a CPU job needs neither."""
    job, task, attempt = case.job, case.task, _next_attempt(case)
    name = names.cloud_name(job.id, attempt)
    columns: dict[str, Value] = {
        **BARE,
        "attempt": attempt,
        "topology": task.topology,
        "retry_at": None,
        "finished_at": None,
        "provisioning_at": NOW,
    }
    if task.shape is None:
        return case.change(
            "starts",
            to_reason=Reason.DISPATCHING,
            message=decision.message,
            columns=columns,
            topology=task.topology,
            attempt=attempt,
        )
    assert decision.mode is not None
    columns |= {"node_pool_name": decision.pool.name if decision.pool else name, "supply_mode": decision.mode}
    return case.change(
        "takes the slot and a free pool" if decision.pool else "takes the slot",
        to_reason=Reason.PROVISIONING,
        message=decision.message,
        columns=columns,
        topology=task.topology,
        takes_slot=job.actor,
        takes=decision.pool.name if decision.pool else None,
        makes=None if decision.pool else _new_pool(case, decision.mode, name, attempt),
        attempt=attempt,
        exp_id=task.exp_id,
        owner=task.owner,
    )


def _next_attempt(case: Case) -> int:
    """Return the next attempt whose name nothing bears: a database restored from a backup has forgotten some."""
    job, scene = case.job, case.scene
    attempt = job.attempt + 1
    while any((job.cluster_id or "", names.cloud_name(job.id, attempt)) in seen for seen in (scene.pools, scene.works)):
        attempt += 1
    return attempt


def _new_pool(case: Case, mode: Mode, name: str, attempt: int) -> Pool:
    shape, cluster = case.task.shape, case.scene.views[case.job.cluster_id or ""].cluster
    assert shape is not None
    return Pool(
        cluster_id=cluster.id,
        name=name,
        job_id=case.job.id,
        attempt=attempt,
        tpu_type=shape.tpu_type,
        topology=shape.topology,
        machine_type=shape.machine_type,
        hosts=shape.hosts,
        chips=shape.chips,
        mode=mode,
        reservation=reservation_path(cluster) if mode is Mode.RESERVATION else None,
        lease=case.job.id,
    )


# --- acquiring


def _create(case: Case) -> Action | None:
    job, scene = case.job, case.scene
    pool, view = scene.pool_of(job), scene.views[job.cluster_id or ""]
    if pool is None or view.zone is None:
        return _wait(case)
    own = pool.job_id == job.id
    facts: dict[str, Any] = {
        "instance": scene.snapshot.instance,
        "cluster_id": view.cluster.id,
        "job_id": pool.job_id,
        "attempt": pool.attempt,
        "exp_id": case.task.exp_id if own else "",
        "owner": case.task.owner if own else "",
        "extra": case.task.labels if own else {},
    }
    needs_policy = pool.tpu_type == "v7x" and pool.hosts > 1
    bounds = scene.bounds
    return CreatePool(
        cluster=view.cluster,
        zone=view.zone,
        pool=pool,
        job_id=job.id,
        labels=names.labels(**facts),
        resource_labels=names.resource_labels(**facts),
        idle_seconds=int(bounds.idle_flex if pool.mode is Mode.FLEX_START else bounds.idle),
        policy=names.policy_name(pool.tpu_type, pool.topology) if needs_policy else None,
    )


def _take(case: Case) -> Action | None:
    better = better_pool(case.job, case.situation.pool, case.scene)
    assert better is not None and case.situation.chance is Chance.BETTER
    listed = case.situation.pool in (PoolSeen.CREATING, PoolSeen.UP, PoolSeen.EMPTY)
    return case.change(
        f"takes {better.name}, which is further along",
        to_reason=Reason.PROVISIONING,
        message=case.messages.say("taking", pool=better.name, mode=better.mode),
        columns={"node_pool_name": better.name, "supply_mode": better.mode, "provisioning_at": NOW},
        takes=better.name,
        gives_up=case.give_up("better", keep=listed),
        exp_id=case.task.exp_id,
        owner=case.task.owner,
    )


def _go(case: Case) -> Action:
    job, columns = case.job, dict[str, Value]()
    text = narrate.arrived(case.step.word, job, case.scene, case.messages)
    if case.step.word == "Running":
        columns |= {"started_at": NOW, "pool_failures": 0}
        if job.dispatched_at is None:
            columns["dispatched_at"] = NOW
        return case.change(
            "every pod runs, or it has ended",
            to_status=Status.RUNNING,
            to_reason=None,
            message=text,
            columns=columns,
            frees_slot=True,
        )
    if case.step.word == Reason.DISPATCHING and job.job_uid:
        columns["dispatched_at"] = NOW
    why = "its nodes are ready" if case.step.word == Reason.DISPATCHING else "its pool is up, nodes are missing"
    return case.change(why, to_reason=Reason(case.step.word), message=text, columns=columns)


def _back(case: Case) -> Action:
    """Return to Waiting with nothing owned: slot free, lease ended, back-off written."""
    job = case.job
    given = case.give_up(case.step.word)
    ended = case.step.word
    if case.step.word == "failed":
        lost = case.situation.pool in (PoolSeen.LOST, PoolSeen.TAKEN) or given is None
        ended = "lost" if lost else str(given.fault[0]) if given and given.fault else "broken"
    columns: dict[str, Value] = {**BARE, "supply_mode": None, "retry_at": _retry_at(case, ended)}
    if case.step.word == "failed":
        columns["pool_failures"] = job.pool_failures + 1
    return case.change(
        f"gives its pool up: {ended}",
        to_status=Status.PENDING,
        to_reason=Reason.CLUSTER_BUSY if case.step.word == "full" else Reason.WAITING,
        message=case.messages.say("retry", attempt=job.attempt, text=narrate.pool_trouble(case)),
        columns=columns,
        frees_slot=True,
        gives_up=evolve(given, ended=ended) if given else None,
    )


def _retry_at(case: Case, ended: str) -> float | None:
    """Return until when the job stays off this cluster after one more such end; None if it need not."""
    if not backoff_ends(ended):
        return None
    earlier = failed_leases(case.job, case.job.cluster_id or "", case.scene)
    return case.scene.snapshot.now + backoff(len(earlier) + 1, case.scene)


def _fail(case: Case) -> Action:
    """End as Failed while the job still acquires; what is left of its pool goes in the same transaction."""
    text = narrate.pool_failure(case.step.word, case)
    return case.change(
        f"its pool failed for good: {case.step.word}",
        to_status=Status.FAILED,
        to_reason=Reason(case.step.word),
        message=text,
        columns={"finished_at": NOW},
        frees_slot=True,
        gives_up=case.give_up("timeout" if case.step.word == Reason.NODE_POOL_TIMEOUT else "failed"),
    )


# --- ending


def _note(case: Case) -> Action:
    """Write the outcome and its message, before anything is stopped; the slot is free with it."""
    job, columns = case.job, dict[str, Value](outcome=case.step.word)
    if case.step.word not in (Outcome.LOST, Outcome.YIELD):
        columns["finished_at"] = NOW
    if case.step.word == Outcome.LOST:
        counter = "losses" if case.situation.phase is Phase.RUNNING else "pool_failures"
        columns[counter] = getattr(job, counter) + 1
    return case.change(
        f"outcome {case.step.word}",
        message=narrate.outcome(case.step.word, case),
        columns=columns,
        frees_slot=True,
    )


def _release(case: Case) -> Action:
    pool = case.scene.pool_of(case.job)
    keep = case.step.verb is Verb.RELEASE and pool is not None and case.demand.wants(pool)
    ended, fault = "released", None
    if case.job.outcome == Outcome.LOST:
        ended = "lost"
    if case.job.outcome == Outcome.YIELD:
        submission = case.scene.submission_of(case.job)
        denied = submission.error if submission else None
        ended = "nodes"
        if denied and denied.kind is ErrorKind.CLUSTER:
            ended, fault = "cluster", (denied.kind, denied.text)
    given = case.give_up(ended, keep=keep)
    assert given is not None  # a pool that the job does not hold is seen as none
    given = evolve(given, fault=fault or given.fault)
    return case.change("hands its pool on" if keep else "gives its pool up", gives_up=given)


def _finish(case: Case) -> Action:
    job = case.job
    status, reason = FINAL[job.outcome or Outcome.JOB_FAILED]
    if status is Status.PENDING:
        failed = failed_leases(job, job.cluster_id or "", case.scene) if job.outcome == Outcome.YIELD else []
        retry_at = max(each.at for each in failed) + backoff(len(failed), case.scene) if failed else None
        columns: dict[str, Value] = {**BARE, "supply_mode": None, "retry_at": retry_at}
        text = narrate.end(case)
        return case.change(
            "tries again", to_status=status, to_reason=reason, message=text, columns=columns, frees_slot=True
        )
    text = "" if status is Status.SUCCEEDED else narrate.end(case)
    if case.situation.timing is Timing.OVERDUE:
        text = case.messages.join(text, narrate.stuck(case))
    return case.change("nothing is left of it", to_status=status, to_reason=reason, message=text, frees_slot=True)


def _aborted(case: Case) -> Action:
    text = case.messages.say("aborted")
    if case.situation.timing is Timing.OVERDUE:
        text = case.messages.join(text, narrate.stuck(case))
    return case.change(
        "nothing is left of it",
        to_status=Status.ABORTED,
        to_reason=None,
        message=text,
        columns={"aborted_at": NOW},
        frees_slot=True,
    )


VERBS: Mapping[Verb, Callable[[Case], Action | None]] = {
    Verb.WAIT: _wait,
    Verb.PLACE: _queue,
    Verb.QUEUE: _queue,
    Verb.CREATE: _create,
    Verb.TAKE: _take,
    Verb.SUBMIT: dispatch.submit,
    Verb.RESUME: dispatch.resume,
    Verb.STOP: dispatch.delete,
    Verb.RELEASE: _release,
    Verb.DISCARD: _release,
    Verb.CLEAN: dispatch.delete,
    Verb.FINISH: _finish,
    Verb.ABORTED: _aborted,
    Verb.GO: _go,
    Verb.BACK: _back,
    Verb.FAIL: _fail,
    Verb.NOTE: _note,
}
