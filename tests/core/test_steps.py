"""How steps become actions: what is written together, and what one call carries."""

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve
from builders import (
    NOW,
    OK,
    ZONE,
    change,
    free,
    fresh,
    job,
    live,
    message,
    pod,
    pool,
    snapshot,
    state,
    step,
    task,
    view,
    work,
)

from falcon_rm.core.actions import Action, Change, CreatePool, DeleteWork, GiveUp, Note, SubmitWork
from falcon_rm.core.case import Case
from falcon_rm.core.live import LivePool, LiveWork, Operation, Pod
from falcon_rm.core.model import Failure, Fault, InvalidSpec, Job, Pool, Snapshot, Submission, TaskSpec
from falcon_rm.core.plan import Unknown, plan
from falcon_rm.core.steps import act
from falcon_rm.core.words import ErrorKind, Mode, PoolState, PoolStatus

ASKS = job("j1", "Pending/Provisioning")
NODES = job("j1", "Pending/WaitingForNode")
RUNS = job("j1", "Running")


def world(of: Job, row: Pool | None, *listed: LivePool | LiveWork | Pod, **fields: Any) -> Snapshot:
    """Return the world of one job, its ledger row, and what its cluster shows."""
    return snapshot(of, **{"views": (view(*listed),), "pools": (row,) if row else ()} | fields)


def deletes(of: Snapshot) -> list[str]:
    """Return why Jobs are deleted."""
    return [action.why for action in plan(of).actions if isinstance(action, DeleteWork)]


# --- acquiring


@pytest.mark.parametrize(
    ("asked", "policy", "idle"),
    [
        (task("4x4", exp_id="e", owner="o"), None, 600),
        (task("2x2x1", "v7x"), None, 600),
        (task("2x2x2", "v7x", Mode.FLEX_START), "falcon-v7x-2x2x2", 21600),
    ],
)
def test_create_says_all_that_the_call_needs(asked: TaskSpec, policy: str | None, idle: int) -> None:
    """Zone, labels, the idle time of the mode, and the workload policy of tpu7x slices (P40)."""
    of = job("j1", "Pending/Provisioning", asked)
    made = step(world(of, fresh(of)))
    assert isinstance(made, CreatePool)
    assert (ZONE, "j1", idle) == (made.zone, made.job_id, made.idle_seconds)
    assert policy == made.policy
    assert ("j1", asked.exp_id or None) == (made.labels["falcon.io/job-id"], made.labels.get("falcon.io/exp-id"))


def test_pool_made_for_another_job_keeps_its_labels() -> None:
    """A pool that is handed on before it was made is made under its own name."""
    of = job("j2", "Pending/Provisioning", task(exp_id="mine"), node_pool_name="falcon-j1")
    made = step(world(of, fresh(of, job_id="j1")), "j2")
    assert isinstance(made, CreatePool)
    assert ("j1", None) == (made.labels["falcon.io/job-id"], made.labels.get("falcon.io/exp-id"))


@pytest.mark.parametrize(("made_for", "expected"), [("j1", ("Red", "red_")), ("j0", (None, None))])
def test_labels_of_a_job_go_onto_its_pool(made_for: str, expected: tuple[str | None, str | None]) -> None:
    """Nodes and the bill carry them as each may spell them, unless the pool is made for another job (contract.md 4)."""
    of = job("j1", "Pending/Provisioning", task(labels={"team": "Red"}), node_pool_name=f"falcon-{made_for}")
    made = step(world(of, fresh(of, job_id=made_for)), "j1")
    assert isinstance(made, CreatePool)
    node, bill = made.labels.get("team"), made.resource_labels.get("team")
    assert expected == (node, bill and bill[:4])


def test_nothing_is_made_without_a_zone() -> None:
    """The job goes on waiting."""
    of = snapshot(ASKS, views=(view(zone=None, problem="no zone"),), pools=(fresh(ASKS),))
    assert "Pending/Provisioning" == state(of)
    assert change(of).only_message


@pytest.mark.parametrize(("listed", "keep"), [(True, True), (False, False)])
def test_better_pool_is_taken_and_the_own_one_given_up(listed: bool, keep: bool) -> None:
    """In one transaction; a pool that is on its way stays free, one that was never asked for goes."""
    own = pool(ASKS) if listed else fresh(ASKS)
    better = free("falcon-x")
    shown = view(live(better), *([live(own, PoolStatus.PROVISIONING)] if listed else []))
    made = change(snapshot(ASKS, views=(shown,), pools=(own, better)))
    assert ("falcon-x", GiveUp("falcon-j1", keep, "better")) == (made.takes, made.gives_up)
    assert ("falcon-x", Mode.ON_DEMAND) == (made.columns["node_pool_name"], made.columns["supply_mode"])


def test_submit_writes_when_it_was_dispatched_only_with_the_pool_in_hand() -> None:
    """A flex-start Job is submitted before its nodes: it counts from when they are there (P13)."""
    flex = job("j1", "Pending/WaitingForNode", task(mode=Mode.FLEX_START))
    row = pool(flex)
    early = step(snapshot(flex, views=(view(live(row), ready_nodes={row.name: 0}),), pools=(row,)))
    assert isinstance(early, SubmitWork)
    assert not early.dispatched
    ready = step(world(job("j1", "Pending/Dispatching"), pool(ASKS), live(pool(ASKS))))
    assert isinstance(ready, SubmitWork)
    assert (True, "falcon-j1", 1) == (ready.dispatched, ready.name, ready.attempt)
    sent = evolve(flex, job_uid="uid-j1")
    up = snapshot(sent, views=(view(live(row), work(sent, ready=0), pod(sent, 0, "Pending")),), pools=(row,))
    assert {"dispatched_at"} == change(up).columns.keys()


def test_running_frees_the_slot_and_forgets_pools_that_failed() -> None:
    """A CPU job that was never seen dispatched gets that time as well."""
    of = job("j1", "Pending/Dispatching", task("cpu"), job_uid="uid-j1", pool_failures=2)
    made = change(world(of, None, work(of), pod(of)))
    assert ("Running", True, 0) == (made.to_status, made.frees_slot, made.columns["pool_failures"])
    assert {"started_at", "dispatched_at", "pool_failures"} == made.columns.keys()


# --- back to Waiting


@pytest.mark.parametrize(
    ("kind", "reached", "ended", "wait", "failures"),
    [
        (ErrorKind.CAPACITY, "Pending/Waiting", "capacity", 60, 1),
        (ErrorKind.QUOTA, "Pending/Waiting", "quota", 60, 1),
        (ErrorKind.FULL, "Pending/ClusterBusy", "full", 60, None),
        (ErrorKind.CLUSTER, "Pending/Waiting", "cluster", None, None),
    ],
)
def test_pool_that_failed_is_given_up(
    kind: ErrorKind, reached: str, ended: str, wait: float | None, failures: int | None
) -> None:
    """Slot free, lease ended by its class, back-off and budget as the class says (P1, P10, P16)."""
    of = world(ASKS, fresh(ASKS, error=Fault(kind, "words", NOW - 5)))
    made = change(of)
    assert (reached, True, None) == (state(of), made.frees_slot, made.columns["node_pool_name"])
    assert GiveUp("falcon-j1", keep=False, ended=ended, fault=(kind, "words")) == made.gives_up
    assert (wait and NOW + wait, failures) == (made.columns["retry_at"], made.columns.get("pool_failures"))


def test_backoff_written_counts_the_failures_before() -> None:
    """The third failure on this cluster waits four times as long."""
    failures = tuple(Failure("j1", "c1", "capacity", NOW - at) for at in (100, 300))
    of = world(ASKS, fresh(ASKS, error=Fault(ErrorKind.CAPACITY, "w", NOW)), failures=failures)
    assert NOW + 240 == change(of).columns["retry_at"]


@pytest.mark.parametrize(
    ("row", "listed", "ended"),
    [
        (pool(ASKS), (), "lost"),
        (pool(ASKS), (live(pool(ASKS), PoolStatus.ERROR),), "broken"),
        (fresh(ASKS), (live(pool(ASKS), labels={}),), "lost"),
    ],
    ids=["vanished", "broken", "taken"],
)
def test_how_a_lease_ended(row: Pool, listed: tuple[LivePool, ...], ended: str) -> None:
    """A pool that vanished or whose name is taken is lost, one that nobody explains is broken (P5, P7)."""
    made = change(world(ASKS, row, *listed))
    assert made.gives_up is not None
    assert ended == made.gives_up.ended


def test_pool_that_others_delete_or_that_never_came_is_told() -> None:
    """What is given up for the bound of a creation says why: others delete it for ever, or no list ever had it."""
    late = evolve(ASKS, provisioning_at=NOW - 2401)
    row = pool(late, requested_at=NOW - 2401)
    gone = change(world(late, row, live(row, PoolStatus.STOPPING)))
    stays = "is being deleted by others, and is still listed: look at the cluster's operations"
    words = f"queued again (attempt 1 ended): node pool falcon-j1 {stays} (gcloud container operations list)"
    assert words == gone.message
    going = message(world(ASKS, pool(ASKS), live(pool(ASKS), PoolStatus.STOPPING)))
    assert "Creating node pool (supply: on-demand)...; node pool falcon-j1 is being deleted by others" == going
    taken = evolve(pool(late), requested_at=NOW - 300, seen_at=None, up_at=None, ready_at=None)
    never = change(world(late, taken))
    text = "the creation of node pool falcon-j1 was accepted, and it never came"
    assert f"queued again (attempt 1 ended): {text}" == never.message


def test_row_that_acquires_but_holds_nothing_waits_again() -> None:
    """No name, no lease: back to Waiting without a back-off."""
    made = change(world(evolve(ASKS, node_pool_name=None), None))
    assert ("Waiting", None, None) == (made.to_reason, made.gives_up, made.columns["retry_at"])
    assert "queued again (attempt 1 ended): holds no node pool, queued again" == made.message


def test_late_nodes_of_a_contested_pool_are_given_up() -> None:
    """Another topology waits: back with a back-off, no budget used; nobody waits: the pool is kept."""
    late, row = evolve(NODES, provisioning_at=NOW - 999), pool(NODES, up_at=NOW - 999, leased_at=NOW - 999)
    shown = view(live(row), ready_nodes={row.name: 0})
    other = job("j2", "Pending/Waiting", task("4x4"))
    contested = change(snapshot(late, other, views=(shown,), pools=(row,)))
    assert ("Waiting", NOW + 60, None) == (
        contested.to_reason, contested.columns["retry_at"], contested.columns.get("pool_failures"),
    )  # fmt: skip
    assert "queued again (attempt 1 ended): the nodes of node pool falcon-j1 did not come in time" == contested.message
    assert "Pending/WaitingForNode" == state(snapshot(late, views=(shown,), pools=(row,)))


# --- ending


ENDS = [
    ("JobFailed", None, "released"),
    ("Lost", None, "lost"),
    ("Yield", None, "nodes"),
    ("Yield", ErrorKind.CLUSTER, "cluster"),
]


@pytest.mark.parametrize(("outcome", "error", "ended"), ENDS)
def test_release_says_how_the_lease_ended(outcome: str, error: ErrorKind | None, ended: str) -> None:
    """The history of leases tells a release, a loss, nodes that did not come, and the cluster's own trouble apart."""
    of = job("j1", "Running", outcome=outcome)
    sent = Submission("c1", "falcon-j1", "j1", 1, NOW - 40, error=Fault(error, "w", NOW) if error else None)
    shown = view(live(pool(of)), looked_at=frozenset({"falcon-j1"}))
    made = change(snapshot(of, views=(shown,), pools=(pool(of),), submissions=(sent,)))
    fault = (error, "w") if error else None
    assert GiveUp("falcon-j1", keep=False, ended=ended, fault=fault) == made.gives_up


@pytest.mark.parametrize("status", [PoolStatus.PROVISIONING, PoolStatus.RUNNING])
def test_pool_is_handed_on_to_a_waiting_job(status: PoolStatus) -> None:
    """Also one that is still being made (P36)."""
    stops = job("j1", "Aborting")
    of = snapshot(stops, job("j2", actor="bob"), views=(view(live(pool(stops), status)),), pools=(pool(stops),))
    assert GiveUp("falcon-j1", keep=True, ended="released") == change(of).gives_up


def test_work_is_stopped_before_its_pool_goes_and_cleaned_after() -> None:
    """Stop what is alive; release; delete the ended Job; write the end (law 7)."""
    over = job("j1", "Running", outcome="Timeout", message="late")
    assert ["it is to stop: Timeout"] == deletes(world(over, pool(over), live(pool(over)), work(over), pod(over)))
    ended = world(over, pool(over), live(pool(over)), work(over, OK), pod(over, 0, "Succeeded"))
    assert GiveUp("falcon-j1", keep=False, ended="released") == change(ended).gives_up
    assert [] == deletes(ended)
    gone = pool(over, lease=None, idle_at=NOW - 5, state=PoolState.DELETED)
    assert ["it is over"] == deletes(world(over, gone, work(over, OK), pod(over, 0, "Succeeded")))


@pytest.mark.parametrize(("outcome", "text"), [("Succeeded", ""), ("JobFailed", "boom; ")])
def test_stuck_release_ends_the_job_all_the_same(outcome: str, text: str) -> None:
    """With the error added to the message."""
    of = job("j1", "Running", outcome=outcome, message="boom", finished_at=NOW - 9999)
    error = Fault(ErrorKind.BUSY, "GKE says no", NOW)
    row = pool(of, lease=None, idle_at=NOW - 901, state=PoolState.DELETING, error=error)
    shown = view(live(row, PoolStatus.STOPPING), looked_at=frozenset({"falcon-j1"}))
    assert f"{text}the release is stuck: GKE says no" == message(snapshot(of, views=(shown,), pools=(row,)))


def test_lost_run_waits_again_with_nothing_owned() -> None:
    """The next claim has the next attempt."""
    of = job("j1", "Running", outcome="Lost", message="lost")
    made = change(snapshot(of, views=(view(looked_at=frozenset({"falcon-j1"})),)))
    bare = {"node_pool_name", "job_uid", "dispatched_at", "outcome", "supply_mode", "retry_at"}
    assert (bare, {None}) == (set(made.columns), set(made.columns.values()))


def test_yielded_run_waits_again_with_a_backoff() -> None:
    """Worked out from its leases that ended so."""
    of = job("j1", "Running", outcome="Yield", message="late")
    shown = (view(looked_at=frozenset({"falcon-j1"})),)
    made = change(snapshot(of, views=shown, failures=(Failure("j1", "c1", "nodes", NOW - 10),)))
    assert NOW + 50 == made.columns["retry_at"]


def test_yielded_run_forgets_what_keeps_it_off_no_more() -> None:
    """Neither what was before its last run nor the cluster's own trouble makes its back-off longer (design.md 3)."""
    of = job("j1", "Running", outcome="Yield", message="late", started_at=NOW - 500)
    ends = (("quota", NOW - 900), ("nodes", NOW - 800), ("cluster", NOW - 300), ("nodes", NOW - 10))
    failures = tuple(Failure("j1", "c1", ended, at) for ended, at in ends)
    shown = (view(looked_at=frozenset({"falcon-j1"})),)
    assert NOW + 50 == change(snapshot(of, views=shown, failures=failures)).columns["retry_at"]


# --- rows that make no sense


def test_impossible_row_is_named_and_left() -> None:
    """It disturbs no other (P98)."""
    made = plan(snapshot(job("bad", "Strange"), ASKS, pools=(fresh(ASKS),)))
    why = "a row that makes no sense: status=Strange reason=None outcome=None"
    assert (Unknown("job", "bad", "", why),) == made.unknown
    assert (Note("impossible row", "job/bad", why),) == made.notes
    assert [CreatePool] == [type(action) for action in made.actions if not isinstance(action, Change)]


def test_unknown_fields_are_noted_once() -> None:
    """While the job is new."""
    made = plan(snapshot(job("j1", "Pending", task(unknown_fields=("a", "b")))))
    assert (Note("unknown fields", "job/j1", "a, b"),) == made.notes


def test_unread_cluster_is_unknown_with_its_reason() -> None:
    """So are the jobs that depend on it."""
    made = plan(snapshot(ASKS, views=(view(pools=None, works=None, problem="no answer"),), pools=(pool(ASKS),)))
    assert (
        Unknown("cluster", "c1", "c1", "no answer"),
        Unknown("job", "j1", "c1", "left alone: the state of its pool is unknown"),
    ) == made.unknown


@pytest.mark.parametrize("reason", ["Provisioning", "Dispatching"])
def test_spec_that_was_spoilt_under_way_ends_as_refused(reason: str) -> None:
    """What the attempt owns goes as with any other end."""
    of = evolve(job("j1", f"Pending/{reason}"), task=InvalidSpec("image", "", "a name"))
    row = fresh(ASKS) if reason == "Provisioning" else pool(ASKS)
    made = change(world(of, row, *([live(row)] if reason == "Dispatching" else [])))
    assert ("JobSubmitFailed", "Invalid spec: image = ; allowed: a name") == (made.columns["outcome"], made.message)


def test_health_is_written_when_it_changes() -> None:
    """The problem and the zone, once."""
    known = view(problem="no zone", health="no zone", zone=None)
    assert () == plan(snapshot(views=(known,))).actions
    assert 1 == len(plan(snapshot(views=(evolve(known, health=None),))).actions)


# --- what else is told


def test_busy_cloud_is_told_in_its_own_words() -> None:
    """While nothing of the pool is listed yet (P20)."""
    error = Fault(ErrorKind.BUSY, "Too many operations", NOW)
    of = world(ASKS, fresh(ASKS, requested_at=NOW - 5, error=error), views=(view(zone=None),))
    assert "Creating node pool (supply: on-demand)...; GKE is busy: Too many operations" == message(of)


def test_yield_says_what_is_missing() -> None:
    """Nodes that did not come, or the right that Falcon lacks."""
    flex = job("j1", "Pending/WaitingForNode", task(mode=Mode.FLEX_START), job_uid="uid-j1", provisioning_at=0)
    row = pool(flex, up_at=NOW - 99999, leased_at=NOW - 99999)
    other = job("j2", "Pending/Waiting", task("4x4"))
    shown = view(live(row), work(flex, ready=0), pod(flex, 0, "Pending"), ready_nodes={row.name: 0})
    of = snapshot(flex, other, views=(shown,), pools=(row,))
    text = "queued again (attempt 1 ended): the nodes of node pool falcon-j1 did not come in time"
    assert ("Yield", text) == (change(of).columns["outcome"], message(of))
    sends = job("j1", "Pending/Dispatching")
    denied = Submission("c1", "falcon-j1", "j1", 1, NOW - 9, error=Fault(ErrorKind.CLUSTER, "cannot create jobs", NOW))
    of = world(sends, pool(sends), live(pool(sends)), submissions=(denied,))
    text = "queued again (attempt 1 ended): cannot create jobs"
    assert ("Yield", text) == (change(of).columns["outcome"], message(of))


def test_operation_of_another_cluster_says_nothing() -> None:
    """A location's operations are told apart by cluster."""
    failed = Operation("o", "projects/p/zones/z/clusters/other/nodePools/falcon-j1", done=True, error="GCE_STOCKOUT")
    shown = view(live(pool(ASKS), PoolStatus.PROVISIONING), operations=(failed,))
    assert "Pending/Provisioning" == state(snapshot(ASKS, views=(shown,), pools=(pool(ASKS),)))


def test_one_job_that_cannot_be_decided_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exception is a line of the plan, the others go on (P98)."""

    def breaks(case: Case) -> Iterator[Action]:
        if case.job.id == "bad":
            raise KeyError("x")
        return act(case)

    monkeypatch.setattr("falcon_rm.core.plan.act", breaks)
    made = plan(snapshot(evolve(ASKS, id="bad"), job("j2", "Pending"), views=(view(),)))
    assert (Unknown("job", "bad", "c1", "KeyError: 'x'"),) == made.unknown
    assert ["j2"] == [action.job_id for action in made.actions if isinstance(action, Change)]


def test_spec_that_was_spoilt_while_it_waited_is_invalid() -> None:
    """A row that owns nothing ends at once."""
    of = snapshot(evolve(job("j1"), task=InvalidSpec("image", "", "a name")))
    assert "Failed/InvalidSpec" == state(of)


# --- what goes before what


@pytest.mark.parametrize("retries", [0, 1])
def test_list_that_lacks_the_pool_ends_nothing_while_every_pod_runs(retries: int) -> None:
    """With a retry left or without: the pods are the better witness."""
    of = job("j1", "Running", task(max_retries=retries))
    assert {} == dict(change(world(of, pool(of), work(of), pod(of))).columns)


def test_better_pool_goes_before_a_submit_to_an_empty_one() -> None:
    """A flex-start job that has submitted nothing yet takes the nodes that are there."""
    flex = job("j1", "Pending/WaitingForNode", task(mode=Mode.FLEX_START))
    better = free("falcon-x", task(mode=Mode.FLEX_START))
    shown = view(live(pool(flex)), live(better), ready_nodes={"falcon-j1": 0, "falcon-x": 1})
    assert "falcon-x" == change(snapshot(flex, views=(shown,), pools=(pool(flex), better))).takes


def test_late_and_contested_nodes_go_before_writing_down_the_uid() -> None:
    """A Job that was submitted, but not recorded, yields as well."""
    flex = job("j1", "Pending/WaitingForNode", task(mode=Mode.FLEX_START), provisioning_at=0)
    row = pool(flex, up_at=NOW - 99999, leased_at=NOW - 99999)
    shown = view(live(row), work(flex, ready=0), pod(flex, 0, "Pending"), ready_nodes={row.name: 0})
    other = job("j2", "Pending/Waiting", task("4x4"))
    assert "Yield" == change(snapshot(flex, other, views=(shown,), pools=(row,))).columns["outcome"]


@pytest.mark.parametrize(("failures", "outcome"), [(0, "Lost"), (99, "JobFailed")])
@pytest.mark.parametrize("error", ["GCE_STOCKOUT", "reservation does not have enough resources"])
def test_pool_that_fails_under_a_submitted_job_ends_the_attempt(failures: int, outcome: str, error: str) -> None:
    """The Job is in the way of going back to Waiting: it must be stopped first."""
    flex = job("j1", "Pending/WaitingForNode", task(mode=Mode.FLEX_START), job_uid="uid-j1", pool_failures=failures)
    row = pool(flex)
    failed = live(row, PoolStatus.ERROR, errors=(error,))
    of = world(flex, row, failed, work(flex, ready=0), pod(flex, 0, "Pending"))
    assert outcome == change(of).columns["outcome"]


@pytest.mark.parametrize(("retries", "outcome"), [(1, "Lost"), (0, "JobFailed")])
def test_pool_that_vanishes_while_others_delete_the_job_is_a_loss(retries: int, outcome: str) -> None:
    """It goes to another attempt only while the job has retries left."""
    of = job("j1", "Running", task(max_retries=retries))
    assert outcome == change(world(of, pool(of), work(of, deleting=True), pod(of))).columns["outcome"]


def test_running_row_without_a_job_fails() -> None:
    """A row that was edited: it names no uid and nothing was ever submitted."""
    of = job("j1", "Running", job_uid=None)
    assert "JobFailed" == change(world(of, pool(of), live(pool(of)))).columns["outcome"]


def test_name_that_something_bears_already_is_passed_over() -> None:
    """A row that forgot its attempts, as after a restore, takes the first attempt whose name is free."""
    of = job("j1")
    borne = pool(of, lease=None, state=PoolState.DELETED)
    made = change(snapshot(of, views=(view(),), pools=(borne,))).makes
    assert made is not None
    assert ("falcon-j1", "falcon-j1-2") == (borne.name, made.name)


@pytest.mark.parametrize("status", ["Succeeded", "Failed", "Aborted"])
def test_row_that_is_over(status: str) -> None:
    """Nothing is done for a terminal row that was read."""
    assert () == plan(snapshot(job("j1", status), views=(view(),))).actions
