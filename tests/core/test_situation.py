"""What a pass sees of one job: each value of each fact in its smallest world."""

from typing import Any

import pytest
from attrs import evolve
from builders import (
    EN,
    FAILED,
    NOW,
    OK,
    cluster,
    free,
    fresh,
    job,
    labels,
    live,
    pod,
    pool,
    seen,
    snapshot,
    step,
    task,
    unread,
    view,
    work,
)

from falcon_rm.core.actions import Change, SubmitWork
from falcon_rm.core.live import Condition, ContainerState, KubeEvent, LivePool, LiveWork, Operation, Pod
from falcon_rm.core.machine import Chance, PoolSeen, Timing, WorkSeen
from falcon_rm.core.model import ClusterView, Fault, Job, Pool, Snapshot, Submission
from falcon_rm.core.situation import is_short
from falcon_rm.core.words import ClusterStatus, ErrorKind, Mode, PoolState, PoolStatus, Status

P, W = PoolSeen, WorkSeen
ASKS = job("j1", "Pending/Provisioning")
NODES = job("j1", "Pending/WaitingForNode")
SENDS = job("j1", "Pending/Dispatching", job_uid="uid-j1", dispatched_at=NOW - 40)
RUNS = job("j1", "Running")
ENDS = job("j1", "Running", outcome="Succeeded")
STOPS = job("j1", "Aborting")
SLICE = job("j1", "Pending/WaitingForNode", task("4x4"))
FLEX = job("j1", "Pending/WaitingForNode", task(mode=Mode.FLEX_START))


def world(of: Job, row: Pool | None, *listed: LivePool | LiveWork | Pod, **fields: Any) -> Snapshot:
    """Return the world of one job, its ledger row, and what its cluster shows."""
    return snapshot(of, views=(view(*listed, **fields),), pools=(row,) if row else ())


def operation(*, done: bool, error: str | None = None, name: str = "falcon-j1", started: str = "1") -> Operation:
    """Return a create operation of a pool in c1; the link names the project by number."""
    target = f"https://container.googleapis.com/v1/projects/77/zones/z/clusters/c1/nodePools/{name}"
    return Operation(f"op-{started}", target, done, started, error)


def faulty(kind: ErrorKind, of: Job = ASKS) -> Pool:
    """Return a pool whose create was refused."""
    return fresh(of, error=Fault(kind, "words", NOW - 5))


ASKED = fresh(ASKS, requested_at=NOW - 30)
LONG_AGO = fresh(ASKS, requested_at=NOW - 300)
CREATING = live(pool(ASKS), PoolStatus.PROVISIONING)

POOLS = [
    ("a CPU job", P.UNNEEDED, snapshot(job("j1", "Pending/Dispatching", task("cpu")))),
    ("a row that names none", P.NONE, world(evolve(ASKS, node_pool_name=None), None)),
    ("its lease ended and it is gone", P.NONE, world(STOPS, pool(STOPS, lease=None, state=PoolState.DELETING))),
    ("its lease ended and it is free", P.NONE, world(STOPS, pool(STOPS, lease=None), live(pool(STOPS)))),
    ("its lease is another's while it ends", P.NONE, world(ENDS, pool(ENDS, lease="j2"), live(pool(ENDS)))),
    ("no row and not listed while it ends", P.NONE, world(ENDS, None)),
    ("pools not read", P.UNKNOWN, snapshot(ASKS, views=(unread(),), pools=(pool(ASKS),))),
    ("no row in clusters", P.UNKNOWN, snapshot(ASKS, views=(), pools=(pool(ASKS),))),
    ("a word nobody knows", P.UNKNOWN, world(ASKS, pool(ASKS), live(pool(ASKS), PoolStatus.UNKNOWN))),
    ("nodes not looked at", P.UNKNOWN, world(ASKS, pool(ASKS), live(pool(ASKS)), ready_nodes={})),
    ("asked for moments ago", P.HIDDEN, world(ASKS, ASKED)),
    ("its create still runs", P.HIDDEN, world(ASKS, LONG_AGO, operations=(operation(done=False),))),
    ("never asked for", P.ABSENT, world(ASKS, fresh(ASKS))),
    ("asked for long ago, never listed", P.ABSENT, world(ASKS, LONG_AGO)),
    ("taken time and again, never listed", P.BROKEN, world(
        evolve(ASKS, provisioning_at=NOW - 2401), fresh(ASKS, requested_at=NOW - 300))),
    ("asked for, the create has ended, not listed", P.ABSENT, world(ASKS, ASKED, operations=(operation(done=True),))),
    ("refused for now", P.PUT_OFF, world(ASKS, faulty(ErrorKind.BUSY))),
    ("an answer that leaves it open", P.ABSENT, world(ASKS, faulty(ErrorKind.UNKNOWN))),
    ("seen once, not listed", P.LOST, world(ASKS, pool(ASKS))),
    ("no row in the ledger", P.LOST, world(ASKS, None)),
    ("its lease is another's", P.LOST, world(ASKS, pool(ASKS, lease="j2"), live(pool(ASKS)))),
    ("being made", P.CREATING, world(ASKS, pool(ASKS), CREATING)),
    ("running, nodes missing", P.UP, world(SLICE, pool(SLICE), live(pool(SLICE)), ready_nodes={"falcon-j1": 3})),
    ("flex-start without nodes", P.EMPTY, world(FLEX, pool(FLEX), live(pool(FLEX)), ready_nodes={"falcon-j1": 0})),
    ("every node Ready", P.READY, world(SLICE, pool(SLICE), live(pool(SLICE)))),
    ("RECONCILING, every node Ready", P.READY, world(
        NODES, pool(NODES), live(pool(NODES), PoolStatus.RECONCILING), ready_nodes={"falcon-j1": 1})),
    ("RUNNING_WITH_ERROR, every node Ready (P2)", P.READY, world(
        NODES, pool(NODES), live(pool(NODES), PoolStatus.RUNNING_WITH_ERROR), ready_nodes={"falcon-j1": 1})),
    ("running, its old error beside it (P8)", P.READY, world(
        NODES, pool(NODES, error=Fault(ErrorKind.QUOTA, "q", NOW)), live(pool(NODES), errors=("GCE_QUOTA_EXCEEDED",)),
        operations=(operation(done=True, error="GCE_STOCKOUT"),))),
    ("listed, while it runs", P.READY, world(RUNS, pool(RUNS), live(pool(RUNS)), ready_nodes={})),
    ("RUNNING_WITH_ERROR short of nodes (P2)", P.BROKEN, world(
        NODES, pool(NODES), live(pool(NODES), PoolStatus.RUNNING_WITH_ERROR), ready_nodes={"falcon-j1": 0})),
    ("running, made smaller by hand", P.BROKEN, world(
        SLICE, pool(SLICE), live(pool(SLICE), hosts=3), ready_nodes={"falcon-j1": 3})),
    ("ERROR, nobody says why", P.BROKEN, world(ASKS, pool(ASKS), live(pool(ASKS), PoolStatus.ERROR))),
    ("ERROR and a stockout (P1)", P.BROKEN, world(
        ASKS, pool(ASKS), live(pool(ASKS), PoolStatus.ERROR),
        operations=(operation(done=True, error="GCE_STOCKOUT"),))),
    ("PROVISIONING, its create has failed", P.BROKEN, world(
        ASKS, pool(ASKS), CREATING, operations=(operation(done=True, error="something nobody has seen"),))),
    ("refused for capacity", P.BROKEN, world(ASKS, faulty(ErrorKind.CAPACITY))),
    ("refused for quota", P.BROKEN, world(ASKS, faulty(ErrorKind.QUOTA))),
    ("refused: the reservation is full", P.FULL, world(ASKS, faulty(ErrorKind.FULL))),
    ("refused for good", P.REFUSED, world(ASKS, faulty(ErrorKind.PERMANENT))),
    ("the cluster's trouble", P.TROUBLE, world(ASKS, faulty(ErrorKind.CLUSTER))),
    ("ERROR, no row in the ledger", P.BROKEN, world(ASKS, None, live(pool(ASKS), PoolStatus.ERROR))),
    ("deleted by others (P7)", P.STOPPING, world(ASKS, pool(ASKS), live(pool(ASKS), PoolStatus.STOPPING))),
    ("not our instance (P5)", P.TAKEN, world(ASKS, ASKED, live(ASKED, labels=labels("c1", "j1", 1, "other")))),
    ("ours, but of another attempt (P5)", P.TAKEN, world(ASKS, ASKED, live(ASKED, labels=labels("c1", "j1", 2)))),
    ("given up, pools not read", P.UNKNOWN, snapshot(
        STOPS, views=(unread(),), pools=(pool(STOPS, lease=None, state=PoolState.DELETING),))),
    ("given up, still listed", P.LEAVING, world(
        STOPS, pool(STOPS, lease=None, state=PoolState.DELETING), live(pool(STOPS), PoolStatus.STOPPING))),
    ("given up, its create still runs", P.LEAVING, world(
        STOPS, fresh(STOPS, requested_at=NOW - 300, lease=None, state=PoolState.DELETING),
        operations=(operation(done=False),))),
    ("given up, the name another's now", P.NONE, world(
        STOPS, pool(STOPS, lease=None, state=PoolState.DELETING), live(pool(STOPS), labels={}))),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "of"), [case[1:] for case in POOLS], ids=[case[0] for case in POOLS])
def test_pool(expected: PoolSeen, of: Snapshot) -> None:
    """What the lists, the ledger and the operations say of a pool."""
    assert expected == seen(of).pool


def test_every_word_for_a_pool_is_met() -> None:
    """The cases leave no value out."""
    assert set(PoolSeen) == {case[1] for case in POOLS}


def test_newest_operation_of_a_pool_counts() -> None:
    """An older create that failed says nothing about the one that runs."""
    operations = (operation(done=False, started="2"), operation(done=True, error="GCE_STOCKOUT", started="1"))
    assert PoolSeen.CREATING == seen(world(ASKS, pool(ASKS), CREATING, operations=operations)).pool


# --- the work


def sent(of: Job, error: ErrorKind | None = None, **fields: float) -> Submission:
    """Return what the ledger keeps of a job's Kubernetes Job."""
    fault = Fault(error, "words", NOW) if error else None
    return Submission("c1", "falcon-j1", of.id, of.attempt, NOW - 40, error=fault, **fields)


def doing(of: Job, *listed: LiveWork | Pod, sub: Submission | None = None, **fields: Any) -> Snapshot:
    """Return the world of a job whose pool is ready."""
    shown = view(live(pool(of)), *listed, **fields)
    return snapshot(of, views=(shown,), pools=(pool(of),), submissions=(sub,) if sub else ())


def waiting(reason: str, **fields: Any) -> Pod:
    """Return the job's pod, held up by its container."""
    return pod(SENDS, 0, "Pending", ContainerState("task", "waiting", reason), **fields)


NOT_UP = work(SENDS, ready=0)
HELD = work(SENDS, active=0, ready=0, suspended=True)
OLD = evolve(SENDS, dispatched_at=NOW - 1000)
UNSENT = job("j1", "Pending/Dispatching")
NO_TPU = job("j1", "Aborting", task("cpu"))
EVENT = KubeEvent("falcon-j1", "FailedCreate", "exceeded quota: q")

WORKS = [
    ("nothing read, perhaps submitted", W.UNKNOWN, snapshot(RUNS, views=(unread(),), pools=(pool(RUNS),))),
    ("starting, pods not looked at", W.UNKNOWN, doing(SENDS, NOT_UP, pods=None)),
    ("failed, pods not looked at", W.UNKNOWN, doing(RUNS, work(RUNS, FAILED), looked_at=frozenset())),
    ("gone while it ends, pods not looked at", W.UNKNOWN, doing(ENDS, pods=None)),
    ("ended while it ends, pods not looked at", W.UNKNOWN, doing(ENDS, work(ENDS, OK), pods=None)),
    ("nothing read, never submitted", W.ABSENT, snapshot(ASKS, views=(unread(),), pools=(pool(ASKS),))),
    ("never submitted", W.ABSENT, doing(UNSENT)),
    ("asked for, not listed, not refused", W.ABSENT, doing(UNSENT, sub=sent(UNSENT))),
    ("asked for, busy", W.ABSENT, doing(UNSENT, sub=sent(UNSENT, ErrorKind.BUSY))),
    ("an older attempt's Job is not this one's (P65)", W.ABSENT, doing(
        UNSENT, work(UNSENT, labels=labels("c1", "j1", 7)))),
    ("aborted while it waited, nothing read", W.ABSENT, snapshot(
        evolve(NO_TPU, reason="Waiting"), views=(unread(),), submissions=(sent(NO_TPU, ErrorKind.CLUSTER),))),
    ("aborted later than that, nothing read", W.UNKNOWN, snapshot(
        NO_TPU, views=(unread(),), submissions=(sent(NO_TPU, ErrorKind.CLUSTER),))),
    ("its uid is in the row, not listed", W.GONE, doing(RUNS)),
    ("another uid of that name", W.GONE, doing(RUNS, work(RUNS, uid="other"))),
    ("gone while it ends, no pod left", W.GONE, doing(ENDS, looked_at=frozenset({"falcon-j1"}))),
    ("there, its uid not in the row", W.UNRECORDED, doing(UNSENT, work(UNSENT), sub=sent(UNSENT))),
    ("pods come", W.STARTING, doing(SENDS, NOT_UP, waiting("ContainerCreating"))),
    ("pods missing", W.STARTING, doing(SENDS, work(SENDS, active=0, ready=0))),
    ("a large image after 12 min (P51)", W.STARTING, doing(
        evolve(SENDS, dispatched_at=NOW - 720), NOT_UP, waiting("PodInitializing"))),
    ("suspended as it was made", W.PREPARED, doing(SENDS, HELD, sub=sent(SENDS))),
    ("the same, its row lost", W.PREPARED, doing(SENDS, HELD)),
    ("the same, its answer unknown", W.PREPARED, doing(SENDS, HELD, sub=sent(SENDS, ErrorKind.UNKNOWN))),
    ("not let go for good", W.REFUSED, doing(SENDS, HELD, sub=sent(SENDS, ErrorKind.PERMANENT))),
    ("not let go for want of a right", W.DENIED, doing(SENDS, HELD, sub=sent(SENDS, ErrorKind.CLUSTER))),
    ("suspended, and a row by hand that never knew it", W.ABSENT, doing(
        evolve(RUNS, job_uid=None), work(RUNS, active=0, ready=0, suspended=True))),
    ("suspended while it ends", W.RUNNING, doing(ENDS, work(ENDS, active=0, ready=0, suspended=True), sub=sent(ENDS))),
    ("suspended by hand (P49)", W.STARTING, doing(SENDS, HELD, sub=sent(SENDS, resumed_at=NOW - 30))),
    ("image not pulled in 15 min (P50)", W.STUCK, doing(OLD, NOT_UP, waiting("ImagePullBackOff"))),
    ("no pod is let in for 3 min (P52)", W.STUCK, doing(
        evolve(SENDS, dispatched_at=NOW - 200), work(SENDS, active=0), events=(EVENT,))),
    ("every pod runs", W.RUNNING, doing(SENDS, work(SENDS), pod(SENDS))),
    ("a failed pod is not a failed Job (P47)", W.RUNNING, doing(RUNS, work(RUNS, failed=1))),
    ("all succeeded, no condition yet (P47)", W.RUNNING, doing(RUNS, work(RUNS, succeeded=1, active=0))),
    ("an end announced is no end (P48)", W.RUNNING, doing(
        RUNS, work(RUNS, {"FailureTarget": Condition(status=True)}))),
    ("Complete=False (P49)", W.RUNNING, doing(RUNS, work(RUNS, {"Complete": Condition(status=False)}))),
    ("alive while it ends", W.RUNNING, doing(ENDS, work(ENDS))),
    ("Complete", W.SUCCEEDED, doing(RUNS, work(RUNS, OK))),
    ("SuccessCriteriaMet and Complete (P48)", W.SUCCEEDED, doing(
        RUNS, work(RUNS, {"SuccessCriteriaMet": Condition(status=True), **OK}))),
    ("Complete while it ends, pods done", W.SUCCEEDED, doing(ENDS, work(ENDS, OK), pod(ENDS, 0, "Succeeded"))),
    ("Failed", W.FAILED_APP, doing(RUNS, work(RUNS, FAILED))),
    ("Failed wins over a success (P49)", W.FAILED_APP, doing(RUNS, work(RUNS, {**FAILED, **OK}, succeeded=1))),
    ("Failed by the failure policy (P61)", W.FAILED_INFRA, doing(
        RUNS, work(RUNS, {"Failed": Condition(status=True, reason="PodFailurePolicy")}))),
    ("a pod that its node refused (P61)", W.FAILED_INFRA, doing(
        RUNS, work(RUNS, FAILED), pod(RUNS, 0, "Failed", reason="UnexpectedAdmissionError"))),
    ("a host gone with its pod (P63)", W.FAILED_INFRA, doing(RUNS, work(RUNS, ready=0), ready_nodes={"falcon-j1": 0})),
    ("being deleted", W.STOPPING, doing(RUNS, work(RUNS, deleting=True))),
    ("gone while it ends, a pod left (P31)", W.STOPPING, doing(ENDS, pod(ENDS))),
    ("Complete while it ends, a pod still runs (P37)", W.RUNNING, doing(ENDS, work(ENDS, OK), pod(ENDS))),
    ("refused for good", W.REFUSED, doing(UNSENT, sub=sent(UNSENT, ErrorKind.PERMANENT))),
    ("Falcon lacks a right", W.DENIED, doing(UNSENT, sub=sent(UNSENT, ErrorKind.CLUSTER))),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "of"), [case[1:] for case in WORKS], ids=[case[0] for case in WORKS])
def test_work(expected: WorkSeen, of: Snapshot) -> None:
    """What the lists, the row and the pods say of a Kubernetes Job."""
    assert expected == seen(of).work


def test_every_word_for_a_job_is_met() -> None:
    """The cases leave no value out."""
    assert set(WorkSeen) == {case[1] for case in WORKS}


@pytest.mark.parametrize(
    ("counts", "short"),
    [
        ({}, False),
        ({"ready": 3}, True),
        ({"active": 3, "ready": 4}, True),
        ({"active": 2, "ready": 2, "succeeded": 2}, False),
    ],
)
def test_a_running_job_short_of_pods_is_worth_a_look(counts: dict[str, Any], short: bool) -> None:
    """Active and ready pods and those that succeeded count."""
    of = job("j1", "Running", task("4x4"))
    assert short == is_short(work(of, **counts))


# --- deadlines, budgets, neighbours

TIMINGS = [
    ("creation", evolve(ASKS, provisioning_at=NOW - 2401), pool(ASKS, requested_at=NOW - 2401), None, Timing.LATE),
    ("creation, just in time", evolve(ASKS, provisioning_at=NOW - 9999), pool(ASKS, requested_at=NOW - 2400), None,
     Timing.ON_TIME),
    ("creation, counted from the last try", evolve(ASKS, provisioning_at=NOW - 9999), ASKED, None, Timing.ON_TIME),
    ("creation, in the future (P94)", evolve(ASKS, provisioning_at=NOW + 86400), fresh(ASKS), None, Timing.ON_TIME),
    ("creation, never begun", evolve(ASKS, provisioning_at=None), fresh(ASKS), None, Timing.ON_TIME),
    ("nodes", evolve(NODES, provisioning_at=NOW - 901), fresh(NODES, leased_at=None), None, Timing.LATE),
    ("nodes, counted from when the pool was up", evolve(NODES, provisioning_at=NOW - 9999), pool(NODES), None,
     Timing.ON_TIME),
    ("nodes of flex-start", evolve(FLEX, provisioning_at=NOW - 901), fresh(FLEX, leased_at=None), None, Timing.ON_TIME),
    ("nodes of flex-start, too late", evolve(FLEX, provisioning_at=NOW - 21601), fresh(FLEX, leased_at=None), None,
     Timing.LATE),
    ("nodes that others take away before the submit", evolve(UNSENT, provisioning_at=NOW - 901),
     fresh(UNSENT, leased_at=None), None, Timing.LATE),
    ("the same, a moment ago", evolve(UNSENT, provisioning_at=NOW - 901), pool(UNSENT), None, Timing.ON_TIME),
    ("run", evolve(RUNS, timeout_seconds=39), pool(RUNS), None, Timing.LATE),
    ("run, just in time", evolve(RUNS, timeout_seconds=40), pool(RUNS), None, Timing.ON_TIME),
    ("run without a limit", evolve(RUNS, timeout_seconds=0, dispatched_at=0), pool(RUNS), None, Timing.ON_TIME),
    ("run with a limit below none", evolve(RUNS, timeout_seconds=-1), pool(RUNS), None, Timing.ON_TIME),
    ("run, counted while pods start", evolve(SENDS, timeout_seconds=39), pool(SENDS), None, Timing.LATE),
    ("stop, pods outlive it", STOPS, pool(STOPS), sent(STOPS, stop_at=NOW - 331), Timing.LATE),
    ("stop, pods have their grace", STOPS, pool(STOPS), sent(STOPS, stop_at=NOW - 330), Timing.ON_TIME),
]  # fmt: skip


@pytest.mark.parametrize(
    ("of", "row", "sub", "expected"), [case[1:] for case in TIMINGS], ids=[case[0] for case in TIMINGS]
)
def test_timing(of: Job, row: Pool, sub: Submission | None, expected: Timing) -> None:
    """Each phase has one bound, an age by the database's clock."""
    world = snapshot(of, views=(view(),), pools=(row,), submissions=(sub,) if sub else ())
    assert expected == seen(world).timing


ABORTED_LONG_AGO = evolve(STOPS, aborting_at=NOW - 9999)
LOST_LONG_AGO = job("j1", "Running", outcome="Lost", finished_at=NOW - 9999)
RELEASES = [
    ("its pool does not go", ABORTED_LONG_AGO, (), 901, True),
    ("just in time", ABORTED_LONG_AGO, (), 900, False),
    ("nobody was asked to stop yet", ABORTED_LONG_AGO, (work(STOPS),), None, False),
    ("a retry, which waits for ever", LOST_LONG_AGO, (), 901, False),
]


@pytest.mark.parametrize(
    ("of", "listed", "idle", "overdue"), [case[1:] for case in RELEASES], ids=[case[0] for case in RELEASES]
)
def test_overdue(of: Job, listed: tuple[LiveWork, ...], idle: float | None, overdue: bool) -> None:
    """A release is stuck when a stage of it takes longer than FALCON_RELEASE_TIMEOUT."""
    row = pool(of) if idle is None else pool(of, lease=None, idle_at=NOW - idle, state=PoolState.DELETING)
    timing = seen(snapshot(of, views=(view(live(row), *listed),), pools=(row,))).timing
    assert overdue == (timing is Timing.OVERDUE)


@pytest.mark.parametrize(
    ("of", "left"),
    [
        (evolve(ASKS, pool_failures=1), True),
        (evolve(ASKS, pool_failures=2), False),
        (RUNS, False),
        (job("j1", "Running", task(max_retries=1), pool_failures=2), True),
        (job("j1", "Running", task(max_retries=1), losses=1), False),
    ],
)
def test_budget(of: Job, left: bool) -> None:
    """Pools that could not be made count while acquiring, lost runs while running."""
    assert left == seen(world(of, pool(of))).left


BETTER = free("falcon-free")
UPSIDE = free("falcon-free", ready_at=None)
OTHER = job("j2", "Pending/Waiting", task("4x4"))
SAME = job("j2", "Pending/Waiting")
CPU = job("j2", "Pending/Waiting", task("cpu"))


@pytest.mark.parametrize(
    ("other", "row", "shown", "expected"),
    [
        (None, BETTER, view(live(BETTER)), Chance.BETTER),
        (None, UPSIDE, view(live(UPSIDE), CREATING), Chance.BETTER),
        (None, UPSIDE, view(live(UPSIDE), live(pool(ASKS)), ready_nodes={"falcon-j1": 0}), Chance.NONE),
        (None, evolve(BETTER, mode=Mode.FLEX_START), view(live(BETTER)), Chance.NONE),
        (None, BETTER, view(live(BETTER), works=None), Chance.NONE),
        (OTHER, None, view(), Chance.CONTESTED),
        (SAME, None, view(), Chance.NONE),
        (CPU, None, view(), Chance.NONE),
        (None, None, view(), Chance.NONE),
    ],
    ids=["ready", "up-creating", "no-further", "other-mode", "no-Jobs-read", "contested", "same", "cpu", "alone"],
)
def test_chance(other: Job | None, row: Pool | None, shown: ClusterView, expected: Chance) -> None:
    """A free pool further along comes first, then a waiting job of another topology."""
    jobs = (ASKS, other) if other else (ASKS,)
    assert expected == seen(snapshot(*jobs, views=(shown,), pools=(pool(ASKS), *([row] if row else [])))).chance


def test_a_free_pool_in_a_cluster_that_leaves_is_no_chance() -> None:
    """In maintenance nothing is handed on."""
    leaving = view(live(BETTER), of=cluster(status=ClusterStatus.MAINTENANCE))
    assert Chance.NONE == seen(snapshot(ASKS, views=(leaving,), pools=(pool(ASKS), BETTER))).chance


def test_bounds_are_those_in_force() -> None:
    """A deadline comes from the bounds of the snapshot."""
    short = evolve(EN, pool_timeout=40)
    assert Timing.LATE == seen(evolve(world(ASKS, pool(ASKS)), bounds=short)).timing


@pytest.mark.parametrize("odd", [{"labels": {}}, {"mode": None}, {"machine_type": "n2"}])
def test_abort_without_a_ledger_row_ends(odd: dict[str, Any]) -> None:
    """A job that the ledger leases nothing to owns nothing, whatever stands under its pool's name."""
    stops = job("j1", "Aborting", aborting_at=NOW - 99999)
    found = step(snapshot(stops, views=(view(live(pool(stops), **odd)),)))
    assert isinstance(found, Change)
    assert Status.ABORTED == found.to_status


@pytest.mark.parametrize(
    "blind", [unread(cluster(status=ClusterStatus.OFFLINE), "offline"), view(works=None, pods=None)]
)
def test_cpu_job_is_not_submitted_where_nothing_was_read(blind: ClusterView) -> None:
    """Nothing is made on a cluster whose Jobs are unknown."""
    assert not isinstance(step(snapshot(job("j1", "Pending/Dispatching", task("cpu")), views=(blind,))), SubmitWork)
