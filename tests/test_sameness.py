"""
The same world gives the same plan (proof.md R11): in whatever order its parts come, however a process hashes, and
however often the plan is carried out.

Every world of planned_worlds.py is planned here and in one of twenty processes that hash otherwise; what `plan -o json`
prints must be equal to the byte.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from attrs import evolve
from cloudsim.direct import DirectClouds
from planned_worlds import digest, look, share, worlds, worlds_of_everywhere
from planted import Plant, plant
from test_plan_properties import shuffled
from walk import calls
from world import Falcon
from world_key import key_of

from falcon_rm.apply import Applier
from falcon_rm.core.model import Snapshot
from falcon_rm.core.plan import Plan, plan

HASH_SEEDS = range(1, 21)
TESTS = Path(__file__).resolve().parent
ELSEWHERE = TESTS / "planned_worlds.py"


def elsewhere() -> Iterator[subprocess.Popen[str]]:
    """Start the processes, each with a hash seed of its own."""
    path = os.pathsep.join(map(str, (TESTS.parent, TESTS.parent / "hack")))
    for number, seed in enumerate(HASH_SEEDS):
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, str(ELSEWHERE), str(number), str(len(HASH_SEEDS))]
        yield subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def planned() -> list[tuple[Plant, Snapshot, Plan]]:
    """Every world, what a pass sees of it, and its plan."""
    seen = [(world, look(plant(world))) for world in worlds()]
    return [(world, snapshot, plan(snapshot)) for world, snapshot in seen]


def test_plan_is_the_same_to_the_byte_in_every_process(
    planned: list[tuple[Plant, Snapshot, Plan]], proof: Callable[[int, int], None]
) -> None:
    """What `plan -o json` prints of a world does not depend on how the process hashes."""
    executed = 0
    for number, process in enumerate(elsewhere()):
        with process:
            there, _ = process.communicate(timeout=600)
        here = [made for _, _, made in planned[share(number, len(HASH_SEEDS))]]
        assert digest(here) == there.strip(), f"under hash seed {HASH_SEEDS[number]}"
        executed += len(here)
    proof(len(worlds()), executed)


def test_plan_is_the_same_in_any_order(
    planned: list[tuple[Plant, Snapshot, Plan]], proof: Callable[[int, int], None]
) -> None:
    """The parts of a world come in any order."""
    chance, executed = Random(7), 0
    for world, seen, made in planned:
        assert made == plan(shuffled(seen, chance)), str(world)
        executed += 1
    proof(len(worlds()), executed)


def test_plan_that_is_carried_out_twice_is_carried_out_once(proof: Callable[[int, int], None]) -> None:
    """What a plan did is not done again: only the error that the second call answered is written down."""
    executed = 0
    for world in worlds_of_everywhere():
        falcon = plant(world)
        wanted = plan(look(falcon))
        if calls(wanted):
            falcon = falcon.fork()
        carry_out(wanted, falcon)
        once = without_errors(falcon)
        carry_out(wanted, falcon)
        assert once == without_errors(falcon), str(world)
        executed += 1
    proof(len(worlds_of_everywhere()), executed)


def carry_out(wanted: Plan, falcon: Falcon) -> None:
    """Carry a plan out."""
    applier = Applier(falcon.store, DirectClouds(falcon.sim))
    for action in (*wanted.notes, *wanted.actions):
        applier.apply(action)


def without_errors(falcon: Falcon) -> object:
    """Return what of a world decides anything, but for what calls answered."""
    store = falcon.store.copy()
    store.pools = {key: evolve(pool, error=None) for key, pool in store.pools.items()}
    store.works = {key: evolve(work, error=None) for key, work in store.works.items()}
    versions = {job.id: job.version for job in store.jobs.values()}
    return key_of(store, falcon.sim), versions, tuple(store.events), tuple(store.leases), tuple(store.audits)
