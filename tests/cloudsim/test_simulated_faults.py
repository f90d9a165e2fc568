"""Faults strike where they are set, once or for ever, and a world can be copied and replayed."""

import json
import threading
import time

import pytest
from cloudsim.clock import Driver
from cloudsim.errors import Hang, KubeError, SimError
from cloudsim.faults import Fault
from cloudsim.world import World
from simulated import NAMESPACE, PARENT, PATH, a_job, a_pool, a_world, pods_of, pools_of, with_nodes

UNAVAILABLE = SimError("UNAVAILABLE", "backend error")


@pytest.mark.parametrize(("when", "pools"), [("before", {}), ("after", {"falcon-j1": "PROVISIONING"})])
def test_an_error_before_or_after_the_effect(when: str, pools: dict[str, str]) -> None:
    """The same answer; only afterwards can one tell (P3)."""
    world = a_world()
    fault = Fault("gke.create_node_pool", "before" if when == "before" else "after", UNAVAILABLE)
    world.faults.add(fault)
    with pytest.raises(SimError, match="503 UNAVAILABLE"):
        world.gke.create_node_pool(PATH, a_pool())
    assert (pools_of(world), fault.struck) == (pools, 1)


def test_a_hang_has_no_effect_or_one_at_once_or_one_later() -> None:
    """No answer; the effect may surface minutes after."""
    world = a_world()
    for fault in (Fault("gke.*"), Fault("gke.*", effect=True), Fault("gke.*", later=120)):
        fault.when = "hang"
        world.faults.add(fault)
    for number in range(3):
        with pytest.raises(Hang):
            world.gke.create_node_pool(PATH, a_pool(f"falcon-j{number}"))
    assert list(pools_of(world)) == ["falcon-j1"]
    world.advance(120)
    assert list(pools_of(world)) == ["falcon-j1", "falcon-j2"]


def test_a_stale_list_shows_an_earlier_answer() -> None:
    """The answer before last, to the same question."""
    world = a_world()
    pools_of(world)
    world.gke.create_node_pool(PATH, a_pool())
    pools_of(world)
    world.faults.add(Fault("gke.list_node_pools", "stale", back=2))
    assert (pools_of(world), list(pools_of(world))) == ({}, ["falcon-j1"])


def test_a_partial_list_lacks_items_and_names_missing_zones() -> None:
    """One item left out by its place; a list of operations that is short says so."""
    world = with_nodes(a_world())
    world.kube(PATH).create("jobs", NAMESPACE, a_job())
    world.advance(1)
    world.faults.add(Fault("kube.list.pods", "partial", drop=1))
    assert [pod["spec"]["hostname"] for pod in pods_of(world)] == ["falcon-j1-0", "falcon-j1-2", "falcon-j1-3"]
    world.faults.add(Fault("gke.list_operations", "partial"))
    assert world.gke.list_operations(PARENT).missing_zones == ("some-zone",)
    assert world.gke.list_operations(PARENT).missing_zones == ()


def test_a_fault_may_pass_calls_and_may_look_at_them() -> None:
    """`skip` lets the first through, `where` looks at name and target, `times` None strikes for ever."""
    world = a_world()
    denied = KubeError(403, "Forbidden", 'admission webhook "w" denied the request: no')
    world.faults.add(Fault("kube.create.jobs", error=denied, skip=1, where=lambda call: "j-bad" in call.target))
    world.kube(PATH).create("jobs", NAMESPACE, a_job("j-good"))
    world.kube(PATH).create("jobs", NAMESPACE, a_job("j-bad1"))
    with pytest.raises(KubeError, match="denied the request"):
        world.kube(PATH).create("jobs", NAMESPACE, a_job("j-bad2"))
    down = world.faults.cluster_down(PATH)
    for _ in range(3):
        with pytest.raises(Hang):
            world.kube(PATH).list("jobs", NAMESPACE)
    world.faults.remove(down)
    assert len(world.kube(PATH).list("jobs", NAMESPACE)["items"]) == 2


def test_every_call_is_written_down() -> None:
    """Name, target and whether it changes something, failed or not."""
    world = a_world()
    world.faults.add(Fault("gke.delete_node_pool", error=UNAVAILABLE))
    pools_of(world)
    with pytest.raises(SimError):
        world.gke.delete_node_pool(PATH, "x")
    assert [(call.name, call.target, call.mutating) for call in world.calls] == [
        ("gke.list_node_pools", PATH, False),
        ("gke.delete_node_pool", f"{PATH}/nodePools/x", True),
    ]


@pytest.mark.parametrize(
    ("fault", "effects"),
    [
        (Fault("gke.create_node_pool", error=UNAVAILABLE), 0),
        (Fault("gke.create_node_pool", "after", error=UNAVAILABLE), 1),
        (Fault("gke.create_node_pool", "hang"), 0),
        (Fault("gke.create_node_pool", "hang", effect=True), 1),
        (Fault("gke.create_node_pool", "hang", later=5), 1),
    ],
)
def test_what_changed_something_is_an_effect(fault: Fault, effects: int) -> None:
    """Whatever the caller was told, a pool that was made counts once; a refusal and a read count never."""
    world = a_world()
    world.faults.add(fault)
    with pytest.raises((SimError, Hang)):
        world.gke.create_node_pool(PATH, {"name": "p", "initialNodeCount": 1})
    world.advance(10)
    pools_of(world)
    with pytest.raises(SimError):
        world.gke.delete_node_pool(PATH, "not-there")

    assert [("gke.create_node_pool", f"{PATH}/nodePools/p")] * effects == [
        (call.name, call.target) for call in world.effects
    ]


def picture(world: World) -> str:
    """Return all that there is, as text."""
    kube = world.kube(PATH)
    kinds = ("jobs", "pods", "nodes", "events", "services")
    return json.dumps([world.gke.list_node_pools(PATH), [list(kube.store.objects[kind].values()) for kind in kinds]])


def lived(seed: int) -> World:
    """Return a world in which something happened."""
    world = World(seed)
    world.add_cluster(PATH)
    kube = world.kube(PATH)
    kube.create_by_hand("namespaces", None, {"metadata": {"name": NAMESPACE}})
    kube.create_by_hand("serviceaccounts", NAMESPACE, {"metadata": {"name": "falcon-job"}})
    with_nodes(world).kube(PATH).create("jobs", NAMESPACE, a_job())
    world.advance(10)
    return world


def test_a_seed_makes_a_world() -> None:
    """Equal seeds, equal worlds to the last name; another seed, another one."""
    assert picture(lived(7)) == picture(lived(7))
    assert picture(lived(7)) != picture(lived(8))


def test_a_fork_goes_its_own_way() -> None:
    """What happens in the copy, agenda included, leaves the original as it was; both would have gone the same way."""
    world = lived(7)
    before = picture(world)
    fork = world.fork()
    fork.advance(100)
    fork.gke.delete_node_pool(PATH, "falcon-j1")
    fork.advance(200)
    assert (picture(world), list(pools_of(fork))) == (before, [])
    twin = world.fork()
    world.advance(100)
    twin.advance(100)
    assert picture(world) == picture(twin)


def test_time_may_pass_by_itself() -> None:
    """A driver moves the clock; stopped, it stands."""
    world = a_world()
    began = world.now
    others = threading.enumerate()
    driver = Driver(world, speed=1000)
    driver.start()
    deadline = time.monotonic() + 10
    while world.now < began + 60 and time.monotonic() < deadline:
        time.sleep(0.01)
    driver.stop()
    assert world.now >= began + 60
    assert "cloudsim-clock" not in {thread.name for thread in threading.enumerate() if thread not in others}


def test_the_world_is_quick() -> None:
    """A day of an idle cluster is nothing, and thousands of steps take a second."""
    world = lived(7)
    began = time.perf_counter()
    for _ in range(2000):
        world.advance(1)
    assert time.perf_counter() - began < 1
