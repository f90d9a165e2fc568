"""The simulated IAM: asked only if a scenario says so; what is refused says what is missing, as Google does."""

from collections.abc import Callable

import pytest
from cloudsim.admin import WORLD_ACTS
from cloudsim.errors import SimError
from cloudsim.iam import ACT_AS, NEEDED, granted
from cloudsim.scenario import scenario
from cloudsim.world import World

PATH = "projects/p/locations/us-central1-a/clusters/c1"
POOL = {
    "name": "falcon-a",
    "initialNodeCount": 1,
    "config": {
        "machineType": "ct6e-standard-4t",
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    },
}
CALLS: dict[str, Callable[[World], object]] = {
    "gke.get_cluster": lambda world: world.gke.get_cluster(PATH),
    "gke.list_node_pools": lambda world: world.gke.list_node_pools(PATH),
    "gke.get_node_pool": lambda world: world.gke.get_node_pool(PATH, "default-pool"),
    "gke.create_node_pool": lambda world: world.gke.create_node_pool(PATH, POOL),
    "gke.delete_node_pool": lambda world: world.gke.delete_node_pool(PATH, "default-pool"),
    "gke.list_operations": lambda world: world.gke.list_operations("projects/p/locations/us-central1-a"),
    "gke.get_operation": lambda world: world.gke.get_operation("projects/p/locations/us-central1-a/operations/o"),
    "compute.get_reservation": lambda world: world.compute.get_reservation("p", "us-central1-a", "r"),
    "compute.aggregated_reservations": lambda world: world.compute.aggregated_reservations("p"),
    "compute.get_resource_policy": lambda world: world.compute.get_resource_policy("p", "us-central1", "x"),
    "compute.insert_resource_policy": lambda world: world.compute.insert_resource_policy(
        "p", "us-central1", {"name": "x"}
    ),
    "compute.get_region_operation": lambda world: world.compute.get_region_operation("p", "us-central1", "o"),
}


def refused(world: World, call: str) -> str:
    """Return how a call is answered: the code and the text of a refusal by IAM, or nothing."""
    try:
        CALLS[call](world)
    except SimError as error:
        return "" if error.code == "NOT_FOUND" else str(error)
    return ""


def a_world(**more: object) -> World:
    """Return a world of a scenario with one cluster."""
    return scenario({"clusters": [{"path": PATH}], **more}).world


def test_every_method_has_its_permissions() -> None:
    """The table knows each call that a world answers."""
    assert set(CALLS) == set(NEEDED)


@pytest.mark.parametrize("call", CALLS)
def test_a_method_is_refused_without_its_permission(call: str) -> None:
    """With none it names the first one, and nothing happens; with exactly those it needs it is answered."""
    world = a_world(permissions=[])
    first, *_ = NEEDED[call]
    quoted = f"'{first}'" if first.startswith("compute.") else f'"{first}"'
    assert refused(world, call).startswith(f"403 PERMISSION_DENIED: Required {quoted} permission")
    assert [] == world.effects
    world.permissions = frozenset(NEEDED[call])
    assert "" == refused(world, call)


def test_acting_as_the_nodes_account_is_refused_in_other_words() -> None:
    """GKE answers 400 and names a role of the account."""
    said = refused(a_world(permissions=sorted(granted() - {ACT_AS})), "gke.create_node_pool")
    assert said.startswith('400 INVALID_ARGUMENT: The user does not have access to service account "default".')


def test_nobody_is_asked_by_default() -> None:
    """A world without permissions answers everything; an act takes them away and gives them back; a fork keeps them."""
    world = a_world()
    assert [""] * len(CALLS) == [refused(world.fork(), call) for call in CALLS]
    WORLD_ACTS["set_permissions"](world, permissions=["container.clusters.get"])
    assert frozenset({"container.clusters.get"}) == world.fork().permissions
    assert refused(world, "gke.list_operations")
    WORLD_ACTS["set_permissions"](world)
    assert "" == refused(world, "gke.list_operations")
