"""
What operators read: actions as lines, rows as tables, values for machines.

1. Values in, text out: nothing here reads, asks or prints.
2. The same input gives the same bytes, so that two outputs can be compared.
3. What is not there reads `<none>`, what was not read `<unknown>`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

import attrs
from attrs import frozen
from rich.cells import cell_len, set_cell_size

from falcon_rm.core.actions import (
    Action,
    Change,
    CreatePool,
    DeletePool,
    DeleteWork,
    EndLease,
    EnsureSlot,
    EnterPool,
    FreeSlot,
    MarkPool,
    Note,
    RecordHealth,
    ResumeWork,
    RetirePool,
    SubmitWork,
)
from falcon_rm.core.text import clean

NONE = "<none>"
UNKNOWN = "<unknown>"


@frozen
class Line:
    """One action for people and for the log: *sign* is + create, ~ change or - delete."""

    sign: str
    kind: str
    name: str
    what: str
    why: str = ""
    cluster: str | None = None  # its id
    job: str | None = None  # its id
    pool: str | None = None


def _standing(status: str, reason: str | None) -> str:
    return f"{status}/{reason}" if reason else status


def _change(action: Change) -> Line:
    before = _standing(action.from_status, action.from_reason)
    after = _standing(action.to_status, action.to_reason)
    what = f"{before} -> {after}" if before != after else f"{after}, message" if action.only_message else after
    pool = action.makes.name if action.makes else action.takes or (action.gives_up.pool if action.gives_up else None)
    return Line("~", "job", action.job_id, what, action.why, action.cluster_id, action.job_id, pool)


def _ensure_slot(action: EnsureSlot) -> Line:
    return Line("+", "slot", action.topology, "create", "a job queues there", action.cluster_id)


def _free_slot(action: FreeSlot) -> Line:
    why = f"job {action.holder} acquires nothing"
    return Line("~", "slot", action.topology, "free", why, action.cluster_id, action.holder)


def _enter_pool(action: EnterPool) -> Line:
    pool = action.pool
    what = "enter as found" if pool.found else "enter as free"
    why = "ours, and not in the ledger"
    return Line("~", "pool", pool.name, what, why, pool.cluster_id, pool.job_id or None, pool.name)


def _mark_pool(action: MarkPool) -> Line:
    times = [name for name in ("seen", "up", "ready") if getattr(action, name)]
    return Line("~", "pool", action.name, "note " + ", ".join(times), "", action.cluster_id, None, action.name)


def _retire_pool(action: RetirePool) -> Line:
    what = f"{action.from_state} -> {action.to_state}"
    return Line("~", "pool", action.name, what, action.why, action.cluster_id, None, action.name)


def _end_lease(action: EndLease) -> Line:
    what = "end the lease, " + ("keep" if action.keep else "give up")
    return Line("~", "pool", action.pool, what, action.why, action.cluster_id, action.job_id, action.pool)


def _create_pool(action: CreatePool) -> Line:
    pool = action.pool
    hosts = "1 host" if pool.hosts == 1 else f"{pool.hosts} hosts"
    what = f"create {hosts}, {pool.tpu_type} {pool.topology}, {pool.mode}"
    why = f"job {action.job_id} holds its lease"
    return Line("+", "pool", pool.name, what, why, action.cluster.id, action.job_id, pool.name)


def _delete_pool(action: DeletePool) -> Line:
    return Line("-", "pool", action.name, "delete", action.why, action.cluster.id, None, action.name)


def _submit_work(action: SubmitWork) -> Line:
    why = f"job {action.job_id}, attempt {action.attempt}"
    return Line("+", "work", action.name, "submit", why, action.cluster.id, action.job_id)


def _resume_work(action: ResumeWork) -> Line:
    why = f"job {action.job_id}, attempt {action.attempt}"
    return Line("~", "work", action.name, "let go", why, action.cluster.id, action.job_id)


def _delete_work(action: DeleteWork) -> Line:
    return Line("-", "work", action.name, "delete", action.why, action.cluster.id, action.job_id)


def _record_health(action: RecordHealth) -> Line:
    what = f"zone {action.zone or UNKNOWN}, " + ("in trouble" if action.problem else "well")
    return Line("~", "health", "cluster", what, action.problem or "", action.cluster_id)


def _note(action: Note) -> Line:
    return Line("+", "audit", action.subject, action.kind, action.text)


LINES: Mapping[type[Any], Callable[[Any], Line]] = {
    Change: _change,
    CreatePool: _create_pool,
    DeletePool: _delete_pool,
    DeleteWork: _delete_work,
    EndLease: _end_lease,
    EnsureSlot: _ensure_slot,
    EnterPool: _enter_pool,
    FreeSlot: _free_slot,
    MarkPool: _mark_pool,
    Note: _note,
    RecordHealth: _record_health,
    ResumeWork: _resume_work,
    RetirePool: _retire_pool,
    SubmitWork: _submit_work,
}
"""How each action reads."""


def describe(action: Action) -> Line:
    """Return *action* as one line."""
    return LINES[type(action)](action)


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, width: int | None = None) -> str:
    """
    Return rows under upper-case headers, columns three spaces apart, None as `<none>`.

    If that is wider than *width* the columns move together, and the widest ones lose the ends of their texts.
    """
    cells = [[shown(value) for value in row] for row in (headers, *rows)]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*cells, strict=True)]
    gap = "   "
    if width is not None and sum(widths) + len(gap) * (len(widths) - 1) > width:
        gap = " "
        widths = _fitted(widths, width - (len(widths) - 1))
        cells = [[_cut(cell, most) for cell, most in zip(row, widths, strict=True)] for row in cells]
    return "\n".join(padded(row, widths, gap=gap).rstrip() for row in cells)


def _fitted(widths: Sequence[int], room: int) -> list[int]:
    """Return widths that add up to no more than *room*: those above a common limit are cut down to it."""
    limit = max(widths)
    while limit > 1 and sum(min(width, limit) for width in widths) > room:
        limit -= 1
    return [min(width, limit) for width in widths]


def _cut(text: str, most: int) -> str:
    """Return a text that takes at most so many cells, with a mark where it was cut."""
    return text if cell_len(text) <= most else set_cell_size(text, most - 1) + "…"


def shown(value: object) -> str:
    """Return a value as a cell of a table."""
    return NONE if value is None or value == "" else clean(str(value))


def padded(cells: Sequence[str], widths: Sequence[int], *, gap: str = "  ") -> str:
    """Return one line; Chinese characters are two cells wide."""
    pads = (cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True))
    return gap.join(pads)


def age(seconds: float | None) -> str:
    """Return a time span as kubectl writes it: 45s, 12m, 7h, 3d."""
    if seconds is None:
        return NONE
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f}{unit}"
    return f"{max(seconds, 0):.0f}s"


PLAIN = frozenset({str, int, float, bool, type(None)})
"""What JSON and YAML know already."""


def plain(value: object) -> Any:
    """Return *value* as JSON and YAML know it: attrs values as objects, enums as their words."""
    kind: Any = type(value)
    if kind in PLAIN:
        return value
    names = field_names(kind)
    if names:
        named = ((name, getattr(value, name)) for name in names)
        return {name: each if type(each) in PLAIN else plain(each) for name, each in named}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


@lru_cache(maxsize=1000)
def field_names(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of an attrs class's fields; none if it is no such class."""
    return tuple(attrs.fields_dict(kind)) if attrs.has(kind) else ()


def as_json(value: object) -> str:
    """Return *value* as JSON, keys sorted."""
    return json.dumps(plain(value), ensure_ascii=False, indent=2, sort_keys=True)


def as_yaml(value: object) -> str:
    """Return *value* as YAML, keys sorted."""
    import yaml  # noqa: PLC0415

    return str(yaml.safe_dump(plain(value), allow_unicode=True, sort_keys=True)).rstrip("\n")


FORMS: Mapping[str, Callable[[object], str]] = {"json": as_json, "yaml": as_yaml}
"""The forms for machines."""
