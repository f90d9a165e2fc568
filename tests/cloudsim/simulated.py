"""What the tests of the simulated cloud share: one world with one cluster, and requests of every shape."""

from typing import Any

from cloudsim.tempo import Tempo
from cloudsim.values import Json
from cloudsim.world import World

PROJECT, REGION, ZONE = "p", "us-central1", "us-central1-a"
PARENT = f"projects/{PROJECT}/locations/{REGION}"
PATH = f"{PARENT}/clusters/c1"
NAMESPACE = "falcon-jobs"
RESERVATION_KEY = "compute.googleapis.com/reservation-name"


def a_world(**tempo: Any) -> World:
    """Return a world with one cluster in which Falcon's namespace and account exist."""
    world = World(tempo=Tempo(**tempo))
    world.add_cluster(PATH, [ZONE])
    kube = world.kube(PATH)
    kube.create_by_hand("namespaces", None, {"metadata": {"name": NAMESPACE}})
    kube.create_by_hand("serviceaccounts", NAMESPACE, {"metadata": {"name": "falcon-job"}})
    return world


def a_pool(name: str = "falcon-j1", machine: str = "ct6e-standard-4t", topology: str = "4x4", nodes: int = 4) -> Json:
    """Return an on-demand node pool; one host: no topology."""
    pool: Json = {
        "name": name,
        "locations": [ZONE],
        "initialNodeCount": nodes,
        "config": {"machineType": machine, "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}},
        "management": {"autoRepair": True},
    }
    if topology and nodes > 1:
        pool["placementPolicy"] = {"type": "COMPACT", "tpuTopology": topology}
    return pool


def a_reserved_pool(name: str = "falcon-j1", reservation: str = "r", nodes: int = 4, topology: str = "4x4") -> Json:
    """Return a node pool that draws from a reservation."""
    pool = a_pool(name, nodes=nodes, topology=topology)
    affinity = {"consumeReservationType": "SPECIFIC_RESERVATION", "key": RESERVATION_KEY, "values": [reservation]}
    pool["config"]["reservationAffinity"] = affinity
    return pool


def a_flex_pool(name: str = "falcon-j1", nodes: int = 4) -> Json:
    """Return a flex-start node pool."""
    pool = a_pool(name, nodes=nodes)
    del pool["initialNodeCount"]
    pool["config"] |= {"flexStart": True, "consolidationDelay": "600s"}
    pool |= {"autoscaling": {"enabled": True, "maxNodeCount": nodes}, "management": {}}
    return pool


def a_job(name: str = "falcon-j1", pods: int = 4, pool: str = "falcon-j1", policy: bool = True) -> Json:
    """Return an Indexed Job of so many pods, a plain one for one pod, pinned to a pool."""
    tpu = {"google.com/tpu": "4"}
    spec: Json = {
        "backoffLimit": 0,
        "template": {
            "metadata": {"labels": {"falcon.io/job-id": name, "falcon.io/attempt": "1"}},
            "spec": {
                "restartPolicy": "Never",
                "serviceAccountName": "falcon-job",
                "nodeSelector": {"cloud.google.com/gke-nodepool": pool},
                "tolerations": [{"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}],
                "containers": [{"name": "task", "image": "busy", "resources": {"requests": tpu, "limits": tpu}}],
            },
        },
    }
    if pods > 1:
        spec |= {"completionMode": "Indexed", "completions": pods, "parallelism": pods}
        spec["template"]["spec"]["subdomain"] = name
    if policy:
        rule = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        spec["podFailurePolicy"] = {"rules": [rule]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def pools_of(world: World) -> dict[str, str]:
    """Return name -> status of the TPU pools."""
    return {pool["name"]: pool["status"] for pool in world.gke.list_node_pools(PATH) if pool["name"] != "default-pool"}


def conditions_of(world: World, job: str = "falcon-j1") -> list[str]:
    """Return the types of a Job's conditions that are True, in their order."""
    conditions = world.kube(PATH).get("jobs", NAMESPACE, job)["status"].get("conditions", ())
    return [item["type"] for item in conditions if item["status"] == "True"]


def pods_of(world: World, job: str = "falcon-j1") -> list[Json]:
    """Return the pods of a Job."""
    pods: list[Json] = world.kube(PATH).list("pods", NAMESPACE, f"job-name={job}")["items"]
    return pods


def events_of(world: World, kind: str = "Warning") -> list[str]:
    """Return reason and message of all events of a type."""
    found = world.kube(PATH).list("events", None, field_selector=f"type={kind}")["items"]
    return [f"{event['reason']}: {event['message']}" for event in found]


def with_nodes(world: World, pool: Json | None = None) -> World:
    """Return the world with a node pool whose nodes are Ready."""
    world.gke.create_by_hand(PATH, pool or a_pool())
    world.advance(world.tempo.create_seconds + world.tempo.node_seconds + 1)
    return world
