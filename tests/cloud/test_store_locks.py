"""Locks, deadlocks and kills that the server makes itself, met by every method of the store (proof.md R9)."""

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest
from store_scenes import SCENES, WHERE
from store_stage import PATIENCE, Play, Recorded, Stage, at_once, becomes, down, lost, session

pytestmark = pytest.mark.every_server

Proof = Callable[[int, int], None]
Record = Mapping[str, Recorded]

TABLES = (*WHERE, "clusters", "falcon_meta")
COUNTED = ("job_events", "pool_leases")
"""
Tables that are written by INSERT ... SELECT. Such a statement keeps the table's counter while it waits, and MariaDB
tells those behind it 1467: no lost race, the database counts as down. So here only their updates are made to wait.
"""

SLOT = "SELECT holder FROM queue_slots WHERE cluster_id = 'c1' AND topology = '{key}' FOR UPDATE"
JOB = "SELECT id FROM job WHERE id = '{key}' FOR UPDATE"
POOL = "SELECT name FROM node_pools WHERE cluster_id = 'c1' AND name = 'falcon-{key}' FOR UPDATE"
LEASE = "SELECT id FROM pool_leases WHERE cluster_id = 'c1' AND pool = 'falcon-{key}' FOR UPDATE"
WORK = "SELECT name FROM workloads WHERE cluster_id = 'c1' AND name = 'falcon-{key}' FOR UPDATE"

CROSSED = [
    ("commit a claim", SLOT, JOB),
    ("commit a take-over", SLOT, JOB),
    ("commit a take-over", JOB, POOL),
    ("commit a take-over", SLOT, POOL),
    ("commit the way back", SLOT, JOB),
    ("commit the way back", JOB, POOL),
    ("commit the way back", POOL, LEASE),
    ("commit a start", SLOT, JOB),
    ("commit an end", JOB, POOL),
    ("commit an end", POOL, LEASE),
    ("end_lease", POOL, LEASE),
    ("work_submitted", JOB, WORK),
]
"""Two rows that a scene locks, in its order: who takes them the other way round is in a deadlock with it."""


def touches(recorded: Recorded, table: str) -> bool:
    """Return whether a scene's statements name a table."""
    return any(re.search(rf"\b{table}\b", each) for each in recorded.statements)


def locks(recorded: Recorded, table: str) -> bool:
    """Return whether a scene locks rows of a table, or writes it."""
    verbs = "UPDATE" if table in COUNTED else "INSERT INTO|UPDATE"
    write = rf"({verbs})\s+{table}\b|\b{table}\b.*FOR UPDATE"
    return any(re.search(write, each, re.DOTALL) for each in recorded.statements)


def by_table(record: Record, tables: tuple[str, ...], meets: Callable[[Recorded, str], bool]) -> dict[str, list[str]]:
    """Return the names of the scenes that meet a lock, by table."""
    found = {table: [name for name, each in record.items() if meets(each, table)] for table in tables}
    return {table: names for table, names in found.items() if names}


def test_a_lock_on_every_table(stage: Stage, record: Record, proof: Proof) -> None:
    """1205: who waits too long for a table that somebody alters gives up for this pass (P88)."""
    wanted, executed = by_table(record, TABLES, touches), 0
    for table, names in wanted.items():
        plays = stage.plays(names)
        with session(stage.hands.others.address, f"LOCK TABLES {table} WRITE"):
            answers = at_once(plays)
        executed += stage.struck(plays, record, answers, looks_again)
    proof(sum(map(len, wanted.values())), executed)


def looks_again(play: Play) -> bool | None:
    """Return what a scene answers when a table is locked: who makes a slot reads whether somebody else has."""
    return None if play.name == "ensure_slot" else lost(play)


def test_row_locks_on_every_table(stage: Stage, record: Record, proof: Proof) -> None:
    """1205: who meets another's row locks gives up for this pass; readers never meet them (P88)."""
    wanted, executed = by_table(record, tuple(WHERE), locks), 0
    readers = [name for name, scene in SCENES.items() if scene.reads]
    for table, names in wanted.items():
        plays, reads = stage.plays(names), stage.plays(readers)
        with session(stage.hands.others.address, "BEGIN", f"SELECT * FROM {table} FOR UPDATE"):
            assert [True] * len(reads) == list(at_once(reads).values())
            answers = at_once(plays)
        executed += stage.struck(plays, record, answers, lost)
    proof(sum(map(len, wanted.values())), executed)


@pytest.mark.parametrize("what", ["KILL QUERY", "KILL CONNECTION"])
def test_killed_while_it_waits(stage: Stage, record: Record, proof: Proof, what: str) -> None:
    """1317, 1927, 2013: a statement or a connection that an operator ends leaves nothing behind (P88, P91)."""
    wanted, executed = by_table(record, tuple(WHERE), locks), 0
    stage.store.database.session += ", innodb_lock_wait_timeout = 50"
    for table, names in wanted.items():
        plays = stage.plays(names, timeout=PATIENCE)
        lock = ("BEGIN", f"SELECT * FROM {table} FOR UPDATE")
        with session(stage.hands.others.address, *lock), ThreadPoolExecutor(1) as pool:
            playing = pool.submit(at_once, plays)
            becomes(lambda plays=plays: stage.held_up() == len(plays))  # type: ignore[misc]
            for number in stage.connections("Query"):
                stage.hands.others.rows(f"{what} {number}")
            answers = playing.result(PATIENCE)
        executed += stage.struck(plays, record, answers, down)
    proof(sum(map(len, wanted.values())), executed)


def test_killed_before_every_statement(stage: Stage, record: Record, proof: Proof) -> None:
    """A connection that the server has ended in the meantime: whichever statement meets it fails (P91)."""

    def kill(number: int) -> None:
        with session(stage.hands.others.address, f"KILL {number}"):
            pass

    executed = 0
    for name, each in record.items():
        for at, statement in enumerate(each.statements):
            key = stage.prepared(each.scene)
            stage.store.database.rows("DO 0")  # so that a connection is there
            stage.line.strike(at, kill)
            answer = stage.played(each.scene, key)
            stage.line.strike()
            assert (name, statement, None, True) == (name, statement, answer, stage.state(key) == each.before)
            assert (True, each.after) == (stage.played(each.scene, key), stage.state(key))
            executed += 1
    proof(sum(len(each.statements) for each in record.values()), executed)


def test_deadlocks(stage: Stage, record: Record, proof: Proof) -> None:
    """1213: the victim of a deadlock gives up for this pass, whole, and succeeds in the next (P89)."""
    executed = 0
    heavy = (
        "CREATE TABLE IF NOT EXISTS heavy (n INT)",
        "BEGIN",
        f"INSERT INTO heavy VALUES {', '.join(['(1)'] * 200)}",
    )
    for name, first, second in CROSSED:
        (play,) = plays = stage.plays([name], timeout=6)
        with (
            session(stage.hands.others.address, *heavy, second.format(key=play.key)) as other,
            ThreadPoolExecutor(1) as pool,
        ):
            playing = pool.submit(at_once, plays)
            becomes(stage.held_up)
            with other.cursor() as cursor:
                cursor.execute(first.format(key=play.key))
            answers = playing.result(PATIENCE)
            assert (name, first, play.before) == (name, first, stage.state(play.key))
        executed += stage.struck(plays, record, answers, lost)
    proof(len(CROSSED), executed)


NOWAIT = {"mariadb": 1205, "mysql": 3572}
"""What a server says to NOWAIT on a locked row."""


def test_nowait_on_a_locked_row(stage: Stage, record: Record, proof: Proof, database_server: str) -> None:
    """3572 on MySQL, 1205 on MariaDB: either is a lost race like any other wait for a lock."""
    wanted = {name: each for name, each in record.items() if locks(each, "queue_slots") and "commit" in name}
    executed = 0
    for each in wanted.values():
        at, lock = next((at, text) for at, text in enumerate(each.statements) if text.endswith("FOR UPDATE"))
        key = stage.prepared(each.scene)
        nowait = lock.replace(each.key, key) + " NOWAIT"
        with session(stage.hands.others.address, "BEGIN", SLOT.format(key=key)):
            with pytest.raises(pymysql.err.OperationalError) as caught, session(stage.falcon, nowait):
                pass
            assert NOWAIT.get(database_server, caught.value.args[0]) == caught.value.args[0]
            stage.store.database.rows("DO 0")  # so that a connection is there
            stage.line.strike(at, nowait)
            assert (False, each.before) == (stage.played(each.scene, key), stage.state(key))
            stage.line.strike()
        assert (True, each.after) == (stage.played(each.scene, key), stage.state(key))
        executed += 1
    proof(len(wanted), executed)
