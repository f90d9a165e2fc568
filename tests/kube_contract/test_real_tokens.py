"""Who may do what on a real API server: tokens fresh, stale and unknown, and Falcon's rights, each of them needed."""

import time
from collections.abc import Iterator

import pytest
from cloudsim.metadata import EMAIL
from cloudsim.premises import Premises
from cloudsim.real_kube import path_of
from cloudsim.real_planes import RealKubernetes
from control_plane.client import Client
from control_plane.rights import RBAC, RIGHTS, Rights, rules
from kube_doors import PATH, job

from falcon_rm.cloud.credential import Credential
from falcon_rm.cloud.kube import KubeAdapter
from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.model import Cluster
from falcon_rm.core.names import ATTEMPT, JOB_ID
from falcon_rm.core.words import CloudError, ErrorKind

NAMESPACE = "falcon-jobs"
STALE_SECONDS = 90.0
SINGLE = [(group, kind, verb) for group, kind, verbs in RIGHTS for verb in verbs]


def jobs(client: Client) -> tuple[int, str]:
    """Return how a list of Jobs is answered."""
    answer = client.call("GET", path_of("jobs", NAMESPACE))
    return answer.status, answer.body.get("reason", "")


def test_a_fresh_token_is_good_until_it_is_stale(real: RealKubernetes, premises: Premises) -> None:
    """Good at once; when it is stale the server still trusts its memory for some seconds, then says 401."""
    token, _ = premises.tokens.hand_out()
    client = real.planes[PATH].client(token)
    assert (200, "") == jobs(client)
    premises.tokens.expire()
    end = time.monotonic() + STALE_SECONDS
    while jobs(client) == (200, ""):
        assert time.monotonic() < end
        time.sleep(0.2)
    assert (401, "Unauthorized") == jobs(client)
    renewed, _ = premises.tokens.hand_out()
    assert renewed != token
    assert (200, "") == jobs(real.planes[PATH].client(renewed))


@pytest.mark.parametrize("token", ["", "ya29.made-up"], ids=["none", "unknown"])
def test_nobody_is_refused(real: RealKubernetes, token: str) -> None:
    """401 Unauthorized, which is no 403 of an anonymous user."""
    assert (401, "Unauthorized") == jobs(real.planes[PATH].client(token))


def set_rights(admin: Client, rights: Rights) -> None:
    """Let Falcon's account have these rights from now on."""
    role = {"metadata": {"name": "falcon-rm"}, "rules": rules(rights)}
    admin.must("PUT", f"{RBAC}/clusterroles/falcon-rm", role)


def await_right(admin: Client, group: str, kind: str, verb: str, *, allowed: bool) -> None:
    """Wait until the server knows a right, or its loss."""
    attributes = {"verb": verb, "resource": kind, "group": group, "namespace": NAMESPACE}
    review = {"spec": {"user": EMAIL, "resourceAttributes": attributes}}
    end = time.monotonic() + STALE_SECONDS
    while (
        admin.must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"] != allowed
    ):
        assert time.monotonic() < end
        time.sleep(0.02)


def emptied(admin: Client, kind: str) -> None:
    """Delete what Falcon makes; the namespace, which takes ten seconds, only for the sake of what makes it anew."""
    paths = [path_of("jobs", NAMESPACE, "falcon-j"), path_of("services", NAMESPACE, "falcon-j")]
    if kind in ("namespaces", "serviceaccounts"):
        paths = [path_of("namespaces", None, NAMESPACE)]
    end = time.monotonic() + STALE_SECONDS
    for path in paths:
        admin.call("DELETE", path, {"propagationPolicy": "Background"})
        while admin.call("GET", path).status != 404:
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.fixture
def falcon(real: RealKubernetes) -> Iterator[KubeAdapter]:
    """The product's own adapter, with its own credential."""
    admin = real.planes[PATH].client()
    plane = real.planes[PATH]
    info = ClusterInfo(
        (), ip_endpoint=plane.endpoint, ca_certificate=plane.papers.authority.read_text(encoding="utf-8")
    )
    yield KubeAdapter(Cluster("c", "c", "p", "l", "v6e"), info, credential=Credential())
    set_rights(admin, RIGHTS)
    for group, kind, verb in SINGLE:
        await_right(admin, group, kind, verb, allowed=True)


def everything(falcon: KubeAdapter) -> None:
    """Do everything that Falcon ever does in a cluster."""
    manifest = job("falcon-j", "p")
    manifest["metadata"] |= {"namespace": NAMESPACE, "labels": {JOB_ID: "j", ATTEMPT: "1"}}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "falcon-j", "namespace": NAMESPACE},
        "spec": {"clusterIP": "None", "selector": {"job-name": "falcon-j"}},
    }
    uid = falcon.submit(manifest, service)
    assert uid == falcon.submit(manifest, service)
    assert ["falcon-j"] == [work.name for work in falcon.list_works(JOB_ID)]
    falcon.resume_work("falcon-j", uid)
    falcon.list_pods(JOB_ID)
    falcon.list_events(["falcon-j"])
    falcon.list_ready_nodes(["p"])
    falcon.delete_work("falcon-j", uid)


def test_these_rights_are_enough(falcon: KubeAdapter, real: RealKubernetes) -> None:
    """With them and no other Falcon can do all it ever does."""
    emptied(real.planes[PATH].client(), "namespaces")
    everything(falcon)
    assert () == falcon.list_works(JOB_ID)


@pytest.mark.parametrize(("group", "kind", "verb"), SINGLE, ids=lambda part: part or "core")
def test_each_right_is_needed(falcon: KubeAdapter, real: RealKubernetes, group: str, kind: str, verb: str) -> None:
    """Without it the cluster is in trouble, and the message names what is missing."""
    admin = real.planes[PATH].client()
    left = [(g, k, [v for v in verbs if (g, k, v) != (group, kind, verb)]) for g, k, verbs in RIGHTS]
    emptied(admin, kind)
    set_rights(admin, left)
    await_right(admin, group, kind, verb, allowed=False)
    with pytest.raises(CloudError) as caught:
        everything(falcon)
    assert (ErrorKind.CLUSTER, True) == (caught.value.kind, f'cannot {verb} resource "{kind}"' in caught.value.text)


def test_a_review_tells_each_right(falcon: KubeAdapter, real: RealKubernetes) -> None:
    """What Falcon asks of itself is what it may do: every right that it has, none that it lacks."""
    admin = real.planes[PATH].client()
    lost = ("batch", "jobs", "delete")
    set_rights(admin, [(g, k, [v for v in verbs if (g, k, v) != lost]) for g, k, verbs in RIGHTS])
    await_right(admin, *lost, allowed=False)
    assert [lost] == [right for right in SINGLE if not falcon.is_allowed(*right)]
    assert not falcon.is_allowed("", "secrets", "get")


def test_what_is_there_for_the_pods(falcon: KubeAdapter, real: RealKubernetes) -> None:
    """The service account is found or not; whether the namespace is there may not be asked under these rights."""
    emptied(real.planes[PATH].client(), "namespaces")
    assert falcon.service_account() is None
    everything(falcon)
    assert {} == falcon.service_account()
    with pytest.raises(CloudError) as caught:
        falcon.has_namespace()
    assert ErrorKind.CLUSTER is caught.value.kind
