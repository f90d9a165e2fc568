"""The simulated Kubernetes runs, fails, deletes and lists as a real one does."""

from typing import Any

import pytest
from cloudsim.errors import KubeError
from cloudsim.values import Json
from cloudsim.workload import (
    ANNOTATION,
    CONFIG_ERROR,
    LOSES_NODE,
    NEVER_ENDS,
    NEVER_PULLS,
    OUT_OF_MEMORY,
    SIDECAR_STUCK,
    Workload,
    workload,
)
from cloudsim.world import World
from simulated import (
    NAMESPACE,
    PATH,
    a_job,
    a_pool,
    a_world,
    conditions_of,
    events_of,
    pods_of,
    with_nodes,
)

BACKGROUND = {"propagationPolicy": "Background"}


def running(does: Workload = Workload(), pods: int = 4, **tempo: Any) -> World:  # noqa: B008
    """Return a world in which a Job of so many pods was created on nodes that are Ready."""
    world = with_nodes(a_world(**tempo))
    world.scripts_by_job_id["falcon-j1"] = does
    world.kube(PATH).create("jobs", NAMESPACE, a_job(pods=pods))
    return world


def status_of(world: World, job: str = "falcon-j1") -> Json:
    """Return a Job's status."""
    status: Json = world.kube(PATH).get("jobs", NAMESPACE, job)["status"]
    return status


def main_state(pod: Json) -> Json:
    """Return the state of a pod's main container."""
    state: Json = pod["status"]["containerStatuses"][0]["state"]
    return state


def phases(world: World) -> list[str]:
    """Return the phases of the Job's pods."""
    return [pod["status"]["phase"] for pod in pods_of(world)]


def refused(world: World, job: Json) -> KubeError:
    """Return how a Job is refused."""
    with pytest.raises(KubeError) as caught:
        world.kube(PATH).create("jobs", NAMESPACE, job)
    return caught.value


def test_a_job_completes_in_two_steps() -> None:
    """Pending, running, ready; SuccessCriteriaMet when all pods succeeded, Complete one look later."""
    world = running(Workload(seconds=20))
    world.advance(1)
    assert (status_of(world)["active"], status_of(world)["ready"], phases(world)) == (4, 0, ["Pending"] * 4)
    world.advance(5)
    assert (status_of(world)["active"], status_of(world)["ready"]) == (4, 4)
    while not conditions_of(world):
        world.advance(0.05)
    assert (conditions_of(world), status_of(world)["succeeded"]) == (["SuccessCriteriaMet"], 4)
    world.advance(1)
    assert conditions_of(world) == ["SuccessCriteriaMet", "Complete"]
    status = status_of(world)
    assert (status["completedIndexes"], "active" in status, "completionTime" in status) == ("0-3", False, True)


def test_pods_are_named_labelled_and_spread_over_the_hosts() -> None:
    """One pod a host, name, host name and index as an Indexed Job has them."""
    world = running()
    world.advance(3)
    pods = pods_of(world)
    assert [pod["spec"]["hostname"] for pod in pods] == [f"falcon-j1-{number}" for number in range(4)]
    assert [pod["metadata"]["name"][:-5] for pod in pods] == [f"falcon-j1-{number}-" for number in range(4)]
    indexes = [pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in pods]
    assert indexes == ["0", "1", "2", "3"]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 4


def test_the_first_failure_ends_the_others_before_the_job_has_failed() -> None:
    """FailureTarget at once, Failed only when every pod has ended; the others end by SIGTERM."""
    one = Workload(seconds=5, exit_code=3, message="no data")
    world = running(Workload(seconds=None, stop_seconds=10, indexes={2: one}))
    world.advance(8)
    assert (conditions_of(world), phases(world).count("Running"), status_of(world)["terminating"]) == (
        ["FailureTarget"],
        3,
        3,
    )
    assert main_state(pods_of(world)[2])["terminated"]["exitCode"] == 3
    assert main_state(pods_of(world)[2])["terminated"]["message"] == "no data"
    world.advance(11)
    assert conditions_of(world) == ["FailureTarget", "Failed"]
    assert status_of(world)["conditions"][-1]["reason"] == "BackoffLimitExceeded"
    assert "completionTime" not in status_of(world)


def test_out_of_memory_is_137_oomkilled() -> None:
    """The Job says only that its back-off limit was reached, the pod says why."""
    world = running(Workload(seconds=None, indexes={1: OUT_OF_MEMORY}))
    world.advance(23)
    ended = main_state(pods_of(world)[1])["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


@pytest.mark.parametrize(
    ("does", "reason"),
    [(NEVER_PULLS, "ImagePullBackOff"), (CONFIG_ERROR, "CreateContainerConfigError")],
)
def test_a_pod_that_never_starts_never_fails_its_job(does: Workload, reason: str) -> None:
    """A day later the Job is as active as ever."""
    world = running(does)
    world.advance(86400)
    assert (conditions_of(world), status_of(world)["active"]) == ([], 4)
    assert main_state(pods_of(world)[0])["waiting"]["reason"] == reason


def test_the_fuse_sidecar_is_a_native_one_and_may_be_stuck() -> None:
    """It stands among the init containers, runs beside the task and ends after it; stuck, the task never starts."""
    world = with_nodes(a_world())
    job = a_job(pods=4)
    job["spec"]["template"]["metadata"]["annotations"] = {"gke-gcsfuse/volumes": "true"}
    world.kube(PATH).create("jobs", NAMESPACE, job)
    world.advance(5)
    sidecar = pods_of(world)[0]["status"]["initContainerStatuses"][0]
    assert (sidecar["name"], "running" in sidecar["state"]) == ("gke-gcsfuse-sidecar", True)
    world.advance(30)
    assert conditions_of(world) == ["SuccessCriteriaMet", "Complete"]
    world.default_workload = SIDECAR_STUCK
    job["metadata"]["name"] = "falcon-j2"
    world.kube(PATH).create("jobs", NAMESPACE, job)
    world.advance(1000)
    stuck = pods_of(world, "falcon-j2")[0]["status"]
    assert stuck["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "StartError"
    assert main_state(pods_of(world, "falcon-j2")[0])["waiting"]["reason"] == "PodInitializing"


def test_a_lost_node_is_told_by_pod_gc() -> None:
    """The pod seems to run on, is collected 40 to 60 s after its node with DisruptionTarget, and fails the Job so."""
    world = running(Workload(seconds=None, indexes={1: LOSES_NODE}))
    world.advance(30)
    assert (phases(world), conditions_of(world)) == (["Running"] * 4, [])
    world.advance(60)
    failed = status_of(world)["conditions"]
    assert [(item["type"], item["reason"]) for item in failed] == [
        ("FailureTarget", "PodFailurePolicy"),
        ("Failed", "PodFailurePolicy"),
    ]
    assert "has condition DisruptionTarget matching FailJob rule at index 0" in failed[-1]["message"]


def test_finished_pods_vanish_after_their_node() -> None:
    """What a pod said is to be had for 40 s after its pool is gone, and not for ever."""
    world = running(Workload(seconds=1))
    world.advance(10)
    world.gke.delete_by_hand(PATH, "falcon-j1")
    world.advance(world.tempo.delete_seconds + 40)
    assert len(pods_of(world)) == 4
    world.advance(30)
    assert (pods_of(world), conditions_of(world)) == ([], ["SuccessCriteriaMet", "Complete"])


def test_a_person_who_deletes_a_pool_evicts_its_pods() -> None:
    """The Job fails by disruption, not by an exit code."""
    world = running(NEVER_ENDS)
    world.advance(10)
    world.gke.delete_by_hand(PATH, "falcon-j1")
    world.advance(30)
    assert status_of(world)["conditions"][-1]["reason"] == "PodFailurePolicy"


def test_a_node_that_does_not_answer_holds_its_pods_in_terminating() -> None:
    """A pod there never ends, whatever is deleted, until its node is gone (P54)."""
    world = running(NEVER_ENDS)
    world.advance(10)
    kube = world.kube(PATH)
    node = pods_of(world)[0]["spec"]["nodeName"]
    kube.nodes.unreachable(node)
    kube.delete_by_hand("jobs", NAMESPACE, "falcon-j1")
    world.advance(3600)
    assert [pod["spec"]["nodeName"] for pod in pods_of(world)] == [node]
    kube.delete_by_hand("nodes", None, node)
    world.advance(100)
    assert pods_of(world) == []


@pytest.mark.parametrize(
    ("options", "pods_left"),
    [({}, 4), ({"propagationPolicy": "Orphan"}, 4), (BACKGROUND, 0), ({"propagationPolicy": "Foreground"}, 0)],
)
def test_a_job_deleted_without_propagation_orphans_its_pods(options: Json, pods_left: int) -> None:
    """P31: the default of batch/v1; the other kinds take the pods along."""
    world = running(NEVER_ENDS)
    world.advance(10)
    world.kube(PATH).delete("jobs", NAMESPACE, "falcon-j1", options)
    world.advance(60)
    with pytest.raises(KubeError, match=r'404 NotFound: jobs.batch "falcon-j1" not found'):
        world.kube(PATH).get("jobs", NAMESPACE, "falcon-j1")
    assert len(pods_of(world)) == pods_left
    assert all("ownerReferences" not in pod or not pod["ownerReferences"] for pod in pods_of(world))


def test_pods_outlive_their_job_by_their_grace() -> None:
    """Deleted in the background the Job is gone at once; a workload that ignores SIGTERM lives 30 s more."""
    world = running(Workload(seconds=None, ignores_term=True))
    world.advance(10)
    answer = world.kube(PATH).delete("jobs", NAMESPACE, "falcon-j1", BACKGROUND)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    world.advance(29)
    assert ["deletionTimestamp" in pod["metadata"] for pod in pods_of(world)] == [True] * 4
    world.advance(2)
    assert pods_of(world) == []


def test_a_precondition_names_the_object_that_was_meant() -> None:
    """Another UID: 409 and nothing is deleted."""
    world = running(NEVER_ENDS)
    kube = world.kube(PATH)
    with pytest.raises(KubeError, match=r"409 Conflict: .*the UID in the precondition"):
        kube.delete("jobs", NAMESPACE, "falcon-j1", {"preconditions": {"uid": "another"}, **BACKGROUND})
    uid = kube.get("jobs", NAMESPACE, "falcon-j1")["metadata"]["uid"]
    kube.delete("jobs", NAMESPACE, "falcon-j1", {"preconditions": {"uid": uid}, **BACKGROUND})


def test_a_service_goes_with_the_job_that_owns_it() -> None:
    """Collected after a background delete."""
    world = running(NEVER_ENDS)
    kube = world.kube(PATH)
    uid = kube.get("jobs", NAMESPACE, "falcon-j1")["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "falcon-j1", "uid": uid}
    kube.create("services", NAMESPACE, {"metadata": {"name": "falcon-j1", "ownerReferences": [owner]}, "spec": {}})
    kube.delete("jobs", NAMESPACE, "falcon-j1", BACKGROUND)
    world.advance(1)
    assert kube.list("services", NAMESPACE)["items"] == []


def test_what_is_there_already_is_a_conflict_also_while_it_goes() -> None:
    """409 AlreadyExists, with other words while the old one is being deleted."""
    world = running(NEVER_ENDS)
    assert str(refused(world, a_job())) == '409 AlreadyExists: jobs.batch "falcon-j1" already exists'
    world.advance(5)
    world.kube(PATH).delete("jobs", NAMESPACE, "falcon-j1", {"propagationPolicy": "Foreground"})
    assert "409 AlreadyExists: object is being deleted" in str(refused(world, a_job()))


def test_a_namespace_that_is_missing_is_not_found() -> None:
    """A create into it is 404 that names the namespace."""
    with pytest.raises(KubeError, match='404 NotFound: namespaces "nowhere" not found'):
        a_world().kube(PATH).create("services", "nowhere", {"metadata": {"name": "s"}})


def test_a_job_without_its_service_account_gets_no_pods() -> None:
    """The Job is accepted and stays empty with a FailedCreate event (P52), until the account is there."""
    world = with_nodes(a_world())
    kube = world.kube(PATH)
    kube.delete_by_hand("serviceaccounts", NAMESPACE, "falcon-job")
    kube.create("jobs", NAMESPACE, a_job())
    world.advance(1)
    assert (pods_of(world), "active" in status_of(world)) == ([], False)
    assert any('FailedCreate: Error creating: pods "falcon-j1-" is forbidden' in text for text in events_of(world))
    kube.create_by_hand("serviceaccounts", NAMESPACE, {"metadata": {"name": "falcon-job"}})
    world.advance(15)
    assert len(pods_of(world)) == 4


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"nodeSelector": {"cloud.google.com/gke-nodepool": "other"}}, "didn't match Pod's node affinity/selector"),
        ({"tolerations": []}, "had untolerated taint(s)"),
    ],
)
def test_a_pod_needs_selector_and_toleration(change: Json, why: str) -> None:
    """Without either it stays Pending, and PodScheduled and an event say why."""
    world = with_nodes(a_world())
    job = a_job(pods=1)
    job["spec"]["template"]["spec"] |= change
    world.kube(PATH).create("jobs", NAMESPACE, job)
    world.advance(3600)
    scheduled = pods_of(world)[0]["status"]["conditions"][0]
    assert (scheduled["type"], scheduled["status"], scheduled["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert why in scheduled["message"]
    assert any(text.startswith("FailedScheduling: 0/5 nodes are available") for text in events_of(world))


def test_a_pod_needs_the_chips_of_a_whole_host() -> None:
    """The second Job on a pool waits until the first has ended."""
    world = running(Workload(seconds=50))
    world.kube(PATH).create("jobs", NAMESPACE, a_job("falcon-j2"))
    world.advance(20)
    assert [pod["status"]["phase"] for pod in pods_of(world, "falcon-j2")] == ["Pending"] * 4
    world.advance(40)
    assert [pod["status"]["phase"] for pod in pods_of(world, "falcon-j2")] == ["Running"] * 4


@pytest.mark.parametrize(
    ("path", "value", "status", "text"),
    [
        (("metadata", "name"), "Falcon_J1", 422, "metadata.name: Invalid value"),
        (("metadata", "labels"), {"owner": "a@b.c"}, 422, "metadata.labels: Invalid value"),
        (("metadata", "labels"), {"owner": 3}, 400, "json: cannot unmarshal"),
        (("spec", "template", "spec", "restartPolicy"), "Always", 422, "Required value: valid values"),
        (("spec", "template", "spec", "containers"), [], 422, "spec.template.spec.containers: Required value"),
        (("spec", "template", "spec", "containers", 0, "image"), "", 422, "containers[0].image: Required value"),
        (("spec", "template", "spec", "containers", 0, "resources"), {"limits": {"cpu": "two"}}, 400, "quantities"),
        (
            ("spec", "template", "spec", "containers", 0, "resources"),
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            422,
            "must be less than or equal to cpu limit",
        ),
        (
            ("spec", "template", "spec", "containers", 0, "volumeMounts"),
            [{"name": "gcs", "mountPath": "/gcs"}],
            422,
            'volumeMounts[0].name: Not found: "gcs"',
        ),
    ],
)
def test_a_bad_job_is_refused_with_the_field(path: tuple[Any, ...], value: object, status: int, text: str) -> None:
    """422 Invalid for what it may not hold, 400 for what cannot be read."""
    world, job = a_world(), a_job()
    place: Any = job
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    refusal = refused(world, job)
    assert refusal.status == status
    assert text in refusal.message


def test_pages_show_the_world_of_the_first_page_and_end_with_410() -> None:
    """A Job made between two pages is on none of them; an old continue token is Expired."""
    world = a_world()
    kube = world.kube(PATH)
    for number in range(3):
        kube.create("jobs", NAMESPACE, a_job(f"j{number}"))
    first = kube.list("jobs", NAMESPACE, limit=2)
    kube.create("jobs", NAMESPACE, a_job("j3"))
    token = first["metadata"]["continue"]
    second = kube.list("jobs", NAMESPACE, limit=2, continue_=token)
    assert [job["metadata"]["name"] for job in first["items"] + second["items"]] == ["j0", "j1", "j2"]
    assert (first["metadata"]["remainingItemCount"], "continue" in second["metadata"]) == (1, False)
    world.advance(world.tempo.continue_seconds + 1)
    with pytest.raises(KubeError, match="410 Expired"):
        kube.list("jobs", NAMESPACE, limit=2, continue_=token)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("a=1", ["one"]),
        ("a==1,b", ["one"]),
        ("a!=1", ["none", "two"]),
        ("a in (1, 2)", ["one", "two"]),
        ("a notin (1)", ["none", "two"]),
        ("!a", ["none"]),
        ("falcon.io/instance", ["two"]),
        ("", ["none", "one", "two"]),
    ],
)
def test_label_selectors(selector: str, names: list[str]) -> None:
    """Equality, sets and existence, joined by commas."""
    kube = a_world().kube(PATH)
    for name, labels in (("one", {"a": "1", "b": ""}), ("two", {"a": "2", "falcon.io/instance": "i"}), ("none", {})):
        kube.create("services", NAMESPACE, {"metadata": {"name": name, "labels": labels}})
    found = kube.list("services", NAMESPACE, selector)["items"]
    assert [item["metadata"]["name"] for item in found] == names


def test_selectors_nobody_understands_are_refused() -> None:
    """400 for a label selector that cannot be read and for a field one may not select by."""
    kube = a_world().kube(PATH)
    for arguments in (("a in 1", ""), ("", "spec.replicas=1")):
        with pytest.raises(KubeError, match="400 BadRequest"):
            kube.list("pods", NAMESPACE, *arguments)


def test_a_suspended_job_says_so_and_goes_on() -> None:
    """Its pods end, Suspended is True; resumed, it runs again (P49)."""
    world = running(NEVER_ENDS)
    world.advance(5)
    world.kube(PATH).suspend_by_hand(NAMESPACE, "falcon-j1")
    world.advance(5)
    assert (conditions_of(world), "active" in status_of(world)) == (["Suspended"], False)
    world.kube(PATH).suspend_by_hand(NAMESPACE, "falcon-j1", suspend=False)
    world.advance(5)
    assert (conditions_of(world), status_of(world)["active"]) == ([], 4)


def test_an_annotation_of_pod_or_job_says_what_the_workload_does() -> None:
    """JSON in an annotation wins over every script; an unknown word in it is refused."""
    world = with_nodes(a_world(), a_pool("falcon-j1"))
    job = a_job(pods=1)
    job["metadata"]["annotations"] = {ANNOTATION: '{"seconds": 1, "exit_code": 7}'}
    world.kube(PATH).create("jobs", NAMESPACE, job)
    world.advance(10)
    assert main_state(pods_of(world)[0])["terminated"]["exitCode"] == 7
    with pytest.raises(TypeError, match="speed"):
        workload({"speed": 3})


def test_a_second_attempt_may_do_something_else() -> None:
    """`attempts` goes by the label of the attempt, `indexes` by the pod's index."""
    does = workload({"attempts": {"2": {"exit_code": 1, "indexes": {"3": {"exit_code": 2}}}}})
    world = a_world()
    world.scripts_by_job_id["j"] = does

    def code(attempt: str, index: str) -> int:
        labels = {"falcon.io/job-id": "j", "falcon.io/attempt": attempt}
        annotations = {"batch.kubernetes.io/job-completion-index": index}
        return world.workload_of({"metadata": {"labels": labels, "annotations": annotations}}).exit_code

    assert [code("1", "3"), code("2", "0"), code("2", "3")] == [0, 1, 2]
