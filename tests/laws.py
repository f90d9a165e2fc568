"""
What must hold in every world after every pass (proof.md 2), checked on rows, ledger and clouds.

1. `check` looks at one world. `mark` before a step and `check_step` after it look at what the step changed, and at the
   pass itself where there was a whole one. `check_call` looks at the database while a call to a cloud is on its way.
2. S12 is not here: it is about time, and time stands still in a pass of this world.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from attrs import frozen
from cloudsim.direct_kube import NAMESPACE
from cloudsim.faults import Call
from cloudsim.values import Json
from world import Falcon

from falcon_rm.core import actions as act
from falcon_rm.core.model import Job, Snapshot, TaskSpec
from falcon_rm.core.names import ATTEMPT, CLUSTER_ID, INSTANCE, JOB_ID, PREFIX
from falcon_rm.core.scene import ACQUIRING, TERMINAL, phase_of
from falcon_rm.core.words import CPU_TOPOLOGY, ClusterStatus, PoolState
from falcon_rm.loop import Pass

MESSAGE_BYTES = 4096
RELEASED = frozenset({"JobFailed", "Timeout"})
STUCK = ("the release is stuck", "资源释放超时")
AHEAD = (
    (PoolState.ACTIVE, PoolState.DELETING),
    (PoolState.ACTIVE, PoolState.DELETED),
    (PoolState.DELETING, PoolState.DELETED),
)
"""The ways a ledger row may go in one pass."""


def check(falcon: Falcon, by_hand: Collection[str] = ()) -> None:
    """What must hold at any moment between two steps; not of jobs whose rows somebody wrote *by hand*."""
    store = falcon.store
    made = {call.arguments[1]["name"] for call in falcon.sim.calls if call.name == "gke.create_node_pool"}
    assert made <= {pool.name for pool in store.pools.values()}, "a pool was asked for that the ledger lacks (S7)"
    acquiring = Counter(
        (job.cluster_id, job.topology)
        for job in store.jobs.values()
        if phase_of(job) in ACQUIRING and job.topology != CPU_TOPOLOGY and job.id not in by_hand
    )
    assert all(count == 1 for count in acquiring.values()), "two jobs of one queue acquire (S4)"
    held = Counter(pool.lease for pool in store.pools.values() if pool.lease)
    assert {job_id for job_id, count in held.items() if count > 1} <= set(by_hand), "a job holds two leases (S3)"
    assert not [pool for pool in store.pools.values() if pool.lease and pool.state is not PoolState.ACTIVE], "S5"
    open_leases = sorted((lease.pool, lease.job_id) for lease in store.lease_rows() if lease.until_at is None)
    assert open_leases == sorted((pool.name, pool.lease) for pool in store.pools.values() if pool.lease), "S9"
    unknown = [work for work in works_let_go(falcon) if store.uids.get(work[:2]) != work[2]]
    assert not unknown, f"a Job may run that no row knows (S7): {unknown}"
    running = attempts_that_run(falcon)
    twice = {job_id for job_id, attempts in running.items() if len(attempts) > 1}
    assert twice <= set(by_hand), "pods of two attempts run at once (S3)"
    for job in store.jobs.values():
        if is_released(job) and not says_stuck(job) and job.id not in by_hand:
            assert job.id not in held, "a job is over and holds a pool (S2)"
            assert job.id not in running, "a job is over and its pods run (S2)"
        if job.message is not None:
            assert len(job.message.encode()) <= MESSAGE_BYTES, "a message is too long (S10)"
            assert len(job.message.splitlines()) <= 1, "a message has two lines (S10)"


def is_released(job: Job) -> bool:
    """Return whether a row says that nothing of its job is left."""
    return job.status in ("Succeeded", "Aborted") or job.reason in RELEASED


def says_stuck(job: Job) -> bool:
    """Return whether the message says that the release went on too long."""
    return any(words in (job.message or "") for words in STUCK)


def attempts_that_run(falcon: Falcon) -> dict[str, set[str]]:
    """Return job -> its attempts that have pods which run."""
    found: dict[str, set[str]] = {}
    for row in falcon.store.clusters.values():
        for pod in falcon.sim.kube(row.path).store.objects["pods"].values():
            labels = pod["metadata"].get("labels") or {}
            if pod["status"].get("phase") == "Running" and JOB_ID in labels:
                found.setdefault(labels[JOB_ID], set()).add(labels[ATTEMPT])
    return found


def works_let_go(falcon: Falcon) -> Iterator[tuple[str, str, str]]:
    """Yield cluster, name and UID of the Jobs of ours that are not suspended."""
    for row in falcon.store.clusters.values():
        for item in falcon.sim.kube(row.path).store.objects["jobs"].values():
            if not item["spec"].get("suspend") and (item["metadata"].get("labels") or {}).get(INSTANCE):
                yield row.id, item["metadata"]["name"], item["metadata"]["uid"]


def running_pods(falcon: Falcon, job_id: str) -> list[Any]:
    """Return the pods of a job that run."""
    return [
        pod
        for row in falcon.store.clusters.values()
        for pod in falcon.sim.kube(row.path).store.objects["pods"].values()
        if pod["metadata"].get("labels", {}).get(JOB_ID) == job_id and pod["status"].get("phase") == "Running"
    ]


# --- one step


@frozen
class Mark:
    """The database before a step, and how many effects the clouds had seen."""

    store: Any
    effects: int


def mark(falcon: Falcon) -> Mark:
    """Return what `check_step` compares with."""
    return Mark(falcon.store.copy(), len(falcon.sim.effects))


def check_step(before: Mark, falcon: Falcon, made: Pass | None = None) -> None:
    """What a step of Falcon alone may have changed; nobody else wrote meanwhile."""
    was, store = before.store, falcon.store
    new_events = Counter(event.job_id for event in store.events[len(was.events) :])
    for job_id, old in was.jobs.items():
        if (job := store.jobs.get(job_id)) is not None and job is not old:
            _check_row(old, job, new_events[job_id])
    for key, old in was.pools.items():
        pool = store.pools[key]
        assert pool.state is old.state or (old.state, pool.state) in AHEAD, f"{key} went back (S5)"
    _check_effects(falcon, before)
    if made is not None:
        _check_blindness(made)
        _check_order(made)


def _check_row(old: Job, job: Job, events: int) -> None:
    assert old.status not in TERMINAL, f"{old.id} was over and was written (S1)"
    changed = (old.status, old.reason) != (job.status, job.reason)
    assert job.version > old.version, f"{job.id} was written and its version stands (S9)"
    assert job.version - old.version <= 1 or changed or events == 0, f"{job.id} was written twice (S9)"
    assert events == changed, f"{job.id}: {events} events for a step from {old.reason} to {job.reason} (S9)"


def _check_effects(falcon: Falcon, before: Mark) -> None:
    """No name is made twice, no leased pool is deleted."""
    effects = falcon.sim.effects
    made = {call.target for call in effects[: before.effects] if call.name == "gke.create_node_pool"}
    leased = {pool.name for pool in before.store.pools.values() if pool.lease}
    for call in effects[before.effects :]:
        name = call.target.rsplit("/", 1)[-1]
        if call.name == "gke.create_node_pool":
            assert call.target not in made, f"{name} was made twice (S3)"
        if call.name == "gke.delete_node_pool":
            still = [pool for pool in falcon.store.pools.values() if pool.name == name and pool.lease]
            assert name not in leased or not still, f"{name} is leased and was deleted (S5)"


# --- a whole pass


def _check_blindness(made: Pass) -> None:
    """Nothing rests on what was not read (S6)."""
    views = {view.cluster.id: view for view in made.snapshot.views}
    jobs = {job.id: job for job in made.snapshot.jobs}
    asked = {(row.job_id, row.attempt) for row in made.snapshot.submissions}
    for action in made.plan.actions:
        view, needs = views.get(_cluster_of(action)), _needs(action, jobs, asked)
        if view is None:
            assert not needs, f"{action} rests on a cluster that is not there (S6)"
            continue
        offline = view.cluster.status is ClusterStatus.OFFLINE
        assert not (needs and offline), f"{action} rests on a cluster that is offline (S6)"
        assert "pools" not in needs or view.pools is not None, f"{action} rests on pools that were not read (S6)"
        assert "works" not in needs or view.works is not None, f"{action} rests on Jobs that were not read (S6)"


def _cluster_of(action: act.Action) -> str:
    if isinstance(action, act.CreatePool | act.DeletePool | act.SubmitWork | act.ResumeWork | act.DeleteWork):
        return action.cluster.id
    if isinstance(action, act.EnterPool):
        return action.pool.cluster_id
    return getattr(action, "cluster_id", None) or ""


def _needs(action: act.Action, jobs: dict[str, Job], asked: set[tuple[str, int]]) -> set[str]:
    """Return which lists an action must rest on."""
    if isinstance(action, act.SubmitWork | act.ResumeWork | act.DeleteWork):
        return {"works"}
    if isinstance(action, act.CreatePool | act.DeletePool | act.RetirePool | act.EndLease | act.MarkPool):
        return {"pools"}
    if not isinstance(action, act.Change) or action.only_message:
        return set()
    job, needs = jobs[action.job_id], set[str]()
    if action.takes_slot is not None or action.takes is not None:
        return {"pools", "works"}
    if action.gives_up:
        needs.add("pools")
    ends = action.to_status in TERMINAL or "outcome" in action.columns
    if ends and (job.job_uid or ((job.id, job.attempt) in asked and job.node_pool_name)):
        needs.add("works")
    return needs


def _check_order(made: Pass) -> None:
    """In one queue the older of an actor's jobs starts first, and who was served longest ago goes before (S11)."""
    snapshot = made.snapshot
    jobs = {job.id: job for job in snapshot.jobs}
    served = {(turn.cluster_id, turn.topology, turn.actor): turn.served_at for turn in snapshot.turns}
    for action in made.plan.actions:
        if not isinstance(action, act.Change) or action.takes_slot is None:
            continue
        job, queue = jobs[action.job_id], (action.cluster_id or "", action.topology or "")
        for other in _startable(snapshot, queue, job):
            if other.actor == job.actor:
                assert (job.created_at, job.id) < (other.created_at, other.id), f"{job.id} passed {other.id} (S11)"
            else:
                last = served.get((*queue, job.actor), 0.0)
                assert last <= served.get((*queue, other.actor), 0.0), f"{job.actor} passed {other.actor} (S11)"


def _startable(snapshot: Snapshot, queue: tuple[str, str], job: Job) -> Iterator[Job]:
    """Yield the others of a queue that could have started for the same reasons as this job."""
    backing_off = {(failure.job_id, failure.cluster_id) for failure in snapshot.failures}
    for other in snapshot.jobs:
        same_queue = (other.cluster_id, other.topology, other.priority) == (*queue, job.priority)
        waits = other.status == "Pending" and other.reason in ("Waiting", "ClusterBusy") and not other.outcome
        if other is job or not same_queue or not waits or other.retry_at is not None:
            continue
        if (other.id, queue[0]) not in backing_off and _is_alike(job, other):
            yield other


def _is_alike(job: Job, other: Job) -> bool:
    """Return whether two jobs ask for the same machines."""
    task, of_other = job.task, other.task
    if not isinstance(task, TaskSpec) or not isinstance(of_other, TaskSpec):
        return False
    return (task.shape, task.mode) == (of_other.shape, of_other.mode)


# --- one call


def check_call(falcon: Falcon, call: Call) -> None:
    """What the committed database must hold while a call is on its way (S7), and what it may be about (S8)."""
    if call.name in CALLS:
        cluster = next(row for row in falcon.store.clusters.values() if call.target.startswith(row.path + "/"))
        CALLS[call.name](falcon, cluster.id, call)


def _check_create(falcon: Falcon, cluster_id: str, call: Call) -> None:
    body = call.arguments[1]
    labels = body["config"]["labels"]
    cluster_id = labels[CLUSTER_ID]
    row = falcon.store.pools.get((cluster_id, body["name"]))
    assert row is not None and row.lease and row.requested_at is not None, "a pool nobody asked for in the ledger (S7)"
    assert body["name"].startswith(PREFIX) and labels[INSTANCE] == falcon.store.instance, "a pool without our mark (S8)"
    assert (labels[JOB_ID], labels[ATTEMPT]) == (row.job_id, str(row.attempt)), "a pool under another's name (S3)"


def _check_delete(falcon: Falcon, cluster_id: str, call: Call) -> None:
    path, name = call.arguments
    rows = [falcon.store.pools.get((row.id, name)) for row in falcon.store.clusters.values() if row.path == path]
    assert any(row and row.state is not PoolState.ACTIVE for row in rows), f"{name} is deleted, its row Active (S7)"
    live = falcon.sim.gke.pools.all.get((path, name))
    if live is not None:
        labels = live.spec["config"].get("labels", {})
        assert labels.get(INSTANCE) == falcon.store.instance, f"{name} is not ours and was deleted (S8)"


def _check_submit(falcon: Falcon, cluster_id: str, call: Call) -> None:
    metadata: Json = call.arguments[2]["metadata"]
    labels = metadata["labels"]
    row = falcon.store.works.get((labels[CLUSTER_ID], metadata["name"]))
    assert row is not None, f"{metadata['name']} is submitted without a row (S7)"
    assert (row.job_id, str(row.attempt)) == (labels[JOB_ID], labels[ATTEMPT]), "a Job under another's name (S3)"


def _check_resume(falcon: Falcon, cluster_id: str, call: Call) -> None:
    _, _, name, body = call.arguments
    uid = body["metadata"]["uid"]
    assert falcon.store.uids.get((cluster_id, name)) == uid, f"{name} is let go, its UID in no row (S7)"


def _check_delete_work(falcon: Falcon, cluster_id: str, call: Call) -> None:
    _, namespace, name, options = call.arguments
    assert namespace == NAMESPACE and options["preconditions"]["uid"], f"{name} is deleted without its UID (S8)"
    found = falcon.sim.kube(falcon.store.clusters[cluster_id].path).store.find("jobs", namespace, name)
    if found is None or found["metadata"]["uid"] != options["preconditions"]["uid"]:
        return
    labels = found["metadata"]["labels"]
    assert labels.get(INSTANCE) == falcon.store.instance, f"{name} is not ours and was deleted (S8)"
    job = falcon.store.jobs.get(labels[JOB_ID])
    asked = job is None or job.outcome or job.status in (*TERMINAL, "Aborting")
    older = job is not None and (str(job.attempt) != labels[ATTEMPT] or job.reason in ("Waiting", "ClusterBusy"))
    assert asked or older, f"{name} is deleted, and no row asks for it (S7)"


CALLS = {
    "gke.create_node_pool": _check_create,
    "gke.delete_node_pool": _check_delete,
    "kube.create.jobs": _check_submit,
    "kube.patch.jobs": _check_resume,
    "kube.delete.jobs": _check_delete_work,
}
