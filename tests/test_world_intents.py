"""
Every sequence of up to four intents of people, from every point of a life (proof.md R8).

1. Sequences that lead to one state are one from there on: a state is proved once, and counts for all that lead to it.
2. Intents come at once, or with a pass of Falcon after each.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product

import pytest
from attrs import evolve
from passes import Key, State, begin, go_on, make_pass, rare_collections
from proving import Grounds, Proof
from scenarios import SCENARIOS
from striking import Seam
from world import ZONE, Falcon, spec

from falcon_rm.core.words import ClusterStatus

LENGTH = 4
AT_EVERY_PUSH = frozenset({"one host", "cpu", "flex-start", "reservation", "aborted: j1 Pending/Waiting"})
"""Lives that are proved at every push; `hack/soak --all` proves the same of the others."""


def submit(falcon: Falcon) -> None:
    """Insert one more job like the first."""
    number = sum(1 for job_id in falcon.store.jobs if job_id.startswith("x")) + 1
    falcon.submit(f"x{number}", spec("4x4"), actor="eve")


def abort(falcon: Falcon) -> None:
    """Ask for the end of j1."""
    job = falcon.store.jobs.get("j1")
    if job is not None and job.status in ("Pending", "Running"):
        falcon.store.set_status("j1", "Aborting")


def delete_row(falcon: Falcon) -> None:
    """Delete the row of j1."""
    if "j1" in falcon.store.jobs:
        falcon.store.delete_row("j1")


def to_maintenance(falcon: Falcon) -> None:
    """Take the cluster out of use."""
    falcon.store.add_cluster(evolve(falcon.store.clusters["c1"], status=ClusterStatus.MAINTENANCE))


def back(falcon: Falcon) -> None:
    """Put it back to use."""
    falcon.store.add_cluster(evolve(falcon.store.clusters["c1"], status=ClusterStatus.ACTIVE))


def smaller(falcon: Falcon) -> None:
    """Leave the reservation, if there is one, no room."""
    _reserve(falcon, 0)


def larger(falcon: Falcon) -> None:
    """Give it room for two slices."""
    _reserve(falcon, 8)


def _reserve(falcon: Falcon, count: int) -> None:
    if ("p", ZONE, "r") in falcon.sim.compute.reservations:
        falcon.sim.compute.set_reservation("p", ZONE, "r", count=count)


Intent = Callable[[Falcon], None]
INTENTS: tuple[Intent, ...] = (submit, abort, delete_row, to_maintenance, back, smaller, larger)
SEQUENCES = sum(len(INTENTS) ** length for length in range(1, LENGTH + 1))


@pytest.mark.parametrize("passes", [False, True], ids=["at once", "a pass after each"])
@pytest.mark.parametrize("name", sorted(AT_EVERY_PUSH))
def test_every_sequence(name: str, passes: bool, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """From each point, after each sequence, the world comes to rest: nothing leaks and every wait is a true one."""
    proof(*every_sequence(name, grounds, passes=passes))


def every_sequence(name: str, grounds: Grounds, *, passes: bool) -> tuple[int, int]:
    """Prove one life; return how many sequences were planned, and how many proved."""
    with rare_collections():
        life = Proof(SCENARIOS[name], grounds)
        points = life.quiet(begin(life.scenario))
        return len(points) * SEQUENCES, sequences(life, points, passes=passes)


def sequences(life: Proof, points: Sequence[tuple[Key, State]], *, passes: bool) -> int:
    """Prove every state that a sequence leads to from any point; return for how many sequences that was."""
    states, led = dict(points), dict[tuple[Key, Intent], Key]()
    level, covered = Counter(key for key, _ in points), 0
    for length in range(1, LENGTH + 1):
        following = Counter[Key]()
        for (key, ways), intent in product(level.items(), INTENTS):
            if (key, intent) not in led:
                after = meant(states[key], intent, passes=passes)
                led[key, intent] = after.key()
                if length < LENGTH:
                    states.setdefault(led[key, intent], after.fork())
                life.prove(led[key, intent], after)
            following[led[key, intent]] += ways
            covered += ways
        level = following
    return covered


def meant(state: State, intent: Intent, *, passes: bool) -> State:
    """Return a state after an intent."""
    after = state.fork()
    intent(after.falcon)
    return go_on(after, make_pass(after.falcon, Seam(after.falcon))) if passes else after
