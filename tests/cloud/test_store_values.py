"""Values that a column refuses, wherever the store writes a text, on each server (proof.md R9, P93)."""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from itertools import count
from typing import Any

import attrs
import pytest
from attrs import frozen
from mysql_store import SteeredStore
from store_scenes import CHANCE, SCENES, WHERE, State, change
from store_stage import Play, Recorded, Stage

from falcon_rm.cloud.store import MySqlStore

pytestmark = pytest.mark.every_server

Proof = Callable[[int, int], None]
Record = Mapping[str, Recorded]

TYPES = """
    SELECT column_name, column_type, is_nullable FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = %s AND data_type IN ('char', 'varchar', 'text', 'enum')
"""


@frozen
class Narrow:
    """A column that refuses some values: the statement that makes it so, and which it refuses."""

    table: str
    column: str
    number: str  # of the error, a pattern
    statement: str
    refuses: Callable[[str], bool]


def kinds(store: SteeredStore, table: str) -> list[tuple[str, str]]:
    """Return every text column of a table, with each way to make it narrow."""
    rows = store.others.rows(TYPES, (table,))
    return [
        (str(column), kind)
        for column, was, _ in rows
        if (table, column) not in CHANCE
        for kind in ("check", "enum" if str(was).startswith("enum") else "short", "latin1")
        if kind != "latin1" or not str(was).startswith("enum")
    ]


def narrowed(store: SteeredStore, table: str, column: str, kind: str) -> Narrow:
    """Return how to let a column take what stands in it now, and little else."""
    ((null,),) = [row[2:] for row in store.others.rows(TYPES, (table,)) if row[0] == column]
    found = {value for (value,) in store.others.rows(f"SELECT DISTINCT {column} FROM {table}")}
    values = {str(value) for value in found - {None}} | {""}
    most, listed = max(1, *map(len, values)), ", ".join(f"'{value}'" for value in sorted(values))
    modify = f"ALTER TABLE {table} MODIFY {column}"
    end = "NULL" if null == "YES" else "NOT NULL"
    if kind == "check":
        rule = f"ALTER TABLE {table} ADD CONSTRAINT narrow CHECK ({column} IS NULL OR {column} IN ({listed}))"
        return Narrow(table, column, "4025|3819", rule, lambda value: value not in values)
    if kind == "enum":
        return Narrow(table, column, "1265", f"{modify} ENUM({listed}) {end}", lambda value: value not in values)
    if kind == "short":
        return Narrow(table, column, "1406", f"{modify} VARCHAR({most}) {end}", lambda value: len(value) > most)
    latin1 = f"{modify} VARCHAR(255) CHARACTER SET latin1 {end}"
    return Narrow(table, column, "1366", latin1, lambda value: not value.isascii())


def brought(recorded: Recorded, play: Play, column: tuple[str, str]) -> set[str]:
    """Return the texts that a scene newly brings into a column."""
    table, name = column
    before, after = ({row[name] for row in rows[table]} for rows in (recorded.before, recorded.after))
    return {value.replace("KEY", play.key) for value in after - before} - {"None"}


def told(rows: State) -> tuple[State, list[str]]:
    """Return the rows without the audit's word on values that were refused, and that word."""
    audit = rows["audit_events"]
    said = [row["text"] for row in audit if row["kind"] == "unstorable"]
    return {**rows, "audit_events": [row for row in audit if row["kind"] != "unstorable"]}, said


def refused(narrow: Narrow, recorded: Recorded, play: Play) -> tuple[bool | None, State]:
    """Return what a scene must answer when a column refuses its value, and the rows that it must leave."""
    if play.name == "delete_answered" and "latin1" in narrow.statement:
        return None, recorded.before  # it compares the text with the one before, which is an error then: 1267
    if play.scene.status and (narrow.table, narrow.column) == ("job", "message"):
        (job,) = recorded.after["job"]
        return True, {**recorded.after, "job": [{**job, "message": ""}]}
    return False, recorded.before


def meets(stage: Stage, narrow: Narrow, recorded: Recorded, play: Play) -> None:
    """Play a scene on a narrow column."""
    column = (narrow.table, narrow.column)
    is_refused = any(map(narrow.refuses, brought(recorded, play, column)))
    must = refused(narrow, recorded, play) if is_refused else (True, recorded.after)
    answer, (rows, said) = play.answer(), told(stage.state(play.key))
    different = {table: (must[1][table], rows[table]) for table in rows if must[1][table] != rows[table]}
    assert (play.name, narrow.statement, must[0], {}) == (play.name, narrow.statement, answer, different)
    if is_refused and answer is not None and narrow.table != "audit_events" and play.name != "note":
        assert re.match(narrow.number, said[0]), said


@pytest.mark.parametrize("table", WHERE)
def test_a_column_that_refuses(stage: Stage, record: Record, proof: Proof, table: str) -> None:
    """Of each text that is written: too long, not listed, not in its alphabet, against a rule: that row alone waits."""
    planned = executed = 0
    root = stage.hands.others
    root.rows(f"CREATE TABLE kept LIKE {table}")
    writers = [name for name, each in record.items() if each.before[table] != each.after[table]]
    for column, kind in kinds(stage.hands, table):
        root.rows(f"DELETE FROM {table}")
        plays, (bystander,) = stage.plays(writers), stage.plays(["mark_pool"])
        narrow = narrowed(stage.hands, table, column, kind)
        root.rows(narrow.statement)
        planned += len(plays)
        for play in plays:
            meets(stage, narrow, record[play.name], play)
            play.store.close()
            executed += 1
        assert True is bystander.answer()
        bystander.store.close()
        root.rows(f"DROP TABLE {table}")
        root.rows(f"CREATE TABLE {table} LIKE kept")
    proof(planned, executed)


def test_a_number_out_of_range(stage: Stage, record: Record) -> None:
    """1264: a counter that its column does not take leaves its row alone, and the next one goes on (P98)."""
    one, two = (stage.prepared(SCENES["commit a message"]) for _ in range(2))
    stage.hands.others.rows("UPDATE job SET version = 127 WHERE id = %s", (one,))
    stage.hands.others.rows("ALTER TABLE job MODIFY version TINYINT NOT NULL DEFAULT 0")
    before = stage.state(one)
    assert False is stage.store.commit(change(one, 127, "Pending/Waiting", "Pending/ClusterBusy"))
    rows, said = told(stage.state(one))
    assert (before, "1264") == (rows, said[0][:4])
    assert True is stage.store.commit(change(two, 0, "Pending/Waiting", "Pending/ClusterBusy"))


HALF = "\ud800"


def garbled(value: Any, leaves: Iterator[int], at: int) -> Any:
    """Return a value with half a surrogate at the end of its text of that number."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return value + HALF if next(leaves) == at else value
    if isinstance(value, tuple | list):
        return type(value)(garbled(each, leaves, at) for each in value)
    if isinstance(value, Mapping):
        return {key: garbled(each, leaves, at) for key, each in value.items()}
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value))]
        return attrs.evolve(value, **{name: garbled(getattr(value, name), leaves, at) for name in names})
    return value


class Garbling:
    """A store whose callers have half a surrogate in one of their texts; `count` is how many texts they have."""

    def __init__(self, store: MySqlStore, at: int = -1) -> None:
        self._store, self._at = store, at
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        """Return a method that garbles its arguments."""

        def call(*arguments: Any) -> Any:
            leaves = count()
            given = garbled(arguments, leaves, self._at)
            self.count = next(leaves)
            return getattr(self._store, name)(*given)

        return call


@pytest.mark.parametrize("name", SCENES)
def test_half_a_surrogate(stage: Stage, proof: Proof, name: str) -> None:
    """In any text of any call: cleaned, or refused and its row left as it was; nothing else is raised (P93)."""
    recorded = stage.recorded(SCENES[name])
    counting = Garbling(stage.hands)
    recorded.scene.act(counting, stage.prepared(recorded.scene))
    executed = 0
    for at in range(counting.count):
        key = stage.prepared(recorded.scene)
        answer = recorded.scene.act(Garbling(stage.hands, at), key)
        rows, _ = told(stage.state(key))
        if answer is False:
            assert recorded.before == rows
        assert recorded.scene.reads or answer in (True, False)
        executed += 1
    proof(counting.count, executed)
