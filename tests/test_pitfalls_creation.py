"""Pools whose creation half happened (pitfalls.md 1), each input against the simulated cloud in memory."""

import pytest
from cloudsim.errors import SimError
from cloudsim.faults import Fault
from cloudsim.gke_pools import Doom
from cloudsim.tempo import Tempo
from cloudsim.workload import NEVER_ENDS
from world import INTERVAL, Falcon, cluster, spec
from world_acts import calls, kill_after, objects, own_labels, pools_of_pods, quiet, sim_pool, watch

from falcon_rm.core.words import PoolState

STOCKOUT = "Not all instances running in IGM after 35m0s. Current errors: [GCE_STOCKOUT]: Instance creation failed"
QUOTA = "Insufficient quota to satisfy the request: [GCE_QUOTA_EXCEEDED]: Quota 'TPUS_PER_PROJECT' exceeded"
NOT_FOUND = SimError("NOT_FOUND", "Not found: the requested entity.", 404)
AWAY = SimError("UNAVAILABLE", "The service is currently unavailable.", 503)


def by_hand(name: str, labels: dict[str, str] | None = None) -> dict[str, object]:
    """Return a v6e 4x4 pool as a person asks for it."""
    return {
        "name": name,
        "initialNodeCount": 4,
        "config": {"machineType": "ct6e-standard-4t", "labels": labels or {}},
        "placementPolicy": {"type": "COMPACT", "tpuTopology": "4x4"},
    }


def test_failed_create_gives_up_its_pool_and_takes_the_next_name() -> None:
    """The pool that a stockout leaves is deleted once, the slot free, the next create has the next name (P1)."""
    falcon = Falcon()
    falcon.sim.gke.doom(Doom("falcon-j1", STOCKOUT, condition="GCE_STOCKOUT"))
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    quiet(falcon)
    retry_at = falcon.job("j1").retry_at
    assert retry_at is not None
    watch(
        falcon,
        retry_at - falcon.store.now - INTERVAL,
        lambda: falcon.store.slots["c1", "4x4"].holder is None and ["falcon-j1"] == falcon.creates(),
    )
    falcon.until_state("j1", "Running")
    assert ["falcon-j1", "falcon-j1-2"] == falcon.creates()
    assert 1 == calls(falcon, "gke.delete_node_pool", "/falcon-j1")
    assert PoolState.DELETED is falcon.ledger("falcon-j1").state


def test_running_with_error_is_well_if_every_node_is_ready() -> None:
    """A pool RUNNING_WITH_ERROR with all its nodes is used (P2)."""
    falcon = Falcon(tempo=Tempo(node_seconds=0))
    falcon.sim.gke.doom(Doom("falcon-j1", leaves="RUNNING_WITH_ERROR", nodes=4))
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    assert ["falcon-j1"] == falcon.creates()


def test_running_with_error_short_of_a_node_is_broken() -> None:
    """A pool RUNNING_WITH_ERROR that lacks a host is handled by its error's class (P2)."""
    falcon = Falcon(tempo=Tempo(node_seconds=0))
    falcon.sim.gke.doom(Doom("falcon-j1", STOCKOUT, leaves="RUNNING_WITH_ERROR", nodes=3))
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    assert "Pending/Waiting" == falcon.state("j1")
    assert falcon.job("j1").retry_at is not None
    falcon.settle()
    assert ["falcon-j1", "falcon-j1-2"] == falcon.creates()


@pytest.mark.parametrize("answer", [NOT_FOUND, AWAY])
def test_create_that_answers_an_error_but_happened_is_found_again(answer: SimError) -> None:
    """An unknown outcome is looked at: one pool, the first attempt (P3)."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("gke.create_node_pool", "after", error=answer))
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    assert (["falcon-j1"], 1, 0) == (falcon.pools(), falcon.job("j1").attempt, falcon.job("j1").pool_failures)


@pytest.mark.parametrize("answer", [NOT_FOUND, AWAY])
def test_create_that_answers_an_error_and_did_not_happen_is_asked_again(answer: SimError) -> None:
    """The same name is asked for again under the same attempt (P3)."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=answer))
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    assert (["falcon-j1", "falcon-j1"], 1) == (falcon.creates(), falcon.job("j1").attempt)


def test_own_pool_that_is_there_already_is_no_failure() -> None:
    """A second create of our own pool is success, and no message speaks of it (P4)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    kill_after(falcon, "gke.create_node_pool")
    falcon.advance(200)
    falcon.sim.faults.add(Fault("gke.list_node_pools", "partial", drop=1))
    falcon.until_state("j1", "Running")
    texts = [event.message or "" for event in falcon.store.event_rows()]
    assert [] == [text for text in texts if "exists" in text.lower()]
    assert (["falcon-j1"], 1) == (falcon.pools(), falcon.job("j1").attempt)
    assert 2 == len(falcon.creates())


def test_name_that_is_a_strangers_is_left_to_it() -> None:
    """A pool of our name without our labels is never used or touched; the next name is taken (P5)."""
    falcon = Falcon()
    falcon.sim.gke.create_by_hand(cluster("c1").path, by_hand("falcon-j1"))
    falcon.advance(120)
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    assert {"falcon-j1-2"} == pools_of_pods(falcon, "j1")
    falcon.store.set_status("j1", "Aborting")
    falcon.until_state("j1", "Aborted")
    falcon.passes(30)
    assert ["falcon-j1"] == falcon.pools()


def test_names_that_are_all_taken_fail_the_job_and_name_the_pool() -> None:
    """With every attempt's name taken the job fails and says which pool is in the way (P5)."""
    falcon = Falcon()
    for name in ("falcon-j1", "falcon-j1-2", "falcon-j1-3"):
        falcon.sim.gke.create_by_hand(cluster("c1").path, by_hand(name))
    falcon.advance(120)
    falcon.submit("j1", spec("4x4"))
    falcon.until(falcon.is_over)
    assert "Failed/NodePoolFailed" == falcon.state("j1")
    assert "falcon-j1-3" in (falcon.job("j1").message or "")
    falcon.passes(30)
    assert ["falcon-j1", "falcon-j1-2", "falcon-j1-3"] == falcon.pools()


def test_pool_of_our_name_made_for_another_attempt_is_not_used() -> None:
    """A pool whose labels name another job is not this attempt's, whoever's instance it bears (P5, P42)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Pending/Provisioning")
    falcon.sim.gke.create_by_hand(cluster("c1").path, by_hand("falcon-j1", own_labels(falcon, "other")))
    falcon.advance(120)
    falcon.until_state("j1", "Running")
    assert {"falcon-j1-2"} == pools_of_pods(falcon, "j1")


def test_crash_after_the_create_call_goes_on_with_the_same_pool() -> None:
    """Cluster, attempt and name were committed before the call: no second pool anywhere (P6)."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    falcon.submit("j1", spec("4x4"))
    kill_after(falcon, "gke.create_node_pool")
    falcon.submit("j0", spec("4x4"), created_at=falcon.store.now - 60)
    falcon.until_state("j1", "Running")
    assert ("c1", 1) == (falcon.job("j1").cluster_id, falcon.job("j1").attempt)
    assert 1 == falcon.creates().count("falcon-j1")


def test_pool_that_is_taken_away_is_neither_used_nor_made_again_meanwhile() -> None:
    """While it stops nothing is submitted or created; once gone the attempt is lost and the next begins (P7)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: bool(falcon.store.pools) and falcon.ledger("falcon-j1").seen_at is not None)
    falcon.advance(61)
    falcon.sim.gke.delete_by_hand(cluster("c1").path, "falcon-j1")
    for _ in range(5):
        falcon.step()
        assert "Pending/Provisioning" == falcon.state("j1")
        assert ([], ["falcon-j1"]) == (falcon.works(), falcon.creates())
        falcon.advance(10)
    falcon.until_state("j1", "Running")
    assert ["falcon-j1", "falcon-j1-2"] == falcon.creates()


def test_old_errors_of_a_pool_that_came_up_are_history() -> None:
    """A pool whose create failed and whose nodes all came is used; no message repeats the error (P8)."""
    falcon = Falcon()
    falcon.sim.gke.doom(Doom("falcon-j1", QUOTA, condition="GCE_QUOTA_EXCEEDED", leaves="RUNNING", nodes=4))
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    assert ["falcon-j1"] == falcon.creates()
    assert [] == [event for event in falcon.store.event_rows() if "quota" in (event.message or "").lower()]
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_creation_that_never_ends_frees_the_slot_in_the_same_write() -> None:
    """Past its bound the job fails and the next of its queue provisions; the pool goes when it can (P9)."""
    falcon = Falcon()
    falcon.sim.gke.doom(Doom("falcon-j1", leaves="PROVISIONING"))
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Pending/Provisioning")
    falcon.submit("j2", spec("4x4"), actor="bob")
    falcon.until_state("j1", "Failed/NodePoolTimeout")
    assert None is falcon.store.slots["c1", "4x4"].holder
    falcon.until_state("j2", "Pending/Provisioning", seconds=INTERVAL)
    falcon.sim.gke.finish(sim_pool(falcon, "falcon-j1").operation, None)
    falcon.settle()
    assert "Succeeded" == falcon.state("j2")
    assert [] == objects(falcon, "pods")
