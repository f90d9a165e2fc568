"""
What the database holds, read into values.

1. The rows of `job` come first: what is decided on them is guarded by the version and status read here.
2. Only what is live is read, through indexes and by named columns; history never is (P96).
3. A row that holds nonsense costs nobody else anything: a bad spec is a value, a bad cluster is offline.
4. A column whose name is `at` or ends in `_at` is a time: it leaves the database as whole microseconds and becomes
   seconds since the epoch.
5. A counter of `job` that upstream left NULL is 0: its table may allow that.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from falcon_rm.cloud.database import Argument, Database, is_storable
from falcon_rm.core.backoff import BACKOFF_ENDS
from falcon_rm.core.model import Cluster, Failure, Fault, InvalidSpec, Job, Pool, Slot, Submission, TaskSpec, Turn
from falcon_rm.core.spec import parse
from falcon_rm.core.words import ClusterStatus, ErrorKind, Mode, PoolState
from falcon_rm.ports import Rows, StoreDown

LIVE = "status NOT IN ('Succeeded', 'Failed', 'Aborted')"
"""A status that nobody knows is live too: only a terminal one is over."""

BACKS_OFF = (*sorted(BACKOFF_ENDS), "cluster")
"""Ways a lease ends after which its job waits before it tries that cluster again."""

FAILURES_KEPT = 20
"""Newest failures that are read of a job and cluster: a doubling back-off has long reached its bound by then."""

IDS_AT_ONCE = 1000

COUNTERS = frozenset({"priority", "attempt", "pool_failures", "losses", "version"})

JOB = (
    "id", "actor", "spec", "status", "created_at", "version", "name", "priority", "timeout_seconds", "artifact_path",
    "reason", "message", "aborting_at", "cluster_id", "topology", "node_pool_name", "job_uid", "supply_mode", "attempt",
    "pool_failures", "losses", "retry_at", "outcome", "queued_at", "provisioning_at", "dispatched_at", "started_at",
    "finished_at", "aborted_at",
)  # fmt: skip
CLUSTER = (
    "id", "name", "project", "location", "tpu_type", "status", "gcs_bucket", "default_reservation", "gke_name", "zone",
    "node_service_account", "endpoint",
)  # fmt: skip
POOL = (
    "cluster_id", "name", "job_id", "attempt", "tpu_type", "topology", "machine_type", "hosts", "chips", "mode",
    "reservation", "state", "lease", "leased_at", "requested_at", "seen_at", "up_at", "ready_at", "idle_at", "found",
    "error_kind", "error_text", "error_at",
)  # fmt: skip
SUBMISSION = (
    "cluster_id", "name", "job_id", "attempt", "requested_at", "resumed_at", "stop_at",
    "error_kind", "error_text", "error_at",
)  # fmt: skip
SLOT = ("cluster_id", "topology", "holder", "held_at")
TURN = ("cluster_id", "topology", "actor", "served_at")
FAILURE = ("job_id", "cluster_id", "ended", "until_at", "ended_text")

FAILURES = """FROM (
    SELECT l.*, ROW_NUMBER() OVER (PARTITION BY l.job_id, l.cluster_id ORDER BY l.until_at DESC, l.id DESC) AS newest
    FROM job j STRAIGHT_JOIN pool_leases l ON l.job_id = j.id
    WHERE j.status = 'Pending' AND FIND_IN_SET(l.ended, %s)
) t WHERE t.newest <= %s"""
"""
One lookup a job: by a list of words the server would make one for each word of each job. Here and below the living jobs
come first, whatever a server thinks of its tables: those that are over leave many more rows behind.
"""

TROUBLES = """FROM (
    SELECT job_id, cluster_id, ended, until_at, ended_text FROM pool_leases
    WHERE ended = 'cluster' AND until_at > TIMESTAMPADD(DAY, -1, NOW(6))
    UNION ALL
    SELECT job_id, cluster_id, 'cluster', error_at, error_text FROM workloads
    WHERE error_kind = 'cluster' AND error_at > TIMESTAMPADD(DAY, -1, NOW(6))
    ORDER BY until_at DESC LIMIT 1000
) t"""

BUSY_SINCE = """FROM (
    SELECT e.job_id, MAX(e.at) AS at FROM job j STRAIGHT_JOIN job_events e ON e.job_id = j.id
    WHERE j.status = 'Pending' AND j.reason = 'ClusterBusy' GROUP BY e.job_id
) t"""

NOW = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', NOW(6))"
NOW_AND_INSTANCE = f"{NOW}, value FROM falcon_meta WHERE name = 'instance'"

_parse_short = lru_cache(maxsize=20_000)(parse)


def read_rows(database: Database) -> Rows:
    """Return what a pass needs of the database."""
    found = database.rows(NOW_AND_INSTANCE)
    if not found:
        raise StoreDown("this database has no instance id; falcon-rm db migrate makes it")
    now, instance = found[0]
    jobs = read_jobs(database)
    queues = sorted({(job.cluster_id, job.topology) for job in jobs if job.cluster_id and job.topology})
    return Rows(
        now=seconds(now) or 0.0,
        instance=str(instance),
        jobs=jobs,
        clusters=read_clusters(database),
        health=read_health(database),
        pools=pools_where(database, "t.state IN ('Active', 'Deleting')"),
        submissions=tuple(
            Submission(**faulted(row))
            for row in named(
                database,
                SUBMISSION,
                f"FROM job j STRAIGHT_JOIN workloads t ON t.job_id = j.id AND t.attempt = j.attempt WHERE j.{LIVE}",
            )
        ),
        slots=tuple(Slot(**row) for row in named(database, SLOT, "FROM queue_slots t")),
        turns=read_turns(database, queues),
        failures=tuple(
            failure_of(row) for row in named(database, FAILURE, FAILURES, (",".join(BACKS_OFF), FAILURES_KEPT))
        ),
        troubles=tuple(failure_of(row) for row in named(database, FAILURE, TROUBLES)),
    )


def read_jobs(database: Database) -> tuple[Job, ...]:
    """Return the live rows of `job`, by id."""
    rows = tuple(named(database, JOB, f"FROM job t WHERE t.{LIVE}"))
    since = {}
    if any(row["reason"] == "ClusterBusy" for row in rows):
        since = {row["job_id"]: row["at"] for row in named(database, ("job_id", "at"), BUSY_SINCE)}
    return tuple(sorted((job_of(row, since) for row in rows), key=lambda job: job.id))


def job_of(row: dict[str, Any], since: Mapping[str, float]) -> Job:
    """Return a row of `job` as a value. An actor's trailing spaces are nothing to the database, so they go."""
    busy = (row["status"], row["reason"]) == ("Pending", "ClusterBusy")
    return Job(
        task=task_of(row.pop("spec")),
        actor=(row.pop("actor") or "").rstrip(" "),
        created_at=row.pop("created_at") or 0.0,
        reason_since=since.get(row["id"]) if busy else None,
        **row,
    )


def task_of(spec: str | None) -> TaskSpec | InvalidSpec:
    """Return a spec, parsed; the short ones are remembered, since parsing depends on nothing else."""
    raw = spec or ""
    return _parse_short(raw) if len(raw) < 4096 else parse(raw)


def read_clusters(database: Database) -> tuple[Cluster, ...]:
    """Return every cluster, by name. A status that nobody knows reads as offline: nothing there is touched."""
    known = {status.value for status in ClusterStatus}
    clusters = []
    for row in named(database, CLUSTER, "FROM clusters t"):
        status = row.pop("status")
        clusters.append(Cluster(status=ClusterStatus(status if status in known else ClusterStatus.OFFLINE), **row))
    return tuple(sorted(clusters, key=lambda cluster: cluster.name))


def read_health(database: Database) -> Mapping[str, tuple[str | None, str | None]]:
    """Return cluster id -> (problem, zone)."""
    rows = named(database, ("cluster_id", "problem", "zone"), "FROM cluster_health t")
    return {row["cluster_id"]: (row["problem"], row["zone"]) for row in rows}


def read_turns(database: Database, queues: Sequence[tuple[str, str]]) -> tuple[Turn, ...]:
    """Return the turns of these queues."""
    if not queues:
        return ()
    wanted = ", ".join(["(%s, %s)"] * len(queues))
    rest = f"FROM queue_turns t WHERE (t.cluster_id, t.topology) IN ({wanted})"
    return tuple(Turn(**row) for row in named(database, TURN, rest, [part for queue in queues for part in queue]))


def failure_of(row: dict[str, Any]) -> Failure:
    """Return the bad end of a lease, or of a submit, as a value."""
    return Failure(at=row.pop("until_at") or 0.0, text=row.pop("ended_text") or "", **row)


def pools_where(database: Database, condition: str, arguments: Sequence[Argument] = ()) -> tuple[Pool, ...]:
    """Return ledger rows, by cluster and name."""
    rows = named(database, POOL, f"FROM node_pools t WHERE {condition}", arguments)
    return tuple(sorted((pool_of(row) for row in rows), key=lambda pool: (pool.cluster_id, pool.name)))


def pool_of(row: dict[str, Any]) -> Pool:
    """Return a row of `node_pools` as a value."""
    row = faulted(row)
    return Pool(
        mode=Mode(row.pop("mode")),
        state=PoolState(row.pop("state")),
        found=bool(row.pop("found")),
        **row,
    )


def read_statuses(database: Database, ids: Collection[str]) -> Mapping[str, str]:
    """Return id -> status of the rows of `job` among *ids*."""
    wanted, statuses = sorted(filter(is_storable, ids)), {}
    for start in range(0, len(wanted), IDS_AT_ONCE):
        part = wanted[start : start + IDS_AT_ONCE]
        rest = f"FROM job t WHERE t.id IN ({', '.join(['%s'] * len(part))})"
        statuses.update({row["id"]: row["status"] for row in named(database, ("id", "status"), rest, part)})
    return statuses


def named(
    database: Database, names: Sequence[str], rest: str, arguments: Sequence[Argument] = ()
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `SELECT names ...rest` as dicts; *rest* calls the table t."""
    times = {name for name in names if name == "at" or name.endswith("_at")}
    columns = ", ".join(
        f"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', t.{name})" if name in times else _whole(name) for name in names
    )
    for values in database.rows(f"SELECT {columns} {rest}", arguments):
        row = dict(zip(names, values, strict=True))
        for name in times:
            row[name] = seconds(row[name])
        yield row


def _whole(name: str) -> str:
    """Return what reads a column that is no time."""
    return f"COALESCE(t.{name}, 0)" if name in COUNTERS else f"t.{name}"


def seconds(microseconds: object) -> float | None:
    """Return a time as seconds since the epoch."""
    return None if microseconds is None else int(str(microseconds)) / 1e6


def faulted(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with its three error columns folded into one value."""
    kind, text, at = row.pop("error_kind"), row.pop("error_text"), row.pop("error_at")
    return {**row, "error": Fault(ErrorKind(kind), text or "", at or 0.0) if kind else None}
