"""Jobs, at every door: their pods, their conditions in order, what ends them and what is left meanwhile."""

import re
from typing import Any

import pytest
from control_plane.client import Json
from kube_doors import PATH, Cluster, condition, conditions, job

pytestmark = pytest.mark.usefixtures("lost")
"""The node is lost first and its pods' end is awaited last: the others run meanwhile."""


def ended(cluster: Cluster, name: str = "j") -> Json:
    """Return a Job once it is Complete or Failed."""

    def look() -> Json | None:
        found = cluster.get("jobs", name)
        return found if {"Complete", "Failed"} & set(conditions(found)) else None

    return cluster.until(look)


def running(cluster: Cluster, pods: int, name: str = "j") -> Json:
    """Return a Job once so many of its pods are ready."""

    def look() -> Json | None:
        found = cluster.get("jobs", name)
        return found if found["status"].get("ready") == pods else None

    return cluster.until(look)


@pytest.fixture(scope="module")
def lost(long_cluster: Cluster) -> str:
    """The pod of a Job whose node has just been lost: garbage collection lets it stand for 40 to 60 seconds."""
    pool = long_cluster.nodes(4)
    long_cluster.create("jobs", job("j", pool, 4, policy=True, seconds=None))
    running(long_cluster, 4)
    node = long_cluster.ready_nodes(pool)[0]
    (pod,) = (pod for pod in long_cluster.pods("j") if pod["spec"]["nodeName"] == node)
    with long_cluster.door.world.lock:
        long_cluster.door.world.kube(PATH).nodes.lose(node)
    return str(pod["metadata"]["name"])


@pytest.mark.parametrize("pods", [1, 4], ids=["plain", "indexed"])
def test_success_comes_in_two_conditions(cluster: Cluster, pods: int) -> None:
    """SuccessCriteriaMet, then Complete, with reason, message, counts and time of completion."""
    cluster.create("jobs", job("j", cluster.nodes(pods), pods, seconds=1))
    done = ended(cluster)
    assert ["SuccessCriteriaMet", "Complete"] == conditions(done)
    reached = ("CompletionsReached", "Reached expected number of succeeded pods")
    assert (reached, reached) == (condition(done, "SuccessCriteriaMet"), condition(done, "Complete"))
    status = done["status"]
    assert (pods, None, None) == (status["succeeded"], status.get("active"), status.get("failed"))
    assert "completionTime" in status
    assert ("0-3" if pods == 4 else None) == status.get("completedIndexes")
    assert {} == status.get("uncountedTerminatedPods")
    assert (0, 0) == (status.get("ready"), status.get("terminating"))
    assert ["Succeeded"] * pods == [pod["status"]["phase"] for pod in cluster.pods("j")]


@pytest.mark.parametrize("pods", [1, 4], ids=["plain", "indexed"])
@pytest.mark.parametrize("policy", [False, True], ids=["", "policy"])
def test_failure_comes_in_two_conditions(cluster: Cluster, pods: int, policy: bool) -> None:
    """FailureTarget, then Failed, by the limit of failures; no pod is tried again."""
    cluster.create("jobs", job("j", cluster.nodes(pods), pods, policy=policy, seconds=1, exit_code=3))
    done = ended(cluster)
    assert ["FailureTarget", "Failed"] == conditions(done)
    limit = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert (limit, limit) == (condition(done, "FailureTarget"), condition(done, "Failed"))
    status = done["status"]
    assert "completionTime" not in status
    assert (pods, None) == (status["failed"], status.get("active"))
    left = [pod["status"]["containerStatuses"][0]["state"] for pod in cluster.pods("j")]  # some may have been ended
    assert {3} == {state["terminated"]["exitCode"] for state in left}


def test_the_first_failure_ends_the_others_before_the_job_has_failed(cluster: Cluster) -> None:
    """FailureTarget stands while the other pods end; Failed only when none runs."""
    does = {"seconds": None, "stop_seconds": 2, "indexes": {2: {"seconds": 1, "exit_code": 3}}}
    cluster.create("jobs", job("j", cluster.nodes(4), 4, policy=True, **does))
    found = cluster.until(lambda: next(iter([o for o in [cluster.get("jobs", "j")] if conditions(o)]), None))
    assert ["FailureTarget"] == conditions(found)
    meanwhile = cluster.until(
        lambda: next(iter([o for o in [cluster.get("jobs", "j")] if o["status"].get("terminating")]), None)
    )
    assert (["FailureTarget"], 3) == (conditions(meanwhile), meanwhile["status"]["terminating"])
    done = ended(cluster)
    assert (["FailureTarget", "Failed"], 4) == (conditions(done), done["status"]["failed"])
    left = {pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in cluster.pods("j")}
    assert {"2"} == left


def test_the_way_there(cluster: Cluster) -> None:
    """Pods count as active from the start and as ready when they run."""
    cluster.create("jobs", job("j", cluster.nodes(4), 4, seconds=None))
    assert {} == {key: value for key, value in cluster.get("jobs", "j")["status"].items() if key == "conditions"}
    status = running(cluster, 4)["status"]
    assert (4, 4, 0, {}) == (
        status["active"], status["ready"], status["terminating"], status["uncountedTerminatedPods"],
    )  # fmt: skip
    assert ("startTime" in status, [], None) == (True, conditions({"status": status}), status.get("succeeded"))


def test_names_and_places_of_indexed_pods(cluster: Cluster) -> None:
    """<job>-<index>-<five characters>, host names without them, one pod a host."""
    cluster.create("jobs", job("j", cluster.nodes(4), 4, seconds=None))
    running(cluster, 4)
    pods = sorted(cluster.pods("j"), key=lambda pod: str(pod["metadata"]["name"]))
    assert [f"j-{index}-" for index in range(4)] == [pod["metadata"]["name"][:-5] for pod in pods]
    assert [(f"j-{index}", "j") for index in range(4)] == [
        (pod["spec"]["hostname"], pod["spec"]["subdomain"]) for pod in pods
    ]
    key = "batch.kubernetes.io/job-completion-index"
    indexes = [str(index) for index in range(4)]
    assert indexes == [pod["metadata"]["annotations"][key] for pod in pods]
    assert indexes == [pod["metadata"]["labels"][key] for pod in pods]
    assert 4 == len({pod["spec"]["nodeName"] for pod in pods})
    labels = pods[0]["metadata"]["labels"]
    uid = cluster.get("jobs", "j")["metadata"]["uid"]
    assert ("j", "j", uid, uid) == (
        labels["job-name"], labels["batch.kubernetes.io/job-name"],
        labels["controller-uid"], labels["batch.kubernetes.io/controller-uid"],
    )  # fmt: skip
    (owner,) = pods[0]["metadata"]["ownerReferences"]
    assert ("Job", "j", uid, True, True) == tuple(
        owner[name] for name in ("kind", "name", "uid", "controller", "blockOwnerDeletion")
    )
    assert ["batch.kubernetes.io/job-tracking"] == pods[0]["metadata"]["finalizers"]
    (variable,) = (item for item in pods[0]["spec"]["containers"][0]["env"] if item["name"] == "JOB_COMPLETION_INDEX")
    assert f"metadata.labels['{key}']" == variable["valueFrom"]["fieldRef"]["fieldPath"]


def test_a_plain_pod_has_the_jobs_name_first(cluster: Cluster) -> None:
    """<job>-<five characters>, cut to 58 and five; no host name, no index."""
    name = "j" + "x" * 62
    cluster.create("jobs", job(name, cluster.nodes(1), seconds=None))
    (pod,) = cluster.until(lambda: cluster.pods(name))
    assert (name[:58], 63) == (pod["metadata"]["name"][:-5], len(pod["metadata"]["name"]))
    assert "hostname" not in pod["spec"]
    assert "batch.kubernetes.io/job-completion-index" not in pod["metadata"].get("annotations", {})


def test_long_names_of_indexed_pods(cluster: Cluster) -> None:
    """The Job's name is cut, the index and what follows never."""
    name = "j" + "x" * 60
    cluster.create("jobs", job(name, cluster.nodes(4), 4, seconds=None))
    running(cluster, 4, name)
    pods = sorted(cluster.pods(name), key=lambda pod: str(pod["metadata"]["name"]))
    assert [f"{name[:55]}-{index}-" for index in range(4)] == [pod["metadata"]["name"][:-5] for pod in pods]
    assert [f"{name}-{index}" for index in range(4)] == [pod["spec"]["hostname"] for pod in pods]


def test_counts_on_the_way_to_the_end(cluster: Cluster) -> None:
    """Counts never fall; what has ended is counted, or named among the uncounted, and in the end nothing is."""
    does: Any = {"indexes": {index: {"seconds": 0.4 * (index + 1)} for index in range(4)}}
    cluster.create("jobs", job("j", cluster.nodes(4), 4, **does))
    looks: list[Json] = []

    def look() -> Json | None:
        found = cluster.get("jobs", "j")
        looks.append(found["status"])
        return found if "Complete" in conditions(found) else None

    cluster.until(look)
    uids = {pod["metadata"]["uid"] for pod in cluster.pods("j")}
    succeeded = [status.get("succeeded", 0) for status in looks]
    assert (sorted(succeeded), 0, 4) == (succeeded, succeeded[0], succeeded[-1])
    left = [(status.get("uncountedTerminatedPods") or {}).get("succeeded", []) for status in looks]
    assert ([], set()) == (left[-1], {uid for each in left for uid in each} - uids)
    assert all(status.get("active", 0) + status.get("succeeded", 0) <= 4 for status in looks)
    assert all(status.get("ready", 0) <= status.get("active", 0) for status in looks)
    assert 0 == max(status.get("failed", 0) for status in looks)


def test_a_drained_pod_fails_the_job_by_its_policy(cluster: Cluster) -> None:
    """An evicted pod carries DisruptionTarget by the eviction API before it ends."""
    pool = cluster.nodes(1)
    cluster.create("jobs", job("j", pool, policy=True, seconds=None, stop_seconds=2))
    running(cluster, 1)
    nodes = cluster.ready_nodes(pool)
    with cluster.door.world.lock:
        cluster.door.world.kube(PATH).nodes.drain(nodes)
    (pod,) = cluster.until(lambda: [pod for pod in cluster.pods("j") if "deletionTimestamp" in pod["metadata"]])
    assert ("EvictionByEvictionAPI", "Eviction API: evicting") == condition(pod, "DisruptionTarget")
    done = ended(cluster)
    assert ("PodFailurePolicy", ["FailureTarget", "Failed"]) == (condition(done, "Failed")[0], conditions(done))


def test_a_suspended_job_has_no_pods(cluster: Cluster) -> None:
    """Suspended from the start: a condition, no start, nothing active."""
    found = suspended(cluster)
    assert (["Suspended"], ("JobSuspended", "Job suspended")) == (conditions(found), condition(found, "Suspended"))
    assert ([], False) == (cluster.pods("j"), "startTime" in found["status"])
    with cluster.door.world.lock:
        cluster.door.world.kube(PATH).suspend_by_hand(cluster.namespace, "j", suspend=False)
    found = running(cluster, 1)
    assert ([], True) == (conditions(found), "startTime" in found["status"])


def suspended(cluster: Cluster) -> Json:
    """Return a Job that was made suspended, once its controller has seen it."""
    body = job("j", cluster.nodes(1), seconds=None)
    body["spec"]["suspend"] = True
    cluster.create("jobs", body)
    return cluster.until(lambda: next((o for o in [cluster.get("jobs", "j")] if conditions(o)), None))


def resume(uid: str) -> Json:
    """Return the merge patch that lets a Job of this UID go."""
    return {"metadata": {"uid": uid}, "spec": {"suspend": False}}


def test_a_suspended_job_is_let_go_by_its_uid(cluster: Cluster) -> None:
    """A merge patch that names its UID: pods come, its time begins, Suspended is False; a second changes nothing."""
    uid = suspended(cluster)["metadata"]["uid"]
    answer = cluster.call("patch", "jobs", "j", resume(uid))
    assert (200, uid, False) == (answer.status, answer.body["metadata"]["uid"], answer.body["spec"]["suspend"])
    found = running(cluster, 1)
    assert ([], ("JobResumed", "Job resumed")) == (conditions(found), condition(found, "Suspended"))
    assert "startTime" in found["status"]
    assert 200 == cluster.call("patch", "jobs", "j", resume(uid)).status
    assert 1 == len(cluster.pods("j"))


OF_ANOTHER_UID = re.compile(
    r'Job\.batch "j" is invalid: \[?metadata\.uid: Invalid value: "other": field is immutable(, spec\..*\])?', re.DOTALL
)
"""What a patch with another UID is told; older versions go on about what follows from the UID."""


def test_a_job_of_another_uid_stays_suspended(cluster: Cluster) -> None:
    """A patch with another UID is a 422 about metadata.uid; one of a Job that is not there is a 404."""
    suspended(cluster)
    answer = cluster.call("patch", "jobs", "j", resume("other"))
    assert (422, "Invalid") == (answer.status, answer.body["reason"])
    assert OF_ANOTHER_UID.fullmatch(answer.body["message"])
    fields = {cause["field"] for cause in answer.body["details"]["causes"]}
    assert {"metadata.uid"} == {field for field in fields if not field.startswith("spec.")}
    assert (True, []) == (cluster.get("jobs", "j")["spec"]["suspend"], cluster.pods("j"))
    missing = cluster.call("patch", "jobs", "k", resume("other"))
    assert (404, "NotFound", 'jobs.batch "k" not found') == (
        missing.status, missing.body["reason"], missing.body["message"],
    )  # fmt: skip


def test_suspending_a_running_job_ends_its_pods(cluster: Cluster) -> None:
    """The pods go, nothing counts as failed."""
    cluster.create("jobs", job("j", cluster.nodes(1), policy=True, seconds=None))
    running(cluster, 1)
    with cluster.door.world.lock:
        cluster.door.world.kube(PATH).suspend_by_hand(cluster.namespace, "j")
    cluster.until(lambda: not cluster.pods("j"))
    found = cluster.until(lambda: next((o for o in [cluster.get("jobs", "j")] if conditions(o)), None))
    assert (["Suspended"], None, None) == (
        conditions(found), found["status"].get("failed"), found["status"].get("active"),
    )  # fmt: skip


def test_a_pod_that_no_node_takes(cluster: Cluster) -> None:
    """The scheduler's own words stand in PodScheduled and in a Warning event."""
    cluster.create("jobs", job("j", "no-such-pool", seconds=1))

    def look() -> Json | None:
        (pod, *_) = cluster.pods("j") or [{"status": {}}]
        told = [item for item in pod["status"].get("conditions", ()) if item["type"] == "PodScheduled"]
        return pod if told and told[0]["status"] == "False" else None

    pod = cluster.until(look)
    reason, message = condition(pod, "PodScheduled")
    assert "Unschedulable" == reason
    assert message.startswith("0/") and "didn't match Pod's node affinity/selector" in message
    events = cluster.until(lambda: cluster.items("events", fieldSelector="reason=FailedScheduling,type=Warning"))
    assert (pod["metadata"]["name"], message) == (events[0]["involvedObject"]["name"], events[0]["message"])
    assert [] == conditions(cluster.get("jobs", "j"))


def test_too_few_chips(cluster: Cluster) -> None:
    """A second Job on a full pool is told that chips are lacking."""
    pool = cluster.nodes(1)
    cluster.create("jobs", job("j", pool, seconds=None))
    running(cluster, 1)
    cluster.create("jobs", job("k", pool, seconds=None))
    pod = cluster.until(lambda: next((pod for pod in cluster.pods("k") if pod["status"].get("conditions")), None))
    assert "1 Insufficient google.com/tpu" in condition(pod, "PodScheduled")[1]


def test_pods_that_are_not_admitted(cluster: Cluster) -> None:
    """The Job stays without pods, and a Warning event about it says why."""
    body = job("j", "p", seconds=1)
    body["spec"]["template"]["spec"]["serviceAccountName"] = "nobody"
    cluster.create("jobs", body)
    (event, *_) = cluster.until(lambda: cluster.items("events", fieldSelector="reason=FailedCreate,type=Warning"))
    told = f'error looking up service account {cluster.namespace}/nobody: serviceaccount "nobody" not found'
    assert (("Job", "j"), True) == (
        (event["involvedObject"]["kind"], event["involvedObject"]["name"]), event["message"].endswith(told),
    )  # fmt: skip
    assert event["message"].startswith('Error creating: pods "j-')
    found = cluster.get("jobs", "j")
    assert ([], [], None) == (cluster.pods("j"), conditions(found), found["status"].get("active"))


def test_an_image_that_never_comes_fails_nothing(cluster: Cluster) -> None:
    """The Job stays active, its pod Pending."""
    cluster.create("jobs", job("j", cluster.nodes(1), kind="image-pull"))
    (pod,) = cluster.until(
        lambda: [pod for pod in cluster.pods("j") if "ImagePullBackOff" in str(pod["status"].get("containerStatuses"))]
    )
    status = cluster.get("jobs", "j")["status"]
    assert ("Pending", 1, 0) == (pod["status"]["phase"], status["active"], status["ready"])


def test_the_sidecar_that_mounts_buckets(cluster: Cluster) -> None:
    """It stands first among the init containers, runs beside the workload, and ends with it."""
    body = job("j", cluster.nodes(1), seconds=1)
    body["spec"]["template"]["metadata"]["annotations"]["gke-gcsfuse/volumes"] = "true"
    cluster.create("jobs", body)
    (pod,) = cluster.until(lambda: [pod for pod in cluster.pods("j") if pod["status"].get("phase") == "Running"])
    sidecar = pod["spec"]["initContainers"][0]
    assert ("gke-gcsfuse-sidecar", "Always") == (sidecar["name"], sidecar["restartPolicy"])
    (status,) = pod["status"]["initContainerStatuses"]
    assert ("gke-gcsfuse-sidecar", ["running"], True) == (status["name"], list(status["state"]), status["ready"])
    ended(cluster)
    (pod,) = cluster.pods("j")
    (status,) = pod["status"]["initContainerStatuses"]
    assert ("Succeeded", 0) == (pod["status"]["phase"], status["state"]["terminated"]["exitCode"])


def test_a_sidecar_that_never_starts_fails_nothing(cluster: Cluster) -> None:
    """The Job stays active, its pod Pending, and the sidecar's state says why."""
    body = job("j", cluster.nodes(1), kind="sidecar-stuck")
    body["spec"]["template"]["metadata"]["annotations"]["gke-gcsfuse/volumes"] = "true"
    cluster.create("jobs", body)
    (pod,) = cluster.until(
        lambda: [pod for pod in cluster.pods("j") if "StartError" in str(pod["status"].get("initContainerStatuses"))]
    )
    status = cluster.get("jobs", "j")["status"]
    assert ("Pending", 1, 0) == (pod["status"]["phase"], status["active"], status["ready"])


def test_a_lost_node_fails_the_job_by_its_policy(long_cluster: Cluster, lost: str) -> None:
    """The pods of a deleted node are collected with DisruptionTarget, and the Job says infrastructure."""
    done = ended(long_cluster)
    assert ["FailureTarget", "Failed"] == conditions(done)
    told = f"Pod {long_cluster.namespace}/{lost} has condition DisruptionTarget matching FailJob rule at index 0"
    assert ("PodFailurePolicy", told) == condition(done, "Failed")
    assert lost not in {pod["metadata"]["name"] for pod in long_cluster.pods("j")}
