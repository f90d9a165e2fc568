"""Whatever hangs ends in bounded time, and what is elsewhere is tried there (pitfalls.md 1 to 6, harder inputs)."""

from typing import Any

import pytest
from cloudsim.errors import SimError
from cloudsim.faults import Fault
from cloudsim.gke_pools import Doom
from cloudsim.workload import NEVER_ENDS, NEVER_PULLS, Workload
from world import ZONE, Falcon, cluster, spec
from world_acts import NAMESPACE, calls, make_pool, objects, pods, pools_of_pods, watch

from falcon_rm.core.model import Bounds
from falcon_rm.core.words import PoolState

PATH = cluster("c1").path
AWAY = SimError("UNAVAILABLE", "The service is currently unavailable.", 503)
BUSY = SimError("FAILED_PRECONDITION", "Cluster is running incompatible operation operation-1.", 400)
DENIED = SimError("PERMISSION_DENIED", 'Required "container.nodePools.create" permission(s) for "projects/p".', 403)


def running(task: Workload = NEVER_ENDS, **fields: Any) -> Falcon:
    """Return a world in which j1, v6e 4x4, runs."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = task
    falcon.submit("j1", spec("4x4", **fields))
    falcon.until_state("j1", "Running")
    return falcon


@pytest.mark.parametrize(
    "fault",
    [
        Fault("gke.create_node_pool", error=AWAY, times=None),
        Fault("gke.create_node_pool", "hang", times=None),
    ],
    ids=["unavailable", "hang"],
)
def test_create_that_is_never_let_in_ends_as_a_time_out(fault: Fault) -> None:
    """A create that answers nothing useful for ever frees the slot past the phase's bound (P9)."""
    fault.where = lambda call: call.target.endswith("/falcon-j1")
    falcon = Falcon()
    falcon.sim.faults.add(fault)
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4"), actor="bob", created_at=falcon.store.now + 1)
    falcon.until_state("j1", "Failed/NodePoolTimeout", seconds=2400 + 60)
    falcon.settle()
    assert ("Succeeded", 0) == (falcon.state("j2"), len(falcon.pools()))


def test_create_that_is_put_off_for_ever_gives_way() -> None:
    """GKE that is only busy frees the slot past the bound of a creation, and costs no attempt (P9)."""
    busy = Fault("gke.create_node_pool", error=BUSY, times=None, where=lambda call: call.target.endswith("/falcon-j1"))
    falcon = Falcon()
    falcon.sim.faults.add(busy)
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4"), actor="bob", created_at=falcon.store.now + 1)
    falcon.until_state("j1", "Pending/Waiting", seconds=60)
    falcon.until_state("j1", "Pending/Provisioning", seconds=60)
    falcon.until_state("j1", "Pending/Waiting", seconds=2400 + 60)
    assert (None, 0) == (falcon.holder("4x4"), falcon.job("j1").pool_failures)
    falcon.settle()
    assert ["Succeeded"] * 2 == [falcon.state("j1"), falcon.state("j2")]


def test_stockout_here_is_tried_elsewhere_at_once() -> None:
    """A job in back-off at one cluster starts in another that could take it now (P11, P15)."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    falcon.sim.gke.doom(Doom("falcon-j1", "[GCE_STOCKOUT]: none", condition="GCE_STOCKOUT"))
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    assert "c1" == falcon.job("j1").cluster_id
    falcon.until_state("j1", "Pending/Provisioning", seconds=20)
    assert "c2" == falcon.job("j1").cluster_id
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_trouble_of_the_only_cluster_is_waited_out_and_told() -> None:
    """A missing permission sends the job back to Waiting for the pause, with what to mend in its message (P16)."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=DENIED))
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: falcon.state("j1") == "Pending/Waiting" and len(falcon.creates()) == 1)
    falcon.passes(3)
    assert "container.nodePools.create" in (falcon.job("j1").message or ""), falcon.job("j1").message
    watch(falcon, 500, lambda: (falcon.state("j1"), falcon.job("j1").pool_failures) == ("Pending/Waiting", 0))
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_quota_that_is_told_late_is_told_with_its_name() -> None:
    """A quota refused in the operation ends with our facts and the quota's name (P12)."""
    falcon = Falcon()
    falcon.sim.set_quota("p", "ct6e-standard-4t", 0, late=True)
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    message = falcon.job("j1").message or ""
    assert "Failed/NodePoolFailed" == falcon.state("j1")
    assert all(fact in message for fact in ("on-demand", "v6e", "4x4", "c1", "TPUS_PER_TPU_FAMILY")), message


def test_release_that_is_stuck_is_written_anyway_and_goes_on() -> None:
    """A delete that fails for ever: Aborted after the release bound with the error, the pool later gone (P54)."""
    falcon = running()
    fault = falcon.sim.faults.add(Fault("gke.delete_node_pool", error=AWAY, times=None))
    falcon.store.set_status("j1", "Aborting")
    falcon.until_state("j1", "Aborted", seconds=1200)
    assert "currently unavailable" in (falcon.job("j1").message or "")
    assert ["falcon-j1"] == falcon.pools()
    falcon.sim.faults.remove(fault)
    falcon.settle()
    assert [] == falcon.pools()


@pytest.mark.parametrize("abort", [False, True])
def test_pods_orphaned_by_a_person_go_with_the_pool(abort: bool) -> None:
    """A Job deleted by hand without its pods: no stop can be asked, yet the release is bounded (P31, P54)."""
    falcon = running()
    if abort:
        falcon.store.set_status("j1", "Aborting")
    falcon.sim.kube(PATH).delete_by_hand("jobs", NAMESPACE, "falcon-j1", {"propagationPolicy": "Orphan"})
    falcon.advance(5)
    assert 4 == len(pods(falcon, "j1"))
    falcon.until(lambda: falcon.is_over() and not falcon.pools(), seconds=1500)
    falcon.advance(120)
    assert ("Aborted" if abort else "Failed/JobFailed") == falcon.state("j1")
    assert [] == objects(falcon, "pods")


def test_job_deleted_by_a_person_is_never_submitted_again() -> None:
    """A Job that was seen and is gone is a failure of its own (P53)."""
    falcon = running(max_retries=3)
    falcon.sim.kube(PATH).delete_by_hand("jobs", NAMESPACE, "falcon-j1")
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")
    assert 1 == calls(falcon, "kube.create.jobs")


def test_pool_taken_away_under_starting_pods_is_a_lost_attempt() -> None:
    """A pool deleted by hand in Dispatching costs one pool failure, and the job runs on the next (P7)."""
    falcon = Falcon()
    slow = Workload(seconds=20, pull_seconds=300)
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=20, attempts={1: slow})
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: len(pods(falcon, "j1")) == 4)
    falcon.sim.gke.delete_by_hand(PATH, "falcon-j1")
    falcon.settle()
    assert ("Succeeded", 2) == (falcon.state("j1"), falcon.job("j1").attempt)


def test_cpu_job_that_never_starts_ends_too() -> None:
    """A CPU job whose image cannot be pulled fails past its deadline, without a pool to give back (P50)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_PULLS
    falcon.submit("j1", {"image": "i", "device_type": "cpu", "command": "true"})
    falcon.settle(seconds=1200)
    assert "Failed/JobFailed" == falcon.state("j1")


def test_running_job_that_is_suspended_says_so() -> None:
    """A Job suspended while it runs is not told to be running (P49)."""
    falcon = running()
    falcon.sim.kube(PATH).suspend_by_hand(NAMESPACE, "falcon-j1")
    falcon.advance(5)
    falcon.passes(3)
    assert "Running" == falcon.state("j1")
    assert "suspended" in (falcon.job("j1").message or ""), falcon.job("j1").message


def test_pool_that_comes_back_after_its_row_was_closed_is_deleted() -> None:
    """A late create under a closed ledger row is an orphan: deleted, never used (P3, P28)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    make_pool(falcon, "j1", entered=False)
    falcon.submit("j2", spec("4x4"))
    falcon.settle()
    assert "Succeeded" == falcon.state("j2")
    assert PoolState.DELETED is falcon.ledger("falcon-j1").state


def test_many_releases_at_once_are_no_mass_delete() -> None:
    """Ten aborts free ten pools: committed releases do not count against the brake (P26)."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    for number in range(10):
        falcon.submit(f"j{number}", spec("1x1"))
    falcon.until(lambda: all(job.status == "Running" for job in falcon.store.jobs.values()))
    for number in range(10):
        falcon.store.set_status(f"j{number}", "Aborting")
    falcon.settle(seconds=900)
    assert {"Aborted"} == {job.status for job in falcon.store.jobs.values()}


def test_create_that_takes_effect_late_is_found_under_its_name() -> None:
    """A create that hung and happened half a minute later is no second pool (P3)."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("gke.create_node_pool", "hang", later=25, times=2))
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    assert (["falcon-j1"], 1) == (falcon.pools(), falcon.job("j1").attempt)
    assert {"falcon-j1"} == pools_of_pods(falcon, "j1")


def test_create_that_is_refused_for_now_is_told() -> None:
    """While GKE is busy the message says so (P20, P21)."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=BUSY, times=None))
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Pending/Provisioning")
    falcon.passes(10)
    assert "incompatible operation" in (falcon.job("j1").message or ""), falcon.job("j1").message


def test_one_list_that_lacks_a_pool_ends_no_running_job() -> None:
    """A single list without the pool ends nothing while every pod runs (P4, P25)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    falcon.sim.faults.add(Fault("gke.list_node_pools", "partial", drop=1))
    falcon.passes(3)
    assert ("Running", None) == (falcon.state("j1"), falcon.job("j1").outcome)


def test_a_large_job_is_not_starved_by_small_ones_that_pass_a_pool_on() -> None:
    """Once a slice has lacked room for FALCON_ROOM_HOLD, pools of its reservation are not handed on either (P67)."""
    falcon = Falcon(cluster("c1", default_reservation="r"), bounds=Bounds(language="en", room_hold=600))
    falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 4)
    falcon.submit("small-0", spec("2x2", mode="reservation"))
    falcon.until_state("small-0", "Running")
    falcon.submit("large", spec("4x4", mode="reservation"), actor="bob")
    for number in range(1, 60):
        falcon.submit(f"small-{number}", spec("2x2", mode="reservation"))
        falcon.passes(6)
        if falcon.state("large") == "Running":
            break
    assert falcon.state("large") in ("Running", "Succeeded")
