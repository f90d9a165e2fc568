"""What status reads of the database: what passes left there, on both servers."""

from collections.abc import Iterator, Sequence

import pytest
from attrs import evolve, frozen
from database_roles import FALCON, Roles

from falcon_rm.cloud import present
from falcon_rm.cloud.database import Argument, Database, Row
from falcon_rm.overview import Overview, QueueRow, Wanted
from falcon_rm.ports import Refused

pytestmark = pytest.mark.every_server

TAKEN = "reservation_remaining_slices=0 reservation_needed_slices=1, waiting for reservation capacity..."
AT = "'2026-01-01 00:00:00' + INTERVAL 1 SECOND"


@frozen
class Tables:
    """A database as others fill it, and a connection of somebody who has nothing but the controller's role."""

    others: Database
    falcon: Database

    def rows(self, sql: str, arguments: Sequence[Argument] = ()) -> tuple[Row, ...]:
        """Carry out a statement of others'."""
        return self.others.rows(sql, arguments)


@pytest.fixture
def rows(roles: Roles) -> Iterator[Tables]:
    """A database with two clusters, one of them with a reservation and trouble."""
    tables = Tables(roles.administrator, Database(roles.address(FALCON)))
    for name, reservation in (("c1", "'r'"), ("c2", "NULL"), ("c3", "NULL")):
        tables.rows(
            "INSERT INTO clusters (id, name, project, location, tpu_type, default_reservation)"
            f" VALUES ('id-{name}', '{name}', 'p', 'l', 'v6e', {reservation})"
        )
    tables.rows("UPDATE clusters SET status = 'offline' WHERE name = 'c3'")
    tables.rows("INSERT INTO cluster_health VALUES ('id-c1', '403', 'z', NOW(6)), ('id-c3', NULL, 'z', NOW(6))")
    yield tables
    tables.falcon.close()


def add(rows: Tables, job_id: str, status: str, reason: str | None = None, **columns: object) -> None:
    """Insert a row of `job`, in the queue of 2x2 on c1 unless told otherwise."""
    given = {
        "id": job_id, "actor": "ann", "spec": "{}", "status": status, "reason": reason, "cluster_id": "id-c1",
        "topology": "2x2", **columns,
    }  # fmt: skip
    rows.rows(
        f"INSERT INTO job ({', '.join(given)}) VALUES ({', '.join(['%s'] * len(given))})",
        list(given.values()),  # type: ignore[arg-type]
    )


def end(rows: Tables, job_id: str, status: str) -> None:
    """Write the event of an end."""
    rows.rows(
        "INSERT INTO job_events (job_id, from_status, to_status, why, attempt) VALUES (%s, 'Running', %s, '', 1)",
        (job_id, status),
    )


def look(rows: Tables, output: str | None = None, **wanted: object) -> Overview:
    """Return what is read."""
    return present.read(rows.falcon, Wanted(**wanted), output)  # type: ignore[arg-type]


def test_clusters(rows: Tables) -> None:
    """A cluster is reachable if the last pass that looked says so; where none looked or looks nobody knows."""
    assert {"c1": False, "c2": None, "c3": None} == {each.name: each.reachable for each in look(rows).clusters}
    rows.rows("UPDATE cluster_health SET problem = NULL WHERE cluster_id = 'id-c1'")
    first = look(rows).clusters[0]
    assert ("c1", True, None, "z") == (first.name, first.reachable, first.problem, first.used_zone)


def test_queues(rows: Tables) -> None:
    """A queue shows who waits and runs, who holds the slot since when, and the room that waiting jobs were told."""
    assert () == look(rows).queues
    rows.rows(f"INSERT INTO queue_slots VALUES ('id-c1', '2x2', 'j1', {AT}), ('id-c2', '4x4', NULL, NULL)")
    add(rows, "j1", "Pending", "Provisioning", actor="bob")
    add(rows, "j2", "Pending", "Waiting")
    add(rows, "j3", "Pending", "Waiting")
    add(rows, "j4", "Running")
    add(rows, "j5", "Succeeded")
    add(rows, "cpu", "Pending", "Waiting", topology="cpu")
    add(rows, "new", "Pending", cluster_id=None, topology=None)
    first, second = look(rows).queues
    held = QueueRow("c1", "2x2", 2, 1, "j1", "bob", "Provisioning", 1767225601.0, reserved=True)
    assert (held, QueueRow("c2", "4x4")) == (first, second)
    rows.rows("UPDATE job SET reason = 'ClusterBusy', message = %s WHERE id = 'j2'", (TAKEN,))
    assert (evolve(held, room=0), {"2x2": 0}) == (look(rows).queues[0], look(rows).clusters[0].room)
    rows.rows("UPDATE job SET status = 'Aborting' WHERE id = 'j1'")
    assert (None, "j1") == (look(rows).queues[0].phase, look(rows).queues[0].holder)


def test_pools(rows: Tables) -> None:
    """A pool that is not Deleted shows its holder's actor; the holder of none is none."""
    for name, state, lease in (("p1", "Active", "'j1'"), ("p2", "Deleting", "NULL"), ("p3", "Deleted", "NULL")):
        rows.rows(
            "INSERT INTO node_pools (cluster_id, name, job_id, attempt, tpu_type, topology, machine_type, hosts, chips,"
            f" mode, state, lease, idle_at) VALUES ('id-c1', '{name}', 'j1', 1, 'v6e', '2x2', 'm', 1, 4, 'on-demand',"
            f" '{state}', {lease}, {AT})"
        )
    add(rows, "j1", "Running")
    seen = [(each.name, each.cluster, each.lease, each.actor, each.idle_at) for each in look(rows).pools]
    assert [("p1", "c1", "j1", "ann", 1767225601.0), ("p2", "c1", None, None, 1767225601.0)] == seen
    assert ["p1"] == [each.name for each in look(rows, actor="ann").pools]
    assert () == look(rows, actor="bob").pools
    assert () == look(rows, cluster="c2").pools
    assert () == look(rows, statuses=("Running",)).pools


def test_jobs(rows: Tables) -> None:
    """Live jobs come oldest first, then those that ended last, newest first; machines get every column but the spec."""
    add(rows, "j2", "Running", created_at="2026-01-02 00:00:00", timeout_seconds=60)
    add(rows, "j1", "Pending", "Waiting", created_at="2026-01-01 00:00:00", message="m")
    for job_id, status in (("e1", "Failed"), ("e2", "Succeeded"), ("e3", "Aborted")):
        add(rows, job_id, status)
    for job_id, status in (("e2", "Succeeded"), ("e1", "Failed"), ("gone", "Failed"), ("j1", "Failed")):
        end(rows, job_id, status)
    assert ["j1", "j2", "e1", "e2"] == [job.id for job in look(rows).jobs]
    assert ["e1"] == [job.id for job in look(rows, statuses=("Failed",)).jobs]
    first, second, *_ = look(rows, "json").jobs
    assert ("j1", "c1", "m", 1767225600.0) == (first.id, first.cluster, first.message, first.created_at)
    assert (60, None) == (second.timeout_seconds, look(rows).jobs[1].timeout_seconds)
    assert "m" == look(rows, "wide").jobs[0].message


def test_a_cluster_that_is_gone(rows: Tables) -> None:
    """A job of a cluster that the registry has no more shows its id; one of no such name is refused."""
    add(rows, "j1", "Running", cluster_id="id-c9")
    assert ["id-c9"] == [job.cluster for job in look(rows).jobs]
    with pytest.raises(Refused, match="no cluster 'c9'"):
        look(rows, cluster="c9")


def test_few_ended_ones(rows: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many have ended, a bounded number is shown."""
    monkeypatch.setattr(present, "ENDED", present.ENDED.replace(str(present.ENDS_SEEN), "3"))
    for number in range(5):
        add(rows, f"e{number}", "Failed")
        end(rows, f"e{number}", "Failed")
    assert ["e4", "e3", "e2"] == [job.id for job in look(rows).jobs]
