"""
What the database keeps of the past, read for people; no pass reads it.

1. Whatever is asked for comes through an index, so that the whole of the past is searched.
2. Bounded: at most SHOWN rows of a table at once, the newest ones.
"""

import re
from collections.abc import Sequence
from typing import Any

from attrs import fields_dict, frozen

from falcon_rm.cloud.database import Argument, Database
from falcon_rm.cloud.rows import JOB, NOW, job_of, named, read_clusters, seconds
from falcon_rm.ports import Refused
from falcon_rm.story import START, Audit, Entry, Event, History, Known, Lease, merged

SHOWN = 10_000

Condition = tuple[str, Sequence[Argument]]

KINDS_INSIDE = ("pool", "work", "slot")
"""What the audit's subjects begin with that go on with the id of a cluster."""

NEWEST = """
    SELECT (SELECT COALESCE(MAX(id), 0) FROM job_events), (SELECT COALESCE(MAX(id), 0) FROM audit_events)
"""

OF_JOB = """
    SELECT CONCAT('pool/', cluster_id, '/', pool) FROM pool_leases WHERE job_id = %s
    UNION SELECT CONCAT('work/', cluster_id, '/', name) FROM workloads WHERE job_id = %s
"""
"""What the audit calls the pools a job held, and its Kubernetes Jobs."""

REMOVED = "SELECT subject, text FROM audit_events WHERE subject LIKE 'cluster/%' AND kind = 'cluster removed'"
"""What `cluster remove` left behind of each: cluster/NAME and id=ID."""

WHERE_POOLS_ARE = "SELECT DISTINCT cluster_id FROM node_pools UNION SELECT id FROM clusters"


@frozen
class Wanted:
    """Which part of the story: everything, or what fits all that is named."""

    job: str | None = None
    pool: str | None = None
    cluster: str | None = None  # its name
    since: float | None = None  # seconds ago


def read_history(database: Database, job_id: str) -> History:
    """Return what is kept of a job. Raises Refused: nothing is."""
    ((now,),) = database.rows(NOW)
    rows = [job_of(row, {}) for row in named(database, JOB, "FROM job t WHERE t.id = %s", (job_id,))]
    events = named(database, list(fields_dict(Event)), "FROM job_events t WHERE t.job_id = %s ORDER BY t.id", (job_id,))
    leases = named(
        database, list(fields_dict(Lease)), "FROM pool_leases t WHERE t.job_id = %s ORDER BY t.id", (job_id,)
    )
    found = History(
        now=seconds(now) or 0.0,
        job=rows[0] if rows else None,
        events=tuple(Event(**row) for row in events),
        leases=tuple(Lease(**row) for row in leases),
    )
    if not (found.job or found.events or found.leases):
        raise Refused(f"there is no job {job_id!r}")
    return found


def cluster_names(database: Database) -> dict[str, str]:
    """Return the clusters' names by id, those that were removed after those that are there."""
    names = {cluster.id: cluster.name for cluster in read_clusters(database)}
    for subject, text in database.rows(REMOVED):
        names.setdefault(str(text).removeprefix("id="), str(subject).removeprefix("cluster/"))
    return names


def newest(database: Database) -> Known:
    """Return the rows that were written last."""
    ((event, audit),) = database.rows(NEWEST)
    return Known(int(str(event)), int(str(audit)))


def read_story(database: Database, wanted: Wanted, known: Known = START) -> tuple[Entry, ...]:
    """
    Return the part of the story that is wanted, oldest first.

    Args:
        database: where it stands.
        wanted: which part.
        known: what was told before, and is left out.

    Raises:
        Refused: there is no such cluster.
    """
    of_events, of_audits = list[Condition](), list[Condition]()
    if wanted.job is not None:
        of_events.append(("t.job_id = %s", (wanted.job,)))
        held = (str(row[0]) for row in database.rows(OF_JOB, (wanted.job, wanted.job)))
        of_audits.append(_subjects(wanted.job, f"job/{wanted.job}", *held))
    if wanted.pool is not None:
        of_events.append(("t.pool = %s", (wanted.pool,)))
        places = [str(row[0]) for row in database.rows(WHERE_POOLS_ARE)]
        of_audits.append(_subjects(*(f"{kind}/{each}/{wanted.pool}" for each in places for kind in ("pool", "work"))))
    if wanted.cluster is not None:
        ids = [key for key, name in cluster_names(database).items() if name == wanted.cluster]
        if not ids:
            raise Refused(f"there is no cluster {wanted.cluster!r}")
        of_events.append(("t.cluster_id = %s", (ids[0],)))
        of_audits.append(_of_cluster(ids[0], wanted.cluster))
    if wanted.since is not None:
        recent = ("t.at >= TIMESTAMPADD(MICROSECOND, -%s, NOW(6))", (int(wanted.since * 1e6),))
        of_events.append(recent)
        of_audits.append(recent)
    events = _newest(database, "job_events", list(fields_dict(Event)), of_events, known.event)
    audits = _newest(database, "audit_events", list(fields_dict(Audit)), of_audits, known.audit)
    return merged((Event(**row) for row in events), (Audit(**row) for row in audits))


def is_cut(story: Sequence[Entry]) -> bool:
    """Return whether older rows may have been left out."""
    events = sum(isinstance(entry, Event) for entry in story)
    return max(events, len(story) - events) >= SHOWN


def _subjects(*names: str) -> Condition:
    """Return the condition that an audit is about one of these; none: about nothing."""
    if not names:
        return "FALSE", ()
    return f"t.subject IN ({', '.join(['%s'] * len(names))})", names


def _of_cluster(cluster_id: str, name: str) -> Condition:
    """Return the condition that an audit is about a cluster, or about something in it."""
    inside = re.sub(r"([\\%_])", r"\\\1", cluster_id)
    text = " OR ".join(["t.subject LIKE %s"] * len(KINDS_INSIDE))
    same, names = _subjects(f"cluster/{cluster_id}", f"cluster/{name}")
    return f"({text} OR {same})", (*(f"{kind}/{inside}/%" for kind in KINDS_INSIDE), *names)


def _newest(
    database: Database,
    table: str,
    columns: Sequence[str],
    conditions: Sequence[Condition],
    after: int,
) -> list[dict[str, Any]]:
    """Return the newest rows of a table that meet all conditions, in any order."""
    whole = [("t.id > %s", (after,)), *conditions]
    where = " AND ".join(text for text, _ in whole)
    arguments = [argument for _, given in whole for argument in given]
    return list(named(database, columns, f"FROM {table} t WHERE {where} ORDER BY t.id DESC LIMIT {SHOWN}", arguments))
