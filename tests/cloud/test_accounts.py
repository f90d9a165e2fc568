"""The ledger as lives of pools: what each store writes for it, and what is read."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import evolve
from database_roles import Roles
from database_servers import servers
from history import START
from memory_store import MemoryStore
from mysql_store import SteeredStore

from falcon_rm.cloud.accounts import read_lives
from falcon_rm.core.actions import (
    NOW,
    Change,
    CreatePool,
    EnsureSlot,
    EnterPool,
    GiveUp,
    MarkPool,
    RetirePool,
)
from falcon_rm.core.model import Cluster, Pool
from falcon_rm.core.usage import EVER, Lease, Life, Window
from falcon_rm.core.words import Mode, PoolState

CLUSTER = Cluster("c1", "alpha", "project-1", "us-central1", "v7x")
POOL = Pool("c1", "falcon-j1", "j1", 1, "v7x", "2x2x1", "tpu7x-standard-4t", 1, 4, Mode.RESERVATION, "r")
SPEC: dict[str, object] = {"image": "busybox", "device_type": "cpu"}

Store = MemoryStore | SteeredStore


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask every question of the store in memory and of each server."""
    if "store" in metafunc.fixturenames:
        metafunc.parametrize("database_server", ["memory", *servers()], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, database_server: str) -> Iterator[Store]:
    """A store of either kind with a cluster, its clock at START."""
    made: Store = MemoryStore()
    if database_server != "memory":
        made = SteeredStore.under(request.getfixturevalue("roles"))
    made.add_cluster(CLUSTER)
    yield made
    if isinstance(made, SteeredStore):
        made.close_all()


def lives(store: Store, window: Window = EVER) -> tuple[Life, ...]:
    """Return the lives of pools as a store has them."""
    return store.lives() if isinstance(store, MemoryStore) else read_lives(store.others, window)


def change(version: int, before: str, after: str, **fields: Any) -> Change:
    """Return a Change of j1 from Status/Reason to Status/Reason."""
    (was, _, why), (then, _, reason) = before.partition("/"), after.partition("/")
    return Change("j1", version, was, why or None, then, reason or None, "why", "c1", "2x2x1", **fields)


def live(store: Store, *, keep: bool) -> None:
    """Let j1 make a pool, run on it and give it up, ten seconds a step; then its row is deleted."""
    store.insert_job("j1", SPEC, reason="Waiting", cluster_id="c1", topology="2x2x1")
    store.ensure_slot(EnsureSlot("c1", "2x2x1"))
    claim = change(
        0, "Pending/Waiting", "Pending/Provisioning", takes_slot="ann", makes=POOL, attempt=1, exp_id="exp"
    )  # fmt: skip
    run = change(1, "Pending/Provisioning", "Running", frees_slot=True, columns={"started_at": NOW})
    ended = change(2, "Running", "Succeeded", gives_up=GiveUp("falcon-j1", keep, "released"))
    mark = MarkPool("c1", "falcon-j1", seen=True, up=True, ready=True)
    steps: tuple[Callable[[], bool], ...] = (
        lambda: store.commit(claim),
        lambda: store.pool_requested(CreatePool(CLUSTER, "us-central1-a", POOL, "j1", {}, {}, 600)),
        lambda: store.mark_pool(mark),
        lambda: store.commit(run),
        lambda: store.commit(ended),
    )
    for step in steps:
        assert step()
        store.now += 10
    store.delete_row("j1")


EXPECTED = Life(
    "alpha", "falcon-j1", "2x2x1", 4, "reservation", "r", START + 10, START + 20,
    leases=(Lease("j1", "ann", "exp", START, START + 30, START + 40),),
)  # fmt: skip


def test_a_pool_given_up(store: Store) -> None:
    """Its times are those of the steps: running with the job, deleting with the lease, deleted with the row."""
    live(store, keep=False)
    store.retire_pool(RetirePool("c1", "falcon-j1", PoolState.DELETING, PoolState.DELETED, "gone"))
    assert (evolve(EXPECTED, deleting_at=START + 40, deleted_at=START + 50),) == lives(store)


def test_a_pool_kept_and_swept(store: Store) -> None:
    """A pool that stays free is on its way out only when it is retired."""
    live(store, keep=True)
    store.retire_pool(RetirePool("c1", "falcon-j1", PoolState.ACTIVE, PoolState.DELETING, "nobody"))
    assert (evolve(EXPECTED, deleting_at=START + 50),) == lives(store)


def test_a_pool_that_was_entered(store: Store) -> None:
    """It counts from when it was seen; one that was only written down does not."""
    store.enter_pool(EnterPool(evolve(POOL, name="falcon-j9")))
    store.insert_job("j1", SPEC, reason="Waiting", cluster_id="c1", topology="2x2x1")
    assert store.commit(change(0, "Pending/Waiting", "Pending/Provisioning", makes=POOL))
    assert [("falcon-j9", None, START)] == [(life.pool, life.requested_at, life.seen_at) for life in lives(store)]


@pytest.mark.every_server
@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (EVER, 1),
        (Window(START + 49, None), 1),
        (Window(START + 51, None), 0),
        (Window(None, START + 11), 1),
        (Window(None, START + 9), 0),
        (Window(START + 20, START + 30), 1),
    ],
)
def test_only_what_the_window_needs_is_read(roles: Roles, window: Window, expected: int) -> None:
    """A pool that was gone before the window, or came after it, is not read, nor are its leases."""
    store = SteeredStore.under(roles)
    store.add_cluster(CLUSTER)
    live(store, keep=False)
    store.retire_pool(RetirePool("c1", "falcon-j1", PoolState.DELETING, PoolState.DELETED, "gone"))
    assert expected == len(lives(store, window))
    store.close_all()
