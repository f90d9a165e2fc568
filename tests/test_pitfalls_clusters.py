"""Several clusters: one that is away, hung, strange or leaving disturbs no other, and loses nothing (P75 to P81)."""

import threading
import time
from contextlib import nullcontext
from typing import Any

import pytest
from cloudsim.direct import DirectClouds, DirectGke
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault, Under
from cloudsim.workload import NEVER_ENDS, NEVER_PULLS, Workload
from world import Falcon, cluster, spec
from world_acts import make_pool

from falcon_rm.core.live import LivePool
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import ClusterStatus, PoolStatus
from falcon_rm.loop import one_pass

C1, C2 = cluster("c1"), cluster("c2")
AWAY = SimError("UNAVAILABLE", "no route", 503)
PASS_SECONDS = 1.0


def one_and_then_two(state: str, workload: Workload = NEVER_ENDS) -> Falcon:
    """Return a world in which j1 stands at a state in c1; c2 is there since then."""
    falcon = Falcon(C1)
    falcon.sim.scripts_by_job_id["j1"] = workload
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    falcon.store.add_cluster(C2)
    falcon.sim.add_cluster(C2.path)
    return falcon


def away(falcon: Falcon, when: str = "before") -> None:
    """Let no call to c1 be answered."""
    error = AWAY if when == "before" else None
    falcon.sim.faults.add(Fault("*", when, error=error, times=None, where=Under(C1.path)))  # type: ignore[arg-type]


def changes(falcon: Falcon) -> list[str]:
    """Return the calls that would change a cloud, by name and target."""
    return [f"{call.name} {call.target}" for call in falcon.sim.calls if call.mutating]


@pytest.mark.parametrize("when", ["before", "hang"])
def test_not_reachable_is_not_failed(when: str) -> None:
    """Ten minutes without an answer and a restart change nothing of a running job (P75)."""
    falcon = one_and_then_two("Running")
    before = changes(falcon)
    away(falcon, when)
    falcon.passes(60)
    falcon.sim.faults.clear()
    falcon.passes(3)
    assert "Running" == falcon.state("j1")
    assert ["Running"] == falcon.story("j1")[4:]
    assert before == changes(falcon)


@pytest.mark.parametrize("kind", ["gke.*", "kube.*"])
def test_half_an_answer_is_not_an_absence(kind: str) -> None:
    """A cluster of which only pools, or only Jobs, can be read keeps its job as it is (P75)."""
    falcon = one_and_then_two("Running")
    before = changes(falcon)
    falcon.sim.faults.add(Fault(kind, error=AWAY, times=None, where=Under(C1.path)))
    falcon.passes(60)
    assert ("Running", before) == (falcon.state("j1"), changes(falcon))


@pytest.mark.parametrize(
    "error",
    [KubeError(503, "ServiceUnavailable", "no route"), KubeError(403, "Forbidden", "cannot list events")],
    ids=["no answer", "refused"],
)
def test_events_that_cannot_be_read_hide_nothing_else(error: KubeError) -> None:
    """A cluster whose events are not to be had starts and ends jobs beside one whose pods do not start (P75)."""
    falcon = Falcon(C1)
    falcon.sim.scripts_by_job_id["j1"] = NEVER_PULLS
    falcon.submit("j1")
    falcon.until_state("j1", "Pending/Dispatching")
    falcon.sim.faults.add(Fault("kube.list.events", error=error, times=None))
    falcon.submit("j2", spec("4x4"))
    falcon.until_state("j2", "Succeeded", seconds=800)
    assert "Pending/Dispatching" == falcon.state("j1")
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")


def test_what_is_there_after_an_outage_beats_what_is_late() -> None:
    """A pool that came up while nobody could look is used, an hour late as it is (P76)."""
    falcon = one_and_then_two("Pending/Provisioning", Workload())
    away(falcon)
    for _ in range(6):
        falcon.step()
        falcon.advance(600)
    falcon.sim.faults.clear()
    falcon.settle()
    assert ["Pending/Dispatching", "Running", "Succeeded"] == falcon.story("j1")[-3:]
    assert ["falcon-j1"] == falcon.creates()


def test_job_that_ended_during_an_outage_is_not_late() -> None:
    """A run that succeeded before its limit, while nobody could look, has succeeded (P76)."""
    falcon = Falcon(C1)
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=300)
    falcon.submit("j1", spec("4x4"), timeout_seconds=400)
    falcon.until_state("j1", "Running")
    away(falcon)
    for _ in range(6):
        falcon.step()
        falcon.advance(600)
    falcon.sim.faults.clear()
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


@pytest.mark.parametrize("state", ["Pending/Provisioning", "Pending/Dispatching", "Running"])
def test_cluster_row_deleted_by_hand_moves_nobody(state: str) -> None:
    """What lives in a cluster without a row stays as it is and says so, and goes on when the row is back (P77)."""
    falcon = one_and_then_two(state, Workload(seconds=600))
    before = changes(falcon)
    del falcon.store.clusters["c1"]
    falcon.passes(20)
    assert (state, "c1") == (falcon.state("j1"), falcon.job("j1").cluster_id)
    assert "cannot be read" in (falcon.job("j1").message or "")
    assert before == changes(falcon)
    falcon.store.add_cluster(C1)
    falcon.settle()
    assert ("Succeeded", 1) == (falcon.state("j1"), falcon.job("j1").attempt)


def test_offline_cluster_is_not_read_and_moves_nobody() -> None:
    """A cluster that is set offline gets no call, and its job goes on when it is back (P77)."""
    falcon = one_and_then_two("Running", Workload(seconds=600))
    falcon.store.add_cluster(cluster("c1", status=ClusterStatus.OFFLINE))
    calls = len(falcon.sim.calls)
    falcon.passes(20)
    assert [] == [call.name for call in falcon.sim.calls[calls:] if call.target.startswith(C1.path)]
    assert "offline" in (falcon.job("j1").message or "")
    falcon.store.add_cluster(C1)
    falcon.settle()
    assert ("Succeeded", 1) == (falcon.state("j1"), falcon.job("j1").attempt)


def test_waiting_job_leaves_a_cluster_whose_row_is_gone() -> None:
    """Who only waits in a cluster without a row owns nothing there and chooses again (P77)."""
    falcon = one_and_then_two("Running")
    falcon.store.add_cluster(cluster("c2", status=ClusterStatus.MAINTENANCE))
    falcon.submit("j2", spec("4x4"))
    falcon.step()
    assert "c1" == falcon.job("j2").cluster_id
    falcon.store.add_cluster(C2)
    del falcon.store.clusters["c1"]
    falcon.until_state("j2", "Succeeded")
    assert "c2" == falcon.job("j2").cluster_id


def test_free_pool_is_promised_once() -> None:
    """Of two new jobs one gets the free pool, and the other goes where it can start (P78)."""
    falcon = Falcon(C1, C2)
    make_pool(falcon, "j0")
    falcon.advance(120)
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4"), actor="bob")
    falcon.settle()
    assert {"j1": "c1", "j2": "c2"} == {job: falcon.job(job).cluster_id or "" for job in ("j1", "j2")}
    assert ["falcon-j2"] == falcon.creates()
    assert ["j1"] == [lease.job_id for lease in falcon.store.lease_rows() if lease.pool == "falcon-j0"]


def test_maintenance_follows_aborts_too() -> None:
    """An abort in a cluster under maintenance is carried out, and its free pools go (P79)."""
    falcon = one_and_then_two("Running")
    falcon.store.add_cluster(cluster("c1", status=ClusterStatus.MAINTENANCE))
    falcon.store.set_status("j1", "Aborting")
    falcon.settle()
    assert ("Aborted", []) == (falcon.state("j1"), falcon.pools())


class SlowGke(DirectGke):
    """A GKE that accepts calls about one cluster and answers when it is let go."""

    def __init__(self, falcon: Falcon, slow: str, gate: threading.Event) -> None:
        super().__init__(falcon.sim)
        self.slow = slow
        self.gate = gate

    def list_pools(self, cluster: Cluster) -> tuple[LivePool, ...]:
        """Return the pools, after a long while for that cluster."""
        if cluster.id == self.slow:
            assert self.gate.wait(60)
        return super().list_pools(cluster)


class StrangeGke(DirectGke):
    """A GKE whose answer about one cluster makes no sense."""

    def __init__(self, falcon: Falcon, strange: object) -> None:
        super().__init__(falcon.sim)
        self.strange = strange

    def list_pools(self, cluster: Cluster) -> tuple[LivePool, ...]:
        """Return the pools; about c1 nonsense instead of them, or beside them."""
        if cluster.id != "c1":
            return super().list_pools(cluster)
        if isinstance(self.strange, Exception):
            raise self.strange
        assert isinstance(self.strange, LivePool)
        return (*super().list_pools(cluster), self.strange)


def pass_with(falcon: Falcon, gke: DirectGke, **more: Any) -> bool:
    """Make one pass over another GKE; return whether it made progress."""
    clouds = DirectClouds(falcon.sim)
    clouds.gke = gke
    return one_pass(
        store=lambda: nullcontext(falcon.store),
        clouds=lambda: clouds,
        bounds=falcon.bounds,
        **{"pass_seconds": 60, **more},
    ).progress


def test_hung_cluster_costs_the_others_nothing() -> None:
    """A cluster that never answers is unknown in each pass, and the job of another one gets on in each (P80)."""
    falcon = one_and_then_two("Running")
    gate = threading.Event()
    try:
        falcon.submit("j2", spec("2x2"))
        for _ in range(3):
            began = time.monotonic()
            assert pass_with(falcon, SlowGke(falcon, "c1", gate), pass_seconds=PASS_SECONDS)
            assert time.monotonic() - began < 2 * PASS_SECONDS
    finally:
        gate.set()
    assert ("Pending/Provisioning", "c2") == (falcon.state("j2"), falcon.job("j2").cluster_id)
    assert "Running" == falcon.state("j1")


@pytest.mark.parametrize(
    "strange",
    [
        ValueError("not JSON"),
        KeyError("name"),
        LivePool(name="", status=PoolStatus.ERROR, hosts=-1),
        LivePool(name="falcon-", status=PoolStatus.UNKNOWN, labels={"falcon.io/attempt": "x"}, hosts=-1),
    ],
    ids=repr,
)
def test_strange_data_of_one_cluster_stays_there(strange: object) -> None:
    """An answer about c1 that makes no sense changes nothing there, and the job of c2 runs to its end (P81)."""
    falcon = one_and_then_two("Running")
    before = [call for call in changes(falcon) if C1.path in call]
    falcon.store.add_cluster(cluster("c1", status=ClusterStatus.MAINTENANCE))
    falcon.submit("j2", spec("2x2"))
    for _ in range(60):
        if not pass_with(falcon, StrangeGke(falcon, strange)):
            falcon.advance(10)
    assert ("Succeeded", "c2") == (falcon.state("j2"), falcon.job("j2").cluster_id)
    assert "Running" == falcon.state("j1")
    assert before == [call for call in changes(falcon) if C1.path in call]


def test_abort_in_a_cluster_without_a_row_waits_and_says_so() -> None:
    """Nothing is known of what runs there, so the abort is not told as done before the row is back (P77)."""
    falcon = one_and_then_two("Running")
    del falcon.store.clusters["c1"]
    falcon.store.set_status("j1", "Aborting")
    for _ in range(20):
        falcon.step()
        falcon.advance(600)
    assert "Aborting" == falcon.state("j1")
    assert "cannot be read" in (falcon.job("j1").message or "")
    falcon.store.add_cluster(C1)
    falcon.settle()
    assert "Aborted" == falcon.state("j1")


def test_acquiring_job_in_maintenance_is_followed_to_its_end() -> None:
    """A job that has begun to acquire goes on there, and whoever waits behind it goes elsewhere (P79)."""
    falcon = one_and_then_two("Pending/Provisioning", Workload())
    falcon.submit("j2", spec("4x4"), actor="bob")
    falcon.store.add_cluster(cluster("c1", status=ClusterStatus.MAINTENANCE))
    falcon.settle()
    assert [("Succeeded", "c1"), ("Succeeded", "c2")] == [
        (falcon.state(job_id), falcon.job(job_id).cluster_id) for job_id in ("j1", "j2")
    ]


def test_queue_of_a_cluster_that_changes_its_type_is_not_served() -> None:
    """Nobody is started in a cluster that offers another TPU type since; who waits there says so, or goes elsewhere."""
    falcon = Falcon(cluster("c1"))
    falcon.sim.tempo.node_seconds = 600
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Pending/WaitingForNode")
    falcon.submit("j2", spec("4x4"), actor="bob")
    falcon.until_state("j2", "Pending/Waiting")
    falcon.register(cluster("c1", "v5e"))
    falcon.until_state("j1", "Succeeded")
    falcon.passes(3)
    assert ("Pending/Waiting", ["falcon-j1"]) == (falcon.state("j2"), falcon.creates())
    assert "no cluster offers v6e" in falcon.message("j2"), falcon.message("j2")
    falcon.register(cluster("c2"))
    falcon.sim.add_cluster(cluster("c2").path)
    falcon.until_state("j2", "Succeeded")
    assert "c2" == falcon.job("j2").cluster_id
