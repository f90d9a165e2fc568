"""
Mutants of what decides: small changes that a good test must notice (proof.md R15).

1. A mutant is a fault on purpose in one place: a rule of the decision table, a row of an error table, one expression.
2. A mutant that changes no decision is none: of a rule, no situation; what changes is worked out before any test runs.
3. Everything is made in one order, and put back as it was.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain, product
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from attrs import field, frozen

from falcon_rm.core import errors, line, machine, sweep
from falcon_rm.core.machine import DOMAIN, RULES, TABLE, Pattern, Step
from falcon_rm.core.words import ErrorKind

Rules = tuple[tuple[Pattern, Step], ...]
Case = tuple[Any, ...]

GAP = Step(machine.Verb.NOTE, "a situation that no rule covers")
WITH_GAP: Rules = (*RULES, ((machine.ANY,) * len(DOMAIN), GAP))
WON: list[list[Case]] = [[case for case, winner in TABLE.items() if winner == i] for i in range(len(RULES))]
"""The situations that each rule wins."""

PICK_RULE: tuple[tuple[Callable[..., Any], str, str], ...] = (
    (line.place, "job.created_at, job.id", "-job.created_at, job.id"),
    (line.place, "job.created_at, job.id", "0.0, job.id"),
    (line.place, "job.created_at, job.id", "job.created_at, ''"),
    (line.line, "reverse=True", "reverse=False"),
    (line.line, "by_priority[job.priority]", "by_priority[0]"),
    (line.line, "[job.actor].append", "[''].append"),
    (line.line, "(0, at)", "(0, -at)"),
    (line.line, "(0, at)", "(0, 0.0)"),
    (line.line, "(-1, 0.0)", "(0, 0.0)"),
    (line.line, "(-1, 0.0)", "(2, 0.0)"),
    (line.line, "(1, float(count))", "(1, -float(count))"),
    (line.line, "(1, float(count))", "(1, 0.0)"),
    (line.line, "(1, float(count))", "(0, float(count))"),
    (line.line, "(1, float(count))", "(-1, 0.0)"),
    (line.line, "count += 1", "count += 0"),
    (line.line, "sorted(own, key=place)", "own"),
    (line.line, "place(own[0])", "0"),
    (line.line, ".popleft()", ".pop()"),
)
"""The pick rule: (function, what stands there, what stands there instead)."""

BRAKE: tuple[tuple[Callable[..., Any], str, str], ...] = (
    (sweep._limit, "return max(3,", "return max(2,"),
    (sweep._limit, "return max(3,", "return max(4,"),
    (sweep._limit, "return max(3,", "return min(3,"),
    (sweep._limit, "live * 3 // 10)", "live * 3 // 10 + 1)"),
    (sweep._limit, "live * 3 // 10)", "live * 3 // 10 - 1)"),
    (sweep._limit, "live * 3 // 10)", "-(-live * 3 // 10))"),
    (sweep._limit, "live * 3 // 10)", "live * 3 // 11)"),
    (sweep._limit, "live * 3 // 10)", "live * 3 // 9)"),
    (sweep.sweep, "found.orphan_pools > limit_pools", "found.orphan_pools >= limit_pools"),
    (sweep.sweep, "found.orphan_works > limit_works", "found.orphan_works >= limit_works"),
    (sweep.sweep, "found.orphan_pools > limit_pools or ", ""),
    (sweep.sweep, " or found.orphan_works > limit_works", ""),
    (sweep.sweep, "> limit_pools or", "> limit_pools and"),
    (sweep.sweep, "held and not scene", "held and scene"),
    (sweep.sweep, " and not scene.bounds.allow_mass_delete", ""),
    (sweep.sweep, "_limit(found.pools), _limit(found.works)", "_limit(found.works), _limit(found.pools)"),
    (sweep.sweep, "return Sweep(tuple(found.actions), brake", "return Sweep((*found.actions, *found.orphans), brake"),
    (sweep.sweep, "Sweep((*found.actions, *found.orphans), None", "Sweep(tuple(found.actions), None"),
)
"""The brake, likewise."""


@frozen
class RuleMutant:
    """A change of RULES: what it is, the rules, which of them wins where, and the steps that differ."""

    name: str
    rules: Rules
    table: Mapping[Case, int] = field(repr=False)
    changed: Mapping[Case, Step] = field(repr=False)


def rule_mutants() -> Iterator[RuleMutant]:
    """Yield every mutant of the decision table that changes a decision."""
    steps = list(dict.fromkeys(step for _, step in RULES))
    for i, (pattern, step) in enumerate(RULES):
        for other in steps:
            if other != step:
                rules = (*RULES[:i], (pattern, other), *RULES[i + 1 :])
                yield RuleMutant(f"rule {i}: {other} instead of {step}", rules, TABLE, dict.fromkeys(WON[i], other))
        for what, moved in _moves(i):
            changed = {case: WITH_GAP[j][1] for case, j in moved.items() if WITH_GAP[j][1] != RULES[TABLE[case]][1]}
            if changed:
                yield RuleMutant(f"rule {i} {what}", WITH_GAP, {**TABLE, **moved}, changed)


def _moves(i: int) -> Iterator[tuple[str, dict[Case, int]]]:
    """Yield (what is done to a rule, the situations in which another rule wins then)."""
    pattern = RULES[i][0]
    without = {case: _next_rule(case, i) for case in WON[i]}
    yield "dropped", without
    yield "after the next", {case: j for case, j in without.items() if j == i + 1 < len(RULES)}
    for column in (3, 4, 5):
        if pattern[column] is not machine.ANY:
            negated = (*pattern[:column], _opposite(pattern[column], DOMAIN[column]), *pattern[column + 1 :])
            gained = {case: i for case, j in TABLE.items() if j > i and _covers(negated, case)}
            yield f"with column {column} negated", without | gained


def _next_rule(case: Case, i: int) -> int:
    return next(j for j in range(i + 1, len(WITH_GAP)) if _covers(WITH_GAP[j][0], case))


def _covers(pattern: Pattern, case: Case) -> bool:
    return all(
        want is machine.ANY or (fact in want if isinstance(want, set) else fact is want)
        for want, fact in zip(pattern, case, strict=True)
    )


def _opposite(want: object, domain: tuple[object, ...]) -> set[object]:
    return {fact for fact in domain if not (fact in want if isinstance(want, set) else fact is want)}


@contextmanager
def table_of(mutant: RuleMutant) -> Iterator[None]:
    """Decide by a mutant."""
    with patch.object(machine, "RULES", mutant.rules), patch.object(machine, "TABLE", mutant.table):
        yield


class Watched(dict[Case, int]):
    """The table, writing down which of its situations are met."""

    def __init__(self) -> None:
        super().__init__(TABLE)
        self.met: set[Case] = set()

    def __getitem__(self, case: Case) -> int:
        self.met.add(case)
        return super().__getitem__(case)


def error_mutants() -> Iterator[tuple[str, str, tuple[errors.Row, ...]]]:
    """Yield (name, table, rows): each row dropped, and of each other kind."""
    for table in ("GOOGLE", "KUBERNETES"):
        rows: tuple[errors.Row, ...] = getattr(errors, table)
        for i, row in enumerate(rows):
            before, after = rows[:i], rows[i + 1 :]
            label = f"{table} {i} ({row.code.pattern} {row.text.pattern})"
            yield f"{label} dropped", table, before + after
            for kind in ErrorKind:
                if kind is not row.kind:
                    changed = errors.Row(row.calls, row.code.pattern, row.text.pattern, kind)
                    yield f"{label}: {kind.value}", table, (*before, changed, *after)


@contextmanager
def rewritten(function: Callable[..., Any], old: str, new: str) -> Iterator[None]:
    """Have a function with one expression changed, wherever it is known by its name."""
    source = inspect.getsource(function)
    assert 1 == source.count(old), (function.__name__, old)
    home = sys.modules[function.__module__]
    names = dict(vars(home))
    exec(source.replace(old, new), names)
    known = [
        (module, name)
        for module in list(sys.modules.values())
        for name, value in list(getattr(module, "__dict__", {}).items())
        if value is function
    ]
    for module, name in known:
        setattr(module, name, names[function.__name__])
    try:
        yield
    finally:
        for module, name in known:
            setattr(module, name, function)


@frozen
class Trial:
    """One test, with the values of its parameters: something that can be run again and again."""

    name: str
    run: Callable[[], None]

    def fails(self) -> bool:
        """Return whether the test fails."""
        try:
            self.run()
        except (
            AssertionError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            StopIteration,
            pytest.fail.Exception,
        ):
            return True
        return False


def trials(module: ModuleType) -> list[Trial]:
    """Return the tests of a module that need nothing but their parameters, a trial for each row of these."""
    found = []
    for name, function in vars(module).items():
        if not name.startswith("test_") or hasattr(function, "hypothesis"):
            continue
        marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
        rows = [dict(chain(*parts)) for parts in product(*map(_rows, marks))]
        if set(inspect.signature(function).parameters) == set(rows[0]):
            found += [Trial(f"{name}[{i}]", partial(function, **row)) for i, row in enumerate(rows)]
    return found


def _rows(mark: pytest.Mark) -> list[list[tuple[str, Any]]]:
    """Return the rows of a parametrize, each as (name, value) pairs."""
    names, values = mark.args[0], mark.args[1]
    if isinstance(names, str):
        return [[(names, value)] for value in values]
    return [list(zip(names, value, strict=True)) for value in values]
