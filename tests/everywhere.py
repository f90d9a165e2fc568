"""
Convergence from everywhere (proof.md R2), one phase at a time: its worlds are walked through to their rest.

1. At rest section 3 of proof.md holds: what stands is true of the world, nothing leaks, and nothing more is planned.
2. The longest chain of a phase is computed, bounded by N, and kept in golden/chains.txt: a longer one is a reviewed
   change. `PYTHONPATH=.:hack python tests/everywhere.py` writes it anew.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from attrs import define, field
from history import START, Lease
from legitimate import FURTHER_PASSES, problems
from planted import ACTIVE, HELD_BY, MACHINE, OLD, PHASES, POOLS, SLOTS, TOPOLOGY, WORKS, YOUNG, Plant, plant
from walk import BOUNDS, CREATES, SUBMITS, Walk
from world import Falcon

from falcon_rm.core.model import Pool, TaskSpec
from falcon_rm.core.names import cloud_name
from falcon_rm.core.shapes import shape
from falcon_rm.core.words import Mode, PoolState

GOLDEN = Path(__file__).parent / "golden" / "chains.txt"
AN_ATTEMPT, AND_MORE = 12, 8
MOST_ATTEMPTS = BOUNDS.pool_attempts + 2  # with the present one, and one that costs no budget
STACK = 5000
SETTLED = 7200.0

# --- which worlds

CORE: tuple[tuple[Any, ...], ...] = (
    (
        ("no row", "nobody", ACTIVE), ("never asked", "j1", ACTIVE), ("no capacity", "j1", ACTIVE),
        ("ready", "j1", ACTIVE), ("ready", "ghost", ACTIVE), ("ready", "nobody", ACTIVE),
    ),
    ("absent", "creating, fails", "ready", "node lost", "stopping", "not ours"),
    ("never asked", "gone", "starting", "running", "failed", "pods left"),
)  # fmt: skip
"""Of ledger, pool and Job: what every phase is planted with, all with all."""

TABLES: tuple[tuple[Any, ...], ...] = (
    tuple(PHASES), HELD_BY, SLOTS, POOLS, tuple(WORKS), tuple(Mode), (YOUNG, OLD), (False, True),
)  # fmt: skip
"""All that a world is made of, in the order of Plant's fields."""

HOLDS_SLOT = frozenset({"provisioning", "waiting for node", "dispatching", "dispatched"})


def worlds_of(phase: str) -> list[Plant]:
    """Return the worlds of a phase: all of CORE, and its part of the pairs of all words of all tables."""
    slot = "j1" if phase in HOLDS_SLOT else "nobody"
    core = [Plant(phase, ledger, slot, pool, work) for ledger, pool, work in product(*CORE)]
    return core + [Plant(*words) for words in pairs(TABLES) if words[0] == phase]


def whole_of(phase: str, mode: Mode) -> Iterator[Plant]:
    """Yield the whole product of the tables for one phase and mode: what hack/soak plants."""
    for words in product((phase,), *TABLES[1:5], (mode,), *TABLES[6:]):
        yield Plant(*words)


@cache
def pairs(tables: tuple[tuple[Any, ...], ...]) -> list[tuple[Any, ...]]:
    """Return rows with one word of each table, such that every two words of two tables stand together in one."""
    places, sizes = range(len(tables)), [len(table) for table in tables]
    missing = {
        (one, a, other, b)
        for one, other in product(places, places)
        if one < other
        for a, b in product(range(sizes[one]), range(sizes[other]))
    }
    rows = []
    while missing:
        one, a, other, b = min(missing)
        row = {one: a, other: b}
        for place in (place for place in places if place not in row):
            row[place] = max(range(sizes[place]), key=lambda word: (_gain(row, place, word, missing), -word))
        missing -= {(i, row[i], k, row[k]) for i, k in product(places, places) if i < k}
        rows.append(tuple(tables[place][row[place]] for place in places))
    return rows


def _gain(row: Mapping[int, int], place: int, word: int, missing: set[tuple[int, int, int, int]]) -> int:
    """Return how many missing pairs a word would add to a row that is not whole yet."""
    return sum(((k, row[k], place, word) if k < place else (place, word, k, row[k])) in missing for k in row)


# --- a second job

OTHERS: Mapping[str, tuple[str, str]] = {
    "waits behind it": ("Waiting", TOPOLOGY),
    "acquires in its slot": ("Provisioning", TOPOLOGY),
    "waits for another topology": ("Waiting", "4x4"),
}
"""What a second job does beside the first: its reason and its topology."""


def plant_two(world: Plant, other: str) -> Falcon:
    """Return a world with a second, younger job of another actor."""
    falcon, (reason, topology), ago = plant(world), OTHERS[other], START - world.age
    made = shape("v6e", topology, MACHINE)
    columns: dict[str, Any] = {}
    if reason == "Provisioning":
        name = cloud_name("j2", 1)
        columns = {"attempt": 1, "node_pool_name": name, "supply_mode": world.mode, "provisioning_at": ago}
        row = Pool(
            "c1", name, "j2", 1, "v6e", topology, MACHINE, made.hosts, made.chips, world.mode, lease="j2", leased_at=ago
        )
        falcon.store.pools["c1", name] = row
        falcon.store.leases.append(Lease("c1", name, "j2", 1, "bob", "", "", world.mode, None, from_at=ago))
    task = TaskSpec(image="busybox:1.36", command="true", shape=made, mode=world.mode)
    falcon.store.insert_job(
        "j2", task, actor="bob", created_at=ago, status="Pending", reason=reason, cluster_id="c1", topology=topology,
        queued_at=ago, timeout_seconds=3600, **columns,
    )  # fmt: skip
    return falcon


# --- how they are judged

MAKES_ATTEMPTS = frozenset({
    "new", "waiting", "waiting, names a pool", "busy", "provisioning", "waiting for node", "dispatching", "dispatched",
    "running", "ending lost", "yielding",
})  # fmt: skip
"""The phases from which a job may go on to further attempts; the others have one to clear away at most."""


def most_passes(world: Plant) -> int:
    """Return N: for each attempt that a job may still make, with its present one and one that costs no budget."""
    attempts = MOST_ATTEMPTS - world.spent if world.phase in MAKES_ATTEMPTS else 1
    return AN_ATTEMPT * attempts + AND_MORE


@define
class Rest:
    """Judges worlds at rest; of those that stand alike one is watched on for long."""

    watched: set[object] = field(factory=set)

    def __call__(self, falcon: Falcon) -> None:
        """Assert that a world is at rest, and stays so when what the clouds have begun is ended."""
        assert not problems(falcon), f"{problems(falcon)}\n{falcon.describe()}"
        kind = (
            tuple((job.id, job.status, job.reason) for job in falcon.rows()),
            tuple(pool.name for pool in falcon.pool_rows() if pool.state is not PoolState.DELETED),
            tuple(falcon.pools()),
        )
        later = falcon.fork()
        later.advance(SETTLED)
        rows, effects = later.store.copy(), len(later.sim.effects)
        for _ in range(1 if kind in self.watched else FURTHER_PASSES):
            made = later.step()
            assert () == made.plan.actions, f"at rest it plans {made.plan.actions}"
            later.wait()
        rows.now = later.store.now
        assert (rows, effects, []) == (later.store, len(later.sim.effects), problems(later)), "at rest it changes"
        self.watched.add(kind)


def prove(worlds: Iterable[tuple[str, Falcon, int]], walk: Walk) -> int:
    """Walk from every world, given by name and with the N that it may take, to its rest; return the longest chain."""
    sys.setrecursionlimit(STACK)
    longest = 0
    for name, falcon, most in worlds:
        try:
            passes = walk.chain(falcon)
        except AssertionError as error:
            raise AssertionError(f"{name}\n{error}") from error
        assert passes <= most, f"{passes} passes, more than {most}: {name}"
        longest = max(longest, passes)
    return longest


def planted(worlds: Iterable[Plant]) -> Iterator[tuple[str, Falcon, int]]:
    """Yield worlds of one job for `prove`."""
    yield from ((str(world), plant(world), most_passes(world)) for world in worlds)


def two_jobs() -> Walk:
    """Return a walk for two jobs: what each may meet, and their order, matters; not every way for both at once."""
    return Walk(Rest(), CREATES[:2], SUBMITS[:2])


def of_two_jobs(other: str) -> Iterator[tuple[str, Falcon, int]]:
    """Yield worlds of every phase beside a second job for `prove`: with its attempts, N is twice as much."""
    for phase, pool, age in product(PHASES, ("absent", "ready"), (YOUNG, OLD)):
        slot = "j1" if phase in HOLDS_SLOT else "nobody"
        ledger = ("never asked" if pool == "absent" else "ready", "j1", ACTIVE)
        world = Plant(phase, ledger, slot, pool, "never asked", age=age)
        yield f"{world}; a second job {other}", plant_two(world, other), 2 * AN_ATTEMPT * MOST_ATTEMPTS + AND_MORE


def golden() -> dict[str, int]:
    """Return the longest chain of each phase as it was reviewed."""
    lines = (line.rpartition(": ") for line in GOLDEN.read_text(encoding="utf-8").splitlines())
    return {phase: int(passes) for phase, _, passes in lines}


def write_golden() -> None:
    """Write the longest chains anew."""
    chains = {phase: prove(planted(worlds_of(phase)), Walk(Rest())) for phase in PHASES}
    chains |= {other: prove(of_two_jobs(other), two_jobs()) for other in OTHERS}
    GOLDEN.write_text("".join(f"{name}: {passes}\n" for name, passes in chains.items()), encoding="utf-8")


if __name__ == "__main__":
    write_golden()
