"""Where pods go, at every door: the scheduler's own words for each way in which no node takes a TPU pod."""

import re
from collections.abc import Callable

import pytest
from control_plane.client import Json
from kube_doors import PATH, Cluster, condition, delete_pools, job

OTHERS = r"\d+ node\(s\) (didn't match Pod's node affinity/selector|were unschedulable|had [^,]*)"
WORDS = (
    r"0/(\d+) nodes are available: (.*)\. (?:no new claims to deallocate, )?preemption: "
    r"0/\1 nodes are available: (.*)\."
)
NO_HELP = r"\d+ Preemption is not helpful for scheduling"


def refusal(cluster: Cluster, name: str) -> str:
    """Wait until the scheduler has said why a Job's pod is not placed; returns that."""

    def look() -> str | None:
        for pod in cluster.pods(name):
            for item in pod["status"].get("conditions", ()):
                if (item["type"], item["status"], item.get("reason")) == ("PodScheduled", "False", "Unschedulable"):
                    return str(item["message"])
        return None

    return cluster.until(look)


def needs(**amounts: str) -> Callable[[Json], None]:
    """Return what lets a Job's pods ask for so much."""

    def change(body: Json) -> None:
        container = body["spec"]["template"]["spec"]["containers"][0]
        named = {name.replace("tpu", "google.com/tpu"): amount for name, amount in amounts.items()}
        container["resources"] = {"requests": named, "limits": {k: v for k, v in named.items() if "/" in k}}

    return change


def nothing(body: Json) -> None:
    """Leave a Job as it is."""


def intolerant(body: Json) -> None:
    """Let a Job's pods tolerate nothing."""
    del body["spec"]["template"]["spec"]["tolerations"]


def topology(body: Json) -> None:
    """Let a Job's pods want a topology that the pool has not."""
    body["spec"]["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-tpu-topology"] = "16x16"


def occupied(cluster: Cluster, pool: str) -> None:
    """Let another Job run on a pool."""
    cluster.create("jobs", job("other", pool, seconds=None))
    cluster.until(lambda: cluster.get("jobs", "other")["status"].get("ready"))


def drained(cluster: Cluster, pool: str) -> None:
    """Let a pool take no pods any more."""
    nodes = cluster.ready_nodes(pool)
    with cluster.door.world.lock:
        cluster.door.world.kube(PATH).nodes.drain(nodes)
    cluster.until(lambda: not schedulable(cluster, pool))


def silent(cluster: Cluster, pool: str) -> None:
    """Let the nodes of a pool not answer."""
    nodes = cluster.ready_nodes(pool)
    with cluster.door.world.lock:
        for name in nodes:
            cluster.door.world.kube(PATH).nodes.unreachable(name)
    cluster.until(lambda: not schedulable(cluster, pool))


def free(cluster: Cluster, pool: str) -> None:
    """Leave a pool as it is."""


def schedulable(cluster: Cluster, pool: str) -> bool:
    """Whether a pool takes pods that tolerate its own taint."""
    return any(
        not node["spec"].get("unschedulable")
        and {taint["key"] for taint in node["spec"].get("taints", ())} <= {"google.com/tpu"}
        for node in cluster.items("nodes", f"cloud.google.com/gke-nodepool={pool}")
    )


@pytest.mark.parametrize(
    ("before", "change", "reasons", "preemption"),
    [
        (occupied, nothing, ["1 Insufficient google.com/tpu"], "1 No preemption victims found for incoming pod"),
        (free, needs(tpu="8"), ["1 Insufficient google.com/tpu"], ""),
        (
            free,
            needs(tpu="4", cpu="1000", memory="9999Gi"),
            ["1 Insufficient cpu", "1 Insufficient memory"],
            "",
        ),
        (free, intolerant, [r"\d+ node\(s\) had untolerated taint[^,]*"], ""),
        (free, topology, [r"\d+ node\(s\) didn't match Pod's node affinity/selector"], ""),
        (drained, nothing, [r"\d+ node\(s\) were unschedulable"], ""),
        (silent, nothing, [r"\d+ node\(s\) had untolerated taint[^,]*"], ""),
    ],
    ids=["occupied", "too-many-chips", "too-little-memory", "taint", "topology", "drained", "unreachable"],
)
def test_no_node_takes_it(
    cluster: Cluster,
    before: Callable[[Cluster, str], None],
    change: Callable[[Json], None],
    reasons: list[str],
    preemption: str,
) -> None:
    """How many nodes there are, what each reason is and for how many it holds, and whether others are in the way."""
    pool = cluster.nodes(1)
    before(cluster, pool)
    body = job("j", pool, seconds=None)
    change(body)
    cluster.create("jobs", body)
    message = refusal(cluster, "j")
    found = re.fullmatch(WORDS, message)
    assert found, message
    told, help_ = found[2].split(", "), found[3].split(", ")
    for reason in reasons:
        assert [True] == [True for each in told if re.fullmatch(reason, each)], message
    left = [each for each in told if not any(re.fullmatch(reason, each) for reason in reasons)]
    assert [] == [each for each in left if not re.fullmatch(OTHERS, each)], message
    assert sorted(told) == told
    assert preemption in ("", *help_)
    assert [] == [each for each in help_ if each != preemption and not re.fullmatch(NO_HELP, each)]
    events = cluster.until(lambda: cluster.items("events", fieldSelector="reason=FailedScheduling,type=Warning"))
    assert message in [event["message"] for event in events]
    ((pod, *_),) = [cluster.pods("j")]
    assert ("Pending", "Unschedulable") == (pod["status"]["phase"], condition(pod, "PodScheduled")[0])


def test_a_cluster_without_nodes(cluster: Cluster) -> None:
    """It is said in words of its own; the pod goes to the first node that comes."""
    delete_pools(cluster.door.world)
    cluster.until(lambda: not cluster.items("nodes"))
    cluster.create("jobs", job("j", f"{cluster.namespace}-p0", seconds=None))
    message = "no nodes available to schedule pods"
    assert message == refusal(cluster, "j")
    events = cluster.until(lambda: cluster.items("events", fieldSelector="reason=FailedScheduling,type=Warning"))
    assert message in [event["message"] for event in events]
    assert f"{cluster.namespace}-p0" == cluster.nodes(1)
    cluster.until(lambda: cluster.get("jobs", "j")["status"].get("ready"))


def test_a_pod_goes_where_there_is_room_again(cluster: Cluster) -> None:
    """What no node took is placed as soon as one has room."""
    pool = cluster.nodes(1)
    occupied(cluster, pool)
    cluster.create("jobs", job("j", pool, seconds=None))
    refusal(cluster, "j")
    cluster.call("delete", "jobs", "other", {"propagationPolicy": "Background"})
    cluster.until(lambda: cluster.get("jobs", "j")["status"].get("ready"))
