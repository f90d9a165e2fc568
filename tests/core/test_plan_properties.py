"""What must hold of plan() in worlds that nobody thought of (proof.md 2, 7, 8)."""

import os
import pickle
import subprocess
import sys
from hashlib import sha256
from random import Random
from typing import Any

import pytest
from attrs import evolve
from builders import EN, NOW, free, job, live, pool, snapshot, task, told, unread, view, work
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore
from plan_laws import LAWS
from strategies import snapshots

from falcon_rm.core.actions import (
    Action,
    Change,
    DeleteWork,
    EndLease,
    EnsureSlot,
    EnterPool,
    FreeSlot,
    MarkPool,
    RetirePool,
)
from falcon_rm.core.model import Job, Snapshot
from falcon_rm.core.plan import plan
from falcon_rm.core.scene import ACQUIRING, phase_of
from falcon_rm.core.sweep import Brake
from falcon_rm.core.words import Mode, PoolState

RUNNING = job("j1", "Running", message="Pods running (1/1 active)")
AT_REST = snapshot(RUNNING, views=(view(live(pool(RUNNING)), work(RUNNING)),), pools=(pool(RUNNING),))
EMPTY = Snapshot(now=NOW, instance="i", bounds=EN)
TWO_MODES = (free("falcon-a"), free("falcon-b", task(mode=Mode.FLEX_START)))
TWO_NEEDS = snapshot(
    job("j1", work=task(mode=None)),
    job("j2", work=task(), actor="bob"),
    views=(view(*map(live, TWO_MODES)),),
    pools=TWO_MODES,
)
"""Each of two waiting jobs can have a pool, but only if the one that named no mode leaves the other's alone."""


@given(world=snapshots())
@example(world=EMPTY)
@example(world=AT_REST)
@example(world=TWO_NEEDS)
def test_every_plan_keeps_the_laws(world: Snapshot) -> None:
    """Each law of plan_laws.py holds of the plan of any world."""
    made = plan(world)
    for law in LAWS:
        law(world, made)


# --- sameness (R11)


@given(world=snapshots(), seed=st.integers(0, 99))
@example(world=AT_REST, seed=0)
def test_the_order_of_the_parts_does_not_matter(world: Snapshot, seed: int) -> None:
    """The same world with every tuple in another order has the same plan."""
    assert plan(world) == plan(shuffled(world, Random(seed)))


def shuffled(world: Snapshot, chance: Random) -> Snapshot:
    """Return the world with each of its tuples, and those of its views, in another order."""
    views = [
        evolve(
            each,
            pools=other_order(each.pools, chance),
            operations=other_order(each.operations, chance),
            works=other_order(each.works, chance),
            pods=other_order(each.pods, chance),
            events=other_order(each.events, chance),
        )
        for each in world.views
    ]
    names = ("jobs", "pools", "submissions", "slots", "turns", "failures", "troubles")
    parts = {name: other_order(getattr(world, name), chance) for name in names}
    return evolve(world, views=other_order(tuple(views), chance), **parts)


def other_order(values: Any, chance: Random) -> Any:
    """Return a tuple in an order that chance decides; None stays None."""
    return None if values is None else tuple(chance.sample(values, len(values)))


HASH_OF_PLANS = """
import pickle, sys
from hashlib import sha256
from falcon_rm.core.plan import plan
worlds = pickle.load(sys.stdin.buffer)
print(sha256(repr([plan(world) for world in worlds]).encode()).hexdigest())
"""


def test_the_seed_of_hashes_does_not_matter() -> None:
    """Processes that hash differently make the same plans, to the byte."""
    worlds: list[Snapshot] = []

    @settings(max_examples=40, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(world=snapshots())
    def collect(world: Snapshot) -> None:
        worlds.append(world)

    collect()
    printed = {
        subprocess.run(
            [sys.executable, "-c", HASH_OF_PLANS],
            input=pickle.dumps(worlds),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in ("1", "4242")
    }
    here = sha256(repr([plan(world) for world in worlds]).encode()).hexdigest()
    assert {f"{here}\n".encode()} == printed


# --- what a plan leaves behind


@given(world=snapshots())
def test_a_message_is_written_once(world: Snapshot) -> None:
    """When all that a plan says is written, the next one says nothing new (P106)."""
    after = told(world)
    again = [action for action in plan(after).actions if isinstance(action, Change) and action.only_message]
    assert [] == again


@given(world=snapshots())
@example(world=AT_REST)
def test_a_plan_takes_effect_on_the_world_it_was_made_for(world: Snapshot) -> None:
    """Every write is accepted when nobody interferes, and leaves slots, leases, versions in order (S3, S4, S5, S9)."""
    store, before = database(world), acquiring(world.jobs)
    refused = [action for action in plan(world).actions if not write(store, action)]
    assert [] == refused
    for row in world.jobs:
        assert store.jobs[row.id].version - row.version in (0, 1)
    for key, count in acquiring(tuple(store.jobs.values())).items():
        assert count <= max(1, before.get(key, 0))
    held = [row.lease for row in store.pools.values() if row.lease]
    was_held = [row.lease for row in world.pools if row.lease]
    for holder in held:
        assert holder in was_held or 1 == held.count(holder)
    assert [] == [row for row in store.pools.values() if row.lease and row.state is not PoolState.ACTIVE]


def database(world: Snapshot) -> MemoryStore:
    """Return a database that holds the rows of a world."""
    store = MemoryStore(now=world.now, instance=world.instance)
    store.jobs = {row.id: row for row in world.jobs}
    store.pools = {(row.cluster_id, row.name): row for row in world.pools}
    store.works = {(row.cluster_id, row.name): row for row in world.submissions}
    store.slots = {(row.cluster_id, row.topology): row for row in world.slots}
    store.turns = {(row.cluster_id, row.topology, row.actor): row for row in world.turns}
    return store


def write(store: MemoryStore, action: Action) -> bool:
    """Carry out what an action writes; calls of the cloud write nothing here."""
    match action:
        case Change():
            return store.commit(action)
        case EnsureSlot():
            return store.ensure_slot(action)
        case FreeSlot():
            return store.free_slot(action)
        case EnterPool():
            return store.enter_pool(action)
        case MarkPool():
            return store.mark_pool(action)
        case EndLease():
            return store.end_lease(action)
        case RetirePool():
            return store.retire_pool(action)
    return True


def acquiring(rows: tuple[Job, ...]) -> dict[tuple[str | None, str | None], int]:
    """Return how many jobs acquire in each queue."""
    found: dict[tuple[str | None, str | None], int] = {}
    for row in rows:
        if phase_of(row) in ACQUIRING:
            key = (row.cluster_id, row.topology)
            found[key] = found.get(key, 0) + 1
    return found


@pytest.mark.parametrize(
    "world",
    [
        EMPTY,
        AT_REST,
        snapshot(views=(view(live(pool(job("x", cluster_id="c1")), labels={})),)),
        snapshot(views=(unread(),)),
        told(snapshot(job("j1"), views=(unread(),))),
        told(snapshot(job("j1", "Pending/Provisioning"), views=(unread(),))),
        told(snapshot(job("j1", "Aborting"), views=(unread(),))),
    ],
    ids=["empty", "running", "foreign", "unread", "unread-waiting", "unread-acquiring", "unread-aborting"],
)
def test_a_world_at_rest_has_an_empty_plan(world: Snapshot) -> None:
    """Where nothing can or need be done, nothing is planned."""
    assert () == plan(world).actions


# --- fairness (S11), by driving plan() and a database


ARRIVALS = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from(["ann", "bob", "carol"]), st.sampled_from([0, 0, 0, 7])),
    min_size=1,
    max_size=10,
)


@given(arrivals=ARRIVALS)
@example(arrivals=[(0, "ann", 0), (0, "ann", 0), (0, "bob", 0), (1, "carol", 0), (2, "carol", 0)])
def test_starts_are_fair(arrivals: list[tuple[int, str, int]]) -> None:
    """An actor's jobs start in order, and between two starts of one actor each other that waits starts exactly once."""
    jobs, started = starts(arrivals)
    assert {row.id for row in jobs} == set(started)
    for row in jobs:
        for other in jobs:
            earlier = (other.created_at, other.id) < (row.created_at, row.id)
            if (row.actor, row.priority) == (other.actor, other.priority) and earlier:
                assert started[other.id] < started[row.id]
    in_order = sorted(jobs, key=lambda row: started[row.id])
    for index, first in enumerate(in_order):
        rest = in_order[index + 1 :]
        second = next((row for row in rest if row.actor == first.actor), None)
        if second is None or not waits_through(second, first, second, jobs, started):
            continue
        between = [row.actor for row in in_order if started[first.id] < started[row.id] < started[second.id]]
        for actor in {row.actor for row in jobs} - {first.actor}:
            all_the_while = any(row.actor == actor and waits_through(row, first, second, jobs, started) for row in jobs)
            assert not all_the_while or 1 == between.count(actor)


def waits_through(row: Job, first: Job, second: Job, jobs: list[Job], started: dict[str, int]) -> bool:
    """Tell whether the actor of a job could have started one of this priority from the one start to the other."""
    level = {row.priority, first.priority, second.priority}
    own = [each for each in jobs if each.actor == row.actor and each.priority == first.priority]
    span = range(started[first.id], started[second.id] + 1)
    waiting = all(any(each.created_at - NOW <= at <= started[each.id] for each in own) for at in span)
    others = {each.priority for each in jobs if started[each.id] in span}
    return waiting and {first.priority} == level == others


def starts(arrivals: list[tuple[int, str, int]]) -> tuple[list[Job], dict[str, int]]:
    """Let the jobs of one queue come and start, one a pass; return them, and in which pass each took the slot."""
    jobs = [
        job(f"j{n:02}", "Pending", task(), actor=actor, created_at=NOW + at, priority=priority)
        for n, (at, actor, priority) in enumerate(arrivals)
    ]
    store, started = MemoryStore(now=NOW, instance="i"), dict[str, int]()
    for tick in range(len(jobs) * 3 + 12):
        store.now = NOW + tick
        store.jobs |= {row.id: row for row in jobs if row.created_at == store.now}
        for action in plan(rows_of(store)).actions:
            assert write(store, action)
            if isinstance(action, Change) and action.takes_slot:
                started[action.job_id] = tick
        for row in [row for row in store.jobs.values() if row.reason == "Provisioning"]:
            del store.jobs[row.id]
            store.slots = {key: evolve(slot, holder=None) for key, slot in store.slots.items()}
            store.pools.clear()
    return jobs, started


def rows_of(store: MemoryStore) -> Snapshot:
    """Return the snapshot of a database beside an empty cluster."""
    rows = store.read()
    return snapshot(*rows.jobs, now=rows.now, pools=rows.pools, slots=rows.slots, turns=rows.turns)


# --- the brake (R14)


@pytest.mark.parametrize("live_pools", range(41))
def test_brake_holds_above_three_or_thirty_percent_of_pools(live_pools: int) -> None:
    """Up to max(3, 30 %) of our pools lose a lease whose job is gone; one more, and none does, unless allowed (P26)."""
    limit = max(3, live_pools * 3 // 10)
    for count in {limit - 1, limit, limit + 1} & set(range(live_pools + 1)):
        alive = [job(f"a{n}", "Running") for n in range(live_pools - count)]
        gone = [job(f"g{n}", "Running") for n in range(count)]
        ledger = tuple(pool(row) for row in (*alive, *gone))
        world = snapshot(*alive, views=(view(*map(live, ledger), *map(work, alive)),), pools=ledger, later={})
        held = count > limit
        assert (Brake(count, 0, limit, max(3, len(alive) * 3 // 10)) if held else None) == plan(world).brake
        assert (0 if held else count) == swept(world, EndLease)
        assert count == swept(evolve(world, bounds=evolve(EN, allow_mass_delete=True)), EndLease)


@pytest.mark.parametrize("live_works", range(41))
def test_brake_holds_above_three_or_thirty_percent_of_jobs(live_works: int) -> None:
    """The same for Kubernetes Jobs whose job is missing."""
    limit = max(3, live_works * 3 // 10)
    cpu = task("cpu")
    for count in {limit - 1, limit, limit + 1} & set(range(live_works + 1)):
        alive = [job(f"a{n}", "Running", cpu) for n in range(live_works - count)]
        gone = [job(f"g{n}", "Running", cpu) for n in range(count)]
        world = snapshot(*alive, views=(view(*map(work, alive), *map(work, gone)),), later={})
        held = count > limit
        assert (Brake(0, count, 3, limit) if held else None) == plan(world).brake
        assert (0 if held else count) == swept(world, DeleteWork)
        assert count == swept(evolve(world, bounds=evolve(EN, allow_mass_delete=True)), DeleteWork)


def swept(world: Snapshot, kind: type[EndLease] | type[DeleteWork]) -> int:
    """Return how many actions of a kind are planned."""
    return len([action for action in plan(world).actions if isinstance(action, kind)])
