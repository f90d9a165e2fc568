"""
What stands around an API server and refuses calls, at every door: the real thing at the real one, elsewhere what
cloudsim/kube_refusals.py has for it, which the suite thereby holds to the real one.

Each is a context in which calls through the cluster meet it; some yield what the answer names.
"""

import base64
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import urllib3
from cloudsim import kube_refusals as refusals
from cloudsim.doors_http import Answer, HttpDoor, Request, json_answer
from cloudsim.errors import KubeError
from cloudsim.faults import Call, Fault
from cloudsim.premises import Premises
from cloudsim.real_kube import path_of
from cloudsim.real_planes import RealKubernetes
from control_plane.client import Client, Json
from kube_doors import PATH, Cluster, Door, WireDoor, job

NOBODY = "nobody@example.com"
QUOTA, WEBHOOK = "q", "policy.example.com"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
REFUSED = "connect: connection refused"
AT_ONCE = 8


def real_of(door: Door) -> RealKubernetes | None:
    """Return the control planes behind a door, None if it has none."""
    return door.real if isinstance(door, WireDoor) else None


def as_nobody(real: RealKubernetes) -> Client:
    """Return a client of somebody without any rights."""
    plane = real.planes[PATH]
    client = plane.client()
    client.headers["Impersonate-User"] = NOBODY
    return client


@contextmanager
def through(door: WireDoor, client: Client) -> Iterator[None]:
    """Let calls go through another client."""
    usual, door.client = door.client, client
    try:
        yield
    finally:
        door.client = usual


@contextmanager
def refusing(cluster: Cluster, call: str, error: KubeError) -> Iterator[None]:
    """Let calls in the cluster's namespace be refused."""

    def ours(made: Call) -> bool:
        return cluster.namespace in made.target or "/-/" in made.target

    faults = cluster.door.world.faults
    fault = faults.add(Fault(call, error=error, times=None, where=ours))
    try:
        yield
    finally:
        faults.remove(fault)


@contextmanager
def without_right(cluster: Cluster, verb: str, kind: str, name: str | None = None) -> Iterator[str]:
    """Let the caller lack a right; yields who it is."""
    with ExitStack() as stack:
        if (real := real_of(cluster.door)) is not None:
            assert isinstance(cluster.door, WireDoor)
            stack.enter_context(through(cluster.door, as_nobody(real)))
        else:
            where = None if kind in ("nodes", "namespaces") else cluster.namespace
            error = refusals.no_right(NOBODY, verb, kind, where, name)
            stack.enter_context(refusing(cluster, f"kube.{verb}.{kind}", error))
        yield NOBODY


@contextmanager
def without_token(cluster: Cluster, premises: Premises) -> Iterator[None]:
    """Let the caller be nobody: with a token that nobody has handed out."""
    with ExitStack() as stack:
        door = cluster.door
        if (real := real_of(door)) is not None:
            assert isinstance(door, WireDoor)
            stack.enter_context(through(door, real.planes[PATH].client("ya29.made-up")))
        elif isinstance(door, WireDoor):
            stack.enter_context(through(door, Client(door.client.url, premises.authority.path, token="ya29.made-up")))
        else:
            stack.enter_context(refusing(cluster, "kube.*", refusals.unauthorized()))
        yield


@contextmanager
def crowded(cluster: Cluster) -> Iterator[None]:
    """Let the server have more to do than it may do for the caller."""
    real = real_of(cluster.door)
    if real is None:
        with refusing(cluster, "kube.list.jobs", refusals.crowded()):
            yield
        return
    assert isinstance(cluster.door, WireDoor)
    admin, done = real.planes[PATH].client(), threading.Event()
    limited = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0}
    everything = {
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"],
    }  # fmt: skip
    rule = {"subjects": [{"kind": "User", "user": {"name": NOBODY}}], "resourceRules": [everything]}
    name = {"metadata": {"name": "nothing"}}
    level: Json = {"type": "Limited", "limited": {**limited, "limitResponse": {"type": "Reject"}}}
    flow = {"matchingPrecedence": 2, "priorityLevelConfiguration": {"name": "nothing"}, "rules": [rule]}
    admin.must("POST", f"{FLOW}/prioritylevelconfigurations", {**name, "spec": level})
    admin.must("POST", f"{FLOW}/flowschemas", {**name, "spec": flow})

    def ask() -> None:
        client = as_nobody(real)
        while not done.is_set():
            client.call("GET", path_of("pods", cluster.namespace))
        client.close()

    others = [threading.Thread(target=ask) for _ in range(AT_ONCE)]
    for other in others:
        other.start()
    try:
        with through(cluster.door, as_nobody(real)):
            yield
    finally:
        done.set()
        for other in others:
            other.join()
        admin.must("DELETE", f"{FLOW}/flowschemas/nothing")
        admin.must("DELETE", f"{FLOW}/prioritylevelconfigurations/nothing")


@contextmanager
def quota(cluster: Cluster, kind: str, name: str, what: str, *, asked: int, used: int, limit: int) -> Iterator[None]:
    """Let a ResourceQuota limit *what* in the cluster's namespace, so much of which is used when *name* asks."""
    real = real_of(cluster.door)
    if real is None:
        error = refusals.over_quota(kind, name, QUOTA, what, asked=asked, used=used, limit=limit)
        if kind != "pods":
            with refusing(cluster, f"kube.create.{kind}", error):
                yield
            return
        kube = cluster.door.world.kube(PATH)
        kube.pods_refused = error.message.partition(" is forbidden: ")[2]
        try:
            yield
        finally:
            kube.pods_refused = None
        return
    admin, path = real.planes[PATH].client(), f"/api/v1/namespaces/{cluster.namespace}/resourcequotas"
    admin.must("POST", path, {"metadata": {"name": QUOTA}, "spec": {"hard": {what: str(limit)}}})
    known = {what: str(used)}
    cluster.until(lambda: known == admin.must("GET", f"{path}/{QUOTA}").get("status", {}).get("used"))
    if kind == "jobs":  # the server looks at quotas in a copy of its own, a moment later
        jobs = f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs"
        cluster.until(lambda: admin.call("POST", jobs, job(name, "p"), {"dryRun": "All"}).status == 403)
    yield


@contextmanager
def webhook(cluster: Cluster, status: Json, *, away: bool = False) -> Iterator[str]:
    """Let an admission webhook refuse Jobs with a status, or be away; yields its URL."""
    real = real_of(cluster.door)
    if real is None:
        url = "https://127.0.0.1:1/?timeout=5s"
        error = refusals.denied(WEBHOOK, status["message"], status.get("code", 400), status.get("reason", ""))
        if away:
            error = refusals.webhook_away(WEBHOOK, url, f"dial tcp {urlsplit(url).netloc}: {REFUSED}")
        with refusing(cluster, "kube.create.jobs", error):
            yield url
        return
    authority = real.authority

    def deny(request: Request) -> Answer:
        review = request.json()
        response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        return json_answer(200, {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

    door = HttpDoor(deny, authority.context())
    if away:
        door.stop()
    admin, name = real.planes[PATH].client(), f"deny-{cluster.namespace}"
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["CREATE"]}
    hook: Json = {
        "name": WEBHOOK, "rules": [rule], "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail", "timeoutSeconds": 5,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}},
        "clientConfig": {
            "url": f"https://127.0.0.1:{door.port}/",
            "caBundle": base64.b64encode(authority.path.read_bytes()).decode(),
        },
    }  # fmt: skip
    admin.must("POST", WEBHOOKS, {"metadata": {"name": name}, "webhooks": [hook]})
    try:
        yield f"https://127.0.0.1:{door.port}/?timeout=5s"
    finally:
        admin.must("DELETE", f"{WEBHOOKS}/{name}")
        if not away:
            door.stop()


def age(cluster: Cluster) -> None:
    """Let every list begun until now be too old to go on with."""
    real = real_of(cluster.door)
    if real is None:
        with cluster.door.world.lock:
            pages = cluster.door.world.kube(PATH).pages
            for token, page in pages.items():
                pages[token] = (0.0, *page[1:])
        return
    latest = int(cluster.call("list", "serviceaccounts").body["metadata"]["resourceVersion"])
    keys = {"key": encoded("compact_rev_key"), "value": encoded(str(latest))}
    store = real.planes[PATH].store
    urllib3.request("POST", f"{store}/v3/kv/put", json=keys)  # as the API server does, every five minutes
    urllib3.request("POST", f"{store}/v3/kv/compaction", json={"revision": latest, "physical": True})


def encoded(text: str) -> str:
    """Return a text as etcd's JSON has it."""
    return base64.b64encode(text.encode()).decode()
