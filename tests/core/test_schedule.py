"""Which cluster a job waits for, who gets the slot, and what everyone else is told (design.md 3)."""

from typing import Any

import pytest
from attrs import evolve
from builders import (
    EN,
    NOW,
    RESERVATION,
    change,
    cluster,
    free,
    job,
    live,
    message,
    pool,
    room,
    snapshot,
    state,
    step,
    task,
    unread,
    view,
    work,
)

from falcon_rm.core.actions import Change, EnsureSlot, RetirePool
from falcon_rm.core.backoff import backoff, backoff_until
from falcon_rm.core.live import LivePool
from falcon_rm.core.model import Cluster, ClusterView, Failure, Pool, Slot, Snapshot, TaskSpec
from falcon_rm.core.plan import plan
from falcon_rm.core.scene import scene
from falcon_rm.core.words import ClusterStatus, Mode, PoolState, PoolStatus

NEW = job("j1", "Pending")
J1 = job("j1", actor="ann", created_at=NOW - 300)
J2 = job("j2", actor="bob", created_at=NOW - 200)
J3 = job("j3", actor="carol", created_at=NOW - 100)
ASKS_RESERVED = task(mode=Mode.RESERVATION)
WITH_ROOM = cluster("c1", default_reservation="r")


def chosen(world: Snapshot, job_id: str = "j1") -> str | None:
    """Return the cluster that a job stands in after the plan."""
    found = step(world, job_id)
    before = next(row.cluster_id for row in world.jobs if row.id == job_id)
    written = found.columns.get("cluster_id", before) if isinstance(found, Change) else before
    return str(written) if written else None


def claims(world: Snapshot) -> dict[str, str]:
    """Return who takes a slot, and the pool that each names."""
    return {
        action.job_id: str(action.columns["node_pool_name"])
        for action in plan(world).actions
        if isinstance(action, Change) and action.takes_slot
    }


# --- the cluster


def test_new_job_takes_a_cluster_of_its_type_and_ties_go_by_name() -> None:
    """Other types are no candidates; of equal clusters the first by name."""
    views = (view(of=cluster("c3")), view(of=cluster("c2")), view(of=cluster("c1", "v7x")))
    assert "c2" == chosen(snapshot(NEW, views=views))
    assert "Pending/Waiting" == state(snapshot(NEW, views=views))


def test_shortest_queue_of_the_topology_wins() -> None:
    """Waiting and acquiring jobs of the same topology count, others do not."""
    views = (view(), view(of=cluster("c2")), view(of=cluster("c3")))
    in_c1 = job("a", "Pending/Provisioning", actor="x")
    in_c2 = job("b", "Pending/Waiting", cluster_id="c2")
    in_c3 = job("c", "Pending/Provisioning", task("4x4"), cluster_id="c3")
    assert "c3" == chosen(snapshot(NEW, in_c1, in_c2, in_c3, views=views))


def test_free_fitting_pool_goes_before_a_short_queue() -> None:
    """A cluster whose free pool fits comes first."""
    row = free("falcon-x", cluster_id="c2")
    others = (job("a", cluster_id="c2", actor="x", work=task(mode=Mode.FLEX_START)),)
    world = snapshot(NEW, *others, views=(view(), view(live(row), of=cluster("c2"))), pools=(row,))
    assert "c2" == chosen(world)


def test_jobs_of_one_pass_count_each_other() -> None:
    """New jobs spread over equal clusters, and no free pool draws two of them (P78)."""
    views = (view(), view(of=cluster("c2")))
    world = snapshot(NEW, job("j2", "Pending"), views=views)
    assert ("c1", "c2") == (chosen(world), chosen(world, "j2"))
    row = free("falcon-x", cluster_id="c2")
    beside = evolve(world, views=(view(), view(live(row), of=cluster("c2"))), pools=(row,))
    assert {"c1", "c2"} == {chosen(beside), chosen(beside, "j2")}


def test_cluster_it_just_failed_on_comes_last() -> None:
    """A stockout here is tried elsewhere at once, and here again if there is nowhere else."""
    failed = (Failure("j1", "c1", "capacity", NOW - 5, "GCE_STOCKOUT"),)
    assert "c2" == chosen(snapshot(NEW, views=(view(), view(of=cluster("c2"))), failures=failed))
    assert "c1" == chosen(snapshot(NEW, failures=failed))


SECOND = cluster("c2", default_reservation="r2")
FOUR_RESERVED = task("4x4", mode=Mode.RESERVATION)


def second(total: int, used: int = 0) -> ClusterView:
    """Return c2, which has a reservation of its own."""
    return view(of=SECOND, reservation=room(total, used, path="projects/p/reservations/r2"))


def test_cluster_whose_reservation_can_never_hold_it_comes_last() -> None:
    """A longer queue elsewhere, even where it just failed, is better; if there is nothing else, it waits there."""
    too_small, ahead = view(of=WITH_ROOM, reservation=room(3)), job("a", work=FOUR_RESERVED, cluster_id="c2")
    failed = (Failure("j1", "c2", "quota", NOW - 5),)
    new = job("j1", "Pending", FOUR_RESERVED)
    assert "c2" == chosen(snapshot(new, ahead, views=(too_small, second(4)), failures=failed))
    assert "c1" == chosen(snapshot(new, views=(too_small,)))


NO_CANDIDATES = [
    ("maintenance", view(of=cluster(status=ClusterStatus.MAINTENANCE)), "c1 is maintenance"),
    ("offline", unread(cluster(status=ClusterStatus.OFFLINE), "offline"), "c1 is offline"),
    ("unread", unread(), "c1 cannot be read: no answer"),
    ("no zone", view(problem="no zone", health="no zone"), "c1 cannot be read: no zone"),
    ("no Kubernetes", view(works=None, pods=None), "c1 cannot be read: ?"),
    ("another type", view(of=cluster(tpu_type="v7x")), "no cluster offers v6e"),
    ("no row", None, "no cluster offers v6e"),
]


@pytest.mark.parametrize(("seen", "why"), [case[1:] for case in NO_CANDIDATES], ids=[case[0] for case in NO_CANDIDATES])
def test_no_candidate(seen: object, why: str) -> None:
    """A cluster that cannot take the job now is none, and the message says why (P105)."""
    world = snapshot(NEW, views=(seen,) if seen else ())
    assert None is chosen(world)
    assert f"no cluster can take it: {why}" == message(world)


def test_trouble_pauses_a_cluster_for_everybody() -> None:
    """For FALCON_CLUSTER_PAUSE it is no candidate, whoever met the trouble; then it is again (P16)."""
    trouble = Failure("j9", "c1", "cluster", NOW - 599, "Required permission")
    world = snapshot(NEW, troubles=(trouble,))
    assert "no cluster can take it: c1 is in trouble (not tried before 2023-11-14T22:13:21Z): Required permission" == (
        message(world)
    )
    assert "c1" == chosen(evolve(world, troubles=(evolve(trouble, at=NOW - 600),)))
    waits = snapshot(J1, troubles=(trouble,))
    assert {} == claims(waits)


def test_reservation_needs_a_cluster_that_has_one() -> None:
    """Asked for where none exists, the job waits and says just that; it starts once a cluster gets one (P19)."""
    asks = job("j1", "Pending", ASKS_RESERVED)
    assert "no cluster can take it: c1 has no default_reservation" == message(snapshot(asks))
    assert "c1" == chosen(snapshot(asks, views=(view(of=WITH_ROOM, reservation=room(8)),)))


# --- CPU jobs


def test_cpu_job_takes_the_cluster_with_the_fewest() -> None:
    """Any type will do; running and waiting CPU jobs count, ties go by name."""
    views = (view(), view(of=cluster("c2", "v7x")))
    new = job("j1", "Pending", task("cpu"))
    assert "c1" == chosen(snapshot(new, views=views))
    assert "c2" == chosen(snapshot(new, job("a", "Running", task("cpu")), views=views))


def test_cpu_job_needs_no_slot() -> None:
    """From Waiting it goes straight to Dispatching."""
    world = snapshot(job("j1", work=task("cpu")))
    made = change(world)
    assert ("Pending/Dispatching", None, None, 1) == (
        state(world),
        made.takes_slot,
        made.makes,
        made.columns["attempt"],
    )
    assert "Submitting K8s Job..." == made.message


# --- moves


def test_waiting_job_moves_when_its_cluster_is_no_candidate_any_more() -> None:
    """Maintenance gives waiting jobs away (P79)."""
    views = (view(of=cluster(status=ClusterStatus.MAINTENANCE)), view(of=cluster("c2")))
    world = snapshot(J1, views=views)
    assert ("c2", None) == (chosen(world), change(world).columns["retry_at"])


def test_waiting_job_keeps_its_cluster_while_nobody_can_take_it() -> None:
    """Nothing is written but why."""
    world = snapshot(J1, views=(unread(),))
    assert ("c1", True) == (chosen(world), change(world).only_message)


def test_waiting_job_moves_to_a_cluster_that_could_start_it_now() -> None:
    """The choice is made again when its own cluster cannot start it and another could (P11)."""
    held = job("j9", "Pending/Provisioning", actor="zoe")
    views = (view(), view(of=cluster("c2")))
    world = snapshot(held, J1, J2, views=views)
    assert ("c2", "about to start") == (chosen(world), message(world))
    assert "c1" == chosen(world, "j2")


@pytest.mark.parametrize("fault", ["slot", "queue", "backoff", "room"])
def test_waiting_job_stays_where_another_cluster_could_not_start_it_either(fault: str) -> None:
    """Slot and queue there must be empty, no back-off of its own, and room."""
    held = job("j9", "Pending/Provisioning", actor="zoe")
    there = {
        "slot": job("j8", "Pending/Provisioning", actor="yan", cluster_id="c2"),
        "queue": job("j8", "Pending/Waiting", actor="yan", cluster_id="c2"),
    }
    second = cluster("c2", default_reservation="r")
    asks = job("j1", work=task(mode=None)) if fault == "room" else J1
    world = snapshot(
        held,
        asks,
        *([there[fault]] if fault in there else []),
        views=(view(), view(of=second, reservation=room(4, 4))),
        failures=(Failure("j1", "c2", "capacity", NOW - 1),) if fault == "backoff" else (),
    )
    assert "c1" == chosen(world)


@pytest.mark.parametrize(
    ("there", "where"),
    [
        (second(4, 4), "c2"),
        (second(3), "c1"),
        (view(of=SECOND), "c1"),
        (view(of=cluster("c2", default_reservation="r2", status=ClusterStatus.MAINTENANCE)), "c1"),
    ],
    ids=["full", "too small too", "not read", "maintenance"],
)
def test_waiting_job_leaves_a_cluster_that_can_never_start_it(there: ClusterView, where: str) -> None:
    """It joins the queue of one that is known to be able to, though not now; else it keeps its place (P11)."""
    waits, ahead = job("j1", work=FOUR_RESERVED), job("a", work=FOUR_RESERVED, cluster_id="c2", actor="x")
    assert where == chosen(snapshot(waits, ahead, views=(view(of=WITH_ROOM, reservation=room(3)), there)))


# --- who starts


def test_claim_takes_slot_name_and_lease_together() -> None:
    """One transaction has the slot, the attempt, the pool's name and its lease."""
    made = change(snapshot(J1))
    assert made.makes is not None
    assert ("ann", 1, "falcon-j1", "j1") == (
        made.takes_slot,
        made.columns["attempt"],
        made.makes.name,
        made.makes.lease,
    )
    assert ("c1", "2x2", "Pending", "Provisioning") == (
        made.cluster_id, made.topology, made.to_status, made.to_reason,
    )  # fmt: skip


def test_queue_without_a_slot_row_gets_one_first() -> None:
    """The row exists before it is locked."""
    world = snapshot(J1, slots=())
    assert {} == claims(world)
    assert EnsureSlot("c1", "2x2") in plan(world).actions


@pytest.mark.parametrize("slot", [Slot("c1", "2x2", "j9", NOW), Slot("c1", "2x2")], ids=["held", "not yet written"])
def test_nobody_is_picked_while_somebody_acquires(slot: Slot) -> None:
    """The slot's row and the jobs that acquire there both count (P71)."""
    world = snapshot(job("j9", "Pending/WaitingForNode", actor="zoe", created_at=NOW), J1, slots=(slot,))
    assert {} == claims(world)
    assert "Queue position #1, 0 job(s) ahead; acquiring now: zoe: j9 (WaitingForNode)" == message(world)


def test_topologies_do_not_wait_for_one_another() -> None:
    """A queue per (cluster, topology) (P67)."""
    world = snapshot(J1, evolve(J2, task=task("4x4"), topology="4x4"))
    assert {"j1": "falcon-j1", "j2": "falcon-j2"} == claims(world)


def test_running_job_holds_no_slot() -> None:
    """The next one starts while the first runs (P74)."""
    runs = job("j9", "Running", actor="zoe")
    world = snapshot(runs, J1, views=(view(live(pool(runs)), work(runs)),), pools=(pool(runs),))
    assert {"j1": "falcon-j1"} == claims(world)


# --- back-off


@pytest.mark.parametrize(("failures", "seconds"), [(1, 60), (2, 120), (3, 240), (5, 960), (6, 1800), (99, 1800)])
def test_backoff_doubles_up_to_its_bound(failures: int, seconds: float) -> None:
    """60 s x 2^n, never above FALCON_BACKOFF_MAX."""
    assert seconds == backoff(failures, scene(snapshot()))


def test_backoff_is_worked_out_per_job_and_cluster() -> None:
    """Other jobs, other clusters, other ends and what was before the last run do not count."""
    failures = (
        Failure("j1", "c1", "capacity", NOW - 70),
        Failure("j1", "c1", "nodes", NOW - 100),
        Failure("j1", "c1", "lost", NOW - 1),
        Failure("j1", "c2", "quota", NOW - 1),
        Failure("j2", "c1", "quota", NOW - 1),
    )
    world = scene(snapshot(J1, failures=failures))
    assert NOW - 70 + 120 == backoff_until(J1, "c1", world)
    assert NOW - 1 + 60 == backoff_until(J1, "c2", world)
    assert None is backoff_until(evolve(J1, started_at=NOW - 10), "c1", world)


@pytest.mark.parametrize(
    ("retry_at", "until"),
    [(NOW + 5, NOW + 5), (NOW - 5, None), (NOW + 1800, NOW + 1800), (NOW + 1801, None)],
    ids=["ahead", "past", "as far ahead as can be", "absurd"],
)
def test_row_may_delay_a_job_but_never_for_ever(retry_at: float, until: float | None) -> None:
    """`retry_at` binds on the cluster of the row; one further ahead than any back-off does not."""
    waits = evolve(J1, retry_at=retry_at)
    assert until == backoff_until(waits, "c1", scene(snapshot(waits)))
    assert None is backoff_until(waits, "c2", scene(snapshot(waits)))


def test_job_in_backoff_is_passed_over_and_keeps_its_place() -> None:
    """The next one starts meanwhile; then it competes again, as the oldest (P15)."""
    failed = Failure("j1", "c1", "capacity", NOW - 5, "GCE_STOCKOUT")
    world = snapshot(J1, J2, failures=(failed,))
    assert {"j2": "falcon-j2"} == claims(world)
    assert (message(world) or "").endswith("next try after 2023-11-14T22:14:15Z: GCE_STOCKOUT")
    later = evolve(world, now=NOW + 56)
    assert {"j1": "falcon-j1"} == claims(later)


def test_job_whose_reservation_was_full_goes_on_showing_it() -> None:
    """A job whose reservation was full goes on showing ClusterBusy while it backs off (P10)."""
    world = snapshot(job("j1", "Pending/ClusterBusy"), failures=(Failure("j1", "c1", "full", NOW - 5, "no room"),))
    assert "Pending/ClusterBusy" == state(world)


# --- modes and reuse


@pytest.mark.parametrize(
    ("asked", "of", "mode"),
    [
        (Mode.ON_DEMAND, WITH_ROOM, Mode.ON_DEMAND),
        (Mode.FLEX_START, WITH_ROOM, Mode.FLEX_START),
        (None, WITH_ROOM, Mode.RESERVATION),
        (None, cluster(), Mode.FLEX_START),
    ],
)
def test_mode_of_a_new_pool(asked: Mode | None, of: Cluster, mode: Mode) -> None:
    """The job's word, else the cluster's reservation, else flex-start; the row says which."""
    made = change(snapshot(job("j1", work=task(mode=asked)), views=(view(of=of, reservation=room(8)),)))
    assert made.makes is not None
    path = RESERVATION if mode is Mode.RESERVATION else None
    assert (mode, mode, path) == (made.columns["supply_mode"], made.makes.mode, made.makes.reservation)


def test_full_reservation_means_waiting_never_another_mode() -> None:
    """No mode named and no room: ClusterBusy; room: the reservation (P18)."""
    waits = job("j1", work=task(mode=None))
    full = snapshot(waits, views=(view(of=WITH_ROOM, reservation=room(4, 4)),))
    assert ({}, "Pending/ClusterBusy") == (claims(full), state(full))
    made = change(snapshot(waits, views=(view(of=WITH_ROOM, reservation=room(4, 3)),)))
    assert Mode.RESERVATION == made.columns["supply_mode"]


def test_no_mode_named_takes_any_pool_and_a_named_one_only_its_own() -> None:
    """J1 stays ClusterBusy, J2 takes the pool and its row says flex-start (P46)."""
    row = free("falcon-x", task(mode=Mode.FLEX_START))
    named = evolve(J1, task=ASKS_RESERVED)
    world = snapshot(
        named,
        evolve(J2, task=task(mode=None)),
        views=(view(live(row), of=WITH_ROOM, reservation=room(4, 4)),),
        pools=(row,),
    )
    assert {"j2": "falcon-x"} == claims(world)
    assert "Pending/ClusterBusy" == state(world)
    assert (Mode.FLEX_START, "falcon-x") == (change(world, "j2").columns["supply_mode"], change(world, "j2").takes)


def wrong(
    name: str, status: PoolStatus = PoolStatus.RUNNING, work: TaskSpec | None = None, **row: Any
) -> tuple[Pool, LivePool]:
    """Return a pool that differs in one thing from what J1 needs."""
    made = evolve(free(name, work), **row)
    return made, live(made, status)


def test_reuse_takes_no_near_miss() -> None:
    """Topology, machine, mode, status and lease must fit; taints and labels of GKE do not count (P44)."""
    asks = job("j1", work=task("2x4", machine="ct6e-standard-8t"))
    right = free("falcon-right", task("2x4", machine="ct6e-standard-8t"))
    pools = [
        wrong("falcon-a", work=task("2x2")),
        wrong("falcon-b", work=task("2x4", machine="ct6e-standard-4t")),
        wrong("falcon-c", work=task("2x4", machine="ct6e-standard-8t", mode=Mode.FLEX_START)),
        wrong("falcon-d", PoolStatus.STOPPING, task("2x4", machine="ct6e-standard-8t")),
        wrong("falcon-e", work=task("2x4", machine="ct6e-standard-8t"), lease="j9"),
        wrong("falcon-f", work=task("2x4", machine="ct6e-standard-8t"), state=PoolState.DELETING),
        wrong("falcon-g", work=task("2x4", machine="ct6e-standard-8t"), found=True),
        (right, live(right, labels={**live(right).labels, "added-by": "gke"})),
    ]
    world = snapshot(asks, views=(view(*(shown for _, shown in pools)),), pools=tuple(row for row, _ in pools))
    assert {"j1": "falcon-right"} == claims(world)


def test_as_many_free_pools_stay_as_there_are_waiting_jobs() -> None:
    """J1 takes one of three, the others go in the same pass (P34)."""
    rows = tuple(free(f"falcon-{name}") for name in "abc")
    world = snapshot(J1, views=(view(*map(live, rows)),), pools=rows)
    gone = {action.name for action in plan(world).actions if isinstance(action, RetirePool)}
    assert ({"j1": "falcon-a"}, {"falcon-b", "falcon-c"}) == (claims(world), gone)


@pytest.mark.parametrize(
    ("nearly", "status"),
    [({"ready_at": None}, PoolStatus.RUNNING), ({}, PoolStatus.PROVISIONING)],
    ids=["up", "creating"],
)
def test_pool_that_is_furthest_along_is_taken(nearly: dict[str, Any], status: PoolStatus) -> None:
    """Ready goes before up, up before creating."""
    first, second = evolve(free("falcon-a"), **nearly), free("falcon-b")
    world = snapshot(J1, views=(view(live(first, status), live(second)),), pools=(first, second))
    assert {"j1": "falcon-b"} == claims(world)


@pytest.mark.parametrize(("age", "kept"), [(600, True), (601, False)])
def test_pool_that_was_free_too_long_is_not_taken(age: float, kept: bool) -> None:
    """FALCON_IDLE bounds reuse."""
    row = free("falcon-a", idle_at=NOW - age)
    assert {"j1": "falcon-a" if kept else "falcon-j1"} == claims(snapshot(J1, views=(view(live(row)),), pools=(row,)))


def test_pool_that_was_made_smaller_by_hand_is_not_taken() -> None:
    """Its nodes would never all come."""
    row = free("falcon-a")
    assert {"j1": "falcon-j1"} == claims(snapshot(J1, views=(view(live(row, hosts=0)),), pools=(row,)))


def test_bounds_of_a_pass_are_used() -> None:
    """Back-off counts from the settings in force."""
    assert 10 == backoff(1, scene(snapshot(bounds=evolve(EN, backoff_base=10))))
