"""
Falcon on the wire: MySqlStore on a real server and the real client libraries against the simulated cloud's doors.

1. The interface is world.Falcon's, so that every scenario runs in memory and on the wire (`doors.py`).
2. Nobody waits: the cloud's clock moves when a test says so, and the database's follows on every connection.
3. IAM grants what a real project grants: the role of hack/deploy.
4. Clients and connections live for one pass, the credential for the harness, as in the process.
"""

from contextlib import AbstractContextManager
from math import ceil
from typing import Any, Protocol

from cloudsim.iam import granted
from cloudsim.tempo import Tempo
from cloudsim.workload import Workload
from cloudsim_fixtures import Serve
from database_roles import Roles
from mysql_store import SteeredStore
from world import INTERVAL, Falcon

from falcon_rm.cloud.clouds import GoogleClouds
from falcon_rm.cloud.credential import Credential
from falcon_rm.cloud.rows import JOB, SLOT, job_of, named, pools_where
from falcon_rm.core.model import Bounds, Cluster, Job, Pool
from falcon_rm.ports import Clouds

STEADY = Tempo(
    create_seconds=8,
    create_flex_seconds=8,
    node_seconds=10,
    flex_seconds=8,
    stockout_seconds=40,
    failure_seconds=8,
    delete_seconds=8,
    drain_seconds=1,
    repair_seconds=8,
    reservation_lag_seconds=8,
    pod_gc_seconds=(8, 9),
)
"""Each stage takes one interval: none is jumped over, and none costs a pass in which nothing happens."""


LONGEST_WAIT = 6 * INTERVAL


class WireFalcon(Falcon):
    """One controller, a database on a server, and clouds behind TLS."""

    def __init__(
        self, *clusters: Cluster, roles: Roles, serve: Serve, bounds: Bounds | None = None, tempo: Tempo | None = None
    ) -> None:
        self.roles = roles
        super().__init__(*clusters, bounds=bounds, tempo=tempo or STEADY)
        self.sim.permissions = granted()
        self.sim.default_workload = Workload(seconds=8)
        self.doors = serve(self.sim)
        self.credential = Credential()
        there = self.doors.environment()
        self.gke_endpoint, self.compute_endpoint = there["FALCON_GKE_ENDPOINT"], there["FALCON_COMPUTE_ENDPOINT"]
        self.read_seconds = 8.0

    def new_store(self) -> SteeredStore:
        """Return the database, its clock in the tests' hand."""
        return SteeredStore.under(self.roles)

    def open_store(self) -> AbstractContextManager[Any]:
        """Open the database for one pass: its connection ends with it."""
        store: SteeredStore = self.store
        return store

    def clouds(self) -> Clouds:
        """Return Google's clouds for one pass."""
        return GoogleClouds(
            credential=lambda: self.credential,
            gke_endpoint=self.gke_endpoint,
            compute_endpoint=self.compute_endpoint,
            read_seconds=self.read_seconds,
        )

    def wait(self) -> None:
        """Let intervals go by until something happens in the cloud, a few of them at most: passes cost real time."""
        due = self.sim.agenda.next_at()
        quiet = LONGEST_WAIT if due is None else due - self.sim.now
        self.advance(min(LONGEST_WAIT, INTERVAL * max(1, ceil(quiet / INTERVAL))))

    def cut_off(self, cluster_id: str) -> None:
        """Let nobody reach a cluster's Kubernetes: connections are refused."""
        self.doors.close_cluster(self.clusters[cluster_id].path)

    def reconnect(self, cluster_id: str) -> None:
        """Let it be reached again, at another address."""
        self.doors.open_cluster(self.clusters[cluster_id].path)

    def rows(self) -> list[Job]:
        """Return every row of `job`."""
        return [job_of(row, {}) for row in named(self.store.others, JOB, "FROM job t ORDER BY t.id")]

    def pool_rows(self) -> list[Pool]:
        """Return the whole ledger."""
        return list(pools_where(self.store.others, "TRUE"))

    def holder(self, topology: str, cluster_id: str = "c1") -> str | None:
        """Return who holds a slot."""
        where = "FROM queue_slots t WHERE t.cluster_id = %s AND t.topology = %s"
        ((holder),) = (row["holder"] for row in named(self.store.others, SLOT, where, (cluster_id, topology)))
        return None if holder is None else str(holder)


class Start(Protocol):
    """Starts Falcon: in memory or on the wire."""

    def __call__(self, *clusters: Cluster, bounds: Bounds | None = None, tempo: Tempo | None = None) -> Falcon: ...


class StartOnWire(Protocol):
    """Starts Falcon on the wire."""

    def __call__(self, *clusters: Cluster, bounds: Bounds | None = None, tempo: Tempo | None = None) -> WireFalcon: ...
