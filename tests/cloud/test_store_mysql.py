"""What only a real server shows: locks of others, lost connections, narrow columns, growing history."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pymysql
import pytest
from attrs import evolve
from database_roles import FALCON, UPSTREAM, Roles
from history import START
from mysql_store import SteeredStore

from falcon_rm.cloud.database import Database, LostRace, Run, parse_url
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.core.actions import NOW, Change, EnsureSlot, FreeSlot, Note
from falcon_rm.core.model import Pool, Slot
from falcon_rm.core.words import Mode
from falcon_rm.ports import StoreDown

pytestmark = pytest.mark.every_server

SPEC = {"image": "busybox", "device_type": "cpu"}

NASTY = "\U0001f680 at\x00 line\n two \ud800"


@pytest.fixture
def store(roles: Roles) -> Iterator[SteeredStore]:
    """A fresh store that waits one second for a lock."""
    steered = SteeredStore.under(roles, timeout=2)
    yield steered
    steered.close_all()


def claim(job_id: str = "j1", version: int = 0) -> Change:
    """Return the claim of the slot c1/2x2x1, with a pool to be made."""
    pool = Pool("c1", f"falcon-{job_id}", job_id, 1, "v7x", "2x2x1", "tpu7x-standard-4t", 1, 4, Mode.ON_DEMAND)
    return Change(
        job_id, version, "Pending", "Waiting", "Pending", "Provisioning", "picked", cluster_id="c1", topology="2x2x1",
        takes_slot="ann", makes=pool, attempt=1, columns={"attempt": 1, "provisioning_at": NOW},
    )  # fmt: skip


def queue(store: SteeredStore, *job_ids: str) -> None:
    """Insert waiting jobs, and their queue's slot."""
    for job_id in job_ids:
        store.insert_job(job_id, SPEC, reason="Waiting", cluster_id="c1", topology="2x2x1")
    store.ensure_slot(EnsureSlot("c1", "2x2x1"))


@contextmanager
def held(store: SteeredStore, sql: str) -> Iterator[None]:
    """Hold the row locks that a statement takes, from another connection."""
    at = store.others.address
    other = pymysql.connect(
        unix_socket=at.unix_socket, host=at.host, port=at.port, user=at.user, password=at.password, database=at.database
    )
    try:
        other.begin()
        with other.cursor() as cursor:
            cursor.execute(sql)
        yield
        other.rollback()
    finally:
        other.close()


def alter(store: SteeredStore, sql: str) -> None:
    """Change the tables by hand."""
    store.others.rows(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM queue_slots WHERE cluster_id = 'c1' AND topology = '2x2x1' FOR UPDATE",
        "SELECT * FROM job WHERE id = 'j1' FOR UPDATE",
        "INSERT INTO node_pools"
        " (cluster_id, name, job_id, attempt, tpu_type, topology, machine_type, hosts, chips, mode)"
        " VALUES ('c1', 'falcon-j1', 'x', 1, 'v7x', '2x2x1', 'm', 1, 4, 'on-demand')",
    ],
    ids=["slot", "job", "pool"],
)
def test_a_lock_held_elsewhere(store: SteeredStore, sql: str) -> None:
    """A claim that meets another's lock is given up whole, and works once the lock is free (P88)."""
    queue(store, "j1")
    before = store.read()
    with held(store, sql):
        assert not store.commit(claim())
        assert before == store.read()
    assert store.commit(claim())
    assert (1, "j1", 1) == (store.row("j1").version, store.read().slots[0].holder, len(store.event_rows()))


def test_two_claim_at_once(roles: Roles, store: SteeredStore) -> None:
    """Of several that make a queue's slot and claim it, one wins; the others lose without an error (P84, P89)."""
    queue(store, *[f"j{n}" for n in range(8)])
    alter(store, "DELETE FROM queue_slots")
    start = threading.Barrier(8)

    def one(number: int) -> bool:
        with MySqlStore(Database(roles.address(FALCON))) as own:
            own.read()
            start.wait(10)
            own.ensure_slot(EnsureSlot("c1", "2x2x1"))
            return own.commit(claim(f"j{number}"))

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(one, range(8)))
    rows = store.read()
    holder = f"j{won.index(True)}"
    assert (1, holder) == (won.count(True), rows.slots[0].holder)
    assert [holder] == [pool.lease for pool in rows.pools]
    assert [holder] == [lease.job_id for lease in store.lease_rows()]


def test_upstream_is_never_in_the_way(roles: Roles, store: SteeredStore) -> None:
    """While passes write, a producer inserts and aborts without meeting a lock (P90)."""
    queue(store, "j1")
    done = threading.Event()

    def produce() -> int:
        upstream = Database(roles.address(UPSTREAM))
        insert = "INSERT INTO job (id, actor, spec) VALUES (%s, 'bob', '{}')"
        ask = "UPDATE job SET status = 'Aborting', aborting_at = NOW(6) WHERE id = %s"
        made = 0
        while not done.is_set():
            for sql in (insert, ask):
                assert upstream.unit(partial(Run.must, sql=sql, arguments=(f"u{made}",)))
            made += 1
        upstream.close()
        return made

    with ThreadPoolExecutor(1) as pool:
        producer = pool.submit(produce)
        for version in range(0, 100, 2):
            to_busy = Change("j1", version, "Pending", "Waiting", "Pending", "ClusterBusy", "")
            back = Change("j1", version + 1, "Pending", "ClusterBusy", "Pending", "Waiting", "")
            assert (True, True) == (store.commit(to_busy), store.commit(back))
            store.read()
        done.set()
        made = producer.result(10)
    assert made > 0
    assert made + 1 == len(store.read().jobs)


def kill(store: SteeredStore) -> None:
    """End the store's connection from the server's side."""
    ((number,),) = store.database.rows("SELECT CONNECTION_ID()")
    store.others.rows(f"KILL {number}")


def test_a_connection_killed_between_calls(store: SteeredStore) -> None:
    """The call that meets the loss says so, the next one has a new connection (P91)."""
    queue(store, "j1")
    kill(store)
    with pytest.raises(StoreDown):
        store.commit(claim())
    assert (0, None) == (store.row("j1").version, store.read().slots[0].holder)
    assert store.commit(claim())


def test_a_connection_killed_inside_a_transaction(store: SteeredStore) -> None:
    """What was written before the loss is rolled back (P88, P91)."""
    queue(store, "j1")

    def work(run: Run) -> None:
        run.must("UPDATE job SET version = 7 WHERE id = 'j1'")
        ((number,),) = run.rows("SELECT CONNECTION_ID()")
        store.others.rows(f"KILL {number}")
        run.must("UPDATE job SET version = 8 WHERE id = 'j1'")

    with pytest.raises(StoreDown):
        store.database.unit(work)
    assert 0 == store.row("j1").version
    assert ("j1",) == tuple(job.id for job in store.read().jobs)


def test_a_statement_killed(store: SteeredStore) -> None:
    """A query that is killed leaves nothing behind, and the next one works."""
    queue(store, "j1")

    def work(run: Run) -> None:
        run.must("UPDATE job SET version = 7 WHERE id = 'j1'")
        run.rows("SELECT nothing FROM job")

    with pytest.raises(StoreDown, match="1054"):
        store.database.unit(work)
    assert 0 == store.row("j1").version


def test_a_loss_found_by_the_rollback(store: SteeredStore) -> None:
    """A race that is lost on a connection that is lost too is just a lost race; the next call works (P91)."""
    queue(store, "j1")

    def work(run: Run) -> None:
        ((number,),) = run.rows("SELECT CONNECTION_ID()")
        store.others.rows(f"KILL {number}")
        raise LostRace

    assert not store.database.unit(work)
    assert store.commit(claim())


def test_a_read_that_meets_a_lock(store: SteeredStore) -> None:
    """A read that cannot be answered in time is no answer, never an empty one."""
    queue(store, "j1")
    lock = "SELECT id FROM job WHERE id = 'j1' FOR UPDATE"
    with held(store, lock), pytest.raises(StoreDown, match="busy"):
        store.database.rows(lock)
    assert (("j1",),) == store.database.rows(lock)


@pytest.mark.parametrize("actor", ["\ud800", "\udcff", "x" * 256])
def test_a_key_that_cannot_be_stored(store: SteeredStore, actor: str) -> None:
    """Half a surrogate, or too long a key, costs that Change alone, and the audit says so (P93)."""
    queue(store, "j1", "j2")
    assert not store.commit(evolve(claim(), takes_slot=actor))
    assert ((0, None), 1) == ((store.row("j1").version, store.read().slots[0].holder), len(store.audit_rows()))
    assert store.commit(claim("j2"))


def test_a_note_that_cannot_be_stored(store: SteeredStore) -> None:
    """A note is for people: if it cannot be kept, the pass goes on."""
    assert not store.note(Note("k" * 33, "job/j1", "text"))
    assert store.note(Note("k", "s" * 300, NASTY))
    assert [("k", 255)] == [(audit.kind, len(audit.subject)) for audit in store.audit_rows()]


def test_an_error_of_our_own_keeps_nothing(store: SteeredStore) -> None:
    """An exception inside a unit rolls back what it wrote (P88)."""
    queue(store, "j1")

    def work(run: Run) -> None:
        run.must("UPDATE job SET version = 7 WHERE id = 'j1'")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.database.unit(work)
    assert 0 == store.row("j1").version


def test_a_database_that_is_away() -> None:
    """Nobody listens: every call says so, and none shows the password (P92)."""
    store = MySqlStore.at("mysql://falcon:hunter2@127.0.0.1:1/falcon", timeout=1)
    for call in (store.read, lambda: store.commit(claim()), lambda: store.statuses(["j1"])):
        with pytest.raises(StoreDown) as caught:
            call()
        assert "hunter2" not in f"{caught.value}{store!r}"


def test_a_wrong_password(database: str) -> None:
    """The server's refusal is told without the password."""
    address = parse_url(database, password="hunter2")
    with pytest.raises(StoreDown, match="1045") as caught:
        MySqlStore(Database(address)).read()
    assert "hunter2" not in str(caught.value)


def test_a_database_without_tables(empty_database: str) -> None:
    """Tables that are not there are an error that names them, not an empty answer."""
    with pytest.raises(StoreDown, match="falcon_meta"), MySqlStore.at(empty_database) as store:
        store.read()


@pytest.mark.parametrize(
    "column",
    ["VARCHAR(20)", "TEXT CHARACTER SET utf8mb3", "TEXT CHARACTER SET latin1"],
)
def test_a_message_that_cannot_be_stored(store: SteeredStore, column: str) -> None:
    """The status is stored without it, the event keeps it, and the audit says why (P93)."""
    queue(store, "j1")
    alter(store, f"ALTER TABLE job MODIFY message {column} NULL")
    failed = Change("j1", 0, "Pending", "Waiting", "Failed", "JobFailed", "x", message=f"队列 {NASTY} {'x' * 50}")
    assert store.commit(failed)
    row = store.row("j1")
    assert ("Failed", "JobFailed", "", 1) == (row.status, row.reason, row.message, row.version)
    assert [f"队列 \U0001f680 at line two \\ud800 {'x' * 50}"] == [event.message for event in store.event_rows()]
    assert [("unstorable", "job/j1")] == [(audit.kind, audit.subject) for audit in store.audit_rows()]


def test_only_a_message_that_cannot_be_stored(store: SteeredStore) -> None:
    """Where nothing but the message would change, nothing does: no progress, so no hurry (P93)."""
    queue(store, "j1")
    alter(store, "ALTER TABLE job MODIFY message VARCHAR(20) NULL")
    for _ in range(2):
        assert not store.commit(Change("j1", 0, "Pending", "Waiting", "Pending", "Waiting", "", message="x" * 50))
    assert (0, 1) == (store.row("j1").version, len(store.audit_rows()))


def test_a_row_that_cannot_be_stored_costs_itself_alone(store: SteeredStore) -> None:
    """A column too narrow for anything leaves that row, whole, and the next one goes on (P98)."""
    queue(store, "j1", "j2")
    alter(store, "ALTER TABLE job MODIFY outcome VARCHAR(4) NULL")
    ends: dict[str, Any] = {"columns": {"outcome": "Succeeded"}, "message": "m"}
    assert not store.commit(Change("j1", 0, "Pending", "Waiting", "Pending", "Waiting", "", **ends))
    assert store.commit(Change("j2", 0, "Pending", "Waiting", "Failed", "Timeout", ""))
    assert ((0, None), (1, "Failed")) == (
        (store.row("j1").version, store.row("j1").outcome), (store.row("j2").version, store.row("j2").status)
    )  # fmt: skip


def test_a_cluster_row_of_nonsense(store: SteeredStore) -> None:
    """A status that nobody knows reads as offline; the other clusters stay as they are (P81)."""
    alter(store, "ALTER TABLE clusters MODIFY status VARCHAR(16) NOT NULL")
    sql = "INSERT INTO clusters (id, name, project, location, tpu_type, status) VALUES (%s, %s, 'p', 'l', 'v9', %s)"
    for name, status in (("a", "resting"), ("b", "active"), ("c", "")):
        store.others.unit(lambda run, values=(name, name, status): run.must(sql, values))  # type: ignore[misc]
    assert ["offline", "active", "offline"] == [cluster.status for cluster in store.read().clusters]


def test_through_a_view(store: SteeredStore) -> None:
    """An updatable view named job does as well as a table."""
    alter(store, "RENAME TABLE job TO upstream_job")
    alter(store, "CREATE VIEW job AS SELECT * FROM upstream_job")
    queue(store, "j1")
    assert store.commit(claim())
    assert not store.free_slot(FreeSlot("c1", "2x2x1", "j1"))
    assert (Slot("c1", "2x2x1", "j1", START),) == store.read().slots
    assert 1 == len(store.event_rows())


def test_trailing_spaces_make_no_other_actor(store: SteeredStore) -> None:
    """The database takes 'ann ' and 'ann' for one, so the code does too (P97)."""
    store.insert_job("j1", SPEC, actor="ann ")
    store.insert_job("j2", SPEC, actor="ann")
    assert ["ann", "ann"] == [job.actor for job in store.read().jobs]


def test_sessions_are_set_by_ourselves(store: SteeredStore) -> None:
    """Time zone, isolation, strictness and waits never depend on the server's defaults."""
    settings = store.database.rows("SELECT @@time_zone, @@sql_mode, @@innodb_lock_wait_timeout, @@autocommit")
    assert (("+00:00", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION", 1, 1),) == settings
    try:
        isolation = store.database.rows("SELECT @@transaction_isolation")
    except StoreDown:  # what MariaDB calls it
        isolation = store.database.rows("SELECT @@tx_isolation")
    assert (("READ-COMMITTED",),) == isolation


HISTORY = """
    INSERT INTO {table} SELECT {columns} FROM
      (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n AS n
       FROM digits a, digits b, digits c, digits d) numbers, {table} one WHERE one.{key} = '{like}'
"""


def examined(store: SteeredStore) -> int:
    """Return how many rows the server looks at for one read."""

    def count() -> int:
        status = store.database.rows("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(
            int(str(value)) for name, value in status if "rnd" not in str(name) or str(name).endswith("rnd_next")
        )

    store.read()
    before = count()
    store.read()
    return count() - before


def test_history_is_not_read(store: SteeredStore) -> None:
    """Ten thousand rows of each kind of history add nothing to what a read looks at (P96)."""
    queue(store, *[f"j{n}" for n in range(20)], "old")
    for job_id in ("j1", "old"):
        assert store.commit(claim(job_id))
        ends = Change(
            job_id, 1, "Pending", "Provisioning", "Running", None, "", cluster_id="c1", topology="2x2x1",
            frees_slot=True,
        )  # fmt: skip
        assert store.commit(ends)
    store.set_status("old", "Failed")
    alter(store, "UPDATE node_pools SET state = 'Deleted', lease = NULL WHERE job_id = 'old'")
    alter(store, "UPDATE pool_leases SET until_at = NOW(6), ended = 'released' WHERE job_id = 'old'")
    before = examined(store)
    alter(store, "CREATE TABLE digits (n INT)")
    alter(store, "INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
    for table, key, like, changed in (
        ("job", "id", "old", {"id": "CONCAT('old-', n)"}),
        ("node_pools", "job_id", "old", {"name": "CONCAT('old-', n)"}),
        ("pool_leases", "job_id", "old", {"id": "n + 1000", "job_id": "CONCAT('old-', n)"}),
        ("job_events", "job_id", "old", {"id": "2 * n + 1000 + (one.id % 2)", "job_id": "CONCAT('old-', n)"}),
    ):
        names = store.others.rows(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = DATABASE() AND table_name = %s ORDER BY ordinal_position",
            (table,),
        )
        columns = ", ".join(changed.get(str(name), f"one.{name}") for (name,) in names)
        alter(store, HISTORY.format(table=table, columns=columns, key=key, like=like))
    assert examined(store) <= before + 50


def test_counters_that_hold_null(store: SteeredStore) -> None:
    """Where upstream's table lets a counter be NULL it reads as 0, and the row is written like any other (P95)."""
    queue(store, "j1", "j2")
    counters = ("priority", "attempt", "pool_failures", "losses", "version")
    alter(store, "ALTER TABLE job " + ", ".join(f"MODIFY {name} BIGINT NULL" for name in counters))
    store.edit_job("j1", **dict.fromkeys(counters))
    empty, zero = store.read().jobs
    assert evolve(zero, id="j1") == empty
    assert store.commit(Change("j1", 0, "Pending", "Waiting", "Pending", "ClusterBusy", ""))
    assert [0] == [event.attempt for event in store.event_rows()]
    assert store.commit(evolve(claim(version=1), from_reason="ClusterBusy"))
    assert (2, 1, "j1") == (store.row("j1").version, store.row("j1").attempt, store.read().slots[0].holder)
