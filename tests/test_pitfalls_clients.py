"""Clients and tokens: what a client's trouble looks like is no fact about a job (P100 to P104)."""

from typing import Literal

import pytest
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault
from cloudsim.workload import NEVER_ENDS
from world import Falcon, spec
from world_acts import calls

CALLS = [
    "gke.get_cluster", "gke.list_node_pools", "gke.create_node_pool", "gke.delete_node_pool", "gke.list_operations",
    "kube.list.jobs", "kube.list.pods", "kube.list.nodes", "kube.list.events", "kube.get.serviceaccounts",
    "kube.create.namespaces", "kube.create.serviceaccounts", "kube.create.jobs", "kube.create.services",
    "kube.delete.jobs",
]  # fmt: skip
"""Every kind of call in the life of a job of several hosts."""

STATES = ["Pending/Provisioning", "Pending/WaitingForNode", "Pending/Dispatching", "Running"]
NO_TOKEN = KubeError(401, "Unauthorized", "Unauthorized")
NOBODY = KubeError(403, "Forbidden", 'jobs.batch is forbidden: User "system:anonymous" cannot list resource "jobs"')
EXPIRED = KubeError(410, "Expired", "The provided continue parameter is too old")


def at(state: str) -> Falcon:
    """Return a world in which j1, which never ends, stands at a state."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    return falcon


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("error", [NO_TOKEN, NOBODY], ids=["401", "anonymous"])
def test_no_job_fails_by_our_own_credential(state: str, error: KubeError) -> None:
    """Five minutes of refused tokens move no job and use up nothing (P100, P103)."""
    falcon = at(state)
    falcon.sim.faults.add(Fault("kube.*", error=error, times=None))
    falcon.sim.faults.add(Fault("gke.*", error=SimError("UNAUTHENTICATED", "token expired", 401), times=None))
    falcon.passes(30)
    assert state == falcon.state("j1")
    falcon.sim.faults.clear()
    falcon.until_state("j1", "Running")
    assert (1, 0, 0) == (falcon.job("j1").attempt, falcon.job("j1").pool_failures, falcon.job("j1").losses)


@pytest.mark.parametrize("call", ["kube.create.jobs", "gke.create_node_pool", "kube.create.services"])
def test_refused_token_of_a_write_is_only_busy(call: str) -> None:
    """A create that lacks its token is asked again, on the same attempt (P100)."""
    falcon = Falcon()
    error = NO_TOKEN if call.startswith("kube") else SimError("UNAUTHENTICATED", "token expired", 401)
    falcon.sim.faults.add(Fault(call, error=error, times=4))
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    assert ("Succeeded", 1) == (falcon.state("j1"), falcon.job("j1").attempt)


@pytest.mark.parametrize("how", ["no effect", "effect", "late effect"])
@pytest.mark.parametrize("call", CALLS)
def test_call_that_never_returns(call: str, how: str) -> None:
    """Whichever call hangs, whatever becomes of it, one run comes of it, and nothing is left (P101)."""
    falcon = Falcon()
    effect, later = how == "effect", 45.0 if how == "late effect" else None
    falcon.sim.faults.add(Fault(call, "hang", effect=effect, later=later, times=2))
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    falcon.passes(20)
    assert ("Succeeded", [], 0) == (falcon.state("j1"), falcon.leftovers(), falcon.job("j1").losses)
    assert 1 == falcon.job("j1").attempt
    assert calls(falcon, call)


@pytest.mark.parametrize("when", ["before", "hang"])
@pytest.mark.parametrize("call", ["kube.list.jobs", "kube.list.pods", "gke.list_node_pools"])
def test_list_that_cannot_be_had_whole_is_unknown(call: str, when: Literal["before", "hang"]) -> None:
    """A list that ends early, pass after pass, sweeps nothing and moves nobody (P102)."""
    falcon = at("Running")
    error: KubeError | SimError = EXPIRED if call.startswith("kube") else SimError("INTERNAL", "broken", 500)
    falcon.sim.faults.add(Fault(call, when, error=error if when == "before" else None, times=None))
    falcon.passes(30)
    assert ("Running", ["falcon-j1"], ["falcon-j1"]) == (falcon.state("j1"), falcon.pools(), falcon.works())


def test_list_that_expired_once_is_read_again() -> None:
    """A continue token that ended costs one more request, in the same pass (P102)."""
    falcon = at("Running")
    falcon.sim.faults.add(Fault("kube.list.jobs", error=EXPIRED, times=1))
    assert () == falcon.step().unread


@pytest.mark.parametrize("passes", [2, 6, 11])
@pytest.mark.parametrize("state", ["Pending/Waiting", *STATES])
def test_pool_list_that_lags_makes_no_second_pool(state: str, passes: int) -> None:
    """A list of pools that shows an earlier world for up to two minutes costs time at most (P104)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    falcon.step()
    falcon.sim.faults.add(Fault("gke.list_node_pools", "stale", times=None))
    falcon.passes(passes)
    falcon.sim.faults.clear()
    falcon.settle()
    assert ("Succeeded", 1) == (falcon.state("j1"), falcon.job("j1").attempt)
    assert 1 == calls(falcon, "kube.create.jobs", "falcon-j1")
