"""Hostile ids, actors and texts through every statement of the store, under the least rights, on a real server."""

import json
from collections.abc import Iterator

import pytest
from attrs import frozen
from database_roles import FALCON, UPSTREAM, Roles
from pymysql.cursors import Cursor
from test_grants import controller, store_of, upstream

pytestmark = pytest.mark.every_server

HOSTILE = (
    "x' OR '1'='1",
    "x'; DROP TABLE job; -- x",
    'x" OR ""="',
    "x\\' OR 1=1 #",
    "%s%(id)s%%d%",
    "x` UNION SELECT 1",
    "x/**/OR/**/1",
    "{0}{x}$1:x?",
    "日本'\\",
)
"""Each within 23 characters: it is a topology and a part of a pool's name too."""


@frozen
class Statement:
    """What was handed to the driver: the text, and the values apart from it."""

    text: str
    values: tuple[object, ...]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Statement]]:
    """Every statement that is handed to the driver."""
    found: list[Statement] = []
    execute = Cursor.execute

    def watched(self: Cursor, query: str, args: object = None) -> int:
        found.append(Statement(query, tuple(args) if isinstance(args, (list, tuple)) else ()))
        return execute(self, query, args)

    monkeypatch.setattr(Cursor, "execute", watched)
    yield found


@pytest.mark.parametrize("value", HOSTILE)
def test_no_value_is_ever_text(roles: Roles, sent: list[Statement], value: str) -> None:
    """Every step of both sides takes it as it is: among the values, never in a statement, and back it comes whole."""
    insert = "INSERT INTO job (id, actor, spec) VALUES (%s, %s, %s)"
    spec = json.dumps({"image": value, "command": value, "device_type": "cpu"})
    roles.administrator.unit(lambda run: run.must(insert, (value, value, spec)))
    sent.clear()
    with store_of(roles, FALCON) as store:
        for name, step in controller(store, value).items():
            assert step() is not False, name
    assert ((value, value),) == roles.administrator.rows("SELECT id, actor FROM job")
    assert [value] == [row for (row,) in roles.administrator.rows("SELECT DISTINCT topology FROM queue_slots")]
    assert ((value,),) == roles.administrator.rows("SELECT job_id FROM workloads")
    told = "SELECT DISTINCT subject FROM audit_events WHERE kind LIKE 'cluster %'"
    assert ((f"cluster/{value}",),) == roles.administrator.rows(told)
    upstreams = "u" + value[1:]
    with store_of(roles, UPSTREAM) as store:
        for name, step in upstream(store, upstreams).items():
            assert step() is not False, name
    hostile = [each.text for each in sent if value in each.text or upstreams in each.text]
    assert [] == hostile
    assert any(value in map(str, each.values) for each in sent)


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_row_disturbs_no_other(roles: Roles, value: str) -> None:
    """Read beside another one, it is a row like any other."""
    insert = "INSERT INTO job (id, actor, spec) VALUES (%s, %s, %s)"
    for job_id, spec in ((value, value), ("good", '{"image": "i", "device_type": "cpu"}')):
        roles.administrator.unit(lambda run, row=(job_id, value, spec): run.must(insert, row))  # type: ignore[misc]
    with store_of(roles, FALCON) as store:
        assert {value: "Pending", "good": "Pending"} == dict(store.statuses([value, "good"]))
        assert {value, "good"} == {job.id for job in store.read().jobs}
