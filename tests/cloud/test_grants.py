"""The two database roles of sql/grants.sql: they allow all that is done under them, and each right is needed."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest
from attrs import evolve, frozen
from database_roles import FALCON, UPSTREAM, Roles, statements

from falcon_rm.cloud import people, present
from falcon_rm.cloud.database import Database
from falcon_rm.cloud.schema import check
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.cloud.transaction import COLUMNS
from falcon_rm.core.actions import (
    NOW,
    Change,
    CreatePool,
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
from falcon_rm.overview import Wanted
from falcon_rm.ports import StoreDown
from falcon_rm.submission import NewJob

pytestmark = pytest.mark.every_server

FAULT = (ErrorKind.CAPACITY, "no more")
CLUSTER = Cluster("c1", "alpha", "project-1", "us-central1", "v7x")
NUMBERS = {"attempt", "pool_failures", "losses"}
Steps = Mapping[str, Callable[[], object]]


@frozen
class Right:
    """One right of a role: on a table, or on one column of it."""

    verb: str
    table: str
    role: str
    column: str | None = None

    def __str__(self) -> str:
        """Return it as GRANT and REVOKE have it."""
        return f"{self.verb}{f' ({self.column})' if self.column else ''} ON {self.table}"


def rights() -> Iterator[Right]:
    """Yield the rights of grants.sql one by one."""
    for statement in statements():
        found = re.fullmatch(r"GRANT (.+) ON (\w+) TO (\w+)", statement)
        if found is None:
            continue
        what, table, role = found.groups()
        for verb, columns in re.findall(r"(\w+)(?: \(([^)]+)\))?", what):
            for column in re.findall(r"\w+", columns) or [None]:
                yield Right(verb, table, role, column)


def store_of(roles: Roles, role: str) -> MySqlStore:
    """Return the store as a user who has nothing but a role."""
    return MySqlStore(Database(roles.address(role)))


def controller(store: MySqlStore, key: str) -> Steps:
    """Return all that the controller does, on a job and in a queue of that name."""
    pool = Pool("c1", f"falcon-{key}", key, 1, "v7x", key, "tpu7x-standard-4t", 1, 4, Mode.ON_DEMAND)
    columns = {name: NOW if name.endswith("_at") else 1 if name in NUMBERS else None for name in COLUMNS}
    place = {"cluster_id": "c1", "topology": key}
    claim = Change(
        key, 0, "Pending", None, "Pending", "Provisioning", "picked", message="m", takes_slot="ann", makes=pool,
        attempt=1, columns={**columns, **place}, **place,  # type: ignore[arg-type]
    )  # fmt: skip
    over = Change(
        key, 2, "Pending", "Provisioning", "Pending", "Waiting", "over", frees_slot=True,
        gives_up=GiveUp(pool.name, False, "capacity", FAULT), **place,  # type: ignore[arg-type]
    )  # fmt: skip
    create = CreatePool(CLUSTER, "us-central1-a", pool, key, {}, {}, 600)
    submit = SubmitWork(CLUSTER, key, 1, "Pending", 1, pool.name, {}, None, dispatched=True)
    row = {"project": "p", "location": "l", "tpu_type": "v7x"}
    return {
        "check": lambda: check(store.database) == (),
        "read": store.read,
        "statuses": lambda: store.statuses([key]),
        "ensure_slot": lambda: store.ensure_slot(EnsureSlot("c1", key)),
        "claim": lambda: store.commit(claim),
        "free_slot": lambda: not store.free_slot(FreeSlot("c1", key, key)),
        "pool_requested": lambda: store.pool_requested(create),
        "pool_answered": lambda: store.pool_answered(create, FAULT),
        "mark_pool": lambda: store.mark_pool(MarkPool("c1", pool.name, seen=True)),
        "work_requested": lambda: store.work_requested(submit),
        "work_submitted": lambda: store.work_submitted(submit, "uid"),
        "work_resumed": lambda: store.work_resumed(ResumeWork(CLUSTER, key, 1, pool.name, "uid")),
        "work_stopping": lambda: store.work_stopping("c1", pool.name),
        "give_up": lambda: store.commit(over),
        "retire_pool": lambda: store.retire_pool(
            RetirePool("c1", pool.name, PoolState.DELETING, PoolState.DELETED, "gone")
        ),
        "enter_pool": lambda: store.enter_pool(EnterPool(evolve(pool, name=f"found-{key}", found=True))),
        "record_health": lambda: store.record_health(RecordHealth("c1", key, None)),
        "note": lambda: store.note(Note("kind", key, "text")),
        "add_cluster": partial(people.add_cluster, store.database, key, row),
        "set_cluster": partial(people.set_cluster, store.database, key, {"status": "maintenance"}),
        "move_cluster": lambda: people.move_cluster(
            store.database, people.read_cluster(store.database, key), {"location": "elsewhere"}
        ),
        "write_off_strays": lambda: people.write_off_strays(store.database, "c1"),
        "remove_cluster": lambda: people.remove_cluster(store.database, people.read_cluster(store.database, key)),
        "present": lambda: present.read(store.database, Wanted(), None),
        "audit": lambda: store.database.rows("SELECT kind, subject, text FROM audit_events"),
    }


def upstream(store: MySqlStore, key: str) -> Steps:
    """Return what upstream does, and whoever submits and aborts."""
    return {
        "submit": partial(people.submit, store.database, [NewJob(key, "ann", "{}", "n", 3, 60, "a/b")]),
        "abort": partial(people.abort, store.database, key),
        "delete": lambda: store.database.unit(lambda run: run.must("DELETE FROM job WHERE id = %s", (key,))),
    }


def take(roles: Roles, role: str, key: str) -> tuple[str, str]:
    """Do all that a role does, on a new job; return at which step a right was missing, and what was said."""
    if role == FALCON:
        insert = "INSERT INTO job (id, actor, spec) VALUES (%s, 'ann', '{}')"
        roles.administrator.unit(lambda run: run.must(insert, (key,)))
    with store_of(roles, role) as store:
        for name, step in (controller if role == FALCON else upstream)(store, key).items():
            try:
                done = step()
            except StoreDown as error:
                return name, str(error)
            assert done is not False, name
    return "", ""


STEPS = {
    "SELECT": {
        "job": "check", "falcon_meta": "check", "job_events": "move_cluster", "audit_events": "audit",
        **dict.fromkeys(
            ["clusters", "cluster_health", "queue_slots", "queue_turns", "node_pools", "pool_leases", "workloads"],
            "read",
        ),
    },
    "INSERT": {
        "clusters": "add_cluster", "cluster_health": "record_health", "queue_slots": "ensure_slot",
        "workloads": "work_requested",
        **dict.fromkeys(["queue_turns", "node_pools", "pool_leases", "job_events", "audit_events"], "claim"),
    },
    "UPDATE": {
        "clusters": "set_cluster", "cluster_health": "record_health", "node_pools": "pool_requested",
        "pool_leases": "claim", "workloads": "work_requested",
        **dict.fromkeys(["job", "queue_slots", "queue_turns"], "claim"),
    },
    "DELETE": {
        "cluster_health": "move_cluster",
        **dict.fromkeys(["clusters", "queue_slots", "queue_turns"], "remove_cluster"),
    },
}  # fmt: skip
"""At which of the controller's steps each of its rights is missed."""

UPSTREAM_STEPS = {"SELECT": "abort", "INSERT": "submit", "UPDATE": "abort", "DELETE": "delete"}


def test_the_roles_suffice(roles: Roles) -> None:
    """Every transaction and every read of either side works under its role alone."""
    assert ("", "") == take(roles, FALCON, "j1")
    assert ("", "") == take(roles, UPSTREAM, "j2")


def test_every_right_is_needed(roles: Roles) -> None:
    """With any one right taken away, the statement that needs it fails, and says which one is missing."""
    for number, right in enumerate(rights()):
        expected = STEPS[right.verb][right.table] if right.role == FALCON else UPSTREAM_STEPS[right.verb]
        roles.run(f"REVOKE {right} FROM {right.role}")
        step, said = take(roles, right.role, f"j{number}")
        roles.run(f"GRANT {right} TO {right.role}")
        told = (f"{right.verb} command denied" in said or "SELECT with locking clause" in said, right.table in said)
        assert (str(right), expected, (True, True)) == (str(right), step, told), said
        assert right.column is None or f"column '{right.column}'" in said
    assert 64 == number + 1


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        (FALCON, "UPDATE job SET priority = 1"),
        (FALCON, "UPDATE job SET aborting_at = NOW(6)"),
        (FALCON, "INSERT INTO job (id, actor, spec) VALUES ('j2', 'ann', '{}')"),
        (FALCON, "DELETE FROM job"),
        (FALCON, "DELETE FROM node_pools"),
        (FALCON, "UPDATE job_events SET why = ''"),
        (FALCON, "UPDATE falcon_meta SET value = ''"),
        (FALCON, "DROP TABLE job"),
        (UPSTREAM, "UPDATE job SET version = 1"),
        (UPSTREAM, "UPDATE job SET message = ''"),
        (UPSTREAM, "INSERT INTO job (id, actor, spec, version) VALUES ('j2', 'ann', '{}', 1)"),
        (UPSTREAM, "SELECT * FROM node_pools"),
    ],
)
def test_a_role_does_no_more(roles: Roles, role: str, statement: str) -> None:
    """Neither side may touch what is the other's, and history is written once."""
    with store_of(roles, role) as store, pytest.raises(StoreDown, match=r"^114[23]: "):
        store.database.unit(lambda run: run.must(statement))
