"""Queue order and fairness: who goes next, and what moves nobody's place (P67 to P74)."""

from typing import Any

import pytest
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault, Under
from cloudsim.workload import NEVER_ENDS, Workload
from world import INTERVAL, ZONE, Falcon, cluster, spec
from world_acts import pods

from falcon_rm.core.model import Cluster

JOB = spec("4x4")


def queue(*clusters: Cluster, **jobs: dict[str, Any]) -> Falcon:
    """Return a world with these rows of `job`; *at* is seconds after its start."""
    falcon = Falcon(*clusters)
    for job_id, columns in jobs.items():
        put(falcon, job_id, **columns)
    return falcon


def put(falcon: Falcon, job_id: str, *, at: float = 0, task: dict[str, Any] | None = None, **columns: Any) -> None:
    """Insert a row of `job` that was submitted so long after the start."""
    falcon.submit(job_id, task or JOB, created_at=1_700_000_000.0 + at, **columns)


def starts(falcon: Falcon) -> list[str]:
    """Return the jobs in the order in which they took the slot."""
    return [event.job_id for event in falcon.store.event_rows() if event.why.startswith("takes the slot")]


def test_flood_of_one_shape_holds_up_no_other() -> None:
    """A thousand jobs of one topology leave another topology's queue alone (P67)."""
    falcon = queue(**{f"a{number:04}": {"at": number} for number in range(1000)})
    put(falcon, "bob", at=1000, actor="bob", task=spec("2x2"))
    for _ in range(4):
        falcon.step()
    assert "Pending/Provisioning" == falcon.state("bob")


def test_turns_are_rows_and_a_newcomer_gets_one() -> None:
    """Actors take turns by when each was served last, with nothing remembered between passes (P68)."""
    falcon = queue(
        **{f"j{n}": {"at": 0, "actor": "ann"} for n in range(1, 5)},
        **{f"j{n}": {"at": 1, "actor": "bob"} for n in range(5, 9)},
    )
    falcon.until(lambda: starts(falcon)[-1:] == ["j2"])
    put(falcon, "j9", at=2, actor="carol")
    falcon.settle(seconds=24 * 3600)
    assert ["j1", "j5", "j2", "j9", "j6", "j3", "j7", "j4", "j8"] == starts(falcon)


def test_backing_off_keeps_the_place() -> None:
    """A job that backs off lets the next one by and then goes before those submitted later (P69)."""
    falcon = queue(j1={}, j2={"at": 1}, j3={"at": 2})
    stockout = SimError("RESOURCE_EXHAUSTED", "[GCE_STOCKOUT] The zone does not have enough resources", 429)
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=stockout))
    falcon.settle(seconds=24 * 3600)
    assert ["j1", "j2", "j1", "j3"] == starts(falcon)


def test_lost_run_keeps_the_place() -> None:
    """After a lost node the second attempt goes before those submitted later, and nobody takes the lame pool (P69)."""
    falcon = queue(j1={"task": spec("4x4", max_retries=1)}, j2={"at": 1}, j3={"at": 2})
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=20, attempts={1: NEVER_ENDS})
    falcon.until(lambda: falcon.state("j1") == "Running" and falcon.state("j2") == "Pending/Provisioning")
    falcon.sim.gke.pools.lose_node(cluster("c1").path, pods(falcon, "j1")[0]["spec"]["nodeName"])
    falcon.settle(seconds=24 * 3600)
    assert ["j1", "j2", "j1", "j3"] == starts(falcon)


@pytest.mark.parametrize("order", [(5, 3, 1, 4, 2), (1, 2, 3, 4, 5), (4, 5, 2, 1, 3)])
def test_equal_times_are_told_apart_by_id(order: tuple[int, ...]) -> None:
    """Rows of one moment run in the order of their ids, however they were inserted (P70)."""
    falcon = queue(**{f"j{number}": {} for number in order})
    falcon.settle(seconds=24 * 3600)
    assert ["j1", "j2", "j3", "j4", "j5"] == starts(falcon)


def test_older_job_that_comes_back_pushes_nobody_out() -> None:
    """Whoever holds the slot keeps it and its pool when an older job's back-off ends (P71)."""
    falcon = queue(j2={"at": 1, "task": spec("4x4")})
    falcon.sim.tempo.node_seconds = 600
    falcon.until_state("j2", "Pending/WaitingForNode")
    put(falcon, "j1", status="Pending", reason="Waiting", cluster_id="c1", topology="4x4", queued_at=1.0,
        retry_at=falcon.store.now + 60)  # fmt: skip
    falcon.until(lambda: falcon.store.now > (falcon.job("j1").retry_at or 0) + INTERVAL)
    falcon.step()
    assert ("j2", "Pending/WaitingForNode") == (falcon.store.slots["c1", "4x4"].holder, falcon.state("j2"))
    assert ("Pending/Waiting", True) == (falcon.state("j1"), "position #1" in (falcon.job("j1").message or ""))
    falcon.settle(seconds=24 * 3600)
    assert ["j2", "j1"] == starts(falcon)


def test_priority_first_turns_inside_it() -> None:
    """The highest priority present goes first, and turns are taken only inside it (P72)."""
    falcon = queue(
        j1={"actor": "bob"},
        j2={"at": 1, "priority": 10},
        j3={"at": 2, "priority": 10},
        j4={"at": 3, "priority": 10, "actor": "carol"},
    )
    falcon.settle(seconds=24 * 3600)
    assert ["j2", "j4", "j3", "j1"] == starts(falcon)


def test_dead_cluster_keeps_its_holder_and_gives_its_queue_away() -> None:
    """The holder of an unreachable cluster's slot stays as it is; who waits behind it goes elsewhere (P73)."""
    falcon = queue(cluster("c1"), j1={})
    falcon.until_state("j1", "Pending/Provisioning")
    put(falcon, "j2", at=1, actor="bob")
    falcon.until_state("j2", "Pending/Waiting")
    down = SimError("UNAVAILABLE", "no route", 503)
    falcon.sim.faults.add(Fault("*", error=down, times=None, where=Under(cluster("c1").path)))
    falcon.store.add_cluster(cluster("c2"))
    falcon.sim.add_cluster(cluster("c2").path)
    falcon.until_state("j2", "Succeeded")
    assert "c2" == falcon.job("j2").cluster_id
    assert ("Pending/Provisioning", "c1") == (falcon.state("j1"), falcon.job("j1").cluster_id)
    assert "j1" == falcon.store.slots["c1", "4x4"].holder


def test_slot_is_free_as_soon_as_the_pods_run() -> None:
    """A second job of the shape acquires while the first one runs (P74)."""
    falcon = queue(j1={})
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.until_state("j1", "Running")
    falcon.advance(3600)
    put(falcon, "j2", at=1, actor="bob")
    falcon.until_state("j2", "Succeeded")
    assert "Running" == falcon.state("j1")


@pytest.mark.parametrize("ahead", ["backs off", "never fits"])
def test_job_that_cannot_start_lends_its_priority_to_nobody(ahead: str) -> None:
    """Room goes to the most urgent job that could take it, not to one behind a more urgent job that waits on (P72)."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 4, in_use=4)
    if ahead == "backs off":
        falcon.sim.set_quota("p", "ct6e-standard-4t", 0)
        falcon.submit("a1", spec("2x4", replica=2), priority=10)
        falcon.until(lambda: falcon.job("a1").pool_failures == 1)
        falcon.sim.set_quota("p", "ct6e-standard-4t", None)
    else:
        falcon.submit("a1", spec("2x4", mode="reservation", replica=1), priority=10)
    falcon.submit("b1", spec("4x4", mode="reservation"), priority=5, actor="bob")
    falcon.submit("a2", spec("2x4", mode="reservation", replica=2), actor="carol")
    falcon.until(lambda: falcon.job("a2").reason == falcon.job("b1").reason == "ClusterBusy", seconds=40)
    falcon.sim.compute.set_reservation("p", ZONE, "r", in_use=0)
    falcon.until(lambda: "Pending/Provisioning" in (falcon.state("a2"), falcon.state("b1")), seconds=40)
    assert ("Pending/Provisioning", "Pending/ClusterBusy") == (falcon.state("b1"), falcon.state("a2"))


@pytest.mark.parametrize("call", ["compute.get_reservation", "gke.list_node_pools", "kube.list.jobs"])
def test_read_that_fails_once_costs_nobody_the_time_it_has_waited(call: str) -> None:
    """A job that lacks room still does when a read fails: since when it does is kept, as room is held by it (P69)."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 8, in_use=8)
    falcon.submit("j1", spec("4x4", mode="reservation"))
    falcon.until_state("j1", "Pending/ClusterBusy")
    since = falcon.store.read().jobs[0].reason_since
    for _ in range(5):
        falcon.sim.faults.add(Fault(call, error=_error(call)))
        falcon.passes(3)
    assert ("Pending/ClusterBusy", since) == (falcon.state("j1"), falcon.store.read().jobs[0].reason_since)


def _error(call: str) -> KubeError | SimError:
    return KubeError(503, "ServiceUnavailable", "x") if call.startswith("kube") else SimError("UNAVAILABLE", "x", 503)
