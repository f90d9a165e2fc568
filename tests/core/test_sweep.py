"""What nobody needs any more, what is entered and marked, and what is never touched (design.md 5)."""

from typing import Any

import pytest
from attrs import evolve
from builders import (
    EN,
    NOW,
    OK,
    cluster,
    free,
    fresh,
    job,
    labels,
    live,
    pool,
    snapshot,
    task,
    unread,
    view,
    work,
)

from falcon_rm.core import names
from falcon_rm.core.actions import (
    Action,
    Change,
    DeletePool,
    DeleteWork,
    EndLease,
    EnterPool,
    FreeSlot,
    MarkPool,
    RecordHealth,
    RetirePool,
)
from falcon_rm.core.live import LivePool, LiveWork, Operation
from falcon_rm.core.model import Job, Pool, Slot, Snapshot
from falcon_rm.core.plan import plan
from falcon_rm.core.words import ClusterStatus, Mode, PoolState, PoolStatus

C1 = cluster()
GONE = job("gone", "Running")
RUNS = job("j1", "Running", message="Pods running (1/1 active)")
SWEPT = "nobody holds it and nobody waits for it"


def world(
    *listed: LivePool | LiveWork, pools: tuple[Pool, ...] = (), jobs: tuple[Job, ...] = (), **fields: Any
) -> Snapshot:
    """Return what c1 shows beside the rows."""
    return snapshot(*jobs, **{"views": (view(*listed),), "pools": pools} | fields)


def swept(of: Snapshot) -> list[Action]:
    """Return what is planned beside the steps of jobs."""
    return [action for action in plan(of).actions if not isinstance(action, Change | RecordHealth)]


# --- slots


SLOTS = [
    ("nobody", None, (), {}, False),
    ("one that acquires there", "j1", (job("j1", "Pending/Provisioning"),), {}, False),
    ("one that waits", "j1", (job("j1"),), {}, True),
    ("one that runs", "j1", (RUNS,), {}, True),
    ("one that acquires elsewhere", "j1", (job("j1", "Pending/Provisioning", cluster_id="c2"),), {}, True),
    ("one that makes no sense", "j1", (job("j1", "Strange"),), {}, True),
    ("one that is missing", "j1", (), {}, True),
    ("one that has ended", "j1", (), {"j1": "Failed"}, True),
    ("one that came back meanwhile", "j1", (), {"j1": "Pending"}, False),
    ("one that nobody looked for again", "j1", (), None, False),
]


@pytest.mark.parametrize(
    ("holder", "jobs", "later", "freed"), [case[1:] for case in SLOTS], ids=[case[0] for case in SLOTS]
)
def test_slot(holder: str | None, jobs: tuple[Job, ...], later: dict[str, str] | None, freed: bool) -> None:
    """A slot is emptied when its holder does not acquire in that queue any more."""
    of = world(jobs=jobs, slots=(Slot("c1", "2x2", holder, NOW - 9),), later=later, pools=tuple(map(pool, jobs)))
    assert ([FreeSlot("c1", "2x2", "j1")] if freed else []) == [a for a in swept(of) if isinstance(a, FreeSlot)]


# --- pools


def test_pool_that_is_given_up_is_deleted_until_it_stops() -> None:
    """Deleting, and Deleted rows whose pool is listed after all, are deleted; one that stops is left alone (P28)."""
    row = free("falcon-a", state=PoolState.DELETING)
    assert [DeletePool(C1, "falcon-a", SWEPT)] == swept(world(live(row), pools=(row,)))
    late = evolve(row, state=PoolState.DELETED)
    assert [DeletePool(C1, "falcon-a", SWEPT)] == swept(world(live(late), pools=(late,)))
    assert [] == swept(world(live(row, PoolStatus.STOPPING), pools=(row,)))


def test_row_ends_when_a_complete_list_lacks_the_pool() -> None:
    """Active -> Deleting -> Deleted, one a pass; a list that was not read closes nothing (P14, P30)."""
    row = free("falcon-a")
    going = evolve(row, state=PoolState.DELETING)
    lacks = "a complete list lacks it"
    first = [RetirePool("c1", "falcon-a", PoolState.ACTIVE, PoolState.DELETING, lacks)]
    second = [RetirePool("c1", "falcon-a", PoolState.DELETING, PoolState.DELETED, lacks)]
    assert (first, second) == (swept(world(pools=(row,))), swept(world(pools=(going,))))
    assert [] == swept(world(pools=(evolve(row, state=PoolState.DELETED),)))
    assert [] == swept(world(pools=(row, going), views=(unread(),)))


@pytest.mark.parametrize(
    ("requested", "operations", "waits"),
    [
        (NOW - 119, (), True),
        (NOW - 120, (), False),
        (None, (), False),
        (NOW - 300, (Operation("o", f"{C1.path}/nodePools/falcon-a", done=False),), True),
        (NOW - 30, (Operation("o", f"{C1.path}/nodePools/falcon-a", done=True),), False),
    ],
    ids=["just asked", "long asked", "never asked", "create runs", "create ended"],
)
def test_pool_that_may_still_show_is_waited_for(
    requested: float | None, operations: tuple[Operation, ...], waits: bool
) -> None:
    """A pool given up while it is being made is not forgotten before its create has ended (P32)."""
    row = evolve(free("falcon-a"), state=PoolState.DELETING, requested_at=requested, seen_at=None)
    of = world(pools=(row,), views=(view(operations=operations),))
    assert waits == ([] == swept(of))


def test_free_pool_that_nobody_can_use_goes() -> None:
    """In the same pass, without a brake; one that a waiting job fits stays (P34)."""
    row = free("falcon-a")
    going = [RetirePool("c1", "falcon-a", PoolState.ACTIVE, PoolState.DELETING, "no waiting job can use it")]
    assert going == swept(world(live(row), pools=(row,)))
    held = job("h", "Pending/Provisioning", actor="zoe")
    of = world(live(row), live(pool(held)), pools=(row, pool(held)), jobs=(job("j1"), held))
    assert [] == [action for action in swept(of) if isinstance(action, RetirePool)]


@pytest.mark.parametrize("status", [ClusterStatus.MAINTENANCE, ClusterStatus.ACTIVE])
def test_free_pool_goes_from_a_cluster_in_maintenance(status: ClusterStatus) -> None:
    """Nothing is handed on there (P79)."""
    row = free("falcon-a")
    held = job("h", "Pending/Provisioning", actor="zoe")
    shown = view(live(row), live(pool(held)), of=cluster(status=status))
    of = world(jobs=(job("j1"), held), pools=(row, pool(held)), views=(shown,))
    retired = [action for action in swept(of) if isinstance(action, RetirePool)]
    assert (status is ClusterStatus.MAINTENANCE) == bool(retired)


def test_free_pool_that_is_broken_or_too_old_goes() -> None:
    """Even if a waiting job fits its shape."""
    for row, status in (
        (free("falcon-a"), PoolStatus.ERROR),
        (free("falcon-a", idle_at=NOW - 601), PoolStatus.RUNNING),
        (free("falcon-a", requested_at=NOW - 2401), PoolStatus.PROVISIONING),
    ):
        of = world(live(row, status), pools=(row,), jobs=(job("j1"),))
        assert 1 == len([action for action in swept(of) if isinstance(action, RetirePool)])


def test_lease_of_a_live_job_is_left_alone() -> None:
    """Whatever its pool looks like."""
    assert [] == swept(world(live(pool(RUNS)), work(RUNS), pools=(pool(RUNS),), jobs=(RUNS,)))


LEASES = [
    ("missing", {}, (), True),
    ("terminal", {"gone": "Succeeded"}, (), True),
    ("there after all", {"gone": "Running"}, (), False),
    ("not looked for again", None, (), False),
    ("missing, its Job still there", {}, (work(GONE),), True),
]


@pytest.mark.parametrize(("later", "works", "ends"), [case[1:] for case in LEASES], ids=[case[0] for case in LEASES])
def test_lease_of_a_job_that_is_over_ends(
    later: dict[str, str] | None, works: tuple[LiveWork, ...], ends: bool
) -> None:
    """By both reads of the rows; the pool goes and is not handed on, since pods may be left (P33, P37)."""
    row = pool(GONE)
    end = EndLease("c1", row.name, "gone", keep=False, why="its job is gone or over")
    of = world(live(row), *works, pools=(row,), later=later)
    assert ([end] if ends else []) == [action for action in swept(of) if isinstance(action, EndLease)]


def test_lease_that_a_waiting_job_does_not_name_ends() -> None:
    """A lease that no row leads to would never end."""
    row = pool(job("j1", "Pending/Provisioning"), name="falcon-old")
    held = job("h", "Pending/Provisioning", actor="zoe")
    of = world(live(row), live(pool(held)), pools=(row, pool(held)), jobs=(job("j1"), held))
    assert ["falcon-old"] == [action.pool for action in swept(of) if isinstance(action, EndLease)]


def test_lease_of_a_missing_job_on_a_missing_pool_ends() -> None:
    """The row is closed though nothing is listed."""
    end = EndLease("c1", "falcon-gone", "gone", keep=False, why="its job is over and the pool is gone")
    assert [end] == swept(world(pools=(pool(GONE),)))
    assert [] == swept(world(pools=(pool(GONE),), later={"gone": "Running"}))


# --- pools without a row


def test_pool_of_ours_without_a_row_is_entered_as_free() -> None:
    """With the facts that GKE shows; as found if a Job is pinned to it (a database restored from a backup)."""
    row = fresh(job("old", "Running", task("4x4")), lease=None, leased_at=None)
    assert [EnterPool(row)] == swept(world(live(row)))
    pinned = work(GONE, pool=row.name, labels={})
    assert [EnterPool(evolve(row, found=True))] == swept(world(live(row), pinned))


def test_pool_is_entered_without_an_attempt_that_makes_no_sense() -> None:
    """A label that is no number reads as 0."""
    row = fresh(job("old", "Running"), lease=None, leased_at=None)
    odd = {**labels("c1", "old", 1), names.ATTEMPT: "one"}
    assert [EnterPool(evolve(row, attempt=0))] == swept(world(live(row, labels=odd)))
    bare = {key: value for key, value in odd.items() if key not in (names.ATTEMPT, names.JOB_ID)}
    assert [EnterPool(evolve(row, attempt=0, job_id=""))] == swept(world(live(row, labels=bare)))


@pytest.mark.parametrize("odd", [{"machine_type": "n2-standard-4"}, {"mode": None}], ids=["machine", "mode"])
def test_pool_that_makes_no_sense_is_not_entered(odd: dict[str, Any]) -> None:
    """What the tables do not know is left alone, and counted with what is not ours."""
    odd_world = world(live(pool(GONE), **odd))
    assert [] == swept(odd_world)
    assert {"c1": 1} == plan(odd_world).foreign


def test_pool_is_not_entered_while_jobs_are_unread() -> None:
    """Whether something runs on it is not known."""
    assert [] == swept(world(views=(view(live(pool(GONE)), works=None),)))


def test_found_pool_is_swept_only_when_nothing_runs_on_it() -> None:
    """Shown, never used."""
    row = evolve(free("falcon-a"), found=True, requested_at=None)
    assert [] == swept(world(live(row), work(GONE, pool="falcon-a", labels={}), pools=(row,)))
    assert ["falcon-a"] == [a.name for a in swept(world(live(row), pools=(row,))) if isinstance(a, RetirePool)]


def test_foreign_pools_are_counted_and_never_touched() -> None:
    """No label, or another instance's; a name without our prefix is not even counted (P29)."""
    row = pool(GONE)
    shown = (
        live(row, labels={}),
        live(row, name="falcon-b", labels=labels("c1", "x", 1, "other")),
        live(row, name="falcon-c", labels=labels("c9", "x", 1)),
        live(row, name="default-pool"),
    )
    made = plan(world(*shown))
    assert ({"c1": 3}, ()) == (made.foreign, made.actions)


@pytest.mark.parametrize("state", PoolState)
def test_pool_whose_labels_were_replaced_keeps_its_row(state: PoolState) -> None:
    """It may be the one we made: nobody takes it, and its row is not Deleted while the name is listed (design.md 5)."""
    row = evolve(free("falcon-a"), state=state)
    made = plan(world(live(row, labels={"x": "y"}), pools=(row,)))
    why = "one of its name is listed, with other labels"
    deleting = RetirePool("c1", "falcon-a", PoolState.ACTIVE, PoolState.DELETING, why)
    assert ({"c1": 1}, (deleting,) if state is PoolState.ACTIVE else ()) == (made.foreign, made.actions)


# --- first times


@pytest.mark.parametrize(
    ("status", "nodes", "expected"),
    [
        (PoolStatus.PROVISIONING, 0, (True, False, False)),
        (PoolStatus.RUNNING, 0, (True, True, False)),
        (PoolStatus.RUNNING_WITH_ERROR, 1, (True, True, True)),
        (PoolStatus.RECONCILING, 1, (True, True, True)),
        (PoolStatus.ERROR, 0, (True, False, False)),
    ],
)
def test_first_times_are_marked(status: PoolStatus, nodes: int, expected: tuple[bool, bool, bool]) -> None:
    """Listed, running, every node Ready: each written once."""
    row = fresh(RUNS, requested_at=NOW - 9)
    of = world(jobs=(RUNS,), pools=(row,), views=(view(live(row, status), work(RUNS), ready_nodes={row.name: nodes}),))
    marks = [action for action in swept(of) if isinstance(action, MarkPool)]
    assert [MarkPool("c1", row.name, *expected)] == marks
    known = evolve(row, seen_at=NOW, up_at=NOW, ready_at=NOW)
    assert [] == [action for action in swept(evolve(of, pools=(known,))) if isinstance(action, MarkPool)]


# --- Kubernetes Jobs


WORKS = [
    ("missing job", GONE, (), {}, "its job is gone or over"),
    ("terminal job", GONE, (), {"gone": "Failed"}, "its job is gone or over"),
    ("job there after all", GONE, (), {"gone": "Running"}, None),
    ("job not looked for again", GONE, (), None, None),
    ("older attempt (P65)", RUNS, (evolve(RUNS, attempt=2),), {}, "an older attempt"),
    ("this attempt", RUNS, (RUNS,), {}, None),
    ("newer attempt", evolve(RUNS, attempt=2), (RUNS,), {}, None),
    ("job that waits", RUNS, (job("j1", attempt=1),), {}, "an older attempt"),
    ("job elsewhere", RUNS, (evolve(RUNS, cluster_id="c2"),), {}, "an older attempt"),
    ("job that makes no sense", RUNS, (evolve(RUNS, status="Strange"),), {}, None),
]


@pytest.mark.parametrize(("of", "jobs", "later", "why"), [case[1:] for case in WORKS], ids=[case[0] for case in WORKS])
def test_work(of: Job, jobs: tuple[Job, ...], later: dict[str, str] | None, why: str | None) -> None:
    """Jobs of missing or terminal jobs go, and of attempts that are over; with the UID that was seen (P35)."""
    found = [a for a in swept(world(work(of), jobs=jobs, later=later)) if isinstance(a, DeleteWork)]
    made = work(of)
    assert ([DeleteWork(C1, made.name, made.uid, of.id, of.attempt, why, awaited=False)] if why else []) == found


def test_work_that_goes_already_is_left_alone() -> None:
    """So is one that is not ours."""
    assert [] == swept(world(work(GONE, deleting=True)))
    assert [] == swept(world(work(GONE, labels={})))


def test_work_whose_annotation_is_gone_is_told_by_its_label() -> None:
    """An attempt that is no number reads as 0."""
    odd = {**labels("c1", "gone", 1), names.ATTEMPT: "x"}
    found = [a for a in swept(world(work(GONE, labels=odd, annotations={}))) if isinstance(a, DeleteWork)]
    assert [("gone", 0)] == [(action.job_id, action.attempt) for action in found]


def test_ended_work_of_a_live_job_is_the_jobs_own_affair() -> None:
    """Its step deletes it, not the sweep."""
    assert [] == [a for a in swept(world(work(RUNS, OK), jobs=(RUNS,))) if isinstance(a, DeleteWork)]


# --- the brake


def test_brake_says_what_is_held_and_what_lifts_it() -> None:
    """Counts, limits, and the option; what was freed by a committed release goes all the same (P26)."""
    gone = [job(f"g{n}", "Running") for n in range(5)]
    given_up = free("falcon-x", state=PoolState.DELETING)
    rows = (*map(pool, gone), given_up)
    of = world(*map(live, rows), pools=rows)
    made = plan(of)
    assert [DeletePool(C1, "falcon-x", SWEPT)] == list(made.actions)
    assert made.brake is not None
    assert (
        "sweep held: 5 orphaned pools (limit 3), 0 orphaned Jobs (limit 3); check that this is the right database, "
        "then run-once --allow-mass-delete"
    ) == made.brake.text
    lifted = plan(evolve(of, bounds=evolve(EN, allow_mass_delete=True)))
    assert (None, 5) == (lifted.brake, len([a for a in lifted.actions if isinstance(a, EndLease)]))


def test_pools_that_this_database_never_asked_for_count_as_orphans() -> None:
    """Entered by the sweep and wanted by nobody: more than the limit, and none goes."""
    rows = tuple(free(f"falcon-{name}", requested_at=None, mode=Mode.ON_DEMAND) for name in "abcd")
    held = plan(world(*map(live, rows), pools=rows))
    assert ((), 4) == (held.actions, held.brake and held.brake.pools)
    few = plan(world(*map(live, rows[:3]), pools=rows[:3]))
    assert (None, 3) == (few.brake, len(few.actions))


@pytest.mark.parametrize("count", range(41))
@pytest.mark.parametrize("kind", ["pools", "works"])
def test_brake_at_its_limit(kind: str, count: int) -> None:
    """Of so many pools, or Jobs, of ours max(3, 30 %) orphans may go in one pass, and one more holds the sweep."""
    limit = max(3, int(count * 0.3))
    jobs = [job(f"j{n}", "Running") for n in range(count)]
    for orphans in range(max(0, limit - 1), min(count, limit + 1) + 1):
        things = [live(pool(each)) if kind == "pools" else work(each) for each in jobs]
        of = world(*things, pools=tuple(map(pool, jobs)) if kind == "pools" else (), jobs=tuple(jobs[orphans:]))
        made = plan(of)
        ended = [action for action in made.actions if isinstance(action, EndLease | DeleteWork)]
        assert (orphans > limit, 0 if orphans > limit else orphans) == (made.brake is not None, len(ended))


def test_pool_that_an_acquiring_job_takes_stays() -> None:
    """A free pool that nobody waits for, but that a job takes for its own, is not retired in the same pass (P78)."""
    acquiring, better = job("j1", "Pending/Provisioning"), free("falcon-better")
    world = snapshot(acquiring, views=(view(live(better)),), pools=(fresh(acquiring), better))
    made = plan(world).actions
    assert [better.name] == [each.takes for each in made if isinstance(each, Change)]
    assert [] == [each for each in made if isinstance(each, RetirePool)]
    others = snapshot(views=(view(live(better)),), pools=(better,))
    assert [better.name] == [each.name for each in plan(others).actions if isinstance(each, RetirePool)]
