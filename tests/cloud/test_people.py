"""What operators and upstream write."""

from collections.abc import Iterator

import pytest
from database_roles import FALCON, UPSTREAM, Roles

from falcon_rm.cloud import people
from falcon_rm.cloud.database import Database
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.core.actions import Change
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import ClusterStatus
from falcon_rm.ports import Refused
from falcon_rm.submission import NewJob

pytestmark = pytest.mark.every_server

JOB = NewJob("j1", "ann", '{"image": "busybox", "device_type": "cpu"}', "n", 3, 60, "a/b")

ROW = {"project": "project-1", "location": "us-central1", "tpu_type": "v7x", "zone": "us-central1-a"}


@pytest.fixture
def store(roles: Roles) -> Iterator[MySqlStore]:
    """A fresh store, under the controller's role as operators are."""
    with MySqlStore(Database(roles.address(FALCON))) as opened:
        yield opened


@pytest.fixture
def upstream(roles: Roles) -> Iterator[Database]:
    """The same database under upstream's role."""
    opened = Database(roles.address(UPSTREAM))
    yield opened
    opened.close()


def test_submit(store: MySqlStore, upstream: Database) -> None:
    """A submitted job has what upstream fills, is Pending, and came now."""
    people.submit(upstream, [JOB])
    rows = store.read()
    (job,) = rows.jobs
    assert ("j1", "ann", "n", 3, 60, "a/b", "Pending", None, 0) == (
        job.id, job.actor, job.name, job.priority, job.timeout_seconds, job.artifact_path, job.status,
        job.reason, job.version,
    )  # fmt: skip
    assert 0 <= rows.now - job.created_at < 60


def test_submit_all_or_none(store: MySqlStore, upstream: Database) -> None:
    """If one id is there already, nothing is inserted, and the id is named."""
    people.submit(upstream, [JOB])
    with pytest.raises(Refused, match="'j1' is there already"):
        people.submit(upstream, [NewJob("j0", "ann", "{}"), JOB])
    assert {"j1": "Pending"} == store.statuses(["j0", "j1"])


def test_submit_what_does_not_fit(store: MySqlStore, upstream: Database) -> None:
    """A value too long for its column is refused in words."""
    with pytest.raises(Refused, match="1406"):
        people.submit(upstream, [NewJob("j" * 65, "ann", "{}")])


def test_abort(store: MySqlStore, upstream: Database) -> None:
    """Aborting comes with its time, leaves the version, and the first time stays."""
    people.submit(upstream, [JOB])
    people.abort(upstream, "j1")
    first = store.read().jobs[0]
    people.abort(upstream, "j1")
    assert (first, "Aborting", 0) == (store.read().jobs[0], first.status, first.version)
    assert first.aborting_at is not None


@pytest.mark.parametrize("status", ["Succeeded", "Failed", "Aborted"])
def test_abort_of_what_has_ended(store: MySqlStore, upstream: Database, status: str) -> None:
    """A terminal status never changes."""
    people.submit(upstream, [JOB])
    assert store.commit(Change("j1", 0, "Pending", None, status, None, ""))
    with pytest.raises(Refused, match=f"'j1' has ended: {status}"):
        people.abort(upstream, "j1")
    assert {"j1": status} == store.statuses(["j1"])


def test_abort_of_nothing(store: MySqlStore, upstream: Database) -> None:
    """A job that is not there is named."""
    with pytest.raises(Refused, match="no job 'nope'"):
        people.abort(upstream, "nope")


def test_clusters(store: MySqlStore) -> None:
    """A cluster is added and changed, and the audit says what was written by whom."""
    people.add_cluster(store.database, "c1", ROW)
    people.set_cluster(store.database, "c1", {"status": "maintenance", "zone": None})
    people.set_cluster(store.database, "c1", {"status": "maintenance"})
    (cluster,) = store.read().clusters
    expected = Cluster(cluster.id, "c1", "project-1", "us-central1", "v7x", ClusterStatus.MAINTENANCE)
    assert (expected, 36) == (cluster, len(cluster.id))
    audits = store.database.rows("SELECT kind, subject, text, by_user <> '', by_process <> '' FROM audit_events")
    added = f"id={cluster.id} name=c1 project=project-1 location=us-central1 tpu_type=v7x zone=us-central1-a"
    assert (
        ("cluster added", "cluster/c1", added, 1, 1),
        ("cluster changed", "cluster/c1", "status=maintenance zone=NULL", 1, 1),
        ("cluster changed", "cluster/c1", "status=maintenance", 1, 1),
    ) == audits


def test_cluster_that_is_there_or_not(store: MySqlStore) -> None:
    """A name is registered once; only what is registered is changed."""
    people.add_cluster(store.database, "c1", ROW)
    with pytest.raises(Refused, match="'c1' is registered already"):
        people.add_cluster(store.database, "c1", ROW)
    with pytest.raises(Refused, match="no cluster 'c2'"):
        people.set_cluster(store.database, "c2", {"status": "offline"})
    with pytest.raises(Refused, match=r"1265|1366"):
        people.set_cluster(store.database, "c1", {"status": "asleep"})
    with pytest.raises(ValueError, match="id"):
        people.set_cluster(store.database, "c1", {"id": "x"})
