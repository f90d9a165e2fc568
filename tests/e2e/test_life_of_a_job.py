"""Jobs for which all goes well: each supply mode, each kind of shape, pools handed on, reservations shared."""

import pytest
from cloudsim.workload import NEVER_ENDS, Workload
from wire import Start
from world import ZONE, cluster, spec

from falcon_rm.core.model import Bounds
from falcon_rm.core.words import Mode, PoolState

pytest_plugins = ["doors"]

LIFE = [
    "Pending/Waiting",
    "Pending/Provisioning",
    "Pending/WaitingForNode",
    "Pending/Dispatching",
    "Running",
    "Succeeded",
]
HOST = "ct6e-standard-4t"


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
def test_on_demand_job_runs_to_its_end(start: Start, tpu_type: str, topology: str) -> None:
    """One job of each kind of shape succeeds and leaves nothing behind."""
    falcon = start(cluster("c1", tpu_type))
    falcon.submit("j1", spec(topology, tpu_type))
    falcon.settle()
    assert LIFE == falcon.story("j1")
    assert ["falcon-j1"] == falcon.creates()


@pytest.mark.parametrize(("tpu_type", "topology"), [("v6e", "2x2"), ("v6e", "4x4"), ("v7x", "2x2x2")])
def test_reservation_is_the_mode_where_there_is_one(start: Start, tpu_type: str, topology: str) -> None:
    """A job that names no mode draws from its cluster's reservation."""
    falcon = start(cluster("c1", tpu_type, default_reservation="r"))
    machine = HOST if tpu_type == "v6e" else "tpu7x-standard-4t"
    falcon.sim.add_reservation("p", ZONE, "r", machine, 4)
    falcon.submit("j1", spec(topology, tpu_type, mode=""))
    falcon.settle()
    pool = falcon.ledger("falcon-j1")
    assert LIFE == falcon.story("j1")
    assert (Mode.RESERVATION, "projects/p/reservations/r") == (pool.mode, pool.reservation)


@pytest.mark.parametrize(("tpu_type", "topology"), [("v6e", "2x2"), ("v6e", "4x4"), ("v7x", "2x2x2")])
def test_flex_start_submits_before_its_nodes_come(start: Start, tpu_type: str, topology: str) -> None:
    """A flex-start pool is up without nodes: the Job is submitted, then nodes come (P13)."""
    falcon = start(cluster("c1", tpu_type))
    falcon.submit("j1", spec(topology, tpu_type, mode=""))
    falcon.until(lambda: bool(falcon.works()))
    assert "Pending/WaitingForNode" == falcon.state("j1")
    falcon.settle()
    assert LIFE == falcon.story("j1")
    assert Mode.FLEX_START == falcon.ledger("falcon-j1").mode


def test_cpu_job_needs_neither_slot_nor_pool(start: Start) -> None:
    """A CPU job goes from Waiting straight to Dispatching."""
    falcon = start()
    falcon.submit("j1", {"image": "i", "device_type": "cpu", "command": "true"})
    falcon.settle()
    assert ["Pending/Waiting", "Pending/Dispatching", "Running", "Succeeded"] == falcon.story("j1")
    assert [] == falcon.pool_rows()


def test_invalid_spec_disturbs_nobody(start: Start) -> None:
    """A row that can never run says which field is wrong, and others run (P98)."""
    falcon = start()
    falcon.submit("bad", "no JSON")
    falcon.submit("odd", spec("3x3"))
    falcon.submit("j1")
    falcon.settle()
    assert ("Failed/InvalidSpec", "Failed/InvalidSpec", "Succeeded") == (
        falcon.state("bad"),
        falcon.state("odd"),
        falcon.state("j1"),
    )
    assert "device_topo = '3x3'" in falcon.message("odd")


def test_freed_pool_goes_to_the_next_job_of_its_shape(start: Start) -> None:
    """A pool that a waiting job fits is handed on, and goes when nobody needs it (P36, P110)."""
    falcon = start(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", HOST, 4)
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=60)
    falcon.submit("j1", spec("4x4", mode=""))
    falcon.until_state("j1", "Running")
    falcon.submit("j2", spec("4x4", mode=""), actor="bob")
    falcon.until_state("j2", "Pending/ClusterBusy")
    falcon.until_state("j2", "Running")
    assert ["falcon-j1"] == falcon.pools()
    falcon.settle()
    assert ["falcon-j1"] == falcon.creates()
    assert [("j1", "released"), ("j2", "released")] == [
        (lease.job_id, lease.ended) for lease in falcon.store.lease_rows()
    ]


def test_one_acquires_at_a_time_in_a_queue(start: Start) -> None:
    """While one job holds the slot, the next of its queue says what it waits for."""
    falcon = start()
    falcon.submit("j1")
    falcon.submit("j2", actor="bob")
    falcon.until_state("j1", "Pending/WaitingForNode")
    falcon.step()
    assert ("Pending/Waiting", "j1") == (falcon.state("j2"), falcon.holder("2x2"))
    assert "Queue position #1, 0 job(s) ahead; acquiring now: ann: j1 (WaitingForNode)" == falcon.message("j2")
    falcon.settle()
    assert LIFE == falcon.story("j2")


def test_reservation_too_small_waits_as_cluster_busy_until_room_appears(start: Start) -> None:
    """A reservation without room means ClusterBusy, no create, and a start once there is room (P18)."""
    falcon = start(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", HOST, 4, in_use=4)
    falcon.submit("j1", spec("4x4", mode=""))
    falcon.until_state("j1", "Pending/ClusterBusy")
    falcon.passes(10)
    assert "Pending/ClusterBusy" == falcon.state("j1")
    assert "reservation_remaining_slices=0 reservation_needed_slices=1" in falcon.message("j1")
    assert [] == falcon.creates()
    falcon.sim.compute.set_reservation("p", ZONE, "r", in_use=0)
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_two_topologies_share_one_reservation(start: Start) -> None:
    """Room that one queue took is not promised to another: the smaller job starts when the larger has ended."""
    falcon = start(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", HOST, 4)
    falcon.submit("large", spec("4x4", mode=""))
    falcon.submit("small", spec("2x2", mode=""), actor="bob")
    falcon.until_state("large", "Running")
    assert "Pending/ClusterBusy" == falcon.state("small")
    falcon.settle()
    assert ("Succeeded", "Succeeded") == (falcon.state("large"), falcon.state("small"))
    assert ["falcon-large", "falcon-small"] == falcon.creates()


def test_room_is_kept_for_a_larger_job_that_waited_long(start: Start) -> None:
    """A smaller job passes a larger one that does not fit, until that has waited for the hold."""
    falcon = start(cluster("c1", default_reservation="r"), bounds=Bounds(language="en", room_hold=100))
    falcon.sim.add_reservation("p", ZONE, "r", HOST, 4)
    falcon.sim.scripts_by_job_id["first"] = NEVER_ENDS
    falcon.submit("first", spec("2x4", mode="", replica=2))
    falcon.until_state("first", "Running")
    falcon.advance(200)  # its machines are counted
    falcon.submit("large", spec("4x4", mode=""))
    falcon.until_state("large", "Pending/ClusterBusy")
    falcon.submit("passes", spec("2x2", mode=""), actor="bob")
    falcon.until_state("passes", "Succeeded")
    falcon.advance(100)
    falcon.submit("later", spec("2x2", mode=""), actor="bob")
    falcon.until_state("later", "Pending/ClusterBusy")
    assert "kept for large" in falcon.message("later")
    falcon.store.set_status("first", "Aborting")
    falcon.until_state("large", "Running")
    assert "Pending/ClusterBusy" == falcon.state("later")
    falcon.settle()
    assert ("Succeeded", "Succeeded") == (falcon.state("large"), falcon.state("later"))


def test_ledger_keeps_every_pool(start: Start) -> None:
    """Ledger rows end Deleted and stay, with their times in order."""
    falcon = start()
    falcon.submit("j1")
    falcon.settle()
    pool = falcon.ledger("falcon-j1")
    times = [pool.requested_at, pool.seen_at, pool.up_at, pool.ready_at, pool.idle_at]
    assert PoolState.DELETED == pool.state
    assert sorted(time or 0.0 for time in times) == times
    assert [("j1", "released")] == [(lease.job_id, lease.ended) for lease in falcon.store.lease_rows()]


def test_times_are_the_worlds(start: Start) -> None:
    """Column defaults, what upstream writes and what Falcon writes stand on one clock."""
    falcon = start()
    began = falcon.sim.now
    falcon.submit("j1")
    falcon.advance(1000)
    falcon.until_state("j1", "Running")
    now, row = falcon.sim.now, falcon.job("j1")
    assert (now, began, now) == (falcon.store.read().now, row.created_at, row.started_at)
    assert (began + 1000, now) == (falcon.store.event_rows()[0].at, falcon.store.event_rows()[-1].at)
    assert began + 1000 == falcon.store.lease_rows()[0].from_at


def test_world_at_rest_has_an_empty_plan(start: Start) -> None:
    """Passes over a settled world do nothing, whatever the hour (P82)."""
    falcon = start()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec())
    falcon.until_state("j1", "Running")
    falcon.passes(3)
    for _ in range(8):
        assert () == falcon.step().plan.actions
        falcon.advance(1800)


def test_dry_pass_changes_nothing(start: Start) -> None:
    """A plan that is only shown writes no row and makes no call that acts (P109)."""
    falcon = start()
    falcon.submit("j1")
    falcon.until_state("j1", "Pending/Provisioning")
    before = falcon.rows(), falcon.pool_rows(), falcon.store.event_rows(), falcon.store.audit_rows()
    assert () != falcon.step(dry=True).plan.actions
    assert before == (falcon.rows(), falcon.pool_rows(), falcon.store.event_rows(), falcon.store.audit_rows())
    assert [] == [call for call in falcon.sim.calls if call.mutating]
