"""
What the database keeps of the past, read for people; no pass reads it.

1. A job's own rows come through their indexes, everything else from the newest SCANNED rows of a table.
2. Bounded: at most SHOWN rows of a table at once, the newest ones.
"""

from collections.abc import Sequence
from typing import Any

from attrs import fields_dict, frozen

from falcon_rm.cloud.database import Argument, Database
from falcon_rm.cloud.rows import JOB, job_of, named, read_clusters, seconds
from falcon_rm.ports import Refused
from falcon_rm.story import START, Audit, Entry, Event, History, Known, Lease, merged

SCANNED, SHOWN = 200_000, 10_000

NOW = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', NOW(6))"

NEWEST = """
    SELECT (SELECT COALESCE(MAX(id), 0) FROM job_events), (SELECT COALESCE(MAX(id), 0) FROM audit_events)
"""

NAME = "SUBSTRING_INDEX(t.subject, '/', -1)"
"""The last part of an audit's subject: a pool's, a Kubernetes Job's or a cluster's name, or a job's id."""

CLUSTER = "SUBSTRING_INDEX(SUBSTRING_INDEX(t.subject, '/', 2), '/', -1)"
"""The second part: the id of the cluster that a pool or a Kubernetes Job is in, or a cluster's name."""

OF_JOB = """
    SELECT CONCAT('pool/', cluster_id, '/', pool) FROM pool_leases WHERE job_id = %s
    UNION SELECT CONCAT('work/', cluster_id, '/', name) FROM workloads WHERE job_id = %s
"""
"""What the audit calls the pools a job held, and its Kubernetes Jobs."""


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
    """Return the clusters' names by id."""
    return {cluster.id: cluster.name for cluster in read_clusters(database)}


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
    ids = [key for key, name in cluster_names(database).items() if name == wanted.cluster]
    if wanted.cluster is not None and not ids:
        raise Refused(f"there is no cluster {wanted.cluster!r}")
    of_events: list[tuple[str, Sequence[Argument]]] = []
    of_audits: list[tuple[str, Sequence[Argument]]] = []
    if wanted.job is not None:
        of_events.append(("t.job_id = %s", (wanted.job,)))
        subjects = [wanted.job, *(str(row[0]) for row in database.rows(OF_JOB, (wanted.job, wanted.job)))]
        of_audits.append((f"t.subject IN ({', '.join(['%s'] * len(subjects))})", subjects))
    if wanted.pool is not None:
        of_events.append(("t.pool = %s", (wanted.pool,)))
        of_audits.append((f"{NAME} = %s AND t.subject <> {NAME}", (wanted.pool,)))
    if wanted.cluster is not None:
        of_events.append(("t.cluster_id = %s", (ids[0],)))
        of_audits.append((f"{CLUSTER} IN (%s, %s) AND t.subject <> {CLUSTER}", (ids[0], wanted.cluster)))
    if wanted.since is not None:
        recent = ("t.at >= TIMESTAMPADD(MICROSECOND, -%s, NOW(6))", (int(wanted.since * 1e6),))
        of_events.append(recent)
        of_audits.append(recent)
    indexed = wanted.job is not None
    events = _newest(database, "job_events", list(fields_dict(Event)), of_events, known.event, indexed=indexed)
    audits = _newest(database, "audit_events", list(fields_dict(Audit)), of_audits, known.audit, indexed=indexed)
    return merged((Event(**row) for row in events), (Audit(**row) for row in audits))


def _newest(
    database: Database,
    table: str,
    columns: Sequence[str],
    conditions: Sequence[tuple[str, Sequence[Argument]]],
    after: int,
    *,
    indexed: bool,
) -> list[dict[str, Any]]:
    """Return the newest rows of a table that meet all conditions, in any order."""
    reach = [] if indexed else [(f"t.id > (SELECT COALESCE(MAX(id), 0) - {SCANNED} FROM {table})", ())]
    whole = [("t.id > %s", (after,)), *reach, *conditions]
    where = " AND ".join(text for text, _ in whole)
    arguments = [argument for _, given in whole for argument in given]
    return list(named(database, columns, f"FROM {table} t WHERE {where} ORDER BY t.id DESC LIMIT {SHOWN}", arguments))
