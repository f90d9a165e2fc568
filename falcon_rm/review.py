"""
A plan as people review it: its lines by cluster, how many there are, and the checksum by which it is approved.

1. Values in, text out; the same plan gives the same bytes in every process.
2. The checksum is about what would be done: every field of every action, and nothing else. The moment until which a job
   backs off counts as one moment, since each pass works it out from its own now.
3. A part of a plan may be shown; counts at the end, checksum and exit code are about the whole of it.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any

from attrs import evolve, frozen
from rich.cells import cell_len

from falcon_rm.core.actions import Action, Change
from falcon_rm.core.plan import Plan
from falcon_rm.core.text import clean
from falcon_rm.report import Line, describe, field_names, padded, plain, shown

SIGNS = {"+": "create", "~": "change", "-": "delete", "?": "unknown"}
"""The signs of a plan's lines, and what they count."""

NO_CLUSTER = "no cluster"

CHECKSUM_DIGITS = 16

MOVES_WITH_NOW = {"retry_at"}
"""Columns of a Change that hold a moment counted from the pass's own now."""


@frozen
class Part:
    """Which lines are shown: those that meet all that is named. *pools* are those that the job holds."""

    job: str | None = None
    cluster: str | None = None  # its name
    pools: Collection[str] = ()

    def has(self, line: Line) -> bool:
        """Return whether a line belongs to it."""
        about = line.job or (line.name if line.kind == "job" else None)
        of_job = self.job is None or about == self.job or line.pool in self.pools
        return of_job and self.cluster in {None, line.cluster}

    @property
    def words(self) -> str:
        """What it is the part of; empty for the whole."""
        named = (("job", self.job), ("cluster", self.cluster))
        return ", ".join(f"{kind} {name}" for kind, name in named if name is not None)


WHOLE = Part()


def lines(plan: Plan, clusters: Mapping[str, str], part: Part = WHOLE) -> list[Line]:
    """Return a plan's lines: its actions in their order, then what is unknown. *clusters* has names by id."""
    acts = [describe(action) for action in plan.actions]
    blind = [
        Line("?", each.kind, each.name, "left alone", each.why.removeprefix("left alone: "), each.cluster)
        for each in plan.unknown
    ]
    named = (
        evolve(line, cluster=clusters[line.cluster]) if line.cluster and line.cluster in clusters else line
        for line in (*acts, *blind)
    )
    return [line for line in named if part.has(line)]


def counts(found: Iterable[Line]) -> dict[str, int]:
    """Return how many lines create, change, delete, and are unknown."""
    signs = [line.sign for line in found]
    return {word: signs.count(sign) for sign, word in SIGNS.items()}


def checksum(plan: Plan) -> str:
    """Return what tells this plan from every other: the same if, and only if, the same would be done."""
    acts = [[type(action).__name__, _facts(action)] for action in plan.actions]
    text = json.dumps(acts, ensure_ascii=False, sort_keys=True, default=plain)
    return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:CHECKSUM_DIGITS]


def is_checksum(word: str) -> bool:
    """Return whether a word has the form of one."""
    return re.fullmatch(rf"[0-9a-f]{{{CHECKSUM_DIGITS}}}", word) is not None


def _facts(action: Action) -> Mapping[str, object]:
    """Return the fields of an action that say something; None says nothing."""
    kind: Any = type(action)
    facts = {name: value for name in field_names(kind) if (value := getattr(action, name)) is not None}
    if isinstance(action, Change):
        facts["columns"] = {
            name: "a moment" if name in MOVES_WITH_NOW and isinstance(value, float) else value
            for name, value in action.columns.items()
        }
    return facts


def text(plan: Plan, clusters: Mapping[str, str], part: Part = WHOLE) -> str:
    """Return a plan as terraform would show it: by cluster one line an action with its reason, then a summary."""
    whole = lines(plan, clusters)
    found = [line for line in whole if part.has(line)]
    strangers = [
        f"Left alone in {cluster}: {number} falcon-* node pools that are not ours."
        for cluster, number in sorted(plan.foreign.items())
        if number and part.cluster in {None, cluster} and part.job is None
    ]
    word = checksum(plan)
    return "\n".join(
        [
            *_groups(found),
            *strangers,
            *([f"Brake: {plan.brake.text}."] if plan.brake else []),
            *([f"Shown: {len(found)} of {len(whole)} lines, those of {part.words}."] if part.words else []),
            f"Checksum: {word} (falcon-rm run-once --plan {word} does exactly this, or nothing)",
            f"Plan: {_summary(whole)}.",
        ]
    )


def data(plan: Plan, clusters: Mapping[str, str], part: Part = WHOLE) -> Mapping[str, object]:
    """Return a plan for machines: the same lines, with the names of the actions."""
    whole = lines(plan, clusters)
    kinds = [type(action).__name__ for action in plan.actions]
    found = [line for line in whole if part.has(line)]
    blind = zip(plan.unknown, whole[len(kinds) :], strict=True)
    return {
        "actions": [plain(line) | {"action": kind} for line, kind in zip(whole, kinds, strict=False) if part.has(line)],
        "unknown": [plain(each) for each, line in blind if part.has(line)],
        "brake": plan.brake.text if plan.brake else None,
        "foreign": dict(plan.foreign),
        "clusters": {name: counts(group) for name, group in _by_cluster(found).items()},
        "summary": counts(whole),
        "checksum": checksum(plan),
    }


def _by_cluster(found: Iterable[Line]) -> dict[str, list[Line]]:
    """Return lines by the name of their cluster, in the order of names; those of none come last."""
    groups: dict[str, list[Line]] = {}
    for line in sorted(found, key=lambda line: (not line.cluster, line.cluster or "")):
        groups.setdefault(line.cluster or NO_CLUSTER, []).append(line)
    return groups


def _groups(found: Sequence[Line]) -> list[str]:
    """Return the lines under the headings of their clusters, each group followed by an empty line."""
    groups = _by_cluster(found)
    rows = {
        name: [[shown(each) for each in (line.sign, line.kind, line.name, line.what)] for line in group]
        for name, group in groups.items()
    }
    widths = [max(cell_len(cell) for cell in column) for column in zip(*chain(*rows.values()), strict=True)]
    told = []
    for name, group in groups.items():
        heading = clean(name) if name == NO_CLUSTER else f"cluster {clean(name)}"
        told.append(f"{heading}: {_summary(group, zeros=False)}")
        told += [
            f"  {padded(row, widths)}  {clean(line.why)}".rstrip() for row, line in zip(rows[name], group, strict=True)
        ]
        told.append("")
    return told


def _summary(found: Iterable[Line], *, zeros: bool = True) -> str:
    numbers = counts(found).items()
    told = (f"{number} {'' if word == 'unknown' else 'to '}{word}" for word, number in numbers if number or zeros)
    return ", ".join(told)
