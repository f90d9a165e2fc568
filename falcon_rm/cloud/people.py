"""
What operators and upstream write and look up, each in one transaction.

1. Upstream's columns and Falcon's never meet: submit fills what upstream fills, abort sets status and aborting_at.
2. What an operator does to `clusters` stands in `audit_events`, with who did it.
3. What cannot be done is Refused, with a line that says why; nothing of it is kept.
"""

from collections.abc import Callable, Mapping, Sequence
from uuid import uuid4

from falcon_rm.cloud.database import Database, Run, Unstorable
from falcon_rm.cloud.rows import CLUSTER, LIVE, read_clusters, read_statuses
from falcon_rm.cloud.transaction import audit, this_process
from falcon_rm.core.model import Cluster
from falcon_rm.ports import Refused
from falcon_rm.submission import NewJob

INSERT_JOB = """
    INSERT INTO job (id, name, actor, spec, priority, timeout_seconds, artifact_path, created_at, status)
    VALUES (%s, %s, %s, %s, %s, %s, %s, NOW(6), 'Pending')
"""
ABORT = f"UPDATE job SET status = 'Aborting', aborting_at = COALESCE(aborting_at, NOW(6)) WHERE id = %s AND {LIVE}"

STRAY = """
    t.uid IS NOT NULL AND t.stop_at IS NULL AND NOT EXISTS (SELECT 1 FROM job j WHERE j.id = t.job_id)
      AND NOT EXISTS (
        SELECT 1 FROM job_events e WHERE e.job_id = t.job_id AND e.attempt = t.attempt
          AND e.to_status IN ('Succeeded', 'Failed', 'Aborted')
      )
"""
"""A Kubernetes Job that may run: its job's row was deleted before the end, and no pass has asked it to go yet."""

IS_EMPTY = f"""
      NOT EXISTS (SELECT 1 FROM node_pools p WHERE p.cluster_id = clusters.id AND p.state <> 'Deleted')
      AND NOT EXISTS (
        SELECT 1 FROM job j WHERE j.cluster_id = clusters.id AND j.{LIVE}
          AND NOT (j.status = 'Pending' AND COALESCE(j.reason, 'Waiting') IN ('Waiting', 'ClusterBusy'))
      )
      AND NOT EXISTS (SELECT 1 FROM workloads t WHERE t.cluster_id = clusters.id AND {STRAY})
"""
"""Nothing lives there; checked again where it counts: a pass that read the cluster before may still write."""

REMOVE = f"DELETE FROM clusters WHERE id = %s AND status <> 'active' AND {IS_EMPTY}"


def submit(database: Database, jobs: Sequence[NewJob]) -> None:
    """Insert rows of `job`, all or none. Raises Refused: an id is there already."""

    def work(run: Run) -> None:
        for job in jobs:
            values = (job.id, job.name, job.actor, job.spec, job.priority, job.timeout_seconds, job.artifact_path)
            run.must(INSERT_JOB, values)

    if not _done(database, work):
        there = sorted(read_statuses(database, [job.id for job in jobs]))
        raise Refused(f"job {there[0]!r} is there already" if there else "the database was busy; try again")


def abort(database: Database, job_id: str) -> None:
    """Ask for the end of a job; to ask again is no error. Raises Refused: there is no such job, or it has ended."""
    if not _done(database, lambda run: run.must(ABORT, (job_id,))):
        status = read_statuses(database, [job_id]).get(job_id)
        raise Refused(f"there is no job {job_id!r}" if status is None else f"job {job_id!r} has ended: {status}")


def add_cluster(database: Database, name: str, values: Mapping[str, str | None]) -> None:
    """Register a cluster. Raises Refused: the name is registered already."""
    cluster_id = str(uuid4())
    row = {"id": cluster_id, "name": name, **_known(values)}
    sql = f"INSERT INTO clusters ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})"

    def work(run: Run) -> None:
        run.must(sql, tuple(row.values()))
        audit(run, this_process(), "cluster added", f"cluster/{name}", _told(row))

    if not _done(database, work):
        raise Refused(f"cluster {name!r} is registered already")


def set_cluster(
    database: Database, name: str, changes: Mapping[str, str | None], *, kind: str = "cluster changed"
) -> None:
    """Change columns of a cluster; the audit calls it *kind*. Raises Refused: there is no such cluster."""
    row = _known(changes)
    sets = ", ".join(f"{column} = %s" for column in row)

    def work(run: Run) -> None:
        run.must(f"UPDATE clusters SET {sets} WHERE name = %s", (*row.values(), name))
        audit(run, this_process(), kind, f"cluster/{name}", _told(row))

    if not _done(database, work):
        raise Refused(f"there is no cluster {name!r}")


def move_cluster(database: Database, cluster: Cluster, changes: Mapping[str, str | None]) -> None:
    """
    Change columns of a cluster so that its row names another GKE cluster; what was known of the old one is forgotten.

    Raises:
        Refused: something lives there by now. What lives on the old one would look as if it were gone.
    """
    row = _known(changes)
    sets = ", ".join(f"{column} = %s" for column in row)

    def work(run: Run) -> None:
        run.must(f"UPDATE clusters SET {sets} WHERE id = %s AND {IS_EMPTY}", (*row.values(), cluster.id))
        run.write("DELETE FROM cluster_health WHERE cluster_id = %s", (cluster.id,))
        audit(run, this_process(), "cluster changed", f"cluster/{cluster.name}", _told(row))

    if not _done(database, work):
        raise Refused(f"something lives on cluster {cluster.name!r}: drain it first")


def remove_cluster(database: Database, cluster: Cluster) -> None:
    """Delete a cluster's row, and its queues with it. Raises Refused: it is active, or something lives there by now."""

    def work(run: Run) -> None:
        run.must(REMOVE, (cluster.id,))
        for table in ("cluster_health", "queue_slots", "queue_turns"):
            run.write(f"DELETE FROM {table} WHERE cluster_id = %s", (cluster.id,))
        audit(run, this_process(), "cluster removed", f"cluster/{cluster.name}", f"id={cluster.id}")

    if not _done(database, work):
        raise Refused(f"cluster {cluster.name!r} is active, or something lives there: drain it first")


def read_strays(database: Database, cluster_id: str) -> tuple[str, ...]:
    """Return the Kubernetes Jobs on a cluster that may run though their job's row is gone, by name."""
    found = database.rows(f"SELECT t.name FROM workloads t WHERE t.cluster_id = %s AND {STRAY}", (cluster_id,))
    return tuple(sorted(str(name) for (name,) in found))


def write_off_strays(database: Database, cluster_id: str) -> None:
    """Count these Jobs as gone."""
    sql = f"UPDATE workloads t SET t.stop_at = NOW(6) WHERE t.cluster_id = %s AND {STRAY}"

    def work(run: Run) -> None:
        run.write(sql, (cluster_id,))

    database.unit(work)


def read_cluster(database: Database, name: str) -> Cluster:
    """Return a cluster's row. Raises Refused: there is no such cluster."""
    for cluster in read_clusters(database):
        if cluster.name == name:
            return cluster
    raise Refused(f"there is no cluster {name!r}")


def _done(database: Database, work: Callable[[Run], None]) -> bool:
    try:
        return database.unit(work)
    except Unstorable as error:
        raise Refused(str(error)) from error


def _known(values: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the values, which must all be columns of `clusters` that people may write."""
    wrong = values.keys() - set(CLUSTER) | values.keys() & {"id", "name"}
    if wrong:
        raise ValueError(f"clusters has no column {min(wrong)} to write")
    return dict(values)


def _told(row: Mapping[str, str | None]) -> str:
    """Return columns and values in one line."""
    return " ".join(f"{column}={'NULL' if value is None else value}" for column, value in row.items())
