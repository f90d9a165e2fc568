"""Every error of the database at every kind of statement of whole lives: they converge as without (proof.md 3, R9)."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import history_check
import laws
import pytest
from attrs import define
from cloudsim.admin import counted
from cloudsim.errors import SimError
from cloudsim.faults import Fault as CloudFault
from cloudsim.workload import NEVER_ENDS, Workload
from database_roles import FALCON, Roles
from mysql_store import SteeredStore
from severed_line import Fault, Line
from store_errors import faults_at
from store_scenes import WHERE
from world import Falcon, spec

from falcon_rm.cloud.database import Database
from falcon_rm.cloud.rows import CLUSTER, JOB, job_of, named, pools_where
from falcon_rm.core.model import Cluster, Job, Pool
from falcon_rm.core.scene import TERMINAL
from falcon_rm.ports import StoreDown

pytestmark = pytest.mark.every_server

Proof = Callable[[int, int], None]

ENDS = {
    "aborted": "Aborted",
    "cpu": "Succeeded",
    "failing": "Failed/JobFailed",
    "first": "Succeeded",
    "invalid": "Failed/InvalidSpec",
    "retried": "Succeeded",
    "second": "Succeeded",
}
"""How the jobs end, whatever the database does."""

STOCKOUT = SimError("RESOURCE_EXHAUSTED", "The zone does not have enough resources available", 429)
QUIET_PASSES = 20

LIVES = 12
"""Enough for every fault: some facts are written down once a life, and not again when that fails."""


def kind_of(statement: str) -> str:
    """Return a statement without its values."""
    return " ".join(re.sub(r"'[^']*'|\b\d+\b|NULL", "?", statement).split())


@define
class Striker:
    """Lets every fault strike every kind of statement once, one after another."""

    left: Mapping[str, list[Fault]]
    struck: int = 0

    def choose(self, _: int, statement: str) -> Fault | None:
        """Return the next fault of a statement of this kind, if there is one left."""
        if not (faults := self.left.get(kind_of(statement))):
            return None
        self.struck += 1
        return faults.pop()


class OnServer(Falcon):
    """Falcon with simulated clouds and a real database behind a line."""

    def __init__(self, roles: Roles, line: Line) -> None:
        self.roles, self.line = roles, line
        super().__init__()

    def new_store(self) -> SteeredStore:
        """Return the store, the controller's connection behind the line."""
        store = SteeredStore.under(self.roles)
        store.database = Database(self.line.through(self.roles.address(FALCON)), 8, store.database.session)
        return store

    def rows(self) -> list[Job]:
        """Return every row of `job`."""
        return [job_of(row, {}) for row in named(self.store.others, JOB, "FROM job t ORDER BY t.id")]

    def pool_rows(self) -> list[Pool]:
        """Return the whole ledger."""
        return list(pools_where(self.store.others, "TRUE"))

    def check(self) -> dict[str, Job]:
        """Hold rows and clouds against the laws; return the jobs."""
        jobs = {job.id: job for job in self.rows()}
        seen = SimpleNamespace(
            jobs=jobs,
            pools={(pool.cluster_id, pool.name): pool for pool in self.pool_rows()},
            clusters={row["id"]: Cluster(**row) for row in named(self.store.others, CLUSTER, "FROM clusters t")},
            uids={
                (row["cluster_id"], row["name"]): row["uid"]
                for row in named(self.store.others, ("cluster_id", "name", "uid"), "FROM workloads t")
            },
            lease_rows=self.store.lease_rows,
        )
        laws.check(cast(Falcon, SimpleNamespace(store=seen, sim=self.sim)))
        return jobs

    def until_over(self, striker: Striker) -> None:
        """Make passes until all is over; time stands still while faults strike."""
        jobs: dict[str, Job] = {}
        while not (jobs and all(job.status in TERMINAL for job in jobs.values())) or self.leftovers():
            before = striker.struck
            try:
                progress = self.step().progress
            except StoreDown:
                progress = False
            jobs = self.check()
            if striker.struck == before and not progress:
                self.wait()
            if any(job.pool_failures for job in jobs.values()):
                self.sim.faults.clear()
            if jobs["aborted"].status == "Running":
                self.store.set_status("aborted", "Aborting")


@contextmanager
def begun(roles: Roles, line: Line) -> Iterator[OnServer]:
    """Give jobs of every kind that wait to be read, in a database that is empty but for them."""
    for table in (*WHERE, "clusters"):
        roles.run(f"TRUNCATE TABLE {table}")
    made = OnServer(roles, line)
    made.sim.faults.add(CloudFault("gke.create_node_pool", error=STOCKOUT, times=None))
    made.sim.scripts_by_job_id.update(
        aborted=NEVER_ENDS,
        failing=Workload(seconds=5, exit_code=1),
        retried=Workload(seconds=60, attempts={1: Workload(seconds=None, lose_node_after=5)}),
    )
    for job_id in sorted(ENDS.keys() - {"cpu", "invalid", "retried"}):
        made.submit(job_id, spec("2x2"), actor=job_id)
    made.submit("retried", spec("2x4", max_retries=1))
    made.submit("cpu", {"image": "busybox", "device_type": "cpu"})
    made.submit("invalid", "[]")
    yield made
    made.store.close_all()


@pytest.fixture
def line(roles: Roles, tmp_path: Path) -> Iterator[Line]:
    """A line to the server."""
    made = Line(roles.address(FALCON), tmp_path)
    yield made
    made.close()


def lived(falcon: OnServer, striker: Striker) -> None:
    """Live the jobs' lives to their ends; then nothing leaks, and nothing moves any more."""
    falcon.line.strike_where(striker.choose)
    falcon.until_over(striker)
    assert ENDS == {job.id: falcon.state(job.id) for job in falcon.rows()}
    effects: Any = counted(falcon.sim.effects)
    assert [] == history_check.faults(falcon.store.others, {"effects": effects})
    made, statements = len(falcon.sim.effects), len(falcon.line.statements)
    for _ in range(QUIET_PASSES):
        assert not falcon.step().plan.actions
        falcon.wait()
    verbs = {sql.split()[0] for sql in falcon.line.statements[statements:]}
    assert (made, True) == (len(falcon.sim.effects), verbs <= {"connect", "SET", "SELECT"})


def test_lives_under_every_error(roles: Roles, line: Line, proof: Proof) -> None:
    """Each fault at each kind of statement that a life without faults has: it ends as that one did (P88, P91, P93)."""
    with begun(roles, line) as falcon:
        lived(falcon, Striker({}))
        kinds = {kind_of(statement): faults_at(statement) for statement in line.statements}
    striker = Striker(kinds)
    planned = sum(map(len, kinds.values()))
    for _ in range(LIVES):
        if any(striker.left.values()):
            with begun(roles, line) as falcon:
                lived(falcon, striker)
    assert [] == [kind for kind, faults in striker.left.items() if faults]
    proof(planned, striker.struck)
