"""Refusals by what stands around an API server, at every door: rights, tokens, load, quota, webhooks, namespaces."""

import itertools

import kube_troubles as troubles
import pytest
from cloudsim import kube_refusals as refusals
from cloudsim.premises import Premises
from control_plane.client import Answer, Json
from kube_doors import Cluster, conditions, job

CHIPS = "requests.google.com/tpu"


def told(answer: Answer) -> tuple[int, str, str]:
    """Return code, reason and message of a refusal."""
    body = answer.body
    assert ("Status", "Failure", answer.status) == (body["kind"], body["status"], body["code"]), body
    return answer.status, body.get("reason", ""), body["message"]


def refused(cluster: Cluster) -> Answer:
    """Try until a Job is refused: a server learns of its webhooks a moment later. Returns the refusal."""
    numbers = itertools.count()

    def look() -> Answer | None:
        answer = cluster.call("create", "jobs", body=job(f"j{next(numbers)}", "p"))
        return None if answer.ok else answer

    return cluster.until(look)


@pytest.mark.parametrize(
    ("verb", "kind", "name"),
    [
        ("create", "jobs", None),
        ("list", "jobs", None),
        ("get", "jobs", "j"),
        ("patch", "jobs", "j"),
        ("delete", "jobs", "j"),
        ("list", "pods", None),
        ("list", "events", None),
        ("list", "nodes", None),
        ("create", "services", None),
        ("get", "services", "j"),
        ("get", "serviceaccounts", "j"),
        ("create", "serviceaccounts", None),
        ("create", "namespaces", None),
    ],
)
def test_a_right_that_is_missing(cluster: Cluster, verb: str, kind: str, name: str | None) -> None:
    """403 Forbidden, which says who lacks which right and where."""
    body: Json | None = None
    if verb == "create":
        body = job("j", "p") if kind == "jobs" else {"metadata": {"name": "another-one"}}
    if verb == "patch":
        body = {"spec": {"suspend": False}}
    with troubles.without_right(cluster, verb, kind, name) as user:
        answer = cluster.call(verb, kind, name, body)
    where = "at the cluster scope"
    if kind not in ("nodes", "namespaces"):
        where = f'in the namespace "{cluster.namespace}"'
    group = "batch" if kind == "jobs" else ""
    what = f"{kind}.{group}" if group else kind
    what += f' "{name}"' if name else ""
    text = f'{what} is forbidden: User "{user}" cannot {verb} resource "{kind}" in API group "{group}" {where}'
    assert (403, "Forbidden", text) == told(answer)
    assert (name, kind) == (answer.body["details"].get("name"), answer.body["details"]["kind"])


def test_a_token_that_nobody_knows(cluster: Cluster, premises: Premises) -> None:
    """401 Unauthorized, and nothing else is said."""
    with troubles.without_token(cluster, premises):
        answer = cluster.call("list", "jobs")
    assert (401, "Unauthorized", "Unauthorized") == told(answer)
    assert "details" not in answer.body


def test_a_server_that_has_too_much_to_do(cluster: Cluster) -> None:
    """429 with Retry-After in a header, and a body that is no Status."""
    with troubles.crowded(cluster):
        answer = cluster.until(
            lambda: next((each for each in [cluster.call("list", "jobs")] if each.status == 429), None)
        )
    headers = {name.lower(): value for name, value in answer.headers.items()}
    assert {"raw": refusals.CROWDED} == answer.body
    assert 1 <= int(headers["retry-after"]) <= 32  # more, the more it has refused


def test_a_quota_for_jobs(cluster: Cluster) -> None:
    """403 Forbidden with the amounts."""
    cluster.create("jobs", job("j", "p"))
    what = "count/jobs.batch"
    with troubles.quota(cluster, "jobs", "k", what, asked=1, used=1, limit=1):
        answer = cluster.call("create", "jobs", body=job("k", "p"))
    told_ = f"exceeded quota: q, requested: {what}=1, used: {what}=1, limited: {what}=1"
    assert (403, "Forbidden", f'jobs.batch "k" is forbidden: {told_}') == told(answer)
    assert {"name": "k", "group": "batch", "kind": "jobs"} == answer.body["details"]


def test_a_quota_for_chips(cluster: Cluster) -> None:
    """The Job is taken and stays without pods; a Warning event about it has the refusal."""
    with troubles.quota(cluster, "pods", "j-", CHIPS, asked=4, used=0, limit=2):
        cluster.create("jobs", job("j", "p"))
        (event, *_) = cluster.until(lambda: cluster.items("events", fieldSelector="reason=FailedCreate,type=Warning"))
        found, pods = cluster.get("jobs", "j"), cluster.pods("j")
    assert (("Job", "j"), True) == (
        (event["involvedObject"]["kind"], event["involvedObject"]["name"]),
        event["message"].startswith('Error creating: pods "j-'),
    )
    amounts = f"requested: {CHIPS}=4, used: {CHIPS}=0, limited: {CHIPS}=2"
    assert event["message"].endswith(f" is forbidden: exceeded quota: q, {amounts}")
    assert ([], [], None) == (pods, conditions(found), found["status"].get("active"))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"message": "not here"}, (400, "")),
        ({"message": "not here", "code": 403, "reason": "Forbidden"}, (403, "Forbidden")),
    ],
    ids=["plain", "forbidden"],
)
def test_a_webhook_that_refuses(cluster: Cluster, status: Json, expected: tuple[int, str]) -> None:
    """Its own code and reason, 400 without a reason if it gives none; its name and its words in the message."""
    with troubles.webhook(cluster, status):
        answer = refused(cluster)
    assert (*expected, 'admission webhook "policy.example.com" denied the request: not here') == told(answer)
    assert "details" not in answer.body


def test_a_webhook_that_is_away(cluster: Cluster) -> None:
    """500 InternalError, which names it."""
    with troubles.webhook(cluster, {"message": ""}, away=True) as url:
        answer = refused(cluster)
    begin = f'failed calling webhook "policy.example.com": failed to call webhook: Post "{url}": dial tcp 127.0.0.1:'
    code, reason, message = told(answer)
    assert (500, "InternalError", True) == (code, reason, message.startswith(f"Internal error occurred: {begin}"))
    assert message.endswith(troubles.REFUSED)
    (cause,) = answer.body["details"]["causes"]
    assert message == f"Internal error occurred: {cause['message']}"


def test_a_namespace_that_is_being_deleted(cluster: Cluster) -> None:
    """It stays while something in it is held; nothing new comes into it, and it cannot be made anew."""
    held = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    cluster.create("serviceaccounts", held)
    path = f"/api/v1/namespaces/{cluster.namespace}"
    answer = cluster.door.call("DELETE", path)
    assert (200, "Namespace", "Terminating") == (
        answer.status, answer.body["kind"], answer.body["status"]["phase"],
    )  # fmt: skip
    answer = cluster.call("create", "jobs", body=job("j", "p"))
    why = f"unable to create new content in namespace {cluster.namespace} because it is being terminated"
    assert (403, "Forbidden", f'jobs.batch "j" is forbidden: {why}') == told(answer)
    (cause,) = answer.body["details"]["causes"]
    assert ("NamespaceTerminating", "metadata.namespace") == (cause["reason"], cause["field"])
    answer = cluster.call("create", "namespaces", body={"metadata": {"name": cluster.namespace}})
    text = f'object is being deleted: namespaces "{cluster.namespace}" already exists'
    assert (409, "AlreadyExists", text) == told(answer)
    assert "Terminating" == cluster.door.call("GET", path).body["status"]["phase"]


def test_an_api_that_is_not_there(cluster: Cluster) -> None:
    """404 that is no Status at all: it says nothing of any object."""
    answer = cluster.door.call("GET", f"/apis/none.example.com/v1/namespaces/{cluster.namespace}/things")
    assert (404, {"raw": "404 page not found\n"}) == (answer.status, answer.body)


def test_a_list_that_was_begun_too_long_ago(cluster: Cluster) -> None:
    """410 Expired, with a token for a rest that may not fit to what was listed before."""
    for name in ("a", "b", "c"):
        cluster.create("serviceaccounts", {"metadata": {"name": name}})
    first = cluster.call("list", "serviceaccounts", limit=2).body
    more = {"continue": first["metadata"]["continue"]}
    cluster.create("serviceaccounts", {"metadata": {"name": "d"}})
    troubles.age(cluster)
    answer = cluster.until(
        lambda: next((a for a in [cluster.call("list", "serviceaccounts", limit=2, **more)] if not a.ok), None)
    )
    assert (410, "Expired", refusals.TOO_OLD) == told(answer)
    again = {"continue": answer.body["metadata"]["continue"]}
    rest = cluster.call("list", "serviceaccounts", limit=9, **again)
    assert (200, "c") == (rest.status, rest.body["items"][0]["metadata"]["name"])
