"""Room in a reservation: how much there is, who gets it, who waits, and for whom it is kept (design.md 3)."""

from typing import Any

import pytest
from attrs import evolve
from builders import NOW, cluster, free, job, live, message, room, snapshot, state, task, view

from falcon_rm.core.actions import Change
from falcon_rm.core.live import Reservation
from falcon_rm.core.messages import Messages
from falcon_rm.core.model import Failure, Job, Pool, Snapshot
from falcon_rm.core.plan import plan
from falcon_rm.core.room import never, reservation_path, uncounted
from falcon_rm.core.room import room as slices
from falcon_rm.core.scene import scene
from falcon_rm.core.words import Mode, PoolState

R = "projects/p/reservations/r"
C1 = cluster(default_reservation="r")
ONE, FOUR = task(mode=Mode.RESERVATION), task("4x4", mode=Mode.RESERVATION)
BUSY = "reservation_remaining_slices=0 reservation_needed_slices=1, waiting for reservation capacity..."


def asks(job_id: str, hosts: int, reason: str = "Waiting", **columns: Any) -> Job:
    """Return a job that waits for one or four machines of the reservation."""
    waits = job(job_id, f"Pending/{reason}", ONE if hosts == 1 else FOUR, actor=job_id)
    return evolve(waits, **{"created_at": NOW - 100 + int(job_id[1:]), **columns})


def world(*jobs: Job, left: Reservation | None, pools: tuple[Pool, ...] = (), listed: bool = False) -> Snapshot:
    """Return jobs in c1, which has a reservation with so much left."""
    shown = view(*(map(live, pools) if listed else ()), of=C1, reservation=left)
    return snapshot(*jobs, views=(shown,), pools=pools)


def claims(of: Snapshot) -> set[str]:
    """Return who takes a slot."""
    return {action.job_id for action in plan(of).actions if isinstance(action, Change) and action.takes_slot}


# --- the number


def reserved(name: str, **row: Any) -> Pool:
    """Return a pool of four machines of the reservation."""
    made = free(name, FOUR, lease="j9", idle_at=None, reservation=R, ready_at=None)
    return evolve(made, **row)


NUMBERS = [
    ("as Compute says", room(8, 3), (), 1),
    ("nothing left", room(8, 8), (), 0),
    ("less than a slice", room(8, 5), (), 0),
    ("more used than there is", room(8, 9), (), None),
    ("not ready", room(8, ready=False), (), 0),
    ("another machine", room(8, machine_type="ct6e-standard-8t"), (), 0),
    ("this machine", room(8, machine_type="ct6e-standard-4t"), (), 2),
    ("in chips", room(32, 15, unit="chip"), (), 1),
    ("our pool, not counted yet", room(8), (reserved("falcon-a"),), 1),
    ("our pool, in chips", room(32, unit="chip"), (reserved("falcon-a"),), 1),
    ("our pool, ready a moment ago", room(8), (reserved("falcon-a", ready_at=NOW - 119),), 1),
    ("our pool, ready for long", room(8, 4), (reserved("falcon-a", ready_at=NOW - 120),), 1),
    ("our pool, up a while ago", room(8, 4), (reserved("falcon-a", up_at=NOW - 899),), 0),
    ("our pool, up for long and short of a node", room(8, 4), (reserved("falcon-a", up_at=NOW - 900),), 1),
    ("our pool, asked for a while ago", room(8), (reserved("falcon-a", requested_at=NOW - 2399, up_at=None),), 1),
    ("our pool, not read since", room(8, 4), (reserved("falcon-a", requested_at=NOW - 2400, up_at=None),), 1),
    ("our pool, going", room(8), (reserved("falcon-a", lease=None, state=PoolState.DELETING),), 2),
    ("our pool of another reservation", room(8), (reserved("falcon-a", reservation="other"),), 2),
    ("our pool of another mode", room(8), (reserved("falcon-a", mode=Mode.ON_DEMAND),), 2),
    ("more of ours than is left", room(8, 6), (reserved("falcon-a"),), 0),
]


@pytest.mark.parametrize(
    ("left", "pools", "expected"), [case[1:] for case in NUMBERS], ids=[case[0] for case in NUMBERS]
)
def test_room(left: Reservation, pools: tuple[Pool, ...], expected: int | None) -> None:
    """Whole slices: the count less what is used, less machines of ours that Compute may not count yet."""
    assert FOUR.shape is not None
    assert expected == slices(left, FOUR.shape, uncounted(left, scene(world(left=left, pools=pools))))


# --- what it can never give

TOO_SMALL = f"reservation {R} has 3 vm(s) in all, one slice of 4x4 needs 4"
NEVER = [
    ("full", room(4, 4), None),
    ("not ready", room(4, ready=False), None),
    ("too small", room(3), TOO_SMALL),
    ("too small, in chips", room(15, unit="chip"), f"reservation {R} has 15 chip(s) in all, one slice of 4x4 needs 16"),
    ("numbers that make no sense", room(3, 4), None),
    ("this machine", room(4, machine_type="ct6e-standard-4t"), None),
    (
        "another machine",
        room(8, machine_type="ct6e-standard-8t"),
        f"reservation {R} is of ct6e-standard-8t, the job needs ct6e-standard-4t",
    ),
]


@pytest.mark.parametrize(("left", "expected"), [case[1:] for case in NEVER], ids=[case[0] for case in NEVER])
def test_what_never_fits(left: Reservation, expected: str | None) -> None:
    """Too small or of other machines is for ever, and is told; full or not ready is not."""
    assert expected == never(FOUR, view(of=C1, reservation=left), Messages("en"))


def test_never_is_said_of_the_reservation_alone() -> None:
    """Who takes no reserved machines, or none at all, is not told that they do not fit."""
    seen = view(of=C1, reservation=room(0))
    assert [None, None] == [never(work, seen, Messages("en")) for work in (task("4x4"), task("cpu", mode=None))]


def test_what_never_fits_holds_nobody_up() -> None:
    """No room is kept for a slice that the reservation can never give, however long it waits; it says why it waits."""
    big = asks("j1", 4, "ClusterBusy", reason_since=NOW - 9999)
    both = world(big, asks("j2", 1), left=room(3))
    assert ({"j2"}, "Pending/Waiting") == (claims(both), state(both))
    assert f"Queue position #1, 0 job(s) ahead; {TOO_SMALL}" == message(both)


def test_what_never_fits_is_passed_over_in_its_own_queue() -> None:
    """The next of the same topology, on other machines, is the one that lacks room, and room is kept for it."""
    whole = job("j1", work=task("2x4", mode=Mode.RESERVATION, machine="ct6e-standard-8t"), created_at=NOW - 99)
    halves = job("j2", "Pending/ClusterBusy", task("2x4", mode=Mode.RESERVATION, machine="ct6e-standard-4t"))
    halves = evolve(halves, actor="bob", created_at=NOW - 98, reason_since=NOW - 9999)
    held = world(whole, halves, asks("j3", 1), left=room(4, 3, machine_type="ct6e-standard-4t"))
    assert (set(), "Pending/Waiting", "Pending/ClusterBusy") == (claims(held), state(held), state(held, "j2"))
    assert (message(held, "j3") or "").endswith("kept for j2")


def test_what_never_fits_still_takes_a_free_pool() -> None:
    """A job that named no mode is started by a pool of any."""
    row = free("falcon-x", task("4x4"))
    assert {"j1"} == claims(world(job("j1", work=task("4x4", mode=None)), left=room(3), pools=(row,), listed=True))


def test_reservation_that_is_not_ready_says_so() -> None:
    """It has no room now, and may have again: the job is busy and the message says why."""
    closed = world(asks("j1", 1), left=room(4, ready=False))
    assert ("Pending/ClusterBusy", f"{BUSY}; reservation {R} is not READY") == (state(closed), message(closed))


# --- who gets it


def test_no_room_is_busy() -> None:
    """The one that would be picked shows ClusterBusy with the numbers."""
    short = world(asks("j1", 4), left=room(8, 5))
    assert (set(), "Pending/ClusterBusy", BUSY) == (claims(short), state(short), message(short))


@pytest.mark.parametrize("left", [None, room(8, 9)], ids=["not read", "numbers that make no sense"])
def test_unknown_room_is_neither_promised_nor_called_full(left: Reservation | None) -> None:
    """The job stays Waiting and the message says what could not be read."""
    unknown = world(asks("j1", 1), left=left)
    assert (set(), "Pending/Waiting") == (claims(unknown), state(unknown))
    assert f"Queue position #1, 0 job(s) ahead; the room of reservation {R} cannot be read" == message(unknown)


def test_why_the_room_was_not_read_is_told() -> None:
    """A permission that is missing is named where people look."""
    unread = world(asks("j1", 1), left=None)
    denied = evolve(
        unread, views=tuple(evolve(each, room_problem="Required 'p.get' permission") for each in unread.views)
    )
    told = f"the room of reservation {R} cannot be read: Required 'p.get' permission"
    assert f"Queue position #1, 0 job(s) ahead; {told}" == message(denied)


def test_job_that_needs_no_reservation_is_not_held_up() -> None:
    """It passes the head that lacks room, which shows ClusterBusy and keeps its place."""
    other = job("j2", work=task(), actor="j2", created_at=NOW)
    both = world(asks("j1", 1), other, left=room(4, 4))
    assert ({"j2"}, "Pending/ClusterBusy") == (claims(both), state(both))


def test_only_the_one_that_would_be_picked_is_busy() -> None:
    """Who stands behind shows its place."""
    both = world(asks("j1", 1), asks("j2", 1), left=room(4, 4))
    assert ("Pending/ClusterBusy", "Pending/Waiting") == (state(both), state(both, "j2"))


def test_free_pool_needs_no_room() -> None:
    """A fitting pool of the reservation is taken though the reservation is full."""
    row = free("falcon-x", ONE, reservation=R)
    assert {"j1"} == claims(world(asks("j1", 1), left=room(4, 4), pools=(row,), listed=True))


def test_room_goes_by_priority_then_age() -> None:
    """Of two queues that share a reservation the head that goes first takes what is there; it is promised once."""
    small, big = asks("j2", 1), asks("j1", 4)
    assert {"j1"} == claims(world(small, big, left=room(4)))
    assert {"j2"} == claims(world(evolve(small, priority=5), big, left=room(4)))
    assert {"j1", "j2"} == claims(world(small, big, left=room(5)))


def test_two_clusters_share_one_reservation() -> None:
    """Room is promised once, whichever cluster asks."""
    second = cluster("c2", default_reservation=R)
    there = evolve(asks("j2", 1), cluster_id="c2")
    shared = snapshot(
        asks("j1", 1), there, views=(view(of=C1, reservation=room(1)), view(of=second, reservation=room(1)))
    )
    assert {"j1"} == claims(shared)


def test_smaller_job_passes_a_larger_one_that_does_not_fit() -> None:
    """Until the larger has shown ClusterBusy for FALCON_ROOM_HOLD."""
    big = asks("j1", 4, "ClusterBusy", reason_since=NOW - 1799)
    assert {"j2"} == claims(world(big, asks("j2", 1), left=room(4, 1)))


def test_room_is_kept_for_the_one_that_waited_long() -> None:
    """Then nobody behind it takes room before it fits, and the message says for whom it is kept."""
    big = asks("j1", 4, "ClusterBusy", reason_since=NOW - 1800)
    held = world(big, asks("j2", 1), left=room(4, 1))
    assert set() == claims(held)
    kept = (
        "reservation_remaining_slices=3 reservation_needed_slices=1, waiting for reservation capacity...; kept for j1"
    )
    assert kept == message(held, "j2")
    assert {"j1"} == claims(world(big, asks("j2", 1), left=room(4)))


@pytest.mark.parametrize(("ended", "kept"), [("full", True), ("capacity", False)])
def test_room_is_kept_through_a_back_off_that_came_from_full(ended: str, kept: bool) -> None:
    """Else a smaller job takes what the larger one waits for, each time that found the reservation full after all."""
    big = asks("j1", 4, "ClusterBusy", reason_since=NOW - 1800)
    held = evolve(world(big, asks("j2", 1), left=room(4)), failures=(Failure("j1", "c1", ended, NOW - 5),))
    assert (set() if kept else {"j2"}) == claims(held)


def test_try_that_finds_the_reservation_full_does_not_start_the_hold_anew() -> None:
    """With the longest back-off as long as the hold, room would else never be kept for who is told full (P10)."""
    big = asks("j1", 4, "ClusterBusy", reason_since=NOW - 5)
    failures = (Failure("j1", "c1", "full", NOW - 1800), Failure("j1", "c1", "full", NOW - 5))
    held = evolve(world(big, asks("j2", 1), left=room(4)), failures=failures)
    assert (set(), {"j2"}) == (claims(held), claims(evolve(held, failures=failures[1:])))


def test_room_is_not_kept_from_those_ahead() -> None:
    """A job of higher priority goes before the one that waited long."""
    big = asks("j1", 4, "ClusterBusy", reason_since=NOW - 9999)
    assert {"j2"} == claims(world(big, asks("j2", 1, priority=5), left=room(4, 1)))


def test_room_is_not_kept_from_those_that_need_none() -> None:
    """An on-demand job behind the one that waits starts."""
    big = asks("j1", 4, "ClusterBusy", reason_since=NOW - 9999)
    behind = job("j2", work=task("4x4"), actor="j2", created_at=NOW)
    assert {"j2"} == claims(world(big, behind, left=room(4, 1)))


def test_nobody_moves_to_room_that_is_kept() -> None:
    """A waiting job of another cluster stays where it is."""
    big = asks("j1", 4, "ClusterBusy", reason_since=NOW - 9999)
    full = cluster("c2", default_reservation="other")
    elsewhere = evolve(asks("j2", 1), cluster_id="c2")
    none = room(4, 4, path="projects/p/reservations/other")
    views = (view(of=C1, reservation=room(4, 1)), view(of=full, reservation=none))
    made = plan(snapshot(big, elsewhere, views=views)).actions
    moved = [a for a in made if isinstance(a, Change) and a.job_id == "j2" and "cluster_id" in a.columns]
    assert [] == moved


def test_reservation_is_named_by_its_path() -> None:
    """A name is one of the cluster's project; a path is taken as it is, blocks too."""
    path = "projects/q/reservations/r/reservationBlocks/b"
    waits = asks("j1", 1)
    shown = view(of=cluster(default_reservation=path), reservation=room(4, path=path))
    change = next(a for a in plan(snapshot(waits, views=(shown,))).actions if isinstance(a, Change))
    assert change.makes is not None
    assert path == change.makes.reservation


def test_cluster_without_a_reservation() -> None:
    """It has no path of one."""
    assert reservation_path(cluster()) is None
