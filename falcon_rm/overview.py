"""
What `falcon-rm status` shows: clusters, queues, node pools and jobs, from rows alone.

1. SECTIONS is the table of it all: a section's columns, which of them are for `-o wide` only, and its rows.
2. What is not known reads `<unknown>`, never 0; what is not there `<none>`.
3. A row's data is complete for `-o json|yaml`, but for the spec: an environment may hold secrets.
4. Ages are counted by the database's clock.
5. A filter leaves out the sections whose rows have nothing to be chosen by.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import field, fields_dict, frozen

from falcon_rm.core.text import clean
from falcon_rm.report import NONE, UNKNOWN, age, table

NARROW_BYTES = 60
"""The longest cell of a table that is not wide."""


@frozen
class ClusterRow:
    """One cluster; *reachable* is None if no pass has looked, or none does."""

    id: str
    name: str
    status: str
    tpu_type: str
    project: str
    location: str
    reachable: bool | None = None
    problem: str | None = None
    zone: str | None = None  # as registered
    used_zone: str | None = None  # where pools go
    default_reservation: str | None = None
    gcs_bucket: str | None = None
    gke_name: str | None = None
    node_service_account: str | None = None
    endpoint: str | None = None
    room: Mapping[str, int] = field(factory=dict)  # slices its reservation has left by topology, as far as is known

    @property
    def cluster(self) -> str:
        """Its name, by which a filter finds it."""
        return self.name


@frozen
class QueueRow:
    """One queue: who waits, who holds its slot, how many of it run. *room* is None if nobody knows it."""

    cluster: str
    topology: str
    waiting: int = 0
    running: int = 0
    holder: str | None = None
    actor: str | None = None  # the holder's
    phase: str | None = None
    held_at: float | None = None
    reserved: bool = False  # whether its cluster has a reservation
    room: int | None = None  # slices that a reservation has left, as the last pass told who waits for them

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.cluster}/{self.topology}"


@frozen
class PoolRow:
    """One node pool that is not Deleted."""

    name: str
    cluster: str
    topology: str
    machine_type: str
    hosts: int
    chips: int
    mode: str
    state: str
    reservation: str | None = None
    lease: str | None = None
    actor: str | None = None  # the holder's
    leased_at: float | None = None
    requested_at: float | None = None
    seen_at: float | None = None
    up_at: float | None = None
    ready_at: float | None = None
    idle_at: float | None = None
    error_kind: str | None = None
    error_text: str | None = None
    error_at: float | None = None

    @property
    def seen(self) -> str:
        """How far it is."""
        if self.error_kind and not self.ready_at:
            return self.error_kind
        return "ready" if self.ready_at else "up" if self.up_at else "creating"


@frozen
class JobRow:
    """One job; what was not read is None."""

    id: str
    actor: str
    status: str
    created_at: float | None
    reason: str | None = None
    cluster: str | None = None
    cluster_id: str | None = None
    topology: str | None = None
    supply_mode: str | None = None
    priority: int = 0
    attempt: int = 0
    node_pool_name: str | None = None
    message: str | None = None
    name: str | None = None
    version: int = 0
    timeout_seconds: int | None = None
    artifact_path: str | None = None
    aborting_at: float | None = None
    job_uid: str | None = None
    pool_failures: int = 0
    losses: int = 0
    retry_at: float | None = None
    outcome: str | None = None
    queued_at: float | None = None
    provisioning_at: float | None = None
    dispatched_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    aborted_at: float | None = None


SHOWN = ("id", "actor", "status", "created_at", "reason", "cluster_id", "topology")
SHOWN_WIDE = (*SHOWN, "supply_mode", "priority", "attempt", "node_pool_name", "message")
"""The columns of `job` that tables need."""


@frozen
class Overview:
    """What there is: live jobs oldest first, then those that ended lately, newest first."""

    now: float
    clusters: tuple[ClusterRow, ...] = ()
    queues: tuple[QueueRow, ...] = ()
    pools: tuple[PoolRow, ...] = ()
    jobs: tuple[JobRow, ...] = ()


@frozen
class Wanted:
    """Which rows are shown: those that meet all that is named."""

    cluster: str | None = None  # its name
    actor: str | None = None
    statuses: tuple[str, ...] = ()  # of jobs; none: all

    def sections(self) -> "tuple[Section, ...]":
        """Return the sections whose rows can be chosen so."""
        asked = {"actor": self.actor is not None, "statuses": bool(self.statuses)}
        return tuple(section for section in SECTIONS if all(not asked[each] for each in section.lacks))


Data = Mapping[str, Sequence[Mapping[str, object]]]
"""Sections for machines: their rows by name."""

Column = tuple[str, str | Callable[[Overview, Any], object], bool]


@frozen
class Section:
    """
    One table: which rows it has, its columns, and which filters have nothing to choose by in it.

    A column is (header, the row's attribute or a function of it, whether only -o wide shows it). The first is the name.
    """

    kind: str
    columns: Sequence[Column]
    lacks: tuple[str, ...] = ()

    @property
    def plural(self) -> str:
        """What the overview and machines call it."""
        return self.kind + "s"


def _since(name: str) -> Callable[[Overview, Any], str]:
    """Return a column that shows how long ago a time was."""

    def shown(seen: Overview, row: Any) -> str:
        at = getattr(row, name)
        return NONE if at is None else age(seen.now - at)

    return shown


def _reachable(_: Overview, cluster: ClusterRow) -> str:
    return {True: "yes", False: "no", None: UNKNOWN}[cluster.reachable]


def _rooms(_: Overview, cluster: ClusterRow) -> str | None:
    if not cluster.default_reservation:
        return None
    return " ".join(f"{topology}={slices}" for topology, slices in cluster.room.items()) or UNKNOWN


def _room(_: Overview, queue: QueueRow) -> object:
    return (UNKNOWN if queue.room is None else queue.room) if queue.reserved else None


SECTIONS = (
    Section(
        "cluster",
        (
            ("NAME", "name", False),
            ("STATUS", "status", False),
            ("REACHABLE", _reachable, False),
            ("TYPE", "tpu_type", False),
            ("PROJECT", "project", True),
            ("LOCATION", "location", True),
            ("ZONE", lambda _, each: each.zone or each.used_zone or UNKNOWN, False),
            ("RESERVATION", "default_reservation", False),
            ("ROOM", _rooms, False),
            ("BUCKET", "gcs_bucket", True),
            ("PROBLEM", "problem", False),
        ),
        lacks=("actor", "statuses"),
    ),
    Section(
        "queue",
        (
            ("NAME", "name", False),
            ("WAITING", "waiting", False),
            ("RUNNING", "running", False),
            ("ROOM", _room, False),
            ("HOLDER", "holder", False),
            ("ACTOR", "actor", True),
            ("PHASE", "phase", False),
            ("SINCE", _since("held_at"), False),
        ),
        lacks=("actor", "statuses"),
    ),
    Section(
        "pool",
        (
            ("NAME", "name", False),
            ("CLUSTER", "cluster", False),
            ("TOPOLOGY", "topology", False),
            ("MACHINE", "machine_type", True),
            ("HOSTS", "hosts", False),
            ("MODE", "mode", False),
            ("STATE", "state", False),
            ("SEEN", "seen", False),
            ("HOLDER", "lease", False),
            ("ACTOR", "actor", True),
            ("IDLE", _since("idle_at"), False),
            ("ERROR", "error_text", True),
            ("AGE", _since("requested_at"), False),
        ),
        lacks=("statuses",),
    ),
    Section(
        "job",
        (
            ("NAME", "id", False),
            ("ACTOR", "actor", False),
            ("STATUS", "status", False),
            ("REASON", "reason", False),
            ("CLUSTER", "cluster", False),
            ("TOPOLOGY", "topology", False),
            ("MODE", "supply_mode", True),
            ("PRIORITY", "priority", True),
            ("ATTEMPT", "attempt", True),
            ("POOL", "node_pool_name", True),
            ("MESSAGE", "message", True),
            ("AGE", _since("created_at"), False),
        ),
    ),
)


def _json(data: Data) -> str:
    """Return JSON with a row a line: quick to write, and to search, when there are thousands."""
    parts = []
    for name, rows in sorted(data.items()):
        lines = ",".join("\n    " + json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(f"  {json.dumps(name)}: [{lines}\n  ]" if rows else f"  {json.dumps(name)}: []")
    return "{\n" + ",\n".join(parts) + "\n}"


def _yaml(data: Data) -> str:
    """Return YAML; values stand as JSON writes them, which is YAML too: its own writer needs seconds for thousands."""
    parts = []
    for name, rows in sorted(data.items()):
        lines = ("\n  ".join(f"{key}: {_scalar(value)}" for key, value in row.items()) for row in rows)
        parts.append(f"{name}:\n" + "\n".join(f"- {each}" for each in lines) if rows else f"{name}: []")
    return "\n".join(parts)


def _scalar(value: object) -> str:
    """Return a value as JSON; what is no printable text is escaped."""
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable())


FORMS: Mapping[str, Callable[[Data], str]] = {"json": _json, "yaml": _yaml}
"""The forms for machines."""


def render(
    seen: Overview,
    output: str | None = None,
    *,
    sections: Iterable[Section] = SECTIONS,
    width: int | None = None,
) -> str:
    """
    Return the whole overview.

    Args:
        seen: what there is.
        output: None for tables, or wide, name, json, yaml.
        sections: those to show.
        width: the columns of the terminal, into which tables that are not wide are fitted; None: as wide as need be.
    """
    if output and output in FORMS:
        return FORMS[output]({each.plural: [_data(row) for row in rows_of(seen, each)] for each in sections})
    if output == "name":
        return "\n".join(
            f"{each.kind}/{cells(seen, each.columns[:1], row)[0]}" for each in sections for row in rows_of(seen, each)
        )
    wide = output == "wide"
    return "\n\n".join(_table(seen, each, wide=wide, width=None if wide else width) for each in sections)


def rows_of(seen: Overview, section: Section) -> tuple[Any, ...]:
    """Return the rows of a section."""
    rows: tuple[Any, ...] = getattr(seen, section.plural)
    return rows


def cells(seen: Overview, columns: Iterable[Column], row: Any) -> list[object]:
    """Return what columns show of a row."""
    return [getattr(row, value) if isinstance(value, str) else value(seen, row) for _, value, _ in columns]


def narrow(section: Section) -> list[Column]:
    """Return the columns of a table that is not wide."""
    return [column for column in section.columns if not column[2]]


def short(values: Iterable[object]) -> list[object]:
    """Return cells without the middle of long texts."""
    return [clean(value, NARROW_BYTES) if isinstance(value, str) else value for value in values]


def _table(seen: Overview, section: Section, *, wide: bool, width: int | None) -> str:
    columns = list(section.columns) if wide else narrow(section)
    rows = [cells(seen, columns, row) for row in rows_of(seen, section)]
    if not rows:
        return f"{section.plural.upper()}\n{NONE}"
    shown = rows if wide else [short(row) for row in rows]
    return f"{section.plural.upper()}\n" + table([header for header, _, _ in columns], shown, width=width)


def _data(row: Any) -> dict[str, object]:
    return {name: getattr(row, name) for name in sorted(fields_dict(type(row)))}
