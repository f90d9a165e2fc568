"""Ten thousand living jobs among two hundred thousand that are over are read by index, in few statements (R16)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cloudsim.workload import NEVER_ENDS
from database_roles import FALCON, Roles
from mysql_store import SteeredStore
from severed_line import Line
from world import Falcon, spec

from falcon_rm.cloud.database import Database

pytestmark = pytest.mark.every_server

LIVE, OVER = 10_000, 200_000
READ_STATEMENTS = 12
LOOKS = 7
"""
For each living job: itself, alone and beside its Kubernetes Job, and twice each where a server sorts what an index has
found; the Job, and that it has no other; half of them wait, and are looked up beside their leases too.
"""
OWN_TABLES = ("falcon_meta", "clusters", "cluster_health", "queue_slots", "queue_turns")
"""Tables that stay small: one row a cluster, a queue, or an actor in a queue."""

GROWN = """
    INSERT INTO job (id, actor, spec, status, reason, message, cluster_id, topology, created_at, attempt, job_uid)
    SELECT CONCAT(%s, n), CONCAT('user-', MOD(n, 50)), '{"image": "busybox", "device_type": "cpu"}', %s, %s,
           REPEAT('x', 80), 'c1', CONCAT('t', MOD(n, 5)), NOW(6), 1, CONCAT('uid-', n)
    FROM (
        SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 100000 * f.n AS n
        FROM digits a, digits b, digits c, digits d, digits e, digits f WHERE f.n < 3
    ) numbers WHERE n < %s
"""
STATES: Mapping[str, tuple[str, str | None, int]] = {
    "w": ("Pending", "Waiting", LIVE // 2),
    "r": ("Running", None, LIVE // 2),
    "s": ("Succeeded", None, OVER // 2),
    "f": ("Failed", "JobFailed", OVER // 2 - 10_000),
    "a": ("Aborted", None, 10_000),
}


PAST = (
    """
    INSERT INTO workloads (cluster_id, name, job_id, attempt, uid, requested_at)
    SELECT cluster_id, CONCAT('falcon-', id), id, attempt, job_uid, NOW(6) FROM job
    WHERE reason IS NULL AND cluster_id IS NOT NULL
    """,
    """
    INSERT INTO pool_leases (cluster_id, pool, job_id, attempt, actor, mode, from_at, until_at, ended)
    SELECT cluster_id, CONCAT('falcon-', id), id, 1, actor, 'on-demand', NOW(6), NOW(6), 'released' FROM job
    WHERE status IN ('Succeeded', 'Failed')
    """,
)
"""What those jobs left behind."""


@pytest.fixture
def line(roles: Roles, tmp_path: Path) -> Iterator[Line]:
    """A line that counts statements."""
    made = Line(roles.address(FALCON), tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(roles: Roles, line: Line) -> Iterator[SteeredStore]:
    """A store behind that line."""
    made = SteeredStore.under(roles, timeout=60)
    made.database = Database(line.through(roles.address(FALCON)), 60, made.database.session)
    yield made
    made.close_all()


def grow(store: SteeredStore) -> None:
    """Fill the table of jobs."""
    store.others.rows("CREATE TABLE digits (n INT)")
    store.others.rows("INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
    for prefix, (status, reason, number) in STATES.items():
        store.others.rows(GROWN, (prefix, status, reason, number))
    for sql in PAST:
        store.others.rows(sql)
    store.others.rows("ANALYZE TABLE job, workloads, pool_leases")


def examined(store: SteeredStore) -> int:
    """Return how many rows the server looks at for one read."""

    def count() -> int:
        status = store.database.rows("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(str(value)) for name, value in status if not str(name).endswith(("rnd", "rnd_deleted")))

    before = count()
    store.read()
    return count() - before


def test_the_living_are_read_by_index(store: SteeredStore, line: Line) -> None:
    """EXPLAIN says so of every statement that reads a table that grows; what is looked at are the living (P96)."""
    store.insert_job("j1", spec())
    store.read()
    line.strike()
    store.read()
    few = len(line.statements)
    grow(store)
    line.strike()
    rows = store.read()
    grown = [sql for sql in line.statements if not any(table in sql for table in OWN_TABLES)]
    plans = [row for sql in grown for row in store.others.rows(f"EXPLAIN FORMAT = TRADITIONAL {sql}")]
    assert (LIVE + 1, few + 1) == (len(rows.jobs), len(line.statements)), "one statement more: the queues' turns"
    assert [] == [row for row in plans if "ALL" in row[3:6] and not str(row[2]).startswith("<")]
    assert {"job_status", "node_pools_state", "workloads_job"} <= {key for row in plans for key in row[5:8]}
    assert examined(store) < LOOKS * LIVE


def test_statements_of_an_idle_pass(store: SteeredStore, line: Line) -> None:
    """However many jobs wait and run, a pass in which nothing happens has the same few statements."""

    class OnServer(Falcon):
        def new_store(self) -> SteeredStore:
            return store

    falcon, counts = OnServer(), []
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j0", spec())
    falcon.until_state("j0", "Running")
    for number in (1, 30):
        for each in range(number):
            falcon.submit(f"{number}-{each}", {"image": "busybox", "device_type": "cpu"})
        falcon.until(lambda: all(job.status == "Running" for job in store.read().jobs))
        while falcon.step().plan.actions:
            falcon.wait()
        line.strike()
        assert not falcon.step().plan.actions
        counts.append(len(line.statements))
    assert (True, counts[0]) == (counts[0] <= READ_STATEMENTS, counts[1])
