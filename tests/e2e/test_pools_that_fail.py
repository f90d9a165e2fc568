"""Pools that are refused, fail, come late or go away: who waits, who goes on, who is told what."""

import pytest
from attrs import evolve
from cloudsim.errors import SimError
from cloudsim.faults import Fault, Under
from cloudsim.gke_pools import Doom
from cloudsim.workload import NEVER_ENDS, Workload
from wire import STEADY, Start
from world import ZONE, cluster, spec

from falcon_rm.core.model import Bounds

pytest_plugins = ["doors"]

HOST = "ct6e-standard-4t"
FULL = SimError(
    "RESOURCE_EXHAUSTED",
    'Reservation does not have enough resources for the request: specific reservation "r" is insufficient for node '
    'pool "falcon-j1" at zone "us-central1-a": required 1 and short of 1 VM count of machine type ct6e-standard-4t',
    429,
)
DENIED = SimError("PERMISSION_DENIED", 'Required "container.nodePools.create" permission(s) for "projects/p".', 403)
UPGRADING = SimError(
    "FAILED_PRECONDITION",
    "Operation operation-1 is currently upgrading cluster c1. Please wait and try again once it is done.",
)
UNSUPPORTED = SimError("INVALID_ARGUMENT", "Unsupported TPU configuration", 400)


def test_a_reservation_that_is_full_after_all_waits_without_using_attempts(start: Start) -> None:
    """The create's answer is final: full means ClusterBusy, slot free, for ever (P10)."""
    falcon = start(cluster("c1", default_reservation="r"), bounds=Bounds(language="en", backoff_base=20))
    falcon.sim.add_reservation("p", ZONE, "r", HOST, 8)
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=FULL, times=4))
    falcon.submit("j1", spec(mode="reservation"))
    falcon.until_state("j1", "Pending/ClusterBusy")
    assert (0, None) == (falcon.job("j1").pool_failures, falcon.holder("2x2"))
    assert 1 == len(falcon.creates())
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")
    assert 5 == len(falcon.creates())


def test_stockout_backs_off_and_takes_the_next_name(start: Start) -> None:
    """A stockout frees the slot, deletes what is left, and the next try has the next name (P1, P15)."""
    falcon = start()
    falcon.sim.set_capacity(ZONE, "on-demand", HOST, 0)
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4", mode="flex-start"), actor="bob")
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    assert "Pending/Waiting" == falcon.state("j1")
    assert falcon.job("j1").retry_at is not None
    falcon.sim.set_capacity(ZONE, "on-demand", HOST, None)
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")
    assert ["falcon-j1", "falcon-j2", "falcon-j1-2"] == falcon.creates()


@pytest.mark.parametrize("late", [False, True], ids=["at-once", "in-the-operation"])
def test_quota_ends_after_its_attempts_with_the_clouds_words(start: Start, late: bool) -> None:
    """Quota backs off, then fails with our facts and the cloud's text (P12, P16)."""
    falcon = start(bounds=Bounds(language="en", backoff_base=20))
    falcon.sim.set_quota("p", HOST, 0, late=late)
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    assert "Failed/NodePoolFailed" == falcon.state("j1")
    assert [] == [
        fact for fact in ("on-demand", "v6e", "4x4", "c1", "TPUS_PER_TPU_FAMILY") if fact not in falcon.message("j1")
    ]
    assert ["falcon-j1", "falcon-j1-2", "falcon-j1-3"] == falcon.creates()


def test_permanent_error_fails_at_once(start: Start) -> None:
    """A request that can never work is not tried again, and its slot is free (P17)."""
    falcon = start()
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=UNSUPPORTED))
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4"), actor="bob")
    falcon.settle()
    assert ("Failed/NodePoolFailed", "Succeeded") == (falcon.state("j1"), falcon.state("j2"))
    assert "Unsupported TPU configuration" in falcon.message("j1")
    assert ["falcon-j1", "falcon-j2"] == falcon.creates()


def test_creation_that_takes_too_long_times_out(start: Start) -> None:
    """A pool that is still creating past its bound ends the job and goes (P9)."""
    slow = evolve(STEADY, stockout_seconds=100)
    falcon = start(bounds=Bounds(language="en", pool_timeout=60), tempo=slow)
    falcon.sim.set_capacity(ZONE, "on-demand", HOST, 0)
    falcon.submit("j1", spec())
    falcon.settle()
    assert "Failed/NodePoolTimeout" == falcon.state("j1")
    assert falcon.message("j1").startswith("node pool creation timed out (1m): GKE API timeout")
    assert None is falcon.holder("2x2")


def test_busy_cluster_is_asked_again_under_the_same_name(start: Start) -> None:
    """A cluster that GKE upgrades just now costs time, no attempt (P21)."""
    falcon = start()
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=UPGRADING, times=3))
    falcon.submit("j1")
    falcon.settle()
    assert ("Succeeded", 1, ["falcon-j1"] * 4) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.creates())


def test_busy_cluster_is_what_a_job_waits_for(start: Start) -> None:
    """While GKE takes no create, the message says so in its words (P105)."""
    falcon = start()
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=UPGRADING, times=None))
    falcon.submit("j1")
    falcon.passes(6)
    assert "Pending/Provisioning" == falcon.state("j1")
    assert "GKE is busy: Operation operation-1 is currently upgrading cluster c1" in falcon.message("j1")


def test_create_that_failed_and_took_effect_makes_one_pool(start: Start) -> None:
    """An answer that was lost is looked for, not asked for again (P3)."""
    falcon = start()
    falcon.sim.faults.add(Fault("gke.create_node_pool", "after", error=SimError("UNAVAILABLE", "connection reset")))
    falcon.submit("j1")
    falcon.settle()
    assert ("Succeeded", 1, ["falcon-j1"]) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.creates())


def test_cluster_trouble_sends_the_job_elsewhere(start: Start) -> None:
    """A missing permission is the cluster's trouble: the job runs in another, nothing is counted (P16)."""
    falcon = start(cluster("c1"), cluster("c2"))
    falcon.sim.faults.add(
        Fault("gke.create_node_pool", error=DENIED, times=None, where=Under(falcon.clusters["c1"].path))
    )
    falcon.submit("j1", spec())
    falcon.settle()
    assert ("Succeeded", "c2", 0) == (falcon.state("j1"), falcon.job("j1").cluster_id, falcon.job("j1").pool_failures)


def test_late_nodes_are_waited_for_where_nobody_else_waits(start: Start) -> None:
    """Without a competitor a pool whose nodes are late is kept (P71)."""
    falcon = start(bounds=Bounds(language="en", node_wait=60))
    falcon.sim.gke.doom(Doom(leaves="RUNNING", nodes=3))
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Pending/WaitingForNode")
    falcon.advance(600)
    falcon.passes(3)
    assert "Pending/WaitingForNode" == falcon.state("j1")
    assert "RUNNING but 3/4 expected node(s) registered (Ready=3)" in falcon.message("j1")
    pool = falcon.sim.gke.pools.find(falcon.clusters["c1"].path, "falcon-j1")
    falcon.sim.gke.pools.register(pool, 1, 0)
    falcon.settle()
    assert ("Succeeded", ["falcon-j1"]) == (falcon.state("j1"), falcon.creates())


def test_late_nodes_give_way_to_another_topology(start: Start) -> None:
    """A competitor that needs the machines gets them: back to Waiting, place kept, nothing counted."""
    bounds = Bounds(language="en", node_wait=60, backoff_base=200)  # longer than a pool takes to go
    falcon = start(cluster("c1", default_reservation="r"), bounds=bounds)
    falcon.sim.add_reservation("p", ZONE, "r", HOST, 4)
    falcon.sim.gke.doom(Doom(leaves="RUNNING", nodes=3))
    falcon.submit("j1", spec("4x4", mode=""))
    falcon.until_state("j1", "Pending/WaitingForNode")
    falcon.submit("j2", spec("2x2", mode=""), actor="bob")
    falcon.until_state("j2", "Pending/ClusterBusy")
    falcon.until_state("j1", "Pending/Waiting")
    row = falcon.job("j1")
    assert (0, None, None) == (row.pool_failures, row.node_pool_name, falcon.holder("4x4"))
    assert row.retry_at is not None and row.retry_at > falcon.sim.now
    falcon.settle()
    assert ("Succeeded", "Succeeded") == (falcon.state("j1"), falcon.state("j2"))
    assert ["falcon-j1", "falcon-j2", "falcon-j1-2"] == falcon.creates()


def test_flex_start_that_gets_no_nodes_yields(start: Start) -> None:
    """A flex-start job whose nodes do not come gives way with its Job stopped first, and tries again."""
    falcon = start(cluster("c1", default_reservation="r"), bounds=Bounds(language="en", node_wait_flex=120))
    falcon.sim.add_reservation("p", ZONE, "r", HOST, 4, in_use=4)
    falcon.sim.set_capacity(ZONE, "flex-start", HOST, 0)
    falcon.submit("j1", spec("4x4", mode="flex-start"))
    falcon.submit("j2", spec("2x2", mode=""), actor="bob")
    falcon.until(lambda: falcon.job("j1").outcome == "Yield")
    falcon.until_state("j1", "Pending/Waiting")
    assert (0, 0, []) == (falcon.job("j1").pool_failures, falcon.job("j1").losses, falcon.works())
    falcon.sim.set_capacity(ZONE, "flex-start", HOST, None)
    falcon.sim.compute.set_reservation("p", ZONE, "r", in_use=0)
    falcon.settle()
    assert ("Succeeded", 2, "Succeeded") == (falcon.state("j1"), falcon.job("j1").attempt, falcon.state("j2"))


def test_pool_deleted_by_a_person_while_creating_is_an_attempt(start: Start) -> None:
    """A pool that was seen and went needs the next name (P7)."""
    falcon = start()
    falcon.submit("j1")
    falcon.until_state("j1", "Pending/WaitingForNode")
    falcon.sim.gke.delete_by_hand(falcon.clusters["c1"].path, "falcon-j1")
    falcon.settle()
    assert ("Succeeded", 2) == (falcon.state("j1"), falcon.job("j1").attempt)
    assert ["falcon-j1", "falcon-j1-2"] == falcon.creates()


@pytest.mark.parametrize(("retries", "end"), [(0, "Failed/JobFailed"), (1, "Succeeded")])
def test_pool_deleted_by_a_person_while_running_is_a_loss(start: Start, retries: int, end: str) -> None:
    """A pool that vanishes under a running job is infrastructure loss: tried again only if the user allowed it."""
    falcon = start()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=8, attempts={1: NEVER_ENDS})
    falcon.submit("j1", spec("4x4", max_retries=retries))
    falcon.until_state("j1", "Running")
    falcon.sim.gke.delete_by_hand(falcon.clusters["c1"].path, "falcon-j1")
    falcon.settle()
    assert (end, 1 + retries, retries) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.job("j1").losses)


@pytest.mark.parametrize(("retries", "end"), [(0, "Failed/JobFailed"), (1, "Succeeded")])
def test_lost_node_uses_a_retry_or_fails(start: Start, retries: int, end: str) -> None:
    """A run lost with its node is tried again only if the user allowed it (P62)."""
    falcon = start()
    lost = Workload(seconds=None, indexes={2: Workload(seconds=None, lose_node_after=15)})
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=8, attempts={1: lost})
    falcon.submit("j1", spec("4x4", max_retries=retries))
    falcon.settle()
    assert (end, retries) == (falcon.state("j1"), falcon.job("j1").losses)


def test_loss_before_all_pods_ran_costs_no_retry(start: Start) -> None:
    """A node lost while another pod still starts is a pool that failed: tried again without max_retries."""
    falcon = start()
    slow, lost = Workload(pull_seconds=300), Workload(seconds=None, lose_node_after=15)
    first = Workload(seconds=None, indexes={0: slow, 2: lost})
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=8, attempts={1: first})
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    assert ("Pending/Dispatching", "Lost") == (falcon.state("j1"), falcon.job("j1").outcome)
    falcon.settle()
    assert ("Succeeded", 2, 0) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.job("j1").losses)
