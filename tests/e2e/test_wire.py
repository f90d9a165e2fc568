"""What only a wire can do: tokens that end, answers that are lost, servers that never answer; and its clock."""

import time

import pytest
from cloudsim.doors_faults import Wire, WireFault
from cloudsim.faults import Fault, Under
from wire import StartOnWire
from world import cluster, spec

pytest_plugins = ["doors"]


def test_every_connection_has_the_worlds_clock(start_on_wire: StartOnWire) -> None:
    """NOW(6) and column defaults follow the cloud's clock, on the store's connection and on the others'."""
    falcon = start_on_wire()
    falcon.advance(3600.25)
    falcon.submit("j1")
    asked = "SELECT UNIX_TIMESTAMP(NOW(6)), UNIX_TIMESTAMP(created_at) FROM job"
    for connection in (falcon.store.database, falcon.store.others):
        ((now, created),) = connection.rows(asked)
        assert (falcon.sim.now, falcon.sim.now) == (float(now), float(created))


def test_tokens_that_end_between_passes(start_on_wire: StartOnWire) -> None:
    """A job lives through the end of every token there was (P100)."""
    falcon = start_on_wire()
    falcon.submit("j1", spec("4x4"))
    while not falcon.is_over():
        falcon.doors.premises.tokens.expire()
        done = falcon.step()
        assert () == done.unread
        if not done.progress:
            falcon.wait()
    assert ("Succeeded", ["falcon-j1"]) == (falcon.state("j1"), falcon.creates())


@pytest.mark.parametrize("effect", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", ["gke.create_node_pool", "kube.create.jobs", "gke.delete_node_pool"])
def test_broken_connection_costs_time_alone(start_on_wire: StartOnWire, call: str, effect: bool) -> None:
    """A call whose connection breaks, before or after it took effect, is looked at and, if need be, made again (P3)."""
    falcon = start_on_wire()
    falcon.doors.wires.add(WireFault(Wire.RESET, call, effect=effect))
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    assert ("Succeeded", 1, ["falcon-j1"]) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.creates())


def test_server_that_never_answers_costs_the_others_nothing(start_on_wire: StartOnWire) -> None:
    """Each pass ends within its bound, and the job in the other cluster goes on (P80)."""
    falcon = start_on_wire(cluster("c1"), cluster("c2"))
    falcon.read_seconds = 0.2
    falcon.sim.faults.add(Fault("kube.list.*", "hang", times=None, where=Under(falcon.clusters["c1"].path)))
    falcon.submit("j1")
    began = time.monotonic()
    assert ("c1",) == falcon.step().unread
    assert time.monotonic() - began < 5
    falcon.until_state("j1", "Running")
    assert "c2" == falcon.job("j1").cluster_id
