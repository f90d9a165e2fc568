"""One cluster's Kubernetes on the wire: trust, tokens, lists, submit, delete, deadlines."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_servers
from cloudsim.premises import Premises
from cloudsim.tls import Authority
from tiny_servers import Answer, Request, Server, refusal

from falcon_rm.cloud.credential import Credential
from falcon_rm.cloud.kube import KubeAdapter
from falcon_rm.core.live import ClusterInfo, KubeEvent
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import CloudError, ErrorKind

CLUSTER = Cluster(id="c-1", name="c1", project="p", location="l", tpu_type="v7x")

HOME = "/api/v1/namespaces/falcon-jobs"
ACCOUNT = f"{HOME}/serviceaccounts/falcon-job"
JOBS = "/apis/batch/v1/namespaces/falcon-jobs/jobs"
JOB = f"{JOBS}/falcon-j1"
SERVICES = f"{HOME}/services"
SERVICE = f"{SERVICES}/falcon-j1"
PODS = f"{HOME}/pods"
EVENTS = f"{HOME}/events"

LABELS = {"managed-by": "falcon", "falcon.io/job-id": "j1", "falcon.io/attempt": "1"}
MANIFEST: dict[str, Any] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "falcon-j1", "namespace": "falcon-jobs", "labels": LABELS},
    "spec": {
        "completionMode": "Indexed",
        "completions": 2,
        "parallelism": 2,
        "backoffLimit": 0,
        "template": {
            "metadata": {"annotations": {"gke-gcsfuse/volumes": "true"}},
            "spec": {
                "subdomain": "falcon-j1",
                "restartPolicy": "Never",
                "containers": [{"name": "task", "image": "i", "resources": {"limits": {"google.com/tpu": "4"}}}],
            },
        },
    },
}
HEADLESS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "falcon-j1", "namespace": "falcon-jobs", "labels": LABELS},
    "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": "falcon-j1"}},
}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "falcon-j1", "uid": "u1"}


def created(body: dict[str, Any], uid: str = "u1", **metadata: Any) -> Answer:
    """Return an object as the server has it."""
    return Answer(200, {**body, "metadata": {**body["metadata"], "uid": uid, **metadata}})


class Cloud:
    """An API server that answers each (method, path) with the first of what is left, or with the last one again."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], list[Answer]] = {("GET", ACCOUNT): [Answer(200, {})]}

    def __call__(self, request: Request) -> Answer:
        left = self.answers.get((request.method, request.path), [refusal(404, "NotFound", "not found")])
        return left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def cloud() -> Cloud:
    """What the API server answers."""
    return Cloud()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """The cluster's own certificate authority."""
    return Authority(tmp_path, "cluster")


@pytest.fixture
def server(cloud: Cloud, authority: Authority) -> Iterator[Server]:
    """The API server."""
    with tiny_servers.https(authority.context(), cloud) as running:
        yield running


Connect = Callable[..., KubeAdapter]


@pytest.fixture
def connect(server: Server, authority: Authority) -> Connect:
    """Make an adapter for the cluster's IP endpoint."""

    def adapter(**options: Any) -> KubeAdapter:
        info = ClusterInfo((), server.address, authority.pem.decode())
        return KubeAdapter(CLUSTER, info, credential=Credential(), **options)

    return adapter


@pytest.fixture
def adapter(connect: Connect) -> KubeAdapter:
    """Kubernetes as Falcon sees it."""
    return connect(read_seconds=5, write_seconds=5)


def page(items: list[Any], more: str = "") -> Answer:
    """Return one page of a list."""
    return Answer(200, {"kind": "List", "items": items, "metadata": {"continue": more} if more else {}})


def job(name: str, **metadata: Any) -> dict[str, Any]:
    """Return a Job of a list."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", **metadata}}


def failed(act: Callable[[], object]) -> CloudError:
    """Return the error that *act* raises."""
    with pytest.raises(CloudError) as caught:
        act()
    return caught.value


# trust


def test_certificate_of_another_authority(server: Server, tmp_path: Path) -> None:
    """A server that the cluster's CA has not signed is not spoken to."""
    info = ClusterInfo((), server.address, Authority(tmp_path, "other").pem.decode())
    adapter = KubeAdapter(CLUSTER, info, credential=Credential(), read_seconds=5)
    assert ErrorKind.UNKNOWN == failed(lambda: adapter.list_works("")).kind
    assert [] == server.requests


def test_dns_endpoint_is_checked_by_the_systems_authorities(premises: Premises, cloud: Cloud) -> None:
    """A DNS endpoint has a public certificate: the cluster's CA is not asked."""
    cloud.answers[("GET", JOBS)] = [page([])]
    with tiny_servers.https(premises.authority.context(), cloud) as public:
        info = ClusterInfo((), None, None, f"localhost:{public.port}")
        for system_ca in (None, str(premises.authority.path)):
            adapter = KubeAdapter(CLUSTER, info, credential=Credential(), system_ca=system_ca, read_seconds=5)
            assert () == adapter.list_works("")


def test_dns_endpoint_of_an_unknown_authority(server: Server) -> None:
    """A DNS endpoint that no system authority has signed is not spoken to."""
    info = ClusterInfo((), None, None, f"localhost:{server.port}")
    adapter = KubeAdapter(CLUSTER, info, credential=Credential(), read_seconds=5)
    assert ErrorKind.UNKNOWN == failed(lambda: adapter.list_works("")).kind
    assert [] == server.requests


@pytest.mark.parametrize(
    ("endpoint", "info"),
    [
        (None, ClusterInfo(())),
        (None, ClusterInfo((), "10.0.0.1")),
        ("ip", ClusterInfo((), None, None, "gke.goog")),
        ("dns", ClusterInfo((), "10.0.0.1", "PEM")),
    ],
)
def test_endpoint_that_is_not_offered(endpoint: str | None, info: ClusterInfo) -> None:
    """Without the endpoint asked for, or without its certificate, the cluster is in trouble: nothing is skipped."""
    cluster = Cluster(id="c", name="c1", project="p", location="l", tpu_type="v7x", endpoint=endpoint)
    assert ErrorKind.CLUSTER == failed(lambda: KubeAdapter(cluster, info, credential=Credential())).kind


# tokens


def test_every_request_has_a_good_token(adapter: KubeAdapter, cloud: Cloud, server: Server, premises: Premises) -> None:
    """Each request of each kind carries a token that is good at that moment (P100, P103)."""
    cloud.answers |= {
        ("GET", JOBS): [page([])],
        ("GET", PODS): [page([])],
        ("GET", EVENTS): [page([])],
        ("GET", "/api/v1/nodes"): [page([])],
        ("POST", JOBS): [created(MANIFEST)],
        ("POST", SERVICES): [created(HEADLESS)],
        ("DELETE", JOB): [Answer(200, {})],
    }
    adapter.list_works("")
    adapter.list_pods("")
    adapter.list_events(["falcon-j1"])
    adapter.list_ready_nodes(["a"])
    adapter.submit(MANIFEST, HEADLESS)
    adapter.delete_work("falcon-j1", "u1")
    assert [None] * 8 == [premises.tokens.refusal(request.authorization) for request in server.requests]


def test_token_that_ended_is_replaced(adapter: KubeAdapter, cloud: Cloud, server: Server, premises: Premises) -> None:
    """A token refused in the middle of a pass is renewed and the call repeated, also a submit (P100)."""
    unauthorized = refusal(401, "Unauthorized", "Unauthorized")
    cloud.answers |= {("GET", JOBS): [unauthorized, page([])], ("POST", JOBS): [unauthorized, created(MANIFEST)]}
    assert () == adapter.list_works("")
    premises.tokens.expire()
    assert "u1" == adapter.submit(MANIFEST, None)
    assert premises.tokens.refusal(server.requests[-1].authorization) is None


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (lambda adapter: adapter.list_works(""), ErrorKind.UNKNOWN),
        (lambda adapter: adapter.submit(MANIFEST, None), ErrorKind.BUSY),
        (lambda adapter: adapter.delete_work("falcon-j1", "u1"), ErrorKind.BUSY),
    ],
)
def test_token_refused_for_good(
    adapter: KubeAdapter, cloud: Cloud, act: Callable[[KubeAdapter], object], kind: ErrorKind
) -> None:
    """Refused twice is unknown for a read, busy for a submit or delete (P100)."""
    no = [refusal(401, "Unauthorized", "Unauthorized")]
    cloud.answers |= {("GET", JOBS): no, ("POST", JOBS): no, ("DELETE", JOB): no}
    assert kind == failed(lambda: act(adapter)).kind


def test_anonymous_refusal(adapter: KubeAdapter, cloud: Cloud) -> None:
    """A 403 for system:anonymous is a fault of our credential, never the job's (P103)."""
    text = 'jobs.batch is forbidden: User "system:anonymous" cannot create resource "jobs" in API group "batch"'
    cloud.answers[("POST", JOBS)] = [refusal(403, "Forbidden", text)]
    assert ErrorKind.UNKNOWN == failed(lambda: adapter.submit(MANIFEST, None)).kind


# lists


def test_list_over_pages(adapter: KubeAdapter, cloud: Cloud, server: Server) -> None:
    """Every page is read, from the present (P104)."""
    cloud.answers[("GET", JOBS)] = [page([job("a")], "t1"), page([job("b")], "t2"), page([job("c")])]
    assert ["a", "b", "c"] == [work.name for work in adapter.list_works("managed-by=falcon")]
    expected = [{"labelSelector": "managed-by=falcon", "limit": "500"}]
    expected += [{**expected[0], "continue": "t1"}, {**expected[0], "continue": "t2"}]
    assert expected == [request.query for request in server.requests]


def test_list_cut_short_is_begun_again(adapter: KubeAdapter, cloud: Cloud) -> None:
    """A continue token that expired starts the list again (P102)."""
    gone = refusal(410, "Expired", "The provided continue parameter is too old")
    cloud.answers[("GET", JOBS)] = [page([job("a")], "t1"), gone, page([job("a")], "t2"), page([job("b")])]
    assert ["a", "b"] == [work.name for work in adapter.list_works("")]


def test_list_cut_short_twice(adapter: KubeAdapter, cloud: Cloud, server: Server) -> None:
    """Expired again is unknown, never a part of the list (P102)."""
    gone = refusal(410, "Expired", "The provided continue parameter is too old")
    cloud.answers[("GET", JOBS)] = [page([job("a")], "t1"), gone, page([job("a")], "t1"), gone]
    assert ErrorKind.UNKNOWN == failed(lambda: adapter.list_works("")).kind
    assert 4 == len(server.requests)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, "<html>ok</html>"),
        Answer(200, "[]"),
        Answer(200, {"items": []}),
        Answer(200, {"metadata": {}}),
        Answer(200, {"items": {}, "metadata": {}}),
        Answer(200, {"items": "none", "metadata": {}}),
        page([{"metadata": {"name": "", "uid": "u"}}]),
        page([{"metadata": {"name": "a"}}]),
        page(["a"]),
        page([{**job("a"), "status": {"active": "some"}}]),
        Answer(404, "404 page not found"),
        refusal(404, "NotFound", "the server could not find the requested resource"),
        Answer(502, "<html>502 Bad Gateway</html>"),
        refusal(500, "InternalError", "etcd is away"),
    ],
)
def test_list_nobody_understands(adapter: KubeAdapter, cloud: Cloud, answer: Answer) -> None:
    """An answer that is no list raises: it is never an empty list (P81)."""
    cloud.answers[("GET", JOBS)] = [answer]
    assert failed(lambda: adapter.list_works("")).kind in {ErrorKind.UNKNOWN, ErrorKind.GONE}


def test_empty_list_from_null(adapter: KubeAdapter, cloud: Cloud) -> None:
    """Go writes an empty list as null."""
    cloud.answers[("GET", JOBS)] = [Answer(200, {"items": None, "metadata": {"resourceVersion": "1"}})]
    assert () == adapter.list_works("")


def test_read_that_nobody_took_is_asked_again(adapter: KubeAdapter, cloud: Cloud, server: Server) -> None:
    """A 503 is asked once more."""
    cloud.answers[("GET", JOBS)] = [refusal(503, "ServiceUnavailable", "shutting down"), page([])]
    assert () == adapter.list_works("")
    assert 2 == len(server.requests)


def test_events_of_the_names(adapter: KubeAdapter, cloud: Cloud, server: Server) -> None:
    """Warnings about a Job and its pods are told, those about a longer name are not."""
    entries = [
        {
            "metadata": {"name": f"e{number}"},
            "involvedObject": {"name": about},
            "reason": "FailedCreate",
            "message": "no",
            "lastTimestamp": "2026-11-01T00:00:00Z",
        }
        for number, about in enumerate(("falcon-j1", "falcon-j1-0-abcde", "falcon-j10", "falcon-j2"))
    ]
    cloud.answers[("GET", EVENTS)] = [page(entries)]
    expected = tuple(
        KubeEvent(about, "FailedCreate", "no", "2026-11-01T00:00:00Z") for about in ("falcon-j1", "falcon-j1-0-abcde")
    )
    assert expected == adapter.list_events(["falcon-j1"])
    assert ["type=Warning"] == [request.query["fieldSelector"] for request in server.requests]


def test_ready_nodes(adapter: KubeAdapter, cloud: Cloud, server: Server) -> None:
    """Ready nodes are told with their pools, many pools in several requests."""

    def node(name: str, pool: str, ready: str) -> dict[str, Any]:
        meta = {"name": name, "labels": {"cloud.google.com/gke-nodepool": pool}}
        return {"metadata": meta, "status": {"conditions": [{"type": "Ready", "status": ready}]}}

    cloud.answers[("GET", "/api/v1/nodes")] = [
        page([node("n1", "p00", "True"), node("n2", "p00", "False")]),
        page([node("n3", "p50", "True"), {"metadata": {"name": "n4"}}]),
    ]
    found = adapter.list_ready_nodes(f"p{number:02d}" for number in range(51))
    assert {"n1": "p00", "n3": "p50"} == found
    assert "cloud.google.com/gke-nodepool in (p50)" == server.requests[1].query["labelSelector"]


def test_ready_nodes_of_no_pool(adapter: KubeAdapter, server: Server) -> None:
    """Nothing is asked about nothing."""
    assert {} == adapter.list_ready_nodes([])
    assert [] == server.requests


# submit


def test_submit_creates_job_then_service(adapter: KubeAdapter, cloud: Cloud, server: Server) -> None:
    """The Job goes first, unchanged; the Service is owned by it."""
    cloud.answers |= {("POST", JOBS): [created(MANIFEST)], ("POST", SERVICES): [created(HEADLESS)]}
    assert "u1" == adapter.submit(MANIFEST, HEADLESS)
    owned = {**HEADLESS, "metadata": {**HEADLESS["metadata"], "ownerReferences": [OWNER]}}
    assert [MANIFEST, owned] == [request.body for request in server.requests if request.method == "POST"]


def test_submit_makes_its_home(adapter: KubeAdapter, cloud: Cloud, server: Server) -> None:
    """Namespace and service account are made if they are missing; somebody else may be first."""
    cloud.answers |= {
        ("GET", ACCOUNT): [refusal(404, "NotFound", 'serviceaccounts "falcon-job" not found')],
        ("POST", "/api/v1/namespaces"): [refusal(409, "AlreadyExists", "already exists")],
        ("POST", f"{HOME}/serviceaccounts"): [Answer(201, {})],
        ("POST", JOBS): [created(MANIFEST)],
    }
    assert "u1" == adapter.submit(MANIFEST, None)
    assert "u1" == adapter.submit(MANIFEST, None)
    first = [("GET", ACCOUNT), ("POST", "/api/v1/namespaces"), ("POST", f"{HOME}/serviceaccounts"), ("POST", JOBS)]
    assert [*first, ("POST", JOBS)] == server.asked


def test_namespace_that_is_going(adapter: KubeAdapter, cloud: Cloud) -> None:
    """A namespace that is being deleted is waited for."""
    text = "is forbidden: unable to create new content in namespace falcon-jobs because it is being terminated"
    cloud.answers[("POST", JOBS)] = [refusal(403, "Forbidden", text)]
    assert ErrorKind.BUSY == failed(lambda: adapter.submit(MANIFEST, None)).kind


EXISTS = refusal(409, "AlreadyExists", 'jobs.batch "falcon-j1" already exists')


def test_job_of_this_attempt_is_there(adapter: KubeAdapter, cloud: Cloud) -> None:
    """A Job that an earlier, unanswered submit made counts as submitted; its Service is made (P59)."""
    cloud.answers |= {
        ("POST", JOBS): [EXISTS],
        ("GET", JOB): [created(MANIFEST)],
        ("POST", SERVICES): [created(HEADLESS)],
    }
    assert "u1" == adapter.submit(MANIFEST, HEADLESS)


@pytest.mark.parametrize(
    "labels", [None, {}, {**LABELS, "falcon.io/attempt": "2"}, {**LABELS, "falcon.io/job-id": "x"}]
)
def test_job_of_somebody_else_is_there(adapter: KubeAdapter, cloud: Cloud, labels: dict[str, str] | None) -> None:
    """Anything else under our name is named, and left alone."""
    cloud.answers |= {("POST", JOBS): [EXISTS], ("GET", JOB): [created(MANIFEST, labels=labels)]}
    error = failed(lambda: adapter.submit(MANIFEST, None))
    assert ErrorKind.PERMANENT == error.kind
    assert "falcon-j1" in error.text


def test_job_of_our_name_is_terminating(adapter: KubeAdapter, cloud: Cloud) -> None:
    """A Job that is being deleted is waited for."""
    going = created(MANIFEST, deletionTimestamp="2026-11-01T00:00:00Z")
    cloud.answers |= {("POST", JOBS): [EXISTS], ("GET", JOB): [going]}
    assert ErrorKind.BUSY == failed(lambda: adapter.submit(MANIFEST, None)).kind


def test_job_that_was_there_and_is_gone(adapter: KubeAdapter, cloud: Cloud) -> None:
    """A Job that went between the two requests is asked for again next pass."""
    cloud.answers[("POST", JOBS)] = [EXISTS]
    assert ErrorKind.BUSY == failed(lambda: adapter.submit(MANIFEST, None)).kind


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({"ownerReferences": [OWNER]}, None),
        ({"ownerReferences": [{**OWNER, "uid": "u0"}]}, ErrorKind.BUSY),
        ({"ownerReferences": [OWNER], "deletionTimestamp": "2026-11-01T00:00:00Z"}, ErrorKind.BUSY),
        ({}, ErrorKind.PERMANENT),
    ],
)
def test_service_of_our_name_is_there(
    adapter: KubeAdapter, cloud: Cloud, metadata: dict[str, Any], kind: ErrorKind | None
) -> None:
    """The Job's own Service is fine, an earlier Job's is waited for, another's is in the way."""
    cloud.answers |= {
        ("POST", JOBS): [created(MANIFEST)],
        ("POST", SERVICES): [refusal(409, "AlreadyExists", 'services "falcon-j1" already exists')],
        ("GET", SERVICE): [created(HEADLESS, "s1", **metadata)],
    }
    if kind is None:
        assert "u1" == adapter.submit(MANIFEST, HEADLESS)
    else:
        assert kind == failed(lambda: adapter.submit(MANIFEST, HEADLESS)).kind


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusal(422, "Invalid", "spec.template: Required value"), ErrorKind.PERMANENT),
        (refusal(403, "Forbidden", 'admission webhook "w" denied the request: no'), ErrorKind.PERMANENT),
        (refusal(403, "Forbidden", "exceeded quota: q, requested: count/jobs.batch=1"), ErrorKind.QUOTA),
        (refusal(429, "TooManyRequests", "later"), ErrorKind.UNKNOWN),
        (refusal(503, "ServiceUnavailable", "shutting down"), ErrorKind.UNKNOWN),
        (refusal(500, "InternalError", 'failed calling webhook "w"'), ErrorKind.UNKNOWN),
        (Answer(502, "<html>502 Bad Gateway</html>"), ErrorKind.UNKNOWN),
        (Answer(201, "<html>cut"), ErrorKind.UNKNOWN),
    ],
)
def test_submit_refused(adapter: KubeAdapter, cloud: Cloud, server: Server, answer: Answer, kind: ErrorKind) -> None:
    """A refusal is told from a hiccup, and neither is asked again (P58)."""
    cloud.answers[("POST", JOBS)] = [answer]
    assert kind == failed(lambda: adapter.submit(MANIFEST, None)).kind
    assert 1 == len([request for request in server.requests if request.method == "POST"])


def test_manifest_that_the_client_refuses(adapter: KubeAdapter, server: Server) -> None:
    """A manifest that the client will not send is refused for good, before anything is sent."""
    container = {"name": "task", "image": "i", "resources": {"limits": {"google.com/tpu": 4}}}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    assert ErrorKind.PERMANENT == failed(lambda: adapter.submit({**MANIFEST, "spec": spec}, None)).kind
    assert [("GET", ACCOUNT)] == server.asked


# let go


def test_a_job_is_let_go_by_its_uid(adapter: KubeAdapter, cloud: Cloud, server: Server) -> None:
    """A merge patch of one field that names the UID in the row."""
    cloud.answers[("PATCH", JOB)] = [created(MANIFEST)]
    adapter.resume_work("falcon-j1", "u1")
    (request,) = server.requests
    assert {"metadata": {"uid": "u1"}, "spec": {"suspend": False}} == request.body


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusal(404, "NotFound", 'jobs.batch "falcon-j1" not found'), ErrorKind.UNKNOWN),
        (refusal(422, "Invalid", 'metadata.uid: Invalid value: "u1": field is immutable'), ErrorKind.GONE),
        (refusal(403, "Forbidden", 'User "f" cannot patch resource "jobs" in API group "batch"'), ErrorKind.CLUSTER),
        (refusal(400, "", 'admission webhook "w" denied the request: no'), ErrorKind.PERMANENT),
        (refusal(503, "ServiceUnavailable", "down"), ErrorKind.UNKNOWN),
    ],
)
def test_a_job_that_is_not_let_go(
    adapter: KubeAdapter, cloud: Cloud, server: Server, answer: Answer, kind: ErrorKind
) -> None:
    """What is not there is looked for again, another of its name is left alone; nothing is asked twice."""
    cloud.answers[("PATCH", JOB)] = [answer]
    assert kind == failed(lambda: adapter.resume_work("falcon-j1", "u1")).kind
    assert 1 == len(server.requests)


# delete


def test_delete_takes_the_pods_and_only_this_job(adapter: KubeAdapter, cloud: Cloud, server: Server) -> None:
    """A delete is in the background and bound to the UID that was seen."""
    cloud.answers[("DELETE", JOB)] = [Answer(200, {"kind": "Status", "status": "Success"})]
    adapter.delete_work("falcon-j1", "u1")
    (request,) = server.requests
    options = {"propagationPolicy": "Background", "preconditions": {"uid": "u1"}}
    assert options == {key: request.body[key] for key in options}


@pytest.mark.parametrize(
    "answer",
    [
        refusal(404, "NotFound", 'jobs.batch "falcon-j1" not found'),
        refusal(409, "Conflict", "Precondition failed: UID in precondition: u1, UID in object meta: u2"),
    ],
)
def test_delete_of_what_is_gone(adapter: KubeAdapter, cloud: Cloud, answer: Answer) -> None:
    """A Job that is gone, or is another one by now, is deleted."""
    cloud.answers[("DELETE", JOB)] = [answer]
    adapter.delete_work("falcon-j1", "u1")


@pytest.mark.parametrize("answer", [Answer(404, "404 page not found"), refusal(503, "ServiceUnavailable", "down")])
def test_delete_with_an_open_outcome(adapter: KubeAdapter, cloud: Cloud, server: Server, answer: Answer) -> None:
    """A 404 of a proxy proves nothing; a delete is not asked twice."""
    cloud.answers[("DELETE", JOB)] = [answer]
    assert ErrorKind.UNKNOWN == failed(lambda: adapter.delete_work("falcon-j1", "u1")).kind
    assert 1 == len(server.requests)


# deadlines


@pytest.mark.parametrize("trickled", [page([]), Answer(500, "<html>slowly</html>")])
def test_trickling_answer(connect: Connect, cloud: Cloud, server: Server, trickled: Answer) -> None:
    """An answer that comes byte by byte ends at the deadline, once, and its connection is cut (P113)."""
    adapter = connect(read_seconds=0.5)
    cloud.answers[("GET", JOBS)] = [Answer(trickled.status, trickled.body, trickle=0.1)]
    assert ErrorKind.UNKNOWN == failed(lambda: adapter.list_works("")).kind
    assert (1, 1) == (len(server.requests), server.connections)
    assert server.ended.wait(3), "the connection is still open"


def test_silent_server(authority: Authority) -> None:
    """A request that is never answered ends at the deadline, and is not sent again (P101, P113)."""
    release = threading.Event()

    def silent(request: Request) -> Answer:
        release.wait(10)
        return page([])

    with tiny_servers.https(authority.context(), silent) as server:
        info = ClusterInfo((), server.address, authority.pem.decode())
        adapter = KubeAdapter(CLUSTER, info, credential=Credential(), read_seconds=0.5, write_seconds=0.5)
        assert ErrorKind.UNKNOWN == failed(lambda: adapter.list_works("")).kind
        assert ErrorKind.UNKNOWN == failed(lambda: adapter.delete_work("falcon-j1", "u1")).kind
        release.set()
    assert [("GET", JOBS), ("DELETE", JOB)] == server.asked


@pytest.mark.parametrize("certificate", ["PEM", None])
def test_nobody_to_speak_to(authority: Authority, certificate: str | None) -> None:
    """A port where nobody listens, or a certificate that is none, is unknown at once."""
    info = ClusterInfo((), "127.0.0.1:1", certificate or authority.pem.decode())
    adapter = KubeAdapter(CLUSTER, info, credential=Credential(), read_seconds=5)
    assert ErrorKind.UNKNOWN == failed(lambda: adapter.list_works("")).kind


def test_home_of_the_pods(adapter: KubeAdapter, cloud: Cloud) -> None:
    """Whether namespace and service account are there is asked of their names; only a NotFound says no."""
    assert not adapter.has_namespace()
    cloud.answers[("GET", ACCOUNT)] = [refusal(404, "NotFound", 'serviceaccounts "falcon-job" not found')]
    assert adapter.service_account() is None
    cloud.answers[("GET", ACCOUNT)] = [Answer(404, "404 page not found")]
    assert ErrorKind.UNKNOWN == failed(adapter.service_account).kind
