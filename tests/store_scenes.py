"""
Every use of every method of the store, as scenes: how the rows stand before it, and the call.

1. A scene is played on rows of its own: all that it touches bears its key, so that many are played in one database.
2. What a scene did is everything that the tables hold under its key, with the key itself left out: two plays of one
   scene are equal.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import frozen
from mysql_store import SteeredStore

from falcon_rm.cloud.database import Database
from falcon_rm.core.actions import (
    NOW,
    Change,
    CreatePool,
    EndLease,
    EnsureSlot,
    EnterPool,
    FreeSlot,
    GiveUp,
    MarkPool,
    Note,
    RecordHealth,
    ResumeWork,
    RetirePool,
    SubmitWork,
)
from falcon_rm.core.model import Cluster, Pool
from falcon_rm.core.words import ErrorKind, Mode, PoolState

SPEC = {"image": "busybox", "device_type": "cpu"}
CLUSTER = Cluster("c1", "alpha", "project-1", "us-central1", "v7x")
FAULT = (ErrorKind.CAPACITY, "no more")
ANSWER = ("full", "配额")
"""What only a call brings, never a stage, is not in ASCII."""

State = Mapping[str, list[dict[str, str]]]

WHERE = {
    "job": "id = '{key}'",
    "queue_slots": "cluster_id = 'c1' AND topology = '{key}'",
    "queue_turns": "cluster_id = 'c1' AND topology = '{key}'",
    "node_pools": "cluster_id = 'c1' AND name = 'falcon-{key}'",
    "pool_leases": "job_id = '{key}'",
    "workloads": "job_id = '{key}'",
    "job_events": "job_id = '{key}'",
    "audit_events": "subject IN ('job/{key}', 'slot/c1/{key}', 'pool/c1/falcon-{key}', 'work/c1/falcon-{key}',"
    " 'cluster/{key}', 'note/{key}')",
    "cluster_health": "cluster_id = '{key}'",
}
"""Where a scene's rows are, by table."""

CHANCE = {("pool_leases", "id"), ("job_events", "id"), ("audit_events", "id"), ("audit_events", "digest")}
"""Columns that differ from play to play."""


def state(database: Database, key: str) -> State:
    """Return what the tables hold under a key; all of it is asked for at once."""
    names = {table: columns(database.address.database, table, database) for table in WHERE}
    asked = [
        f"SELECT '{table}', JSON_ARRAY({', '.join(names[table])}) FROM {table} WHERE {where.format(key=key)}"
        for table, where in WHERE.items()
    ]
    found: dict[str, list[dict[str, str]]] = {table: [] for table in WHERE}
    for table, values in database.rows(" UNION ALL ".join(asked)):
        row = zip(names[str(table)], json.loads(str(values)), strict=True)
        found[str(table)].append({name: str(value).replace(key, "KEY") for name, value in row})
    return found


_COLUMNS: dict[tuple[str, str], list[str]] = {}


def columns(name: str, table: str, database: Database) -> list[str]:
    """Return a table's columns but those of CHANCE."""
    if (name, table) not in _COLUMNS:
        sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
        found = [str(column) for (column,) in database.rows(f"{sql} ORDER BY ordinal_position", (name, table))]
        _COLUMNS[name, table] = [column for column in found if (table, column) not in CHANCE]
    return _COLUMNS[name, table]


def pool(key: str) -> Pool:
    """Return the pool of a key."""
    return Pool("c1", f"falcon-{key}", key, 1, "v7x", key, "tpu7x-standard-4t", 1, 4, Mode.ON_DEMAND)


def change(key: str, version: int, old: str, new: str, **more: Any) -> Change:
    """Return a Change from state to state, each Status or Status/Reason."""
    moved = [(status, reason or None) for status, _, reason in (old.partition("/"), new.partition("/"))]
    return Change(key, version, *moved[0], *moved[1], "why", cluster_id="c1", topology=key, **more)


def claim(key: str) -> Change:
    """Return the claim of the slot, with a pool to be made."""
    named = {"attempt": 1, "node_pool_name": f"falcon-{key}", "provisioning_at": NOW}
    return change(
        key, 0, "Pending/Waiting", "Pending/Provisioning", message="made", takes_slot="ann", makes=pool(key), attempt=1,
        exp_id="e", owner="o", columns=named,
    )  # fmt: skip


def give_up(key: str, *, keep: bool, version: int = 1) -> Change:
    """Return the way back to Waiting, the pool kept or not."""
    end = GiveUp(f"falcon-{key}", keep, "capacity", FAULT)
    return change(
        key, version, "Pending/Provisioning", "Pending/Waiting", frees_slot=True, gives_up=end, message="back"
    )


def create(key: str) -> CreatePool:
    """Return the call that makes the pool."""
    return CreatePool(CLUSTER, "us-central1-a", pool(key), key, {}, {}, 600)


def submit(key: str) -> SubmitWork:
    """Return the call that submits the Job."""
    return SubmitWork(CLUSTER, key, 1, "Pending", 1, f"falcon-{key}", {}, None, dispatched=True)


def resume(key: str) -> ResumeWork:
    """Return the call that lets the Job go."""
    return ResumeWork(CLUSTER, key, 1, f"falcon-{key}", "uid-1")


def nothing(store: SteeredStore, key: str) -> None:
    """Leave the tables empty."""


def waiting(store: SteeredStore, key: str) -> None:
    """Let a job wait at its slot."""
    store.insert_job(key, SPEC, reason="Waiting", cluster_id="c1", topology=key)
    assert store.ensure_slot(EnsureSlot("c1", key))


def claimed(store: SteeredStore, key: str) -> None:
    """Let it have slot and pool."""
    waiting(store, key)
    assert store.commit(claim(key))


def submitted(store: SteeredStore, key: str) -> None:
    """Let its Job be about to be submitted."""
    claimed(store, key)
    assert store.work_requested(submit(key))


def running(store: SteeredStore, key: str) -> None:
    """Let it run."""
    submitted(store, key)
    assert store.commit(change(key, 1, "Pending/Provisioning", "Running", frees_slot=True, columns={"started_at": NOW}))


def freed(store: SteeredStore, key: str) -> None:
    """Let it wait again, its old pool free."""
    claimed(store, key)
    assert store.commit(give_up(key, keep=True))


def left(store: SteeredStore, key: str) -> None:
    """Let it wait again, its old pool on its way out."""
    claimed(store, key)
    assert store.commit(give_up(key, keep=False))


def gone(store: SteeredStore, key: str) -> None:
    """Let its row be deleted while it holds slot and pool."""
    claimed(store, key)
    store.delete_row(key)


@frozen
class Scene:
    """One use of a method: the rows before it, the call, and what kind of call it is."""

    stage: Callable[[SteeredStore, str], None]
    act: Callable[[Any, str], Any]
    reads: bool = False
    status: bool = False  # a Change that is stored without its message if need be


def _commit(made: Callable[[str], Change]) -> Callable[[Any, str], Any]:
    return lambda store, key: store.commit(made(key))


def _retire(old: PoolState, new: PoolState) -> Callable[[Any, str], Any]:
    return lambda store, key: store.retire_pool(RetirePool("c1", f"falcon-{key}", old, new, "没有了"))


def _over(key: str) -> Change:
    end = GiveUp(f"falcon-{key}", False, "released")
    ended = {"outcome": "JobFailed", "finished_at": NOW, "retry_at": 1_700_000_000.5}
    return change(key, 2, "Running", "Failed/JobFailed", message="退出码 1", gives_up=end, columns=ended)


def _taken(key: str) -> Change:
    named = {"attempt": 2, "node_pool_name": f"falcon-{key}", "provisioning_at": NOW}
    return change(
        key, 2, "Pending/Waiting", "Pending/Provisioning", takes_slot="ann", takes=f"falcon-{key}", attempt=2,
        message="taken over", columns=named,
    )  # fmt: skip


SCENES: Mapping[str, Scene] = {
    "read": Scene(waiting, lambda store, key: store.read(), reads=True),
    "statuses": Scene(waiting, lambda store, key: store.statuses([key, "x"]), reads=True),
    "pools_named": Scene(claimed, lambda store, key: store.pools_named("c1", [f"falcon-{key}"]), reads=True),
    "commit a claim": Scene(waiting, _commit(claim), status=True),
    "commit a take-over": Scene(freed, _commit(_taken), status=True),
    "commit the way back": Scene(claimed, _commit(partial(give_up, keep=False)), status=True),
    "commit a start": Scene(
        submitted,
        _commit(lambda key: change(
            key, 1, "Pending/Provisioning", "Running", frees_slot=True, message="运行中", columns={"started_at": NOW}
        )),
        status=True,
    ),
    "commit an end": Scene(running, _commit(_over), status=True),
    "commit a message": Scene(
        waiting, _commit(lambda key: change(key, 0, "Pending/Waiting", "Pending/Waiting", message="队列位置 #3"))
    ),
    "ensure_slot": Scene(nothing, lambda store, key: store.ensure_slot(EnsureSlot("c1", key))),
    "free_slot": Scene(gone, lambda store, key: store.free_slot(FreeSlot("c1", key, key))),
    "enter_pool": Scene(nothing, lambda store, key: store.enter_pool(EnterPool(pool(key)))),
    "mark_pool": Scene(
        claimed, lambda store, key: store.mark_pool(MarkPool("c1", f"falcon-{key}", seen=True, up=True, ready=True))
    ),
    "retire_pool to Deleting": Scene(freed, _retire(PoolState.ACTIVE, PoolState.DELETING)),
    "retire_pool to Deleted": Scene(left, _retire(PoolState.DELETING, PoolState.DELETED)),
    "retire_pool, lost": Scene(freed, _retire(PoolState.ACTIVE, PoolState.DELETED)),
    "end_lease": Scene(
        gone, lambda store, key: store.end_lease(EndLease("c1", f"falcon-{key}", key, keep=True, why="没有了"))
    ),
    "record_health": Scene(nothing, lambda store, key: store.record_health(RecordHealth(key, "没有", "z"))),
    "note": Scene(nothing, lambda store, key: store.note(Note("kind", f"note/{key}", "字段"))),
    "pool_requested": Scene(claimed, lambda store, key: store.pool_requested(create(key))),
    "pool_answered": Scene(claimed, lambda store, key: store.pool_answered(create(key), ANSWER)),
    "pool_answered, accepted": Scene(claimed, lambda store, key: store.pool_answered(create(key), None)),
    "delete_answered": Scene(left, lambda store, key: store.delete_answered("c1", f"falcon-{key}", ("busy", "稍后"))),
    "work_requested": Scene(claimed, lambda store, key: store.work_requested(submit(key))),
    "work_submitted": Scene(submitted, lambda store, key: store.work_submitted(submit(key), "uid-1")),
    "work_refused": Scene(submitted, lambda store, key: store.work_refused(submit(key), ANSWER)),
    "work_resumed": Scene(submitted, lambda store, key: store.work_resumed(resume(key))),
    "work_stopping": Scene(submitted, lambda store, key: store.work_stopping("c1", f"falcon-{key}")),
}  # fmt: skip
"""Every method of ports.Store, in every way that makes other statements of it."""
