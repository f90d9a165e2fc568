"""The simulated garbage collector and the answers that a fault changes."""

from typing import Any

import pytest
from cloudsim.errors import Hang
from cloudsim.faults import Answer, Fault
from cloudsim.world import World

PATH = "projects/p/locations/us-central1-a/clusters/c1"


def test_what_is_created_for_an_owner_that_is_gone_goes() -> None:
    """An object whose only owner no longer exists is collected, however late it was created."""
    world = World()
    world.add_cluster(PATH)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "00000000-0000-4000-8000-000000000000"}
    kube = world.kube(PATH)
    kube.create(
        "services",
        "default",
        {"metadata": {"name": "j", "ownerReferences": [owner]}, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}},
    )
    world.advance(1)
    assert [] == kube.list("services", "default")["items"]


def test_answer_is_changed_as_the_fault_says() -> None:
    """A fault may put anything in the place of an answer; the world stays as it is."""
    world = World()
    world.add_cluster(PATH)

    def twice(answer: Any) -> Any:
        return Answer([*answer, *answer])

    world.faults.add(Fault("gke.list_node_pools", "changed", change=twice))
    assert [2, 1] == [len(world.gke.list_node_pools(PATH)) for _ in range(2)]


def test_refusal_whose_answer_is_lost_is_heard_by_no_one() -> None:
    """A call that would have been refused and whose answer is lost ends in the fault's error."""
    world = World()
    world.add_cluster(PATH)
    world.faults.add(Fault("gke.delete_node_pool", "hang", effect=True))
    with pytest.raises(Hang):
        world.gke.delete_node_pool(PATH, "no-such-pool")
