"""The pick rule: priority, turns between actors, first in first out within one."""

from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from falcon_rm.core.line import line
from falcon_rm.core.model import Job, TaskSpec

TASK = TaskSpec(image="i", shape=None)


def job(job_id: str, actor: str, created_at: float, priority: int = 0) -> Job:
    """Return a waiting job."""
    return Job(
        id=job_id, actor=actor, task=TASK, status="Pending", reason="Waiting", created_at=created_at, priority=priority
    )


def ids(jobs: list[Job], served: dict[str, float] | None = None) -> list[str]:
    """Return the ids in the order of the line."""
    return [picked.id for picked in line(jobs, served or {})]


def test_two_backlogs_take_turns() -> None:
    """Actors alternate, each in order of submission."""
    jobs = [job(f"a{n}", "ann", n) for n in range(3)] + [job(f"b{n}", "bob", 10 + n) for n in range(3)]
    assert ["a0", "b0", "a1", "b1", "a2", "b2"] == ids(jobs)


def test_newcomer_goes_before_old_backlogs_that_were_served() -> None:
    """An actor never served goes first (P68)."""
    jobs = [job("a", "ann", 0), job("b", "bob", 1), job("c", "carol", 99)]
    assert ["c", "a", "b"] == ids(jobs, {"ann": 5.0, "bob": 6.0})


def test_priority_goes_before_turns() -> None:
    """Highest priority first, turns only inside it (P72)."""
    jobs = [job("j1", "bob", 0), job("j2", "ann", 1, 10), job("j3", "ann", 2, 10), job("j4", "carol", 3, 10)]
    assert ["j2", "j4", "j3", "j1"] == ids(jobs)


def test_equal_times_go_by_id() -> None:
    """Rows of one moment run in order of id, whatever order they come in (P70)."""
    jobs = [job(f"j{n}", "ann", 7) for n in range(1, 5)]
    assert {("j1", "j2", "j3", "j4")} == {tuple(ids(list(order))) for order in permutations(jobs)}


def test_older_submission_goes_first_whatever_the_names() -> None:
    """Between actors that were never served, and within one."""
    assert ["j2", "j1"] == ids([job("j1", "ann", 2), job("j2", "zoe", 1)])
    assert ["j2", "j1"] == ids([job("j1", "ann", 2), job("j2", "ann", 1)])


def test_who_was_served_longest_ago_goes_first() -> None:
    """Not who is older; and who was served at the very beginning was served."""
    jobs = [job("a", "ann", 0), job("b", "bob", 1), job("c", "carol", 2)]
    assert ["b", "c", "a"] == ids(jobs, {"ann": 9e9, "bob": 7e9, "carol": 8e9})
    assert ["b", "c", "a"] == ids(jobs, {"ann": 0.0})


def test_who_is_picked_now_was_served_last() -> None:
    """A second job of one actor goes behind every other actor's first, whenever that one was served."""
    assert ["a0", "b", "a1"] == ids([job("a0", "ann", 0), job("a1", "ann", 1), job("b", "bob", 2)], {"bob": 9e9})


JOBS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=30).map(
    lambda rows: [job(f"j{n:02}", actor, at, priority) for n, (actor, at, priority) in enumerate(rows)]
)


@given(jobs=JOBS, served=st.dictionaries(st.sampled_from("abcd"), st.floats(0, 100)))
def test_line_is_fair(jobs: list[Job], served: dict[str, float]) -> None:
    """FIFO within an actor, and between two starts of one every other actor with work starts exactly once (S11)."""
    order = list(line(jobs, served))
    assert sorted(jobs, key=lambda j: j.id) == sorted(order, key=lambda j: j.id)
    for priority in {j.priority for j in jobs}:
        level = [j for j in order if j.priority == priority]
        for actor in {j.actor for j in level}:
            own = [j for j in level if j.actor == actor]
            assert own == sorted(own, key=lambda j: (j.created_at, j.id))
            starts = [n for n, j in enumerate(level) if j.actor == actor]
            for first, second in pairwise(starts):
                between = [j.actor for j in level[first + 1 : second]]
                rest = {j.actor for j in level[second:]} - {actor}
                assert len(between) == len(set(between))
                assert rest <= set(between)
