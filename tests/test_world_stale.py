"""R5: no old or short view costs a live pool, brings a false verdict, or lets anything run twice (views.py)."""

from collections.abc import Callable

import pytest
from cloudsim.faults import Fault
from proving import Grounds
from scenarios import LIVES, SCENARIOS
from views import prove_views
from world import Falcon

from falcon_rm.core.manifest import NAMESPACE


@pytest.mark.parametrize("name", sorted(LIVES))
def test_every_old_or_short_view(name: str, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """Whatever old or short answer one read gets, the life ends as it should, at the cost of passes alone."""
    prove_views(name, grounds, proof)


def until_seen(state: str) -> Falcon:
    """Return a world whose job was just seen to reach a state, its pool listed before."""
    falcon = SCENARIOS["a slice"].build()
    falcon.until_state("j1", state)
    return falcon


def test_one_short_list_of_jobs_ends_no_run() -> None:
    """A Job that one list lacks and the next one has is not gone: the run goes on to its own end."""
    falcon = until_seen("Running")
    falcon.sim.faults.add(Fault("kube.list.jobs", "partial", drop=0))
    falcon.step()
    assert "Running" == falcon.state("j1")
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_one_short_list_of_pools_costs_no_pool() -> None:
    """A pool that one list lacks and the next one has is not lost: it is not given up, and no other one is made."""
    falcon = until_seen("Pending/Dispatching")
    falcon.sim.faults.add(Fault("gke.list_node_pools", "partial", drop=1))
    falcon.step()
    assert "j1" == falcon.ledger("falcon-j1").lease
    falcon.settle()
    assert (["falcon-j1"], "Succeeded") == (falcon.creates(), falcon.state("j1"))


def test_what_two_lists_lack_is_gone() -> None:
    """A Job that people delete after it was seen is missing from both lists: the job ends."""
    falcon = until_seen("Running")
    falcon.sim.kube(falcon.clusters["c1"].path).delete_by_hand("jobs", NAMESPACE, "falcon-j1")
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")
