"""The simulated GKE refuses, fails, waits and gives machines as reference/gke.md says."""

from collections.abc import Callable
from typing import Any

import pytest
from cloudsim.errors import SimError
from cloudsim.gke_pools import Doom
from cloudsim.values import Json
from cloudsim.world import World
from simulated import (
    PARENT,
    PATH,
    PROJECT,
    REGION,
    ZONE,
    a_flex_pool,
    a_job,
    a_pool,
    a_reserved_pool,
    a_world,
    events_of,
    pools_of,
    with_nodes,
)

SEVEN = "tpu7x-standard-4t"


def operation(world: World) -> Json:
    """Return the newest operation."""
    newest: Json = world.gke.list_operations(PARENT)[0]
    return newest


def refusal(world: World, pool: Json) -> str:
    """Return how a create is refused."""
    with pytest.raises(SimError) as caught:
        world.gke.create_node_pool(PATH, pool)
    return str(caught.value)


def nodes(world: World, pool: str = "falcon-j1") -> list[Json]:
    """Return the nodes of a pool."""
    found: list[Json] = world.kube(PATH).list("nodes", label_selector=f"cloud.google.com/gke-nodepool={pool}")["items"]
    return found


def changed(pool: Json, change: Callable[[Json], Any]) -> Json:
    """Return the pool, changed."""
    change(pool)
    return pool


def test_a_fixed_pool_is_running_before_its_nodes_have_registered() -> None:
    """PROVISIONING while the operation runs, RUNNING and DONE with no node, then all nodes, labelled and tainted."""
    world = a_world()
    world.gke.create_node_pool(PATH, a_pool())
    assert (pools_of(world), operation(world)["status"]) == ({"falcon-j1": "PROVISIONING"}, "RUNNING")
    world.advance(world.tempo.create_seconds)
    assert (pools_of(world), operation(world)["status"], nodes(world)) == ({"falcon-j1": "RUNNING"}, "DONE", [])
    assert "error" not in operation(world)
    world.advance(world.tempo.node_seconds)
    assert len(nodes(world)) == 4
    labels = nodes(world)[0]["metadata"]["labels"]
    assert labels["cloud.google.com/gke-tpu-accelerator"] == "tpu-v6e-slice"
    assert labels["cloud.google.com/gke-tpu-topology"] == "4x4"
    assert nodes(world)[0]["spec"]["taints"][0]["key"] == "google.com/tpu"


def test_a_new_pool_may_not_be_listed_yet() -> None:
    """Accepted, and yet neither listed nor found, while its name is taken."""
    world = a_world(visibility_seconds=90)
    world.gke.create_node_pool(PATH, a_pool())
    assert pools_of(world) == {}
    with pytest.raises(SimError, match=r"404 NOT_FOUND: Not found: .*/nodePools/falcon-j1"):
        world.gke.get_node_pool(PATH, "falcon-j1")
    assert "409 ALREADY_EXISTS: Already exists: projects/p/" in refusal(world, a_pool())
    world.advance(90)
    assert list(pools_of(world)) == ["falcon-j1"]


@pytest.mark.parametrize(
    ("pool", "text"),
    [
        (a_pool("Falcon"), "400 INVALID_ARGUMENT: Invalid value"),
        (a_pool("f" * 41), "400 INVALID_ARGUMENT: Invalid value"),
        (
            a_pool(machine="ct6e-standard-8t", topology="2x4", nodes=8),
            "TPU topology can't be specified with single-host",
        ),
        (
            changed(a_pool(nodes=1), lambda pool: pool.update(placementPolicy={"tpuTopology": "2x2"})),
            "TPU topology can't be specified with single-host TPU slice pool",
        ),
        (a_pool(machine=SEVEN, topology="4x2x1", nodes=2), 'Invalid TPU topology "4x2x1"'),
        (
            changed(a_pool(), lambda pool: pool["config"].update(labels={"owner": "a@b.c"})),
            "Node labels are invalid",
        ),
        (
            changed(a_pool(), lambda pool: pool["config"].update(resourceLabels={"Owner": "a"})),
            "Invalid resource label",
        ),
        (
            changed(a_flex_pool(), lambda pool: pool.pop("autoscaling")),
            "Flex start node pools require autoscaling enabled.",
        ),
        (
            changed(a_flex_pool(), lambda pool: pool.update(initialNodeCount=4)),
            "Flex start node pools require initial node count to be set to 0.",
        ),
        (
            changed(a_flex_pool(), lambda pool: pool.update(autoscaling={"enabled": True, "totalMaxNodeCount": 4})),
            'Maximum node count 0 is not a valid size of TPU pod slice with topology "4x4"',
        ),
        (
            changed(a_flex_pool(), lambda pool: pool.update(queuedProvisioning={"enabled": True})),
            "Flex start node pools don't support TPUs with queued provisioning.",
        ),
        (
            changed(a_flex_pool(), lambda pool: pool["config"].update(consolidationDelay="30s")),
            "Consolidation delay must be between",
        ),
        (
            a_reserved_pool(reservation="nowhere"),
            '404 NOT_FOUND: Google Compute Engine: reservation "nowhere" not found',
        ),
        (
            a_reserved_pool(reservation="r/reservationBlocks/b"),
            'reservation "r/reservationBlocks/b" not found for node pool',
        ),
        (
            changed(a_pool(), lambda pool: pool.update(placementPolicy={"policyName": "none", "tpuTopology": "4x4"})),
            "Resource policy projects/p/regions/us-central1/resourcePolicies/none not found.",
        ),
    ],
)
def test_a_request_that_is_wrong_is_refused_at_once(pool: Json, text: str) -> None:
    """A wrong request is answered with GKE's words, and nothing is made."""
    world = a_world()
    world.add_reservation(PROJECT, ZONE, "r", "ct6e-standard-4t", 8)
    assert text in refusal(world, pool)
    assert (pools_of(world), world.gke.list_operations(PARENT)) == ({}, [])


def test_a_cluster_that_is_gone_is_not_found() -> None:
    """Every call about it is 404 with its path."""
    world = a_world()
    world.clusters[PATH].gone = True
    assert refusal(world, a_pool()) == f"404 NOT_FOUND: Not found: {PATH}."
    with pytest.raises(SimError, match="Not found"):
        world.gke.get_cluster(PATH)


def test_one_operation_a_pool_and_five_a_cluster() -> None:
    """A pool that is being made cannot be deleted; the sixth operation of a cluster is 429."""
    world = a_world()
    for number in range(5):
        world.gke.create_node_pool(PATH, a_pool(f"falcon-j{number}"))
    with pytest.raises(SimError, match="400 FAILED_PRECONDITION: Cluster is running incompatible operation operation-"):
        world.gke.delete_node_pool(PATH, "falcon-j0")
    text = '429 RESOURCE_EXHAUSTED: Too many operations: cluster "c1" hits the concurrent operations quota 5'
    assert text in refusal(world, a_pool("falcon-j5"))
    world.advance(world.tempo.create_seconds)
    world.gke.create_node_pool(PATH, a_pool("falcon-j5"))


def test_an_upgrade_of_the_cluster_blocks_every_pool() -> None:
    """Creates and deletes are refused with "currently upgrading" until it ends."""
    world = with_nodes(a_world())
    world.gke.upgrade_cluster(PATH, 3600)
    assert "is currently upgrading cluster c1. Please wait and try again once it is done." in refusal(
        world, a_pool("x")
    )
    with pytest.raises(SimError, match="currently upgrading"):
        world.gke.delete_node_pool(PATH, "falcon-j1")
    world.advance(3600)
    world.gke.delete_node_pool(PATH, "falcon-j1")


def test_maintenance_of_a_pool_blocks_that_pool_alone() -> None:
    """RECONCILING, a delete is busy, another pool is not."""
    world = with_nodes(a_world())
    world.gke.upgrade_pool(PATH, "falcon-j1", 300)
    assert pools_of(world) == {"falcon-j1": "RECONCILING"}
    with pytest.raises(SimError, match="incompatible operation"):
        world.gke.delete_node_pool(PATH, "falcon-j1")
    world.gke.create_node_pool(PATH, a_pool("falcon-j2"))
    world.advance(300)
    assert pools_of(world)["falcon-j1"] == "RUNNING"


def test_a_stockout_is_told_after_35_minutes_and_leaves_a_pool() -> None:
    """The operation runs all the while, is DONE with an error, and the pool stays in ERROR holding its name."""
    world = a_world()
    world.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", 8)
    world.gke.create_node_pool(PATH, a_pool())
    world.advance(2000)
    assert (pools_of(world), operation(world)["status"]) == ({"falcon-j1": "PROVISIONING"}, "RUNNING")
    world.advance(100)
    assert operation(world)["status"] == "DONE"
    text = operation(world)["error"]["message"]
    assert "Not all instances running in IGM after 35m0s. Expected 4, running 0, transitioning 4" in text
    assert "[GCE_STOCKOUT]" in text
    pool = world.gke.get_node_pool(PATH, "falcon-j1")
    assert (pool["status"], pool["statusMessage"], pool["conditions"][0]["code"]) == ("ERROR", text, "GCE_STOCKOUT")
    assert "ALREADY_EXISTS" in refusal(world, a_pool())
    world.gke.delete_node_pool(PATH, "falcon-j1")
    world.advance(world.tempo.delete_seconds)
    assert pools_of(world) == {}


@pytest.mark.parametrize("recovers", [True, False])
def test_a_failed_pool_may_gain_its_machines_later(recovers: bool) -> None:
    """Once there is capacity the pool in ERROR comes up and keeps its old condition, or stays as it is."""
    world = a_world(failed_pools_recover=recovers)
    world.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", 0)
    world.gke.create_node_pool(PATH, a_pool())
    world.advance(2100)
    world.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", None)
    world.advance(100)
    expected = ("RUNNING", 4) if recovers else ("ERROR", 0)
    assert (pools_of(world)["falcon-j1"], len(nodes(world))) == expected
    assert world.gke.get_node_pool(PATH, "falcon-j1")["conditions"][0]["code"] == "GCE_STOCKOUT"


def test_a_full_reservation_is_a_429() -> None:
    """The create is refused with the real text, whatever the lagging count shows."""
    world = a_world()
    world.add_reservation(PROJECT, ZONE, "r", "ct6e-standard-4t", 8, in_use=5)
    text = refusal(world, a_reserved_pool())
    assert text == (
        "429 RESOURCE_EXHAUSTED: Reservation does not have enough resources for the request: specific reservation "
        '"r" is insufficient for node pool "falcon-j1" at zone "us-central1-a": required 4 and short of 1 VM count of '
        "machine type ct6e-standard-4t"
    )


def test_in_use_lags_behind_what_pools_take() -> None:
    """The count follows a create and a delete a while later; the room a create finds does not wait for it."""
    world = a_world(reservation_lag_seconds=30, delete_seconds=60)
    world.add_reservation(PROJECT, ZONE, "r", "ct6e-standard-4t", 4)

    def shown() -> str:
        return str(world.compute.get_reservation(PROJECT, ZONE, "r")["specificReservation"]["inUseCount"])

    world.gke.create_node_pool(PATH, a_reserved_pool(reservation=f"projects/{PROJECT}/reservations/r"))
    assert shown() == "0"
    assert "short of 4 VM" in refusal(world, a_reserved_pool("falcon-j2"))
    world.advance(100)
    assert shown() == "4"
    world.gke.delete_node_pool(PATH, "falcon-j1")
    world.advance(60)
    assert (pools_of(world), shown()) == ({}, "4")
    world.advance(30)
    assert shown() == "0"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"machine_type": "ct6e-standard-8t"}, "Reservation 'r' is incorrect for the requested resources."),
        ({"project": "q"}, "The reservation must exist in the same project as the instance."),
    ],
)
def test_a_reservation_that_does_not_fit_fails_later(change: Json, text: str) -> None:
    """The create is accepted; the operation says that the machines do not match."""
    world = a_world()
    fields: Json = {
        "project": PROJECT,
        "zone": ZONE,
        "name": "r",
        "machine_type": "ct6e-standard-4t",
        "count": 8,
    } | change
    world.add_reservation(**fields)
    world.gke.create_node_pool(PATH, a_reserved_pool(reservation=f"projects/{fields['project']}/reservations/r"))
    world.advance(world.tempo.failure_seconds)
    assert (operation(world)["error"]["message"], pools_of(world)) == (text, {"falcon-j1": "ERROR"})


def test_quota_is_a_403_at_once_or_an_error_later() -> None:
    """PERMISSION_DENIED that means quota, and the same found out when the machines are made."""
    world = a_world()
    world.set_quota(PROJECT, "ct6e-standard-4t", 8)
    assert refusal(world, a_pool()).startswith(
        '403 PERMISSION_DENIED: Insufficient regional quota to satisfy request: resource "TPUS_PER_TPU_FAMILY": '
        "request requires '16.0' and is short '8.0'."
    )
    world.set_quota(PROJECT, "ct6e-standard-4t", 8, late=True)
    world.gke.create_node_pool(PATH, a_pool())
    world.advance(world.tempo.failure_seconds)
    assert "[GCE_QUOTA_EXCEEDED]" in operation(world)["error"]["message"]
    assert pools_of(world) == {"falcon-j1": "ERROR"}


@pytest.mark.parametrize(
    ("placement", "nodes_asked", "status", "text"),
    [
        ({"type": "COMPACT", "tpuTopology": "2x2x2"}, 2, "ERROR", "Use workload policy instead."),
        ({"policyName": "w", "tpuTopology": "2x2x2"}, 4, "ERROR", "Requested invalid target size '4'"),
        (
            {"policyName": "bare", "tpuTopology": "2x2x2"},
            2,
            "ERROR",
            "does not support TPU topology with group placement",
        ),
        ({"policyName": "w", "tpuTopology": "2x2x2"}, 2, "RUNNING", ""),
        ({"policyName": "w"}, 2, "RUNNING", ""),
    ],
)
def test_a_slice_of_tpu7x_needs_a_workload_policy(placement: Json, nodes_asked: int, status: str, text: str) -> None:
    """COMPACT or a wrong count ends in ERROR later; the policy alone, or with a topology, works."""
    world = a_world()
    policy = {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "2x2x2"}
    world.compute.insert_resource_policy(PROJECT, REGION, {"name": "w", "workloadPolicy": policy})
    world.compute.insert_resource_policy(PROJECT, REGION, {"name": "bare", "workloadPolicy": {"type": policy["type"]}})
    pool = a_pool(machine=SEVEN, nodes=nodes_asked, topology="")
    pool["placementPolicy"] = placement
    world.gke.create_node_pool(PATH, pool)
    world.advance(100)
    assert pools_of(world) == {"falcon-j1": status}
    assert text in operation(world).get("error", {}).get("message", "")
    assert len(nodes(world)) == (2 if status == "RUNNING" else 0)


def test_a_slice_of_tpu7x_without_a_policy_never_gets_a_node() -> None:
    """The pool is RUNNING and stays empty."""
    world = a_world()
    pool = a_pool(machine=SEVEN, nodes=2, topology="")
    pool["placementPolicy"] = {"tpuTopology": "2x2x2"}
    world.gke.create_node_pool(PATH, pool)
    world.advance(1000)
    assert (pools_of(world), nodes(world)) == ({"falcon-j1": "RUNNING"}, [])


def test_a_flex_start_pool_gets_nodes_for_a_whole_slice_of_pending_pods() -> None:
    """RUNNING with 0 nodes; three pending pods of four bring none; four bring all; nobody there: back to 0."""
    world = a_world()
    world.gke.create_node_pool(PATH, a_flex_pool())
    world.advance(300)
    assert (pools_of(world), nodes(world)) == ({"falcon-j1": "RUNNING"}, [])
    kube = world.kube(PATH)
    kube.create("jobs", "falcon-jobs", a_job("three", 3))
    world.advance(300)
    assert nodes(world) == []
    kube.delete_by_hand("jobs", "falcon-jobs", "three")
    world.advance(10)
    kube.create("jobs", "falcon-jobs", a_job("four", 4))
    world.advance(world.tempo.flex_seconds + 1)
    assert len(nodes(world)) == 4
    assert any("TriggeredScaleUp" in text for text in events_of(world, "Normal"))
    world.advance(1000)
    assert (pools_of(world), nodes(world)) == ({"falcon-j1": "RUNNING"}, [])


def test_flex_start_without_capacity_says_so_on_the_pods_and_tries_again() -> None:
    """FailedScaleUp while nothing is there, nodes as soon as something is."""
    world = a_world()
    world.set_capacity(ZONE, "flex-start", "ct6e-standard-4t", 0)
    world.gke.create_node_pool(PATH, a_flex_pool())
    world.kube(PATH).create("jobs", "falcon-jobs", a_job())
    world.advance(100)
    assert any("FailedScaleUp" in text and "GCE out of resources" in text for text in events_of(world))
    world.set_capacity(ZONE, "flex-start", "ct6e-standard-4t", 16)
    world.advance(world.tempo.flex_seconds)
    assert len(nodes(world)) == 4


def test_a_delete_drains_and_takes_time() -> None:
    """STOPPING and still listed, then gone with its nodes; a second delete is busy, a third finds nothing."""
    world = with_nodes(a_world())
    world.gke.delete_node_pool(PATH, "falcon-j1")
    world.advance(world.tempo.delete_seconds - 1)
    assert pools_of(world) == {"falcon-j1": "STOPPING"}
    with pytest.raises(SimError, match="incompatible operation"):
        world.gke.delete_node_pool(PATH, "falcon-j1")
    world.advance(world.tempo.node_gone_seconds + 1)
    assert (pools_of(world), nodes(world)) == ({}, [])
    with pytest.raises(SimError, match="404 NOT_FOUND"):
        world.gke.delete_node_pool(PATH, "falcon-j1")


def test_a_lost_node_of_a_fixed_pool_comes_back() -> None:
    """RECONCILING with one node less, then RUNNING with all."""
    world = with_nodes(a_world())
    world.kube(PATH).delete_by_hand("nodes", None, nodes(world)[0]["metadata"]["name"])
    world.advance(world.tempo.node_gone_seconds)
    assert (pools_of(world), len(nodes(world))) == ({"falcon-j1": "RECONCILING"}, 3)
    world.advance(world.tempo.repair_seconds)
    assert (pools_of(world), len(nodes(world))) == ({"falcon-j1": "RUNNING"}, 4)


@pytest.mark.parametrize(
    ("doom", "pools", "error"),
    [
        (Doom(message="Requested resource is exhausted"), {"falcon-j1": "ERROR"}, "Requested resource is exhausted"),
        (Doom(message="boom", leaves="nothing"), {}, "boom"),
        (Doom(message="boom", leaves="RUNNING_WITH_ERROR", nodes=3), {"falcon-j1": "RUNNING_WITH_ERROR"}, "boom"),
        (Doom(leaves="PROVISIONING"), {"falcon-j1": "PROVISIONING"}, None),
    ],
)
def test_a_test_may_choose_how_a_create_ends(doom: Doom, pools: dict[str, str], error: str | None) -> None:
    """Any text and any wreck, for the next create that fits."""
    world = a_world()
    world.gke.doom(doom)
    world.gke.create_node_pool(PATH, a_pool())
    world.advance(5000)
    assert (pools_of(world), operation(world).get("error", {}).get("message")) == (pools, error)
    assert len(nodes(world)) == doom.nodes
