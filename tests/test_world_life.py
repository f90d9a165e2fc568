"""The life of a job, line by line, against the simulated cloud in memory."""

import pytest
from cloudsim.errors import SimError
from cloudsim.faults import Fault
from cloudsim.workload import NEVER_ENDS, NEVER_PULLS, OUT_OF_MEMORY, Workload
from world import ZONE, Falcon, cluster, spec

from falcon_rm.core.model import Bounds
from falcon_rm.core.words import ClusterStatus, Mode, PoolState

LIFE = [
    "Pending/Waiting",
    "Pending/Provisioning",
    "Pending/WaitingForNode",
    "Pending/Dispatching",
    "Running",
    "Succeeded",
]
FULL = SimError(
    "RESOURCE_EXHAUSTED",
    'Reservation does not have enough resources for the request: specific reservation "r" is insufficient for node pool '
    '"falcon-j1" at zone "us-central1-a": required 1 and short of 1 VM count of machine type ct6e-standard-4t',
    429,
)


@pytest.mark.parametrize(
    ("tpu_type", "topology"),
    [
        ("v6e", "2x2"),
        ("v6e", "4x4"),
        ("v7x", "2x2x1"),
        ("v7x", "2x2x4"),
        ("v5e", "2x4"),
        ("v5p", "2x2x2"),
        ("v4", "2x2x1"),
    ],
)
def test_on_demand_job_runs_to_its_end(tpu_type: str, topology: str) -> None:
    """One job of each kind of shape succeeds and leaves nothing behind."""
    falcon = Falcon(cluster("c1", tpu_type))
    falcon.submit("j1", spec(topology, tpu_type))
    falcon.settle()
    assert LIFE == falcon.story("j1")
    assert ["falcon-j1"] == falcon.creates()


@pytest.mark.parametrize(("tpu_type", "topology"), [("v6e", "2x2"), ("v6e", "4x4"), ("v7x", "2x2x2")])
def test_flex_start_submits_before_its_nodes_come(tpu_type: str, topology: str) -> None:
    """A flex-start pool is up without nodes: the Job is submitted, then nodes come (P13)."""
    falcon = Falcon(cluster("c1", tpu_type))
    falcon.submit("j1", spec(topology, tpu_type, mode=""))
    falcon.until(lambda: bool(falcon.works()))
    assert "Pending/WaitingForNode" == falcon.state("j1")
    falcon.settle()
    assert LIFE == falcon.story("j1")
    assert Mode.FLEX_START == falcon.ledger("falcon-j1").mode


def test_cpu_job_needs_neither_slot_nor_pool() -> None:
    """A CPU job goes from Waiting straight to Dispatching."""
    falcon = Falcon()
    falcon.submit("j1", {"image": "i", "device_type": "cpu", "command": "true"})
    falcon.settle()
    assert ["Pending/Waiting", "Pending/Dispatching", "Running", "Succeeded"] == falcon.story("j1")
    assert {} == falcon.store.pools


def test_freed_pool_goes_to_the_next_job_of_its_shape() -> None:
    """A pool that a waiting job fits is handed on (P36, P110)."""
    falcon = Falcon()
    falcon.submit("j1", spec())
    falcon.until_state("j1", "Running")
    falcon.submit("j2", spec(), actor="bob", supply_mode=None)
    falcon.submit("j3", spec(), actor="bob")
    falcon.settle()
    assert {"j1": "Succeeded", "j2": "Succeeded", "j3": "Succeeded"} == {j: falcon.state(j) for j in ("j1", "j2", "j3")}
    assert len(falcon.creates()) < 3


def test_reservation_too_small_waits_as_cluster_busy_until_room_appears() -> None:
    """A reservation without room means ClusterBusy, no create, and a start once there is room (P18)."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 4, in_use=4)
    falcon.submit("j1", spec("4x4", mode=""))
    falcon.until_state("j1", "Pending/ClusterBusy")
    falcon.passes(20)
    assert "Pending/ClusterBusy" == falcon.state("j1")
    assert "reservation_remaining_slices=0 reservation_needed_slices=1" in (falcon.job("j1").message or "")
    assert [] == falcon.creates()
    falcon.sim.compute.set_reservation("p", ZONE, "r", in_use=0)
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_a_reservation_that_is_full_after_all_waits_without_using_attempts() -> None:
    """The create's answer is final: full means ClusterBusy, slot free, for ever (P10)."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 8)
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=FULL, times=10))
    falcon.submit("j1", spec(mode="reservation"))
    falcon.until_state("j1", "Pending/ClusterBusy")
    assert (0, None) == (falcon.job("j1").pool_failures, falcon.store.slots["c1", "2x2"].holder)
    assert 1 == len(falcon.creates())
    falcon.settle(seconds=6 * 3600)
    assert "Succeeded" == falcon.state("j1")
    assert 11 == len(falcon.creates())


def test_stockout_backs_off_and_takes_the_next_name() -> None:
    """A stockout frees the slot, deletes what is left, and the next try has the next name (P1, P15)."""
    falcon = Falcon()
    falcon.sim.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", 0)
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4", mode="flex-start"), actor="bob")
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    assert "Pending/Waiting" == falcon.state("j1")
    assert falcon.job("j1").retry_at is not None
    falcon.sim.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", None)
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")
    assert ["falcon-j1", "falcon-j2", "falcon-j1-2"] == falcon.creates()


def test_quota_ends_after_its_attempts_with_the_clouds_words() -> None:
    """Quota backs off, then fails with our facts and the cloud's text (P12, P16)."""
    falcon = Falcon()
    falcon.sim.set_quota("p", "ct6e-standard-4t", 0)
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    assert "Failed/NodePoolFailed" == falcon.state("j1")
    message = falcon.job("j1").message or ""
    assert all(fact in message for fact in ("on-demand", "v6e", "4x4", "c1", "TPUS_PER_TPU_FAMILY"))
    assert 3 == len(falcon.creates())


def test_permanent_error_fails_at_once() -> None:
    """A request that can never work is not tried again (P17)."""
    falcon = Falcon(cluster("c1", default_reservation="nowhere"))
    falcon.submit("j1", spec("4x4", tpu_type="v6e", machine_type="ct6e-standard-4t"))
    falcon.sim.faults.add(
        Fault(
            "gke.create_node_pool", error=SimError("INVALID_ARGUMENT", "Unsupported TPU configuration", 400), times=None
        )
    )
    falcon.settle()
    assert "Failed/NodePoolFailed" == falcon.state("j1")
    assert 1 == len(falcon.creates())


def test_creation_that_takes_too_long_times_out() -> None:
    """A pool that is still creating past its bound ends the job and goes (P9)."""
    falcon = Falcon(bounds=Bounds(language="en", pool_timeout=600))
    falcon.sim.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", 0)
    falcon.submit("j1", spec())
    falcon.settle()
    assert "Failed/NodePoolTimeout" == falcon.state("j1")


def test_cluster_trouble_sends_the_job_elsewhere() -> None:
    """A missing permission is the cluster's trouble: the job runs in another, nothing is counted (P16)."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    denied = SimError("PERMISSION_DENIED", 'Required "container.nodePools.create" permission(s) for "projects/p".', 403)
    falcon.sim.faults.add(
        Fault(
            "gke.create_node_pool",
            error=denied,
            times=None,
            where=lambda call: call.target.startswith(cluster("c1").path),
        )
    )
    falcon.submit("j1", spec())
    falcon.settle()
    assert ("Succeeded", "c2", 0) == (falcon.state("j1"), falcon.job("j1").cluster_id, falcon.job("j1").pool_failures)


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (Workload(seconds=5, exit_code=3), "exit code 3"),
        (OUT_OF_MEMORY, "OOMKilled (exit code 137)"),
        (NEVER_PULLS, "ImagePull"),
    ],
)
def test_workload_that_fails_says_why(workload: Workload, words: str) -> None:
    """A failed workload ends as JobFailed with pod, container and cause (P50, P56, P60)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = workload
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")
    assert words in (falcon.job("j1").message or ""), falcon.job("j1").message


def test_run_limit_ends_as_timeout() -> None:
    """A job past timeout_seconds is stopped, its outcome written first (P111)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec(), timeout_seconds=300)
    falcon.settle()
    assert ("Failed/Timeout", "Job timed out (300s), K8s Job cancelled") == (
        falcon.state("j1"),
        falcon.job("j1").message,
    )


@pytest.mark.parametrize("state", ["Pending/Waiting", *LIFE[1:5]])
def test_abort_works_from_every_phase(state: str) -> None:
    """An aborted job ends Aborted and owns nothing (P32, P87)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    falcon.store.set_status("j1", "Aborting")
    falcon.settle()
    assert "Aborted" == falcon.state("j1")


def test_abort_before_the_first_pass_is_one_write() -> None:
    """A job that owns nothing is aborted without a call to a cloud that acts."""
    falcon = Falcon()
    falcon.submit("j1", spec())
    falcon.store.set_status("j1", "Aborting")
    falcon.step()
    assert "Aborted" == falcon.state("j1")
    assert [] == [call for call in falcon.sim.calls if call.mutating]


@pytest.mark.parametrize("state", ["Pending/Provisioning", "Pending/Dispatching", "Running"])
def test_row_deleted_while_the_job_lives_is_an_abort(state: str) -> None:
    """Without a row the work is stopped, the pool released, the slot freed (P33)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    falcon.store.delete_row("j1")
    falcon.settle()
    assert None is falcon.store.slots["c1", "4x4"].holder


@pytest.mark.parametrize(("retries", "end"), [(0, "Failed/JobFailed"), (1, "Succeeded")])
def test_lost_node_uses_a_retry_or_fails(retries: int, end: str) -> None:
    """A run lost with its node is tried again only if the user allowed it (P62)."""
    falcon = Falcon()
    lost = Workload(seconds=None, indexes={2: Workload(seconds=None, lose_node_after=30)})
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=20, attempts={1: lost})
    falcon.submit("j1", spec("4x4", max_retries=retries))
    falcon.settle()
    assert (end, retries) == (falcon.state("j1"), falcon.job("j1").losses)


def test_pool_deleted_by_a_person_while_running_is_a_loss() -> None:
    """A pool that vanishes under a running job is infrastructure loss."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=20, attempts={1: NEVER_ENDS})
    falcon.submit("j1", spec("4x4", max_retries=1))
    falcon.until_state("j1", "Running")
    falcon.sim.gke.delete_by_hand(cluster("c1").path, "falcon-j1")
    falcon.settle()
    assert ("Succeeded", 2) == (falcon.state("j1"), falcon.job("j1").attempt)


def test_foreign_pool_is_counted_and_left_alone() -> None:
    """A falcon-* pool without our labels is never touched (P29)."""
    falcon = Falcon()
    falcon.sim.gke.create_by_hand(
        cluster("c1").path, {"name": "falcon-x", "initialNodeCount": 1, "config": {"machineType": "e2-standard-4"}}
    )
    done = falcon.step()
    falcon.passes(5)
    assert {"c1": 1} == done.plan.foreign
    assert ["falcon-x"] == falcon.pools()


def test_emptied_database_trips_the_brake() -> None:
    """With every row gone nothing is swept until a person says so (P26)."""
    falcon = Falcon()
    topologies = ["1x1", "2x2", "2x4", "4x4", "4x8"]
    for number, topology in enumerate(topologies):
        falcon.sim.scripts_by_job_id[f"j{number}"] = NEVER_ENDS
        falcon.submit(f"j{number}", spec(topology))
    falcon.until(lambda: all(falcon.state(f"j{n}") == "Running" for n in range(5)))
    for number in range(5):
        falcon.store.delete_row(f"j{number}")
    falcon.passes(5)
    assert falcon.step().plan.brake is not None
    assert 5 == len(falcon.pools())
    falcon.bounds = Bounds(language="en", allow_mass_delete=True)
    falcon.settle()
    assert [] == falcon.pools()


def test_maintenance_gives_waiting_jobs_away_and_ends_running_ones() -> None:
    """A cluster in maintenance takes no new job and follows what runs there (P79)."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=300)
    falcon.submit("j1", spec())
    falcon.until_state("j1", "Running")
    first = falcon.job("j1").cluster_id or ""
    falcon.store.add_cluster(cluster(first, status=ClusterStatus.MAINTENANCE))
    falcon.submit("j2", spec())
    falcon.settle()
    assert ("Succeeded", "Succeeded") == (falcon.state("j1"), falcon.state("j2"))
    assert first != falcon.job("j2").cluster_id


def test_unreachable_cluster_keeps_its_jobs_and_others_go_on() -> None:
    """What cannot be read is unknown: nothing there changes, an abort waits, others proceed (P73, P75)."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec())
    falcon.until_state("j1", "Running")
    first = falcon.job("j1").cluster_id or ""
    away = Fault("*", error=SimError("UNAVAILABLE", "no route", 503), times=None)
    away.where = lambda call: call.target.startswith(cluster(first).path)
    falcon.sim.faults.add(away)
    falcon.store.set_status("j1", "Aborting")
    falcon.submit("j2", spec())
    falcon.until_state("j2", "Succeeded")
    assert "Aborting" == falcon.state("j1")
    assert "cannot be read" in (falcon.job("j1").message or "")
    falcon.sim.faults.clear()
    falcon.settle()
    assert "Aborted" == falcon.state("j1")


def test_ledger_keeps_every_pool() -> None:
    """Ledger rows end Deleted and stay."""
    falcon = Falcon()
    falcon.submit("j1")
    falcon.settle()
    assert {"falcon-j1": PoolState.DELETED} == {pool.name: pool.state for pool in falcon.store.pools.values()}
    assert [("j1", "released")] == [(lease.job_id, lease.ended) for lease in falcon.store.lease_rows()]


def test_world_at_rest_has_an_empty_plan() -> None:
    """Passes over a settled world do nothing, whatever the hour (P82)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec())
    falcon.until_state("j1", "Running")
    falcon.passes(5)
    for _ in range(20):
        assert () == falcon.step().plan.actions
        falcon.advance(600)
