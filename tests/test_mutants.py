"""
Every small fault in what decides is noticed, with the golden file set aside (proof.md R15).

1. The decision table is tried by table_laws.py first, then by the fast tests that meet a situation that changed.
2. The error tables, the pick rule and the brake are tried by the tests that stand beside them.
3. Tests run as they are, with the mutant in place of the real thing; one that fails has killed it.
"""

import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from mutants import (
    BRAKE,
    PICK_RULE,
    RuleMutant,
    Trial,
    Watched,
    error_mutants,
    rewritten,
    rule_mutants,
    table_of,
    trials,
)
from table_laws import is_lawful

from falcon_rm.core import errors, machine
from falcon_rm.core.machine import TABLE, Situation, decide, fold

HERE = Path(__file__).parent
MEET_THE_TABLE = ("test_situation", "test_steps", "test_sweep", "test_schedule", "test_room")
KILLED_WITHOUT_GOLDEN = 0.95

Mutants = Iterable[tuple[str, AbstractContextManager[Any]]]


@cache
def oracles(*names: str) -> tuple[Trial, ...]:
    """Return the trials of test modules that lie beside what they test."""
    sys.path += [str(HERE / folder) for folder in ("core", "cloud") if str(HERE / folder) not in sys.path]
    found = [trial for name in names for trial in trials(import_module(name))]
    assert [] == [trial.name for trial in found if trial.fails()]
    return tuple(found)


def survivors(mutants: Mutants, tried_by: Iterable[Trial]) -> tuple[int, list[str]]:
    """Return how many mutants there are, and those that no trial kills."""
    count, alive = 0, []
    for name, mutant in mutants:
        count += 1
        with mutant:
            if not any(trial.fails() for trial in tried_by):
                alive.append(name)
    return count, alive


def test_every_step_has_its_grounds() -> None:
    """The table as it is keeps the laws that its mutants break."""
    whole = [Situation(*case) for case in TABLE]  # type: ignore[arg-type]
    assert [] == [situation for situation in whole if not is_lawful(situation, decide(situation))]


def test_mutants_of_the_decision_table_are_killed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each rule dropped, put after the next, with every other step, with its timing, flag or chance negated."""
    made = list(rule_mutants())
    lawful = [m for m in made if all(is_lawful(Situation(*case), step) for case, step in m.changed.items())]
    met = [(trial, situations_of(trial)) for trial in oracles(*MEET_THE_TABLE)]
    alive = [
        mutant
        for mutant in lawful
        if survivors(
            [(mutant.name, table_of(mutant))],
            [trial for trial, situations in met if not situations.isdisjoint(mutant.changed)],
        )[1]
    ]
    unnoticed = [mutant.name for mutant in alive if not changes_the_golden_file(mutant)]
    with capsys.disabled():
        sys.stdout.write(
            f"\ndecision table: {len(made)} mutants, {len(made) - len(lawful)} killed by laws, "
            f"{len(lawful) - len(alive)} by tests, {len(alive) - len(unnoticed)} by the golden file alone, "
            f"{len(unnoticed)} by nothing\n"
        )
    assert [] == unnoticed
    assert len(made) - len(alive) >= KILLED_WITHOUT_GOLDEN * len(made), [mutant.name for mutant in alive]


def situations_of(trial: Trial) -> set[tuple[Any, ...]]:
    """Return the situations that a trial meets: no other can make it fail first."""
    watched = Watched()
    with patch.object(machine, "TABLE", watched):
        trial.run()
    return watched.met


def changes_the_golden_file(mutant: RuleMutant) -> bool:
    """Return whether the folded table shows a mutant."""
    reviewed = fold()
    with table_of(mutant):
        return fold()[: len(reviewed)] != reviewed


def test_mutants_of_the_error_tables_are_killed() -> None:
    """Each row dropped, and of each other kind."""
    made = ((name, patch.object(errors, table, rows)) for name, table, rows in error_mutants())
    count, alive = survivors(made, oracles("test_errors"))
    assert count > len(errors.GOOGLE) + len(errors.KUBERNETES)
    assert [] == alive


@pytest.mark.parametrize(
    ("changes", "tests"),
    [(PICK_RULE, "test_line"), (BRAKE, "test_sweep")],
    ids=["pick rule", "brake"],
)
def test_mutants_of_an_expression_are_killed(changes: tuple[tuple[Any, str, str], ...], tests: str) -> None:
    """One expression changed at a time, limits off by one among them."""
    made = ((f"{new} instead of {old}", rewritten(function, old, new)) for function, old, new in changes)
    assert (len(changes), []) == survivors(made, oracles(tests))
