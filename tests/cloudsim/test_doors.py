"""The simulated cloud's doors, through the unchanged libraries of Google and Kubernetes."""

import base64
import http.client
import json
import ssl
import urllib.request
from typing import Any

import google.auth
import pytest
import requests
import urllib3
from cloudsim.doors_faults import Wire, WireFault
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault
from cloudsim.metadata import EMAIL, PROJECT, Tokens
from cloudsim.premises import Premises
from cloudsim.server import CloudSim
from cloudsim.tempo import brisk
from cloudsim.world import World
from cloudsim_fixtures import Serve
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import Request
from google.cloud import compute_v1, container_v1
from google.oauth2 import credentials as oauth2
from kubernetes import client as kubernetes_client

Credentials: Any = oauth2.Credentials
NoCredentials: Any = AnonymousCredentials
kubernetes: Any = kubernetes_client

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
LOCATION = f"projects/{PROJECT}/locations/us-central1"
PATH = f"{LOCATION}/clusters/alpha"
OTHER = f"{LOCATION}/clusters/beta"
ZONE = "us-central1-a"
MACHINE = "tpu7x-standard-4t"
QUICK: dict[str, Any] = {"retry": None, "timeout": 5.0}


@pytest.fixture
def sim(serve: Serve) -> CloudSim:
    """A world with two clusters and a reservation, behind doors; its clock stands."""
    world = World(seed=1, tempo=brisk())
    world.add_cluster(PATH, [ZONE])
    world.add_cluster(OTHER, [ZONE])
    world.add_reservation(PROJECT, ZONE, "big", MACHINE, 4, in_use=1)
    return serve(world)


def default_credentials() -> Any:
    """Return what the metadata server gives."""
    return google.auth.default(scopes=SCOPES)[0]


def gke(sim: CloudSim, credentials: Any = None) -> container_v1.ClusterManagerClient:
    """Return the real client."""
    options = ClientOptions(api_endpoint=sim.environment()["FALCON_GKE_ENDPOINT"])
    return container_v1.ClusterManagerClient(credentials=credentials or default_credentials(), client_options=options)


def compute(sim: CloudSim, kind: Any, credentials: Any = None) -> Any:
    """Return one of the real clients of Compute."""
    options = ClientOptions(api_endpoint=sim.environment()["FALCON_COMPUTE_ENDPOINT"])
    return kind(credentials=credentials or default_credentials(), client_options=options)


def bare_compute(sim: CloudSim, headers: dict[str, str]) -> tuple[int, str]:
    """Ask Compute without its client, which would refresh a refused credential; answers status and reason."""
    endpoint = sim.environment()["FALCON_COMPUTE_ENDPOINT"]
    url = f"{endpoint}/compute/v1/projects/{PROJECT}/zones/{ZONE}/reservations/big"
    answer = requests.get(url, headers=headers, timeout=5)
    return answer.status_code, answer.json()["error"]["errors"][0]["reason"]


def kube(sim: CloudSim, path: str = PATH, *, dns: bool = False, token: str | None = None) -> kubernetes.ApiClient:
    """Return a Kubernetes client built from GetCluster's answer alone; *token* in place of a fresh one, "" for none."""
    cluster = gke(sim).get_cluster(name=path, **QUICK)
    configuration = kubernetes.Configuration()
    configuration.retries = False
    if dns:
        configuration.host = "https://" + cluster.control_plane_endpoints_config.dns_endpoint_config.endpoint
    else:
        configuration.host = "https://" + cluster.endpoint
        configuration.ca_cert_data = base64.b64decode(cluster.master_auth.cluster_ca_certificate).decode()
    if token is None:
        credentials = default_credentials()
        credentials.refresh(Request())
        token = credentials.token
    if token:
        configuration.api_key["authorization"] = f"Bearer {token}"
    return kubernetes.ApiClient(configuration)


def core(sim: CloudSim, path: str = PATH, **how: Any) -> Any:
    """Return the client of the core group."""
    return kubernetes.CoreV1Api(kube(sim, path, **how))


def pool(name: str) -> container_v1.NodePool:
    """Return a pool of one v7x host that asks for no reservation."""
    return container_v1.NodePool(
        name=name,
        initial_node_count=1,
        locations=[ZONE],
        config=container_v1.NodeConfig(
            machine_type=MACHINE,
            labels={"falcon.io/job-id": "j"},
            reservation_affinity=container_v1.ReservationAffinity(consume_reservation_type="NO_RESERVATION"),
        ),
    )


def namespace(name: str) -> dict[str, Any]:
    """Return the manifest of a namespace."""
    return {"metadata": {"name": name, "labels": {"kind": "test"}}}


# the metadata server


def test_default_credentials_come_from_the_metadata_server(premises: Premises) -> None:
    """Application default credentials are those of the simulated machine, with a token that a door knows."""
    credentials = default_credentials()
    credentials.refresh(Request())

    assert (PROJECT, EMAIL) == (google.auth.default(scopes=SCOPES)[1], credentials.service_account_email)
    assert premises.tokens.refusal(f"Bearer {credentials.token}") is None


def test_metadata_needs_its_header(premises: Premises) -> None:
    """As at Google, a request without `Metadata-Flavor: Google` is refused."""
    url = f"http://{premises.metadata.address}/computeMetadata/v1/instance/service-accounts/default/token"

    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        urllib.request.urlopen(url, timeout=5)
    refused.value.close()


def test_tokens_are_handed_out_again_and_end() -> None:
    """The same token is given while it is good; afterwards a new one, and the old one is stale."""
    tokens = Tokens(lifetime=60)
    first = tokens.hand_out()[0]

    assert first == tokens.hand_out()[0]
    tokens.expire()
    assert "stale" == tokens.refusal(f"Bearer {first}")
    assert tokens.refusal(f"Bearer {tokens.hand_out()[0]}") is None


# Google Kubernetes Engine over gRPC


def test_pool_from_create_to_delete(sim: CloudSim) -> None:
    """Create, operation, list, get and delete work with the real client as the world's clock moves."""
    client = gke(sim)
    operation = client.create_node_pool(parent=PATH, node_pool=pool("falcon-j"), timeout=5)
    name = f"{LOCATION}/operations/{operation.name}"

    assert container_v1.Operation.Status.RUNNING == client.get_operation(name=name, **QUICK).status
    sim.world.advance(10)
    assert container_v1.Operation.Status.DONE == client.get_operation(name=name, **QUICK).status
    listed = client.list_operations(parent=LOCATION, **QUICK)
    assert ([operation.name], []) == ([item.name for item in listed.operations], list(listed.missing_zones))
    made = client.get_node_pool(name=f"{PATH}/nodePools/falcon-j", **QUICK)
    assert (container_v1.NodePool.Status.RUNNING, "j") == (made.status, made.config.labels["falcon.io/job-id"])
    client.delete_node_pool(name=f"{PATH}/nodePools/falcon-j", **QUICK)
    sim.world.advance(10)
    assert "falcon-j" not in [found.name for found in client.list_node_pools(parent=PATH, **QUICK).node_pools]


def test_grpc_errors_keep_code_and_text(sim: CloudSim) -> None:
    """A refusal of the world arrives as the exception that Google's client makes of the real one."""
    with pytest.raises(exceptions.NotFound) as refused:
        gke(sim).get_node_pool(name=f"{PATH}/nodePools/none", **QUICK)

    assert f"Not found: {PATH}/nodePools/none." == refused.value.message


def test_partial_list_names_its_missing_zones(sim: CloudSim) -> None:
    """A partial list of operations says so in missing_zones."""
    sim.world.faults.add(Fault("gke.list_operations", "partial"))

    assert ["some-zone"] == list(gke(sim).list_operations(parent=LOCATION, **QUICK).missing_zones)


@pytest.mark.parametrize("credentials", [NoCredentials(), Credentials("made-up")], ids=["missing", "unknown"])
def test_grpc_refuses_who_has_no_good_token(sim: CloudSim, credentials: Any) -> None:
    """No token and a made-up token are UNAUTHENTICATED, and the world is not asked."""
    with pytest.raises(exceptions.Unauthenticated):
        gke(sim, credentials).get_cluster(name=PATH, **QUICK)

    assert [] == sim.world.calls


def test_every_door_refuses_a_stale_token(sim: CloudSim, premises: Premises) -> None:
    """A token that has ended is refused by GKE, Compute and Kubernetes."""
    old = premises.tokens.hand_out()[0]
    stale_kube = core(sim, token=old)
    premises.tokens.expire()

    with pytest.raises(exceptions.Unauthenticated):
        gke(sim, Credentials(old)).get_cluster(name=PATH, **QUICK)
    assert (401, "authError") == bare_compute(sim, {"Authorization": f"Bearer {old}"})
    with pytest.raises(kubernetes.ApiException) as refused:
        stale_kube.list_namespace(_request_timeout=5)
    assert (401, "Unauthorized") == (refused.value.status, json.loads(refused.value.body)["reason"])


def test_hung_create_ends_at_the_deadline_and_may_have_worked(sim: CloudSim) -> None:
    """A create that hangs is DeadlineExceeded for the client, and its pool is there all the same."""
    sim.world.faults.add(Fault("gke.create_node_pool", "hang", effect=True))
    client = gke(sim)

    with pytest.raises(exceptions.DeadlineExceeded):
        client.create_node_pool(parent=PATH, node_pool=pool("falcon-j"), timeout=0.5)
    assert "falcon-j" in [found.name for found in client.list_node_pools(parent=PATH, **QUICK).node_pools]


@pytest.mark.parametrize("effect", [False, True])
def test_broken_grpc_connection_is_unavailable(sim: CloudSim, effect: bool) -> None:
    """A connection that breaks is ServiceUnavailable, whether the request had arrived or not."""
    sim.wires.add(WireFault(Wire.RESET, "gke.create_node_pool", effect=effect))
    client = gke(sim)

    with pytest.raises(exceptions.ServiceUnavailable):
        client.create_node_pool(parent=PATH, node_pool=pool("falcon-j"), timeout=5)
    listed = [found.name for found in client.list_node_pools(parent=PATH, **QUICK).node_pools]
    assert effect == ("falcon-j" in listed)


# Compute over REST


def test_reservation_is_read_and_found(sim: CloudSim) -> None:
    """A reservation is read by zone and found in the aggregated list by name."""
    client = compute(sim, compute_v1.ReservationsClient)
    read = client.get(project=PROJECT, zone=ZONE, reservation="big", **QUICK).specific_reservation
    found = client.aggregated_list(request={"project": PROJECT, "filter": 'name = "big"'}, **QUICK)
    other = client.aggregated_list(request={"project": PROJECT, "filter": 'name = "none"'}, **QUICK)

    assert (4, 1, MACHINE) == (read.count, read.in_use_count, read.instance_properties.machine_type)
    assert [(f"zones/{ZONE}", ["big"])] == [
        (zone, [item.name for item in scoped.reservations]) for zone, scoped in found if scoped.reservations
    ]
    assert [] == [item.name for _, scoped in other for item in scoped.reservations]


def test_resource_policy_is_made_and_read(sim: CloudSim) -> None:
    """A workload policy that was inserted is read back."""
    client = compute(sim, compute_v1.ResourcePoliciesClient)
    workload_policy = {"type_": "HIGH_THROUGHPUT", "accelerator_topology": "2x2x2"}
    wanted = compute_v1.ResourcePolicy(name="falcon-2x2x2", workload_policy=workload_policy)
    client.insert(project=PROJECT, region="us-central1", resource_policy_resource=wanted, timeout=5)
    sim.world.advance(10)
    read = client.get(project=PROJECT, region="us-central1", resource_policy="falcon-2x2x2", **QUICK)

    assert "2x2x2" == read.workload_policy.accelerator_topology


def test_compute_errors_are_googles(sim: CloudSim) -> None:
    """An error has Google's JSON body: text, code and reason reach the exception."""
    sim.world.faults.add(
        Fault("compute.*", error=SimError("PERMISSION_DENIED", "Rate Limit Exceeded", reason="rateLimitExceeded"))
    )

    with pytest.raises(exceptions.Forbidden, match="Rate Limit Exceeded") as refused:
        compute(sim, compute_v1.ReservationsClient).get(project=PROJECT, zone=ZONE, reservation="big", **QUICK)
    assert "rateLimitExceeded" == refused.value.errors[0]["reason"]


def test_compute_refuses_who_has_no_good_token(sim: CloudSim) -> None:
    """No token and a made-up token are 401, and the world is not asked."""
    assert (401, "required") == bare_compute(sim, {})
    assert (401, "authError") == bare_compute(sim, {"Authorization": "Bearer made-up"})
    assert [] == sim.world.calls


# Kubernetes over HTTPS


@pytest.mark.parametrize("dns", [False, True], ids=["ip", "dns"])
def test_kubernetes_by_either_endpoint(sim: CloudSim, dns: bool) -> None:
    """Create, get, list by label and in pages, and delete work by IP with the cluster's CA and by name without."""
    client = core(sim, dns=dns)
    for name in ("one", "two", "three"):
        client.create_namespace(namespace(name), _request_timeout=5)
    first = client.list_namespace(label_selector="kind=test", limit=2, _request_timeout=5)
    rest = client.list_namespace(
        label_selector="kind=test", limit=2, _continue=first.metadata._continue, _request_timeout=5
    )
    uid = client.read_namespace("two", _request_timeout=5).metadata.uid
    options = kubernetes.V1DeleteOptions(preconditions={"uid": uid}, propagation_policy="Background")
    client.delete_namespace("two", body=options, _request_timeout=5)
    sim.world.advance(5)

    assert ["one", "three", "two"] == sorted(item.metadata.name for item in first.items + rest.items)
    named = client.list_namespace(field_selector="metadata.name=two", _request_timeout=5)
    assert [] == named.items


def test_kubernetes_refusal_is_a_status(sim: CloudSim) -> None:
    """What is not there is a 404 whose Status says NotFound."""
    with pytest.raises(kubernetes.ApiException) as refused:
        kubernetes.BatchV1Api(kube(sim)).read_namespaced_job("none", "default", _request_timeout=5)

    body = json.loads(refused.value.body)
    assert (404, "Status", "NotFound") == (refused.value.status, body["kind"], body["reason"])


@pytest.mark.parametrize("token", ["", "made-up"], ids=["missing", "unknown"])
def test_kubernetes_refuses_who_has_no_good_token(sim: CloudSim, token: str) -> None:
    """No token and a made-up token are 401."""
    with pytest.raises(kubernetes.ApiException) as refused:
        core(sim, token=token).list_node(_request_timeout=5)

    assert 401 == refused.value.status


def test_clusters_do_not_share_an_authority(sim: CloudSim) -> None:
    """The certificate of one cluster is not accepted by a client that trusts another's."""
    client = kube(sim, PATH)
    client.configuration.host = kube(sim, OTHER).configuration.host

    with pytest.raises(kubernetes.ApiException, match="CERTIFICATE_VERIFY_FAILED"):
        kubernetes.CoreV1Api(client).list_node(_request_timeout=5)


def test_hung_kubernetes_call_times_out(sim: CloudSim) -> None:
    """A cluster that answers nothing keeps its callers until their time-out, and another one goes on."""
    sim.world.faults.cluster_down(PATH)
    client, other = core(sim), core(sim, OTHER)

    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        client.list_node(_request_timeout=0.3)
    assert other.list_node(_request_timeout=5).items


def test_closed_cluster_refuses_connections(sim: CloudSim) -> None:
    """A cluster whose doors are closed cannot be connected to."""
    client = core(sim)
    sim.close_cluster(PATH)

    with pytest.raises(urllib3.exceptions.HTTPError, match="refused"):
        client.list_node(_request_timeout=5)


@pytest.mark.parametrize("effect", [False, True])
def test_broken_kubernetes_connection(sim: CloudSim, effect: bool) -> None:
    """A connection that breaks during a create leaves open whether it worked."""
    sim.wires.add(WireFault(Wire.RESET, "kube.create.namespaces", PATH, effect=effect))
    client = core(sim)

    with pytest.raises(urllib3.exceptions.HTTPError, match="aborted"):
        client.create_namespace(namespace("one"), _request_timeout=5)
    assert effect == bool(client.list_namespace(label_selector="kind=test", _request_timeout=5).items)


@pytest.mark.parametrize(
    ("error", "content_type", "retry_after"),
    [
        (KubeError(502, "", "", raw="<html>Bad Gateway</html>"), "text/html", None),
        (KubeError(429, "TooManyRequests", "please try again", retry_after=7), "application/json", "7"),
    ],
    ids=["html", "retry-after"],
)
def test_odd_kubernetes_answers(sim: CloudSim, error: KubeError, content_type: str, retry_after: str | None) -> None:
    """A proxy's page comes as HTML, and an overloaded server says when to come again."""
    sim.world.faults.add(Fault("kube.list.nodes", error=error))

    with pytest.raises(kubernetes.ApiException) as refused:
        core(sim).list_node(_request_timeout=5)
    headers = refused.value.headers
    assert (error.status, content_type, retry_after) == (
        refused.value.status,
        headers["Content-Type"],
        headers.get("Retry-After"),
    )


def test_trickling_answer_comes_a_byte_at_a_time(sim: CloudSim, premises: Premises) -> None:
    """P113: an answer that trickles has begun, and is far from done, when its first byte is here."""
    sim.wires.add(WireFault(Wire.TRICKLE, "kube.list.nodes"))
    host = kube(sim, dns=True).configuration.host.removeprefix("https://")
    trusting = ssl.create_default_context(cafile=str(premises.authority.path))
    connection = http.client.HTTPSConnection(host, timeout=5, context=trusting)
    token = premises.tokens.hand_out()[0]
    connection.request("GET", "/api/v1/nodes", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()

    assert (200, b"{") == (answer.status, answer.read1(100))
    answer.close()
    connection.close()
