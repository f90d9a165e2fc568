"""Size (proof.md R16): what an idle pass asks of clouds and database, and that nothing grows; `hack/bench` measures."""

import gc
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from large_world import large_world, settle
from pymysql.connections import Connection
from world import Falcon

from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.core.words import Status
from falcon_rm.loop import one_pass

JOBS, POOLS, CLUSTERS = 1000, 300, 20
EACH = ("gke.get_cluster", "gke.list_node_pools", "kube.list.jobs")
PASSES, WARM, ROUNDS = 1000, 100, 3


@pytest.fixture(scope="module")
def large() -> Falcon:
    """1,000 live jobs, 300 of them running, on 20 clusters; at rest."""
    return large_world(jobs=JOBS, pools=POOLS, clusters=CLUSTERS)


def calls_of_a_pass(falcon: Falcon) -> Counter[str]:
    """Return the calls of one more pass, which finds nothing to do."""
    before = len(falcon.sim.calls)
    assert () == falcon.step().plan.actions
    return Counter(call.name for call in falcon.sim.calls[before:])


def test_calls_of_an_idle_pass(large: Falcon) -> None:
    """
    One get and two lists a cluster, however many jobs run there.

    A cluster's reservation is one call more, as long as a job waits that it could serve: its room must be known.
    """
    falcon = large.fork()
    assert {Status.RUNNING: POOLS, Status.PENDING: JOBS - POOLS} == Counter(job.status for job in falcon.rows())
    assert dict.fromkeys((*EACH, "compute.get_reservation"), CLUSTERS) == calls_of_a_pass(falcon)
    for job in falcon.rows():
        if job.status == Status.PENDING:
            falcon.store.delete_row(job.id)
    settle(falcon)
    assert dict.fromkeys(EACH, CLUSTERS) == calls_of_a_pass(falcon)


INSERT = """
    INSERT INTO job (id, actor, spec, status) VALUES (%s, 'ann', '{"image": "i", "device_type": "cpu"}', 'Pending')
"""


@pytest.fixture
def rows(database: str) -> Iterator[Database]:
    """A database without clusters: jobs wait there for ever."""
    opened = Database(parse_url(database))
    yield opened
    opened.close()


@pytest.mark.every_server
def test_statements_of_an_idle_pass(rows: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle pass sends as many statements for hundreds of jobs as for one."""
    falcon, sent = Falcon(), list[str]()
    real = Connection.query

    def query(self: Any, sql: str, *more: Any) -> Any:
        sent.append(sql)
        return real(self, sql, *more)

    monkeypatch.setattr(Connection, "query", query)

    def statements() -> list[str]:
        """Make passes until one finds nothing to do; return what that one sent."""
        while True:
            sent.clear()
            made = one_pass(
                store=lambda: MySqlStore(Database(rows.address)),
                clouds=falcon.clouds,
                bounds=falcon.bounds,
                pass_seconds=600,
            )
            if not made.plan.actions:
                return list(sent)

    for job in range(300):
        rows.unit(lambda run, job=job: run.must(INSERT, (f"job-{job}",)))  # type: ignore[misc]
        if job == 0:
            with_one = statements()
    assert with_one == statements()


def test_passes_leave_nothing_behind() -> None:
    """
    A thousand passes at rest leave as many objects as there were: nothing is remembered.

    What is made once, here or by a thread beside, shows in one of the rounds; what a pass leaves shows in each.
    """
    falcon = large_world(jobs=6, pools=2, clusters=2)

    def objects(passes: int) -> int:
        for _ in range(passes):
            falcon.step()
            falcon.sim.calls.clear()
        gc.collect()
        return len(gc.get_objects())

    counts = [objects(WARM), *(objects(PASSES) for _ in range(ROUNDS))]
    assert min(after - before for before, after in pairwise(counts)) <= PASSES // 100
