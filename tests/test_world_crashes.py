"""
R3: the process is killed before and after every side effect and every read of every life, and a new one goes on.

1. Here the pass really dies at its call. What it leaves must be what the same pass, unharmed, had come to there: on
   that rests the proof by pairs, which takes the kept world in place of the dead pass, as what comes later does here.
2. The same holds for a database that goes away: nothing of the pass comes after it.
"""

from collections.abc import Callable

import pytest
from attrs import evolve
from passes import Key, State, begin, go_on, make_pass, rare_collections
from proving import PASSES_OF_AN_ATTEMPT, Grounds, Proof, Proved, may_end
from scenarios import SCENARIOS
from strikes import STORE_READ, STORE_WRITE, Strike, strikes
from striking import Seam

EXTRA_PASSES, OWN_PASSES = 5, 6
"""
Passes that a crash may cost; and those from its pool to its end, which a job beside it in another cluster takes alone
once the two have fallen out of step. What is still to be done to the job may come in another phase then, and cost
another attempt.
"""
LEAST_SCENARIOS = 40


def test_there_are_lives_enough() -> None:
    """proof.md 4 wants at least forty lives."""
    assert len(SCENARIOS) >= LEAST_SCENARIOS


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_crash_at_every_call(name: str, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """From a crash anywhere the next process comes to the same ends within five passes more, and nothing is left."""
    found = Proof(SCENARIOS[name], grounds)
    with rare_collections():
        counts = [crash_everywhere(found, key, state) for key, state in list(found.quiet(begin(found.scenario)))]
    planned, executed = (sum(column) for column in zip(*counts, strict=True))
    assert planned > 0
    proof(planned, executed)


def crash_everywhere(found: Proof, key: Key, state: State) -> tuple[int, int]:
    """Crash a pass at each of its calls; return how many crashes were planned, and made."""
    whole, planned, executed = state.fork(), 0, 0
    unharmed: dict[int, tuple[str, Proved]] = {}  # fork of the whole pass -> what it is, and what comes of it
    seam = Seam(whole.falcon, keeps=True, answers=state.answers)
    make_pass(whole.falcon, seam)
    for site in seam.sites:
        for strike in filter(is_deadly, strikes(site)):
            planned += 1
            struck = state.fork()
            make_pass(struck.falcon, Seam(struck.falcon, {site.number: strike}, answers=state.answers))
            index = seam.fork_before[site.number] + strike.after
            if index not in unharmed:
                left = go_on(evolve(state, falcon=seam.forks[index].fork()), None)
                unharmed[index] = seam.forks[index].fingerprint(), found.prove(left.key(), left)
            what, after = unharmed[index]
            where = f"{strike.name} at {site.name} in {struck.falcon.describe()}"
            assert what == struck.falcon.fingerprint(), where
            extra = 1 + after.passes - found.proved[key].passes
            beside = OWN_PASSES * (len(state.falcon.clusters) - 1)
            allowed = EXTRA_PASSES + beside + PASSES_OF_AN_ATTEMPT * bool(state.acts)
            assert extra <= allowed, f"{where}: {extra} more passes"
            assert may_end(after.ends, found.scenario, frozenset()), f"{where}: it ends as {after.ends}"
            executed += 1
    return planned, executed


def is_deadly(strike: Strike) -> bool:
    """Return whether a fault ends the process, or the pass for want of a database, with nothing to come later."""
    return strike.ends_the_pass and strike.later is None


def test_a_database_that_goes_away_is_deadly() -> None:
    """Every call to the database can end the pass, before and after its effect."""
    assert ["crash", "down"] == [strike.name for strike in STORE_READ if is_deadly(strike)]
    assert [False, True, False, True] == [strike.after for strike in STORE_WRITE if is_deadly(strike)]
