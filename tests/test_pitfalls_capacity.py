"""Capacity, busy answers and rate limits (pitfalls.md 2 and 3), each input against the simulated cloud in memory."""

from typing import cast

import pytest
from attrs import evolve
from cloudsim.errors import SimError
from cloudsim.faults import Fault
from cloudsim.gke_pools import Doom
from cloudsim.workload import NEVER_ENDS, Workload
from world import ZONE, Falcon, cluster, spec
from world_acts import calls, make_pool, pools_of_pods, quiet, sim_pool, watch

from falcon_rm.core.words import PoolState

UPGRADING = SimError(
    "FAILED_PRECONDITION",
    "Operation operation-1 is currently upgrading cluster c1. Please wait and try again once it is done.",
    400,
)
STRANGE = SimError("INVALID_ARGUMENT", "something nobody has seen", 400)
FOUR_HOSTS = "ct6e-standard-4t"


def test_a_cluster_without_room_is_left_for_one_that_has_it() -> None:
    """A waiting job moves as soon as another cluster's reservation has room; its own made nothing (P11)."""
    falcon = Falcon(cluster("c1", default_reservation="r1"), cluster("c2", default_reservation="r2"))
    for name in ("r1", "r2"):
        falcon.sim.add_reservation("p", ZONE, name, FOUR_HOSTS, 4, in_use=4)
    falcon.submit("j1", spec("4x4", mode="reservation"))
    falcon.until_state("j1", "Pending/ClusterBusy")
    assert "c1" == falcon.job("j1").cluster_id
    falcon.sim.compute.set_reservation("p", ZONE, "r2", in_use=0)
    falcon.until_state("j1", "Running")
    assert ("c2", []) == (falcon.job("j1").cluster_id, falcon.pools("c1"))
    assert {("c2", "falcon-j1")} == set(falcon.store.pools)


def test_pool_that_only_the_ledger_knows_is_no_capacity() -> None:
    """A free ledger row whose pool is gone is closed, and the job gets a pool of its own (P14)."""
    falcon = Falcon()
    name = make_pool(falcon, "j0")
    falcon.advance(120)
    falcon.sim.gke.delete_by_hand(cluster("c1").path, name)
    falcon.advance(120)
    falcon.submit("j2", spec("4x4"))
    falcon.until_state("j2", "Running")
    assert PoolState.DELETED is falcon.ledger("falcon-j0").state
    assert {"falcon-j2"} == pools_of_pods(falcon, "j2")
    assert ["falcon-j2"] == falcon.creates()


def test_job_in_back_off_neither_holds_the_slot_nor_is_forgotten() -> None:
    """While one backs off the other provisions; past retry_at it competes again (P15)."""
    falcon = Falcon()
    falcon.sim.gke.doom(Doom("falcon-j1", "[GCE_STOCKOUT]: no machines", condition="GCE_STOCKOUT"))
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4"), actor="bob", created_at=falcon.store.now + 1)
    falcon.sim.scripts_by_job_id["j2"] = NEVER_ENDS
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    falcon.until_state("j2", "Pending/Provisioning", seconds=20)
    assert "Pending/Waiting" == falcon.state("j1")
    falcon.until_state("j2", "Running")
    falcon.until_state("j1", "Pending/Provisioning")
    assert 2 == falcon.job("j1").attempt


def test_free_pool_that_fits_needs_no_back_off() -> None:
    """A job in a long back-off takes the pool that another one leaves, and nothing new is made (design.md 3)."""
    falcon = Falcon()
    falcon.bounds = evolve(falcon.bounds, backoff_base=1500)
    falcon.sim.scripts_by_job_id["j0"] = Workload(seconds=60)
    falcon.submit("j0", spec("4x4"))
    falcon.until_state("j0", "Running")
    falcon.sim.set_quota("p", FOUR_HOSTS, 0)
    falcon.submit("j1", spec("4x4"), actor="bob")
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    falcon.step()
    assert "next try after" in falcon.message("j1")
    falcon.until_state("j1", "Running", seconds=300)
    assert {"falcon-j0"} == pools_of_pods(falcon, "j1")
    assert ["falcon-j0", "falcon-j1"] == falcon.creates()


def test_room_elsewhere_is_promised_once_in_a_pass() -> None:
    """Of two topologies that wait only as many jobs move as the other cluster's reservation can start (P11)."""
    falcon = Falcon(cluster("c1", default_reservation="r1"), cluster("c2", default_reservation="r2"))
    for name in ("r1", "r2"):
        falcon.sim.add_reservation("p", ZONE, name, FOUR_HOSTS, 4, in_use=4)
    falcon.submit("j1", spec("4x4", mode="reservation"))
    falcon.submit("j2", spec("2x2", mode="reservation"), actor="bob")
    falcon.until(lambda: {"ClusterBusy"} == {job.reason for job in falcon.rows()})
    assert ["c1", "c1"] == [job.cluster_id for job in falcon.rows()]
    falcon.sim.compute.set_reservation("p", ZONE, "r2", in_use=0)
    falcon.until_state("j1", "Pending/Provisioning")
    assert ["c2", "c1"] == [job.cluster_id for job in falcon.rows()]


def test_slice_that_lacks_a_node_takes_no_room_twice() -> None:
    """While a slice waits on for its nodes, a cluster that shares its reservation uses what is left (design.md 3)."""
    shared = "projects/p/reservations/r"
    falcon = Falcon(cluster("c1", default_reservation="r"), cluster("c2", default_reservation=shared))
    falcon.sim.add_reservation("p", ZONE, "r", FOUR_HOSTS, 8)
    falcon.sim.tempo.node_seconds = 86_400
    falcon.submit("j1", spec("4x4", mode="reservation"))
    falcon.until_state("j1", "Pending/WaitingForNode")
    falcon.submit("j2", spec("4x4", mode="reservation"), actor="bob")
    falcon.until_state("j2", "Pending/WaitingForNode", seconds=falcon.bounds.node_wait + 300)
    assert ("c1", "c2") == (falcon.job("j1").cluster_id, falcon.job("j2").cluster_id)


def test_text_nobody_knows_counts_as_capacity_and_is_shown() -> None:
    """Three refusals nobody has seen end the job with those words (P16)."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=STRANGE, times=None))
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    assert "Failed/NodePoolFailed" == falcon.state("j1")
    assert "something nobody has seen" in (falcon.job("j1").message or "")
    assert 3 == len(falcon.creates())


def test_reservation_that_does_not_exist_fails_at_once_and_frees_the_slot() -> None:
    """One create call, then the job has failed and the next of its queue provisions (P17)."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", FOUR_HOSTS, 8)
    text = 'Google Compute Engine: reservation "r" not found for node pool "falcon-j1" at zone "us-central1-a"'
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=SimError("NOT_FOUND", text, 404)))
    falcon.submit("j1", spec("4x4", mode="reservation"))
    falcon.submit("j2", spec("4x4"), actor="bob", created_at=falcon.store.now + 1)
    falcon.until_state("j1", "Failed/NodePoolFailed", seconds=20)
    falcon.step()
    assert "Pending/Provisioning" == falcon.state("j2")
    assert 1 == falcon.creates().count("falcon-j1")
    assert text in (falcon.job("j1").message or "")


def test_reservation_of_later_is_found_in_its_own_zone() -> None:
    """A known zone outlives no reservation: the one set later, in another zone, is looked for anew."""
    region = cluster("c1", location="us-central1")
    falcon = Falcon(region)
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Succeeded")
    falcon.sim.add_reservation("p", "us-central1-b", "r", FOUR_HOSTS, 8)
    falcon.register(evolve(region, default_reservation="r"))
    falcon.submit("j2", spec("4x4", mode="reservation"))
    falcon.until_state("j2", "Succeeded")
    falcon.register(evolve(region, default_reservation="gone"))
    falcon.submit("j3", spec("4x4", mode="reservation"))
    falcon.submit("j4", spec("4x4", mode="flex-start"), actor="bob")
    falcon.until_state("j4", "Succeeded")
    assert "reservations/gone found in 0 zones" in (falcon.job("j3").message or "")


def test_reservation_asked_for_where_none_is_waits_and_says_so() -> None:
    """No cluster has one: Waiting with that reason, no create; it starts once a cluster gets one (P19)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4", mode="reservation"))
    falcon.passes(20)
    assert "Pending/Waiting" == falcon.state("j1")
    assert "c1 has no default_reservation" in (falcon.job("j1").message or "")
    assert [] == falcon.creates()
    falcon.sim.add_reservation("p", ZONE, "r", FOUR_HOSTS, 8)
    falcon.store.add_cluster(cluster("c1", default_reservation="r"))
    falcon.until_state("j1", "Running")


def test_sixth_operation_waits_without_using_an_attempt() -> None:
    """Too many operations is busy: slot, attempt and name are kept until it is let in (P20)."""
    falcon = Falcon()
    topologies = ["1x1", "2x2", "2x4", "4x4", "4x8", "8x8"]
    for number, topology in enumerate(topologies, start=1):
        falcon.submit(f"j{number}", spec(topology))
    falcon.until(lambda: len(set(falcon.creates())) == len(topologies))
    assert 5 == len(falcon.pools())
    falcon.passes(2)
    late = next(f"j{number}" for number in range(1, 7) if f"falcon-j{number}" not in falcon.pools())
    assert ("Pending/Provisioning", 1) == (falcon.state(late), falcon.job(late).attempt)
    falcon.settle()
    assert {("Succeeded", 1, 0)} == {(j.status, j.attempt, j.pool_failures) for j in falcon.store.jobs.values()}


@pytest.mark.parametrize("call", ["gke.create_node_pool", "gke.delete_node_pool"])
def test_refusal_that_means_later_is_asked_again(call: str) -> None:
    """FAILED_PRECONDITION about a running upgrade ends no job, for creates and deletes alike (P21)."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault(call, error=UPGRADING, times=20))
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    assert ("Succeeded", 1) == (falcon.state("j1"), falcon.job("j1").attempt)
    assert {"falcon-j1"} == set(falcon.creates())


def test_idle_pass_costs_the_same_however_many_jobs_run() -> None:
    """One get and two lists a cluster: nothing is asked job by job (P22)."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    falcon.sim.default_workload = NEVER_ENDS
    costs = []
    for count in (2, 16):
        for number in range(count):
            falcon.submit(f"j{count}-{number}", spec("1x1"))
        falcon.until(lambda: all(job.status == "Running" for job in falcon.store.jobs.values()))
        quiet(falcon)
        falcon.sim.calls.clear()
        falcon.step()
        costs.append(sorted(call.name for call in falcon.sim.calls))
    one = ["gke.get_cluster", "gke.list_node_pools", "kube.list.jobs"]
    assert [sorted(one * 2)] * 2 == costs


def test_pool_status_nobody_knows_stops_nobody() -> None:
    """A running job whose pool shows an unknown word is left as it is, and others go on (P23)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    sim_pool(falcon, "falcon-j1").status = cast(str, 99)
    falcon.submit("j2", spec("4x4"))
    falcon.until_state("j2", "Succeeded")
    assert "Running" == falcon.state("j1")
    assert "falcon-j1" in falcon.pools()
    assert 0 == calls(falcon, "gke.delete_node_pool", "/falcon-j1")


def test_slow_creates_and_hanging_deletes_hold_nobody_up() -> None:
    """Operations are asked and left: a job of another cluster runs meanwhile (P24)."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    falcon.submit("j0", spec("2x2"))
    falcon.until_state("j0", "Running")
    falcon.sim.faults.add(Fault("gke.delete_node_pool", "hang", times=10))
    falcon.sim.gke.doom(Doom("falcon-j1", leaves="PROVISIONING"))
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4"), actor="bob")
    falcon.until_state("j2", "Running", seconds=300)
    assert ("c1", "Pending/Provisioning") == (falcon.job("j1").cluster_id, falcon.state("j1"))
    falcon.until_state("j0", "Succeeded", seconds=600)


@pytest.mark.parametrize(("topology", "why"), [("8x8", "8 vm(s) in all"), ("2x4", "the job needs ct6e-standard-8t")])
def test_job_that_no_reservation_can_ever_hold_holds_nobody_up(topology: str, why: str) -> None:
    """It waits and says why, for days; a job behind it takes the room at once (P17, P19)."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", FOUR_HOSTS, 8)
    falcon.submit("large", spec(topology, mode="reservation"))
    watch(falcon, 100_000, lambda: "Pending" == falcon.job("large").status)
    assert [] == falcon.creates()
    assert ("Pending/Waiting", True) == (falcon.state("large"), why in falcon.message("large"))
    falcon.submit("small", spec("4x4", mode="reservation"), actor="bob")
    falcon.until_state("small", "Succeeded")
    assert "Pending/Waiting" == falcon.state("large")


def test_full_reservation_is_never_replaced_by_something_dearer() -> None:
    """No mode named and the reservation full: no create until it has room, then SPECIFIC (P18)."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", FOUR_HOSTS, 4, in_use=4)
    falcon.submit("j1", spec("4x4", mode=""))
    falcon.until_state("j1", "Pending/ClusterBusy")
    watch(falcon, 500, lambda: "Pending/ClusterBusy" == falcon.state("j1") and not falcon.creates())
    falcon.sim.compute.set_reservation("p", ZONE, "r", in_use=0)
    falcon.until_state("j1", "Running")
    affinity = sim_pool(falcon, "falcon-j1").spec["config"]["reservationAffinity"]
    assert "SPECIFIC_RESERVATION" == affinity["consumeReservationType"]
    assert "reservation" == falcon.job("j1").supply_mode
