"""Lives of pools, cut into stretches and added up."""

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from falcon_rm.core.usage import KEYS, Lease, Life, Stretch, Use, Window, account, span, stretches

NOW = 1_700_000_000.0
HOUR = 3600.0

ANN = Lease("j1", "ann", "e1", NOW - 1, NOW + 60, NOW + 100)
BOB = Lease("j2", "bob", "", NOW + 130, NOW + 140, NOW + 200)
LIFE = Life(
    "c1", "falcon-j1", "2x2", 4, "on-demand", None, NOW, NOW + 10, NOW + 200, NOW + 260, (ANN, BOB)
)  # fmt: skip


def told(life: Life, now: float = NOW + 1000) -> list[tuple[Use, str | None, float, float]]:
    """Return the stretches of a pool: use, actor, from, until; times since NOW."""
    return [(each.use, each.actor, each.begin - NOW, each.end - NOW) for each in stretches(life, now)]


def test_a_pool_handed_on() -> None:
    """Waiting, busy, idle, waiting, busy, releasing: each with who holds the pool or held it last."""
    assert told(LIFE) == [
        (Use.WAITING, "ann", 0, 60),
        (Use.BUSY, "ann", 60, 100),
        (Use.IDLE, "ann", 100, 130),
        (Use.WAITING, "bob", 130, 140),
        (Use.BUSY, "bob", 140, 200),
        (Use.RELEASING, "bob", 200, 260),
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"deleted_at": None, "deleting_at": None, "leases": (evolve(ANN, until_at=None),)}, ["waiting", "busy"]),
        ({"leases": (evolve(ANN, running_at=None, until_at=NOW + 200),)}, ["waiting", "releasing"]),
        ({"deleting_at": None, "leases": (ANN,)}, ["waiting", "busy", "idle"]),
        ({"leases": ()}, ["idle", "releasing"]),
        ({"leases": (evolve(ANN, until_at=None), BOB)}, ["waiting", "busy", "waiting", "busy", "releasing"]),
    ],
    ids=["at work", "never ran", "lost while idle", "found", "an end that nobody wrote"],
)
def test_other_lives(changes: dict[str, Any], expected: list[str]) -> None:
    """What a pool is doing follows from the times that are written, whichever are missing."""
    assert expected == [use for use, *_ in told(evolve(LIFE, **changes))]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (NOW, NOW + 260)),
        ({"deleted_at": None}, (NOW, NOW + 1000)),
        ({"requested_at": None}, (NOW + 10, NOW + 260)),
        ({"requested_at": NOW + 50}, (NOW + 10, NOW + 260)),
        ({"seen_at": None}, None),
        ({"seen_at": None, "deleted_at": None}, (NOW, NOW + 1000)),
        ({"seen_at": None, "requested_at": None}, None),
    ],
    ids=["whole", "still there", "found", "asked for again", "never was", "on its way", "not asked for yet"],
)
def test_span(changes: dict[str, Any], expected: tuple[float, float] | None) -> None:
    """A pool counts from its request, or its first sight, to the end of its row; one that no list had never was."""
    assert expected == span(evolve(LIFE, **changes), NOW + 1000)


def test_pool_that_never_was() -> None:
    """It was nobody's, and costs nothing."""
    assert [] == told(evolve(LIFE, seen_at=None))


def test_account_by_actor() -> None:
    """Chip-seconds are seconds times all chips of the pool."""
    ann, bob = account([LIFE], NOW, ("actor",))
    assert (("ann",), {"waiting": 240, "busy": 160, "idle": 120, "releasing": 0}) == (ann.key, dict(ann.chip_seconds))
    assert (("bob",), {"waiting": 40, "busy": 240, "idle": 0, "releasing": 240}) == (bob.key, dict(bob.chip_seconds))


def test_nobody_comes_last() -> None:
    """Time that is nobody's stands under no key, after all others."""
    rows = account([evolve(LIFE, leases=(BOB,))], NOW, ("actor", "experiment"))
    assert [(("bob", None), 520), ((None, None), 520)] == [(row.key, row.total) for row in rows]


def test_days_are_cut_at_midnight() -> None:
    """A stretch that lasts over midnight, UTC, counts to both days."""
    midnight = 1_699_920_000.0
    life = evolve(
        LIFE, requested_at=midnight - HOUR, seen_at=midnight - HOUR, deleting_at=None, deleted_at=midnight + 26 * HOUR,
        leases=(),
    )  # fmt: skip
    rows = account([life], NOW, ("day",))
    days = {("2023-11-13",): 4 * HOUR, ("2023-11-14",): 96 * HOUR, ("2023-11-15",): 8 * HOUR}
    assert days == {row.key: row.total for row in rows}


def test_day_of_a_short_life() -> None:
    """A pool that came and went within a day counts to that day alone."""
    assert [(("2023-11-14",), 4 * 260)] == [(row.key, row.total) for row in account([LIFE], NOW, ("day",))]


def test_window() -> None:
    """Only what lies inside counts."""
    (row,) = account([LIFE], NOW, (), Window(NOW + 50, NOW + 110))
    assert {"waiting": 40, "busy": 160, "idle": 40, "releasing": 0} == dict(row.chip_seconds)


def test_nothing() -> None:
    """Without a pool the sum is there and is nothing."""
    assert [((), 0)] == [(row.key, row.total) for row in account([], NOW)]
    assert () == account([], NOW, ("actor",))


seconds = st.none() | st.floats(0, 500)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """Draw a pool with times in any order, as no database should have them."""
    leases = tuple(
        Lease(f"j{number}", draw(st.sampled_from("ab")), "", draw(st.floats(0, 500)), draw(seconds), draw(seconds))
        for number in range(draw(st.integers(0, 3)))
    )
    times = [draw(seconds) for _ in range(3)]
    seen_at, deleting_at, deleted_at = times
    return Life(
        "c", "p", "2x2", 4, "on-demand", None, draw(st.floats(0, 500)), seen_at, deleting_at, deleted_at, leases
    )


@given(lives(), st.lists(st.sampled_from(sorted(KEYS)), unique=True))
def test_every_second_once(life: Life, by: list[str]) -> None:
    """Whatever the rows hold: stretches meet without gap or overlap, and every sum is the pool's whole time."""
    found: list[Stretch] = list(stretches(life, 1000.0))
    counted = span(life, 1000.0)
    begin, end = counted if counted and counted[0] < counted[1] else (0.0, 0.0)
    assert [each.end for each in found[:-1]] == [each.begin for each in found[1:]]
    if found:
        assert (begin, end) == (found[0].begin, found[-1].end)
    assert abs(sum(row.total for row in account([life], 1000.0, by)) - 4 * (end - begin)) < 1e-6
