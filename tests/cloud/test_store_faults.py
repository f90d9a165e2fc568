"""Every error of the database at every statement of every method of the store, on each server (proof.md R9)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from severed_line import Cut
from store_errors import DOWN, REFUSED, numbers_at, said
from store_scenes import SCENES, State
from store_stage import Recorded, Stage

pytestmark = pytest.mark.every_server

Proof = Callable[[int, int], None]


def without_message(after: State, number: int) -> State:
    """Return the rows after a Change whose message was refused."""
    (job,) = after["job"]
    return {**after, "job": [{**job, "message": ""}], "audit_events": [*noted(number), *after["audit_events"]]}


def noted(number: int) -> list[dict[str, str]]:
    """Return the audit row of a value that was refused."""
    return [{"kind": "unstorable", "text": f"{number}: struck"}]


def told(rows: State) -> dict[str, list[dict[str, str]]]:
    """Return rows as they are compared: of the audit what was said, in any order."""
    audit = [{"kind": row["kind"], "text": row["text"]} for row in rows["audit_events"]]
    return {**rows, "audit_events": sorted(audit, key=lambda row: (row["kind"], row["text"]))}


def expected(recorded: Recorded, number: int) -> tuple[Any, State]:
    """Return what a scene must answer when an error strikes, and the rows that it must leave."""
    scene, before = recorded.scene, recorded.before
    if scene.reads or number in DOWN:
        return None, before
    if number not in REFUSED:
        return False, before
    if scene.status:
        return True, without_message(recorded.after, number)
    notes = [] if scene is SCENES["note"] else noted(number)
    return False, {**before, "audit_events": [*before["audit_events"], *notes]}


def strike_all(stage: Stage, recorded: Recorded, cases: Sequence[tuple[int, int]]) -> Iterator[object]:
    """Strike a scene with each error at each statement; yield what went otherwise than it must."""
    scene, key = recorded.scene, stage.prepared(recorded.scene)
    for at, number in cases:
        stage.store.database.rows("DO 0")  # so that a connection is there
        stage.line.strike(at, said(number))
        answer, now = stage.played(scene, key), stage.state(key)
        stage.line.strike()
        must, rows = expected(recorded, number)
        if (answer, told(now)) != (must, told(rows)):
            yield recorded.statements[at], number, answer, now
        if now != recorded.before:
            key = stage.prepared(scene)
    if (True, recorded.after) != (stage.played(scene, key), stage.state(key)):
        yield "without a fault, afterwards", key


def test_every_error_at_every_statement(stage: Stage, proof: Proof) -> None:
    """The server answers each number at each statement: the rows are as before, or as they should be (P88, P93)."""
    planned = executed = 0
    for name, scene in SCENES.items():
        recorded = stage.recorded(scene)
        cases = [(at, number) for at, each in enumerate(recorded.statements) for number in numbers_at(each)]
        planned += len(cases)
        assert (name, []) == (name, list(strike_all(stage, recorded, cases)))
        executed += len(cases)
    proof(planned, executed)


def cut_all(stage: Stage, recorded: Recorded, cases: Sequence[tuple[int, Cut]]) -> Iterator[object]:
    """Cut the line at each statement; yield what went otherwise than it must."""
    scene, statements = recorded.scene, [*recorded.opening, *recorded.statements]
    for at, cut in cases:
        key = stage.prepared(scene)
        stage.store.close()
        stage.line.strike(at, cut)
        answer, rows = stage.played(scene, key), stage.state(key)
        stage.line.strike()
        kept = (statements[at], cut) == ("COMMIT", Cut.AFTER)
        again, then = stage.played(scene, key), stage.state(key)
        if (answer, rows, then) != (None, recorded.after if kept else recorded.before, recorded.after):
            yield statements[at], cut, answer, rows, again, then
        if not kept and again is not True:
            yield statements[at], cut, "done again", again


def test_the_line_cut_at_every_statement(stage: Stage, proof: Proof) -> None:
    """Lost before or after each statement, COMMIT too: all of it or nothing, and to ask again does no harm (P91)."""
    planned = executed = 0
    for name, scene in SCENES.items():
        recorded = stage.recorded(scene)
        sites = range(len(recorded.opening) + len(recorded.statements))
        cases = [(at, cut) for at in sites for cut in (Cut.BEFORE, Cut.AFTER)]
        planned += len(cases)
        assert (name, []) == (name, list(cut_all(stage, recorded, cases)))
        executed += len(cases)
    proof(planned, executed)
