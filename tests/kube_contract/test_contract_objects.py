"""Creating, reading and deleting, at every door: the answers and the refusals that something depends on."""

from typing import Any

import pytest
from control_plane.client import Answer, Json
from kube_doors import Cluster, condition, conditions, job

BACKGROUND, FOREGROUND, ORPHAN = ({"propagationPolicy": word} for word in ("Background", "Foreground", "Orphan"))


def told(answer: Answer) -> tuple[int, str, str]:
    """Return code, reason and message of a refusal."""
    body = answer.body
    assert ("Status", "Failure", answer.status) == (body["kind"], body["status"], body["code"])
    return answer.status, body.get("reason", ""), body["message"]


def causes(answer: Answer) -> set[tuple[str, str]]:
    """Return field and reason of everything that is wrong with an object."""
    assert (422, "Invalid") == told(answer)[:2], answer.body
    return {(cause["field"], cause["reason"]) for cause in answer.body["details"]["causes"]}


def service(name: str) -> Json:
    """Return a headless Service."""
    spec: Json = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def runs(cluster: Cluster, pods: int = 1, **does: Any) -> Json:
    """Return a Job `j` whose pods run."""
    cluster.create("jobs", job("j", cluster.nodes(pods), pods, seconds=None, **does))

    def look() -> Json | None:
        found = cluster.get("jobs", "j")
        return found if found["status"].get("ready") == pods else None

    return cluster.until(look)


def test_a_job_is_stored_with_its_defaults(cluster: Cluster) -> None:
    """UID, version, selector and the labels by which pods are found."""
    made = cluster.create("jobs", job("j", "p"))
    uid = made["metadata"]["uid"]
    assert ("Job", "batch/v1", "j", cluster.namespace, 1) == (
        made["kind"], made["apiVersion"], made["metadata"]["name"], made["metadata"]["namespace"],
        made["metadata"]["generation"],
    )  # fmt: skip
    assert {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}} == made["spec"]["selector"]
    assert {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    } == made["spec"]["template"]["metadata"]["labels"]
    assert (1, 1, 0, "NonIndexed", False, "TerminatingOrFailed", {}) == tuple(
        [made["spec"][key] for key in ("completions", "parallelism", "backoffLimit", "completionMode", "suspend")]
        + [made["spec"]["podReplacementPolicy"], made["status"]]
    )
    again = cluster.get("jobs", "j")
    assert (uid, made["spec"]) == (again["metadata"]["uid"], again["spec"])
    assert made["metadata"]["creationTimestamp"] == again["metadata"]["creationTimestamp"]


def test_a_policy_makes_replacement_wait(cluster: Cluster) -> None:
    """With a podFailurePolicy, pods are replaced only when they have ended."""
    assert "Failed" == cluster.create("jobs", job("j", "p", policy=True))["spec"]["podReplacementPolicy"]


@pytest.mark.parametrize("kind", ["jobs", "services", "serviceaccounts"])
def test_a_name_that_is_taken(cluster: Cluster, kind: str) -> None:
    """409 AlreadyExists, which names it."""
    body = {"jobs": job("j", "p"), "services": service("j"), "serviceaccounts": {"metadata": {"name": "j"}}}[kind]
    cluster.create(kind, body)
    answer = cluster.call("create", kind, body=body)
    full = "jobs.batch" if kind == "jobs" else kind
    assert (409, "AlreadyExists", f'{full} "j" already exists') == told(answer)
    group = {"group": "batch"} if kind == "jobs" else {}
    assert {"name": "j", "kind": kind, **group} == answer.body["details"]


def test_a_namespace_that_is_taken(cluster: Cluster) -> None:
    """409 AlreadyExists."""
    body = {"metadata": {"name": cluster.namespace}}
    answer = cluster.call("create", "namespaces", body=body)
    assert (409, "AlreadyExists", f'namespaces "{cluster.namespace}" already exists') == told(answer)


@pytest.mark.parametrize("kind", ["jobs", "services", "serviceaccounts", "pods"])
@pytest.mark.parametrize("verb", ["get", "delete"])
def test_what_is_not_there(cluster: Cluster, kind: str, verb: str) -> None:
    """404 with reason NotFound, which names it."""
    answer = cluster.call(verb, kind, "nothing")
    full = "jobs.batch" if kind == "jobs" else kind
    assert (404, "NotFound", f'{full} "nothing" not found') == told(answer)
    group = {"group": "batch"} if kind == "jobs" else {}
    assert {"name": "nothing", "kind": kind, **group} == answer.body["details"]


def test_a_namespace_that_is_not_there(cluster: Cluster) -> None:
    """404 NotFound of the namespace, not of the object; a list of it is empty."""
    answer = cluster.door.call("POST", "/apis/batch/v1/namespaces/none/jobs", job("j", "p"))
    assert (404, "NotFound", 'namespaces "none" not found') == told(answer)
    assert [] == cluster.door.call("GET", "/apis/batch/v1/namespaces/none/jobs").body["items"]


def test_a_path_that_is_not_there(cluster: Cluster) -> None:
    """404 that says nothing of an object."""
    answer = cluster.door.call("GET", f"/api/v1/namespaces/{cluster.namespace}/nonsense")
    assert (404, "NotFound", "the server could not find the requested resource") == told(answer)
    assert "name" not in answer.body["details"]


def test_everything_that_is_wrong_is_told_at_once(cluster: Cluster) -> None:
    """422 with one cause for each field."""
    body = job("J_1", "p")
    pod = body["spec"]["template"]["spec"]
    pod["restartPolicy"] = "Always"
    pod["containers"][0] |= {"image": "", "volumeMounts": [{"name": "none", "mountPath": "/x"}]}
    pod["nodeSelector"]["a"] = "b c"
    body["metadata"]["labels"] = {"k": "v" * 64}
    answer = cluster.call("create", "jobs", body=body)
    where = "spec.template.spec"
    assert {
        ("metadata.name", "FieldValueInvalid"),
        ("metadata.labels", "FieldValueInvalid"),
        (f"{where}.nodeSelector", "FieldValueInvalid"),
        (f"{where}.containers[0].image", "FieldValueRequired"),
        (f"{where}.containers[0].volumeMounts[0].name", "FieldValueNotFound"),
        (f"{where}.restartPolicy", "FieldValueRequired"),
    } == causes(answer)
    assert answer.body["message"].startswith('Job.batch "J_1" is invalid: [')
    assert ("J_1", "batch", "Job") == tuple(answer.body["details"][key] for key in ("name", "group", "kind"))


@pytest.mark.parametrize(("length", "pods", "fine"), [(63, 1, True), (64, 1, False), (61, 4, True), (62, 4, False)])
def test_the_length_of_a_name(cluster: Cluster, length: int, pods: int, fine: bool) -> None:
    """63 characters, of which an Indexed Job's pods need those of the largest index."""
    answer = cluster.call("create", "jobs", body=job("j" * length, "p", pods))
    if pods == 4 and answer.ok:
        assert fine
    elif fine:
        assert 201 == answer.status, answer.body
    else:
        assert 422 == answer.status


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"env": [{"name": "A=B", "value": "1"}]}, ("env[0].name", "FieldValueInvalid")),
        ({"env": [{"name": "", "value": "1"}]}, ("env[0].name", "FieldValueRequired")),
        ({"name": "T ask"}, ("name", "FieldValueInvalid")),
        ({"resources": {"requests": {"google.com/tpu": "4"}}}, ("limits", "FieldValueRequired")),
        (
            {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
            ("requests", "FieldValueInvalid"),
        ),
    ],
    ids=["variable", "no-variable", "container", "chips", "request"],
)
def test_a_container_that_cannot_be(cluster: Cluster, change: Json, cause: tuple[str, str]) -> None:
    """422 with the field and what kind of mistake it is."""
    body = job("j", "p")
    body["spec"]["template"]["spec"]["containers"][0].update(change)
    found = causes(cluster.call("create", "jobs", body=body))
    assert [cause[1]] == [reason for field, reason in found if cause[0] in field], found


def test_an_image_is_not_read_before_a_pod_is_made_of_it(cluster: Cluster) -> None:
    """A Job is taken with an image that no pod could have."""
    body = job("j", "p")
    body["spec"]["template"]["spec"]["containers"][0]["image"] = " busy"
    assert 201 == cluster.call("create", "jobs", body=body).status


def test_a_value_of_the_wrong_type(cluster: Cluster) -> None:
    """400 BadRequest: it cannot even be read."""
    body = job("j", "p")
    body["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": 1}]
    code, reason, message = told(cluster.call("create", "jobs", body=body))
    assert (400, "BadRequest") == (code, reason)
    assert message.startswith('Job in version "v1" cannot be handled as a Job: ')


def test_a_precondition_that_does_not_hold(cluster: Cluster) -> None:
    """409 Conflict, and nothing is deleted; with the right UID it is."""
    made = cluster.create("jobs", job("j", "p"))
    uid = made["metadata"]["uid"]
    answer = cluster.call("delete", "jobs", "j", {**BACKGROUND, "preconditions": {"uid": "another"}})
    assert (
        409,
        "Conflict",
        'Operation cannot be fulfilled on Job.batch "j": the UID in the precondition (another) does not match the UID '
        f"in record ({uid}). The object might have been deleted and then recreated",
    ) == told(answer)
    assert uid == cluster.get("jobs", "j")["metadata"]["uid"]
    answer = cluster.call("delete", "jobs", "j", {**BACKGROUND, "preconditions": {"uid": uid}})
    assert (200, "Status", "Success") == (answer.status, answer.body["kind"], answer.body["status"])
    assert {"name": "j", "group": "batch", "kind": "jobs", "uid": uid} == answer.body["details"]
    assert 404 == cluster.call("get", "jobs", "j").status


def test_background_deletion(cluster: Cluster) -> None:
    """The Job is gone at once; its pods are listed, being deleted, until they have ended."""
    runs(cluster, 4, stop_seconds=2)
    assert 200 == cluster.call("delete", "jobs", "j", BACKGROUND).status
    assert 404 == cluster.call("get", "jobs", "j").status
    pods = cluster.until(lambda: [pod for pod in cluster.pods("j") if "deletionTimestamp" in pod["metadata"]])
    assert "Running" == pods[0]["status"]["phase"]
    assert 30 == pods[0]["metadata"]["deletionGracePeriodSeconds"]
    cluster.until(lambda: not cluster.pods("j"))


def test_foreground_deletion(cluster: Cluster) -> None:
    """The Job stays, being deleted, until its pods are gone; its name is taken meanwhile."""
    uid = runs(cluster, stop_seconds=2)["metadata"]["uid"]
    answer = cluster.call("delete", "jobs", "j", FOREGROUND)
    assert (200, "Job", ["foregroundDeletion"]) == (
        answer.status, answer.body["kind"], answer.body["metadata"]["finalizers"],
    )  # fmt: skip
    found = cluster.get("jobs", "j")
    assert (uid, True) == (found["metadata"]["uid"], "deletionTimestamp" in found["metadata"])
    taken = cluster.call("create", "jobs", body=job("j", "p"))
    assert (409, "AlreadyExists", 'object is being deleted: jobs.batch "j" already exists') == told(taken)
    cluster.until(lambda: cluster.call("get", "jobs", "j").status == 404)
    assert [] == cluster.pods("j")


@pytest.mark.parametrize("options", [None, ORPHAN], ids=["no-policy", "orphan"])
def test_a_job_deleted_alone_leaves_its_pods(cluster: Cluster, options: Json | None) -> None:
    """Orphaned, which is also the default: the pods run on without an owner."""
    runs(cluster)
    assert 200 == cluster.call("delete", "jobs", "j", options).status
    cluster.until(lambda: cluster.call("get", "jobs", "j").status == 404)
    (pod,) = cluster.pods("j")
    assert ("Running", [], False) == (
        pod["status"]["phase"], pod["metadata"].get("ownerReferences", []), "deletionTimestamp" in pod["metadata"],
    )  # fmt: skip


def test_what_a_finalizer_holds(cluster: Cluster) -> None:
    """Deleted, it is listed and named as being deleted, keeps its name, and makes no pods any more."""
    body = job("j", "p")
    body["metadata"]["finalizers"] = ["example.com/held"]
    body["spec"]["suspend"] = True
    uid = cluster.create("jobs", body)["metadata"]["uid"]
    answer = cluster.call("delete", "jobs", "j", BACKGROUND)
    assert (200, "Job", uid) == (answer.status, answer.body["kind"], answer.body["metadata"]["uid"])
    (found,) = cluster.items("jobs")
    assert (True, 0, ["example.com/held"]) == (
        "deletionTimestamp" in found["metadata"], found["metadata"]["deletionGracePeriodSeconds"],
        found["metadata"]["finalizers"],
    )  # fmt: skip
    assert 200 == cluster.call("delete", "jobs", "j", BACKGROUND).status
    taken = cluster.call("create", "jobs", body=body)
    assert (409, "AlreadyExists", 'object is being deleted: jobs.batch "j" already exists') == told(taken)


@pytest.mark.parametrize("kind", ["services", "serviceaccounts"])
def test_the_answer_to_a_deletion(cluster: Cluster, kind: str) -> None:
    """A Service or an account that is gone at once is the answer; it is not there any more."""
    body = service("s") if kind == "services" else {"metadata": {"name": "s"}}
    uid = cluster.create(kind, body)["metadata"]["uid"]
    answer = cluster.call("delete", kind, "s")
    assert (200, uid, 404) == (answer.status, answer.body["metadata"]["uid"], cluster.call("get", kind, "s").status)


def test_a_policy_that_is_none(cluster: Cluster) -> None:
    """422 Invalid, which says what there is; nothing is deleted."""
    cluster.create("jobs", job("j", "p"))
    answer = cluster.call("delete", "jobs", "j", {"propagationPolicy": "Nonsense"})
    assert {("propagationPolicy", "FieldValueNotSupported")} == causes(answer)
    known = '"Foreground", "Background", "Orphan", "nil"'
    text = f'propagationPolicy: Unsupported value: "Nonsense": supported values: {known}'
    assert f'DeleteOptions.meta.k8s.io "" is invalid: {text}' == answer.body["message"]
    assert 200 == cluster.call("get", "jobs", "j").status


@pytest.mark.parametrize("selector", [{"job-name": "nobody"}, None], ids=["nobody", "none"])
def test_a_service_that_selects_nothing(cluster: Cluster, selector: Json | None) -> None:
    """It is as good as any other."""
    body = service("s")
    body["spec"] |= {"selector": selector}
    made = cluster.create("services", body)
    assert ("None", selector, True) == (
        made["spec"]["clusterIP"], made["spec"].get("selector"), made["spec"]["publishNotReadyAddresses"],
    )  # fmt: skip
    assert made["metadata"]["uid"] == cluster.get("services", "s")["metadata"]["uid"]


def test_a_service_goes_with_its_job(cluster: Cluster) -> None:
    """A Service owned by a Job is collected after it; without a selector it would be as good."""
    uid = cluster.create("jobs", job("j", "p"))["metadata"]["uid"]
    body = service("j")
    body["metadata"]["ownerReferences"] = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": uid}]
    made = cluster.create("services", body)
    assert ("None", {"job-name": "j"}, "ClusterIP") == tuple(
        made["spec"][key] for key in ("clusterIP", "selector", "type")
    )
    assert 200 == cluster.call("delete", "jobs", "j", BACKGROUND).status
    cluster.until(lambda: cluster.call("get", "services", "j").status == 404)


def test_a_finished_job_keeps_its_pods_until_it_is_deleted(cluster: Cluster) -> None:
    """Terminated pods go at once with their Job."""
    cluster.create("jobs", job("j", cluster.nodes(1), seconds=0.5))
    cluster.until(lambda: "Complete" in conditions(cluster.get("jobs", "j")))
    (pod,) = cluster.pods("j")
    assert ("Succeeded", []) == (pod["status"]["phase"], pod["metadata"].get("finalizers", []))
    assert "PodCompleted" == condition(pod, "Ready")[0]
    cluster.call("delete", "jobs", "j", BACKGROUND)
    cluster.until(lambda: not cluster.pods("j"))


def test_a_deleted_namespace_object_is_no_other(cluster: Cluster) -> None:
    """A Job made again under a name has another UID, and the old one's pods are not its own."""
    first = runs(cluster, stop_seconds=2)["metadata"]["uid"]
    cluster.call("delete", "jobs", "j", BACKGROUND)
    second = cluster.create("jobs", job("j", "no-pool", seconds=None))["metadata"]["uid"]
    assert first != second
    owners = cluster.until(
        lambda: next(
            (
                found
                for found in [[p["metadata"]["ownerReferences"][0]["uid"] for p in cluster.pods("j")]]
                if second in found
            ),
            None,
        )
    )
    assert {first, second} >= set(owners)
    cluster.until(lambda: len(cluster.pods("j")) == 1)
