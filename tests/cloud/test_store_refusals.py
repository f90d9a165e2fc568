"""Whatever else a server refuses, ends or never answers, met by every method of the store (proof.md R9)."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pymysql
import pytest
from attrs import evolve
from database_roles import FALCON, Roles, statements
from severed_line import Cut
from store_scenes import SCENES, WHERE
from store_stage import Play, Recorded, Stage, at_once, becomes, down, session

from falcon_rm.cloud.store import MySqlStore

pytestmark = pytest.mark.every_server

Proof = Callable[[int, int], None]
Record = Mapping[str, Recorded]

WRITES = [name for name, scene in SCENES.items() if not scene.reads]
TABLES = (*WHERE, "clusters", "falcon_meta")
COLUMN = {"job": "version", "falcon_meta": "value", "clusters": "zone", "audit_events": "text", "job_events": "why"}
"""A column of a table that all its statements name; of the other tables it is the first one."""


@contextmanager
def read_only(stage: Stage, roles: Roles) -> Iterator[str]:
    """Let the server refuse writes, as in a fail-over."""
    roles.run("SET GLOBAL read_only = 1")
    yield "1290"
    roles.run("SET GLOBAL read_only = 0")


@contextmanager
def no_connection_left(stage: Stage, roles: Roles) -> Iterator[str]:
    """Let others have every connection."""
    roles.run("SET GLOBAL max_connections = 10")
    with ExitStack() as others:
        with pytest.raises(pymysql.err.OperationalError, match="1040"):
            for _ in range(20):
                others.enter_context(session(stage.falcon))
        yield "1040"
    roles.run("SET GLOBAL max_connections = 200")


@contextmanager
def another_password(stage: Stage, roles: Roles) -> Iterator[str]:
    """Let the password be another one."""
    roles.run(f"ALTER USER {FALCON}u IDENTIFIED BY 'changed'")
    yield "1045"
    roles.run(f"ALTER USER {FALCON}u IDENTIFIED BY 'secret'")


@contextmanager
def no_right(stage: Stage, roles: Roles) -> Iterator[str]:
    """Let the role be taken away."""
    roles.run(f"REVOKE {FALCON} FROM {FALCON}u")
    yield "1044"
    roles.give(FALCON)


REFUSED = {"1290": read_only, "1040": no_connection_left, "1045": another_password, "1044": no_right}


@pytest.mark.parametrize("number", REFUSED)
def test_a_server_that_refuses(stage: Stage, record: Record, roles: Roles, proof: Proof, number: str) -> None:
    """Read-only, full, another password, no right: nothing is written, the error is told, and it heals (P92)."""
    plays = stage.plays(WRITES if number == "1290" else SCENES)
    with REFUSED[number](stage, roles):
        answers = {play.name: play.answer() for play in plays}
        assert number in play_error(plays[-1])
    proof(len(plays), stage.struck(plays, record, answers, down))


def play_error(play: Play) -> str:
    """Return what the store says of a database that is down."""
    with pytest.raises(Exception, match="1") as caught:
        play.scene.act(play.store, play.key)
    return str(caught.value)


def test_a_database_that_is_not_there(stage: Stage, proof: Proof) -> None:
    """1049: every method says so."""
    nowhere = evolve(stage.hands.others.address, database="nowhere")
    plays = stage.plays(address=nowhere)
    assert [(play.name, "1049") for play in plays] == [(play.name, play_error(play)[:4]) for play in plays]
    proof(len(SCENES), len(plays))


def missing(number: str, table: str) -> tuple[str, list[str], list[str]]:
    """Return what a statement that misses something names, the statements that take it away, and that bring it back."""
    if number == "1146":
        return table, [f"RENAME TABLE {table} TO away"], [f"RENAME TABLE away TO {table}"]
    if number == "1142":
        given = [each for each in statements() if f" ON {table} TO {FALCON}" in each]
        return table, [f"REVOKE ALL ON {table} FROM {FALCON}"], given
    column, alter = COLUMN.get(table, "cluster_id"), f"ALTER TABLE {table} RENAME COLUMN"
    return column, [f"{alter} {column} TO away"], [f"{alter} away TO {column}"]


@pytest.mark.parametrize("number", ["1146", "1054", "1142"])
def test_what_is_missing(stage: Stage, record: Record, roles: Roles, proof: Proof, number: str) -> None:
    """A table, a column or every right on a table is gone: nothing of a unit that needs it is kept (P95)."""
    executed = planned = 0
    for table in TABLES:
        word, taking, giving = missing(number, table)
        both = re.compile(rf"(?=.*\b{table}\b)(?=.*\b{word}\b)", re.DOTALL)
        plays = stage.plays(name for name, each in record.items() if any(map(both.match, each.statements)))
        planned += len(plays)
        for statement in taking:
            roles.run(statement)
        answers = at_once(plays)
        for statement in giving:
            roles.run(statement)
        executed += stage.struck(plays, record, answers, down)
    assert planned > 2 * len(TABLES)
    proof(planned, executed)


def test_a_connection_that_was_idle_for_too_long(stage: Stage, record: Record, proof: Proof) -> None:
    """4031, 2006, 2013 after wait_timeout: the call that meets it says so, the next one has a new connection (P91)."""
    stage.store.database.session += ", wait_timeout = 1"
    plays = stage.plays()
    for play in plays:
        play.store.database.rows("DO 0")
    stage.hands.close()
    stage.store.close()
    becomes(lambda: not stage.connections())
    answers = {play.name: play.answer() for play in plays}
    proof(len(SCENES), stage.struck(plays, record, answers, down))


def test_a_connection_that_is_closed_already(stage: Stage, record: Record, proof: Proof) -> None:
    """InterfaceError (0, ''): what a client says of a connection that it knows to be lost (P91)."""
    plays = stage.plays()
    for play in plays:
        play.store.database.rows("DO 0")
        play.store.database._connection._force_close()  # type: ignore[union-attr]
    answers = {play.name: play.answer() for play in plays}
    proof(len(SCENES), stage.struck(plays, record, answers, down))


LONG = "COUNT(*) FROM {0} a, {0} b, {0} c, {0} d".format("information_schema.collations")
TOO_LONG = {
    "mariadb": (1969, f"SET STATEMENT max_statement_time = 0.01 FOR SELECT {LONG}"),
    "mysql": (3024, f"SELECT /*+ MAX_EXECUTION_TIME(10) */ {LONG}"),
}
"""A statement that the server ends for its length, and what it says."""


def test_a_statement_that_takes_too_long(stage: Stage, record: Record, proof: Proof) -> None:
    """3024 on MySQL, 1969 on MariaDB: a read that the server cut short is no answer, never an empty one."""
    ((version,),) = stage.hands.others.rows("SELECT VERSION()")
    number, slow = TOO_LONG["mariadb" if "MariaDB" in str(version) else "mysql"]
    with pytest.raises(pymysql.err.OperationalError) as caught, session(stage.falcon, slow):
        pass
    assert number == caught.value.args[0]
    sites = [
        (each, at) for each in record.values() for at, sql in enumerate(each.statements) if sql.split()[0] == "SELECT"
    ]
    executed = 0
    for each, at in sites:
        key = stage.prepared(each.scene)
        stage.store.database.rows("DO 0")  # so that a connection is there
        stage.line.strike(at, slow)
        assert (None, each.before) == (stage.played(each.scene, key), stage.state(key))
        stage.line.strike()
        assert (True, each.after) == (stage.played(each.scene, key), stage.state(key))
        executed += 1
    proof(len(sites), executed)


def test_a_commit_that_arrives_late(stage: Stage, record: Record, proof: Proof) -> None:
    """2013: the server commits long after its client gave up; to ask again then does no harm."""
    for name in WRITES:
        each = record[name]
        assert ("BEGIN", "COMMIT") == (each.statements[0], each.statements[-1]), "a write outside a transaction"
        key = stage.prepared(each.scene)
        stage.store.close()
        stage.line.strike(len(each.opening) + len(each.statements) - 1, Cut.LATE)
        assert (name, None, each.before) == (name, stage.played(each.scene, key), stage.state(key))
        stage.line.strike()
        stage.line.release()
        becomes(lambda key=key, each=each: stage.state(key) == each.after)  # type: ignore[misc]
        stage.played(each.scene, key)
        assert (name, each.after) == (name, stage.state(key))
    proof(len(WRITES), len(WRITES))


def test_a_write_that_arrives_late(stage: Stage, record: Record, proof: Proof) -> None:
    """Whatever else of a unit arrives when its client has gone is rolled back with it, and holds no lock for long."""
    for name in WRITES:
        each = record[name]
        key = stage.prepared(each.scene)
        stage.store.close()
        stage.hands.close()
        stage.line.strike(len(each.opening) + len(each.statements) - 2, Cut.LATE)
        assert (name, None, each.before) == (name, stage.played(each.scene, key), stage.state(key))
        stage.line.strike()
        stage.line.release()
        becomes(lambda: not stage.connections())
        assert (name, each.before) == (name, stage.state(key))
        with MySqlStore(evolve(stage.hands.database), "tests") as store:
            assert (name, True) == (name, each.scene.act(store, key))
        assert (name, each.after) == (name, stage.state(key))
    proof(len(WRITES), len(WRITES))
