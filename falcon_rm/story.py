"""
What happened, from the rows of history: events of jobs and the audit as one story.

1. Values in, text out: nothing here reads or asks.
2. Order is time, then the table, then the row's id: rows of one transaction stay together.
3. Texts stand as they were written, in the language they were written in; labels are English.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from attrs import define, evolve, field, frozen

from falcon_rm.core.messages import moment
from falcon_rm.core.model import Job
from falcon_rm.report import NONE, plain


@frozen
class Event:
    """One row of `job_events`: a change of status or reason."""

    id: int
    job_id: str
    at: float
    from_status: str
    from_reason: str | None
    to_status: str
    to_reason: str | None
    why: str
    message: str | None
    cluster_id: str | None
    pool: str | None
    attempt: int


@frozen
class Audit:
    """One row of `audit_events`: everything else, and who did it."""

    id: int
    at: float
    kind: str
    subject: str
    text: str
    by_user: str
    by_process: str


@frozen
class Lease:
    """One row of `pool_leases`: who held a pool from when to when, and how that ended."""

    cluster_id: str
    pool: str
    attempt: int
    mode: str
    from_at: float
    until_at: float | None
    ended: str | None
    ended_text: str | None


Entry = Event | Audit


@frozen
class History:
    """All that is kept of one job. *job* is its row, None if upstream deleted it; *now* is when this was read."""

    now: float
    job: Job | None
    events: tuple[Event, ...] = ()
    leases: tuple[Lease, ...] = ()


WIDEST = 48
"""How far a column goes to make its cells stand together."""

LATE = 200
"""A row gets its id before it is committed: one may become visible after others whose ids are this much higher."""


@frozen
class Known:
    """Ids of rows of both tables: only what comes after is asked for."""

    event: int = 0
    audit: int = 0

    @property
    def safe(self) -> "Known":
        """The ids behind which no row can come late."""
        return Known(max(0, self.event - LATE), max(0, self.audit - LATE))


START = Known()


@define
class Told:
    """Which rows after *start* were told: none is told twice, none is left out because it was committed late."""

    start: Known = START
    _events: set[int] = field(factory=set)
    _audits: set[int] = field(factory=set)

    def add(self, entry: Entry) -> bool:
        """Note that a row is told; False if it was before."""
        ids = self._events if isinstance(entry, Event) else self._audits
        if entry.id in ids:
            return False
        ids.add(entry.id)
        if len(ids) > 10 * LATE:
            ids.difference_update(sorted(ids)[:-LATE])
        return True

    @property
    def known(self) -> Known:
        """What need not be asked for again."""
        last = Known(max(self._events, default=0), max(self._audits, default=0)).safe
        return Known(max(self.start.event, last.event), max(self.start.audit, last.audit))


def standing(status: str, reason: str | None) -> str:
    """Return Status or Status/Reason."""
    return f"{status}/{reason}" if reason else status


def merged(events: Iterable[Event], audits: Iterable[Audit]) -> tuple[Entry, ...]:
    """Return rows of both tables as one story, oldest first."""
    return tuple(sorted((*events, *audits), key=lambda entry: (entry.at, isinstance(entry, Audit), entry.id)))


def lines(entries: Sequence[Entry], clusters: Mapping[str, str]) -> list[str]:
    """Return each entry as a line: when, about what, what, and the words written with it, in columns."""
    rows = [_cells(entry, clusters) for entry in entries]
    about, what = (max((min(len(row[at]), WIDEST) for row in rows), default=0) for at in (1, 2))
    return [f"{row[0]}  {row[1]:<{about}}  {row[2]:<{what}}  {row[3]}".rstrip() for row in rows]


def _cells(entry: Entry, clusters: Mapping[str, str]) -> tuple[str, str, str, str]:
    if isinstance(entry, Event):
        about = f"job/{entry.job_id}"
        what = f"{standing(entry.from_status, entry.from_reason)} -> {standing(entry.to_status, entry.to_reason)}"
        words = f"{entry.why}: {entry.message}" if entry.message else entry.why
    else:
        about, what, words = with_names(entry, clusters).subject, entry.kind, f"{entry.text} (by {entry.by_user})"
    return moment(entry.at), about or NONE, what, words


def json_lines(entries: Sequence[Entry], clusters: Mapping[str, str]) -> list[str]:
    """Return each entry as a JSON object in one line; a cluster is shown by name beside its id."""
    return [_json_line(entry, clusters) for entry in entries]


def _json_line(entry: Entry, clusters: Mapping[str, str]) -> str:
    data = plain(entry if isinstance(entry, Event) else with_names(entry, clusters))
    if isinstance(entry, Event):
        data["cluster"] = clusters.get(entry.cluster_id or "", entry.cluster_id)
    return json.dumps({**data, "at": moment(entry.at)}, ensure_ascii=False, sort_keys=True)


def with_names(audit: Audit, clusters: Mapping[str, str]) -> Audit:
    """Return an audit row whose subject names its cluster, where it holds the id."""
    kind, *rest = audit.subject.split("/", 2)
    if len(rest) != 2:
        return audit
    return evolve(audit, subject="/".join((kind, clusters.get(rest[0], rest[0]), rest[1])))
