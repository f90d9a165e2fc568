"""Shapes, names and the reuse of pools (pitfalls.md 5), each input against the simulated cloud in memory."""

import pytest
from cloudsim.gke_pools import Doom
from cloudsim.workload import NEVER_ENDS
from world import ZONE, Falcon, cluster, spec
from world_acts import make_pool, own_labels, pools_of_pods, sim_pool

from falcon_rm.core import names
from falcon_rm.core.words import Mode


def test_left_over_policy_of_other_content_fails_the_job_and_is_named() -> None:
    """A workload policy under our name that says something else is not used blindly (P40)."""
    falcon = Falcon(cluster("c1", "v7x"))
    name = names.policy_name("v7x", "2x2x2")
    body = {
        "name": name,
        "workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "4x4x4"},
    }
    falcon.sim.compute.insert_resource_policy("p", "us-central1", body)
    before = falcon.sim.compute.policy("p", "us-central1", name)
    falcon.submit("j1", spec("2x2x2", "v7x"))
    falcon.settle()
    assert "Failed/NodePoolFailed" == falcon.state("j1")
    assert name in (falcon.job("j1").message or "")
    assert (before, []) == (falcon.sim.compute.policy("p", "us-central1", name), falcon.creates())


@pytest.mark.parametrize("person", ["a@b.c", "-x", "a" * 63, "a" * 64, "a" * 65, "日本", ""])
def test_peoples_names_stop_no_job(person: str) -> None:
    """Whatever an owner is called, pool and Job are accepted (P41)."""
    falcon = Falcon()
    falcon.submit("j1", spec(owner=person, exp_id=person), actor=person or "ann")
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_second_attempt_of_one_job_never_meets_the_first_of_another() -> None:
    """Job x in its second attempt and job x-2 in its first have two names and two pools (P42)."""
    falcon = Falcon(cluster("c1"))
    falcon.sim.default_workload = NEVER_ENDS
    falcon.sim.gke.doom(Doom("falcon-x", "[GCE_STOCKOUT]: none", condition="GCE_STOCKOUT"))
    falcon.submit("x", spec("4x4"))
    falcon.submit("x-2", spec("4x4"), actor="bob")
    falcon.until(lambda: all(job.status == "Running" for job in falcon.store.jobs.values()))
    assert 2 == len({*pools_of_pods(falcon, "x"), *pools_of_pods(falcon, "x-2")})
    for job_id, attempt in (("x", 2), ("x-2", 1)):
        (pool,) = pools_of_pods(falcon, job_id)
        assert own_labels(falcon, job_id, attempt).items() <= sim_pool(falcon, pool).spec["config"]["labels"].items()


def test_pods_stay_on_the_pool_of_their_own_job() -> None:
    """Two jobs of one shape run on one pool each (P43)."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("2x2"))
    falcon.until_state("j1", "Running")
    falcon.submit("j2", spec("2x2"))
    falcon.until_state("j2", "Running")
    assert ({"falcon-j1"}, {"falcon-j2"}) == (pools_of_pods(falcon, "j1"), pools_of_pods(falcon, "j2"))


def test_reuse_takes_the_one_pool_that_fits_and_minds_nothing_else() -> None:
    """Pools wrong in one thing are passed over; taints and labels that GKE adds count for nothing (P44)."""
    falcon = Falcon()
    falcon.submit("j1", spec("2x4", replica=2))
    falcon.step()
    assert "Pending/Waiting" == falcon.state("j1")
    make_pool(falcon, "a-topology", "4x4")
    make_pool(falcon, "b-machine", "2x4", machine_type="ct6e-standard-8t")
    make_pool(falcon, "c-mode", "2x4", machine_type="ct6e-standard-4t", mode=Mode.FLEX_START)
    falcon.advance(120)
    make_pool(falcon, "d-stopping", "2x4", machine_type="ct6e-standard-4t")
    make_pool(falcon, "e-right", "2x4", machine_type="ct6e-standard-4t")
    falcon.advance(120)
    falcon.sim.gke.delete_by_hand(cluster("c1").path, "falcon-d-stopping")
    right = sim_pool(falcon, "falcon-e-right")
    right.spec["config"]["labels"] |= {"cloud.google.com/gke-extra": "1"}
    right.spec["config"]["taints"] = [{"key": "google.com/tpu", "value": "present", "effect": "NO_SCHEDULE"}]
    falcon.until_state("j1", "Running")
    assert {"falcon-e-right"} == pools_of_pods(falcon, "j1")
    assert [] == falcon.creates()


def test_no_mode_named_takes_any_free_pool_and_a_named_one_only_its_own() -> None:
    """A reservation job waits on while one without a mode takes the free flex-start pool (P46)."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 4, in_use=4)
    falcon.submit("j1", spec("4x4", mode="reservation"))
    falcon.submit("j2", spec("4x4", mode=""), actor="bob", created_at=falcon.store.now + 1)
    falcon.step()
    make_pool(falcon, "old", mode=Mode.FLEX_START)
    falcon.until_state("j2", "Running")
    assert ("Pending/ClusterBusy", "flex-start") == (falcon.state("j1"), falcon.job("j2").supply_mode)
    assert {"falcon-old"} == pools_of_pods(falcon, "j2")
    assert [] == falcon.creates()


def test_flex_start_of_a_type_that_has_none_ends_after_one_call() -> None:
    """v4 has no flex-start: Failed after at most one create call (P45)."""
    falcon = Falcon(cluster("c1", "v4"))
    falcon.submit("j1", spec("2x2x1", "v4", mode="flex-start"))
    falcon.settle()
    assert falcon.state("j1") in ("Failed/NodePoolFailed", "Failed/InvalidSpec"), falcon.describe()
    assert len(falcon.creates()) <= 1
