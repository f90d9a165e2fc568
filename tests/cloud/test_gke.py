"""Node pools as they are asked for and as they are read, in values and on the wire."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import tiny_servers
from cloudsim.premises import Premises
from google.cloud import container_v1
from google.cloud.container_v1 import NodePool
from google.protobuf.json_format import MessageToDict

from falcon_rm.cloud.credential import Credential
from falcon_rm.cloud.gke import GkeAdapter, cluster_info, live_pool, operation, pool_request
from falcon_rm.core.actions import CreatePool
from falcon_rm.core.live import ClusterInfo, LivePool, Operation
from falcon_rm.core.model import Cluster, Pool
from falcon_rm.core.words import CloudError, ErrorKind, Mode, PoolStatus

GOLDEN = Path(__file__).parent.parent / "golden" / "pool_requests.txt"

SHAPES = (  # type, topology, machine, chips a host, hosts
    ("v4", "2x2x1", "ct4p-hightpu-4t", 4, 1),
    ("v4", "2x2x2", "ct4p-hightpu-4t", 4, 2),
    ("v5e", "1x1", "ct5lp-hightpu-1t", 1, 1),
    ("v5e", "2x2", "ct5lp-hightpu-4t", 4, 1),
    ("v5e", "2x4", "ct5lp-hightpu-8t", 8, 1),
    ("v5e", "2x4", "ct5lp-hightpu-4t", 4, 2),
    ("v5p", "2x2x1", "ct5p-hightpu-4t", 4, 1),
    ("v5p", "4x4x4", "ct5p-hightpu-4t", 4, 16),
    ("v6e", "1x1", "ct6e-standard-1t", 1, 1),
    ("v6e", "2x2", "ct6e-standard-4t", 4, 1),
    ("v6e", "2x4", "ct6e-standard-8t", 8, 1),
    ("v6e", "4x4", "ct6e-standard-4t", 4, 4),
    ("v7x", "2x2x1", "tpu7x-standard-4t", 4, 1),
    ("v7x", "2x2x4", "tpu7x-standard-4t", 4, 4),
)
CASES = [(mode, *shape) for mode in Mode for shape in SHAPES]

CLUSTER = Cluster(id="c-1", name="c1", project="p", location="us-central1", tpu_type="v7x", gke_name="gke-c1")


def action(
    mode: Mode = Mode.ON_DEMAND,
    tpu_type: str = "v7x",
    topology: str = "2x2x1",
    machine: str = "tpu7x-standard-4t",
    chips: int = 4,
    hosts: int = 1,
    *,
    cluster: Cluster = CLUSTER,
    reservation: str = "R",
    idle: int = 600,
) -> CreatePool:
    """Return what a pass asks for."""
    pool = Pool(
        cluster_id=cluster.id,
        name="falcon-j1",
        job_id="j1",
        attempt=1,
        tpu_type=tpu_type,
        topology=topology,
        machine_type=machine,
        hosts=hosts,
        chips=chips * hosts,
        mode=mode,
        reservation=reservation if mode is Mode.RESERVATION else None,
    )
    return CreatePool(
        cluster=cluster,
        zone="us-central1-c",
        pool=pool,
        job_id="j1",
        labels={"falcon.io/job-id": "j1"},
        resource_labels={"falcon-io-job-id": "j1"},
        idle_seconds=idle,
        policy=f"falcon-{tpu_type}-{topology}" if tpu_type == "v7x" and hosts > 1 else None,
    )


def plain(pool: NodePool) -> dict[str, Any]:
    """Return a request as plain data."""
    data: dict[str, Any] = MessageToDict(NodePool.pb(pool), preserving_proto_field_name=True)
    return data


def test_requests_are_golden() -> None:
    """The request of every mode, type and size is the one that was reviewed (P38, P39, P40, P45)."""
    lines = [
        f"{mode} {tpu_type} {topology} {machine}: "
        + json.dumps(plain(pool_request(action(mode, tpu_type, topology, machine, chips, hosts))), sort_keys=True)
        for mode, tpu_type, topology, machine, chips, hosts in CASES
    ]
    assert GOLDEN.read_text().splitlines() == lines


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_request_has_one_zone_and_the_nodes_of_the_slice(case: tuple[Mode, str, str, str, int, int]) -> None:
    """Hosts are not multiplied by zones, and never become none (P38, P39, P45)."""
    pool, hosts = pool_request(action(*case)), case[5]
    assert ["us-central1-c"] == list(pool.locations)
    if case[0] is Mode.FLEX_START:
        assert (0, 0, hosts, 0) == (
            pool.initial_node_count,
            pool.autoscaling.min_node_count,
            pool.autoscaling.max_node_count,
            pool.autoscaling.total_max_node_count,
        )
    else:
        assert (hosts, False) == (pool.initial_node_count, "autoscaling" in pool)


@pytest.mark.parametrize("case", [case for case in CASES if case[5] == 1], ids=lambda case: "-".join(map(str, case)))
def test_single_host_has_no_placement(case: tuple[Mode, str, str, str, int, int]) -> None:
    """A single host has neither topology nor policy (P39)."""
    assert "placement_policy" not in pool_request(action(*case))


@pytest.mark.parametrize(("idle", "seconds"), [(0, 60), (60, 60), (600, 600), (86400, 86400), (999999, 86400)])
def test_consolidation_delay_is_clamped(idle: int, seconds: int) -> None:
    """GKE takes 60 s to a day."""
    config = pool_request(action(Mode.FLEX_START, idle=idle)).config
    assert seconds == config.consolidation_delay.total_seconds()


@pytest.mark.parametrize("mode", [Mode.RESERVATION, Mode.ON_DEMAND])
def test_fixed_pool_has_no_consolidation_delay(mode: Mode) -> None:
    """GKE never shrinks a fixed pool, so nothing is asked."""
    assert "consolidation_delay" not in pool_request(action(mode)).config


@pytest.mark.parametrize(
    "value", ["R", "projects/owner/reservations/R", "projects/o/reservations/R/reservationBlocks/B"]
)
def test_reservation_is_named_as_given(value: str) -> None:
    """A name and a path are both what GKE wants."""
    affinity = pool_request(action(Mode.RESERVATION, reservation=value)).config.reservation_affinity
    assert ("compute.googleapis.com/reservation-name", [value]) == (affinity.key, list(affinity.values))


def test_service_account_of_the_cluster_row() -> None:
    """A node service account is passed on, and left out if the row has none."""
    cluster = Cluster(
        id="c", name="c", project="p", location="l", tpu_type="v7x", node_service_account="a@p.iam.gserviceaccount.com"
    )
    accounts = [pool_request(action(cluster=row)).config.service_account for row in (cluster, CLUSTER)]
    assert ["a@p.iam.gserviceaccount.com", ""] == accounts


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_what_was_asked_is_read_back(case: tuple[Mode, str, str, str, int, int]) -> None:
    """A pool listed as it was asked for has our mode, hosts, machine and reservation."""
    mode, _, topology, machine, _, hosts = case
    listed: Any = pool_request(action(*case))
    listed.status = NodePool.Status.RUNNING
    expected = LivePool(
        name="falcon-j1",
        status=PoolStatus.RUNNING,
        labels={"falcon.io/job-id": "j1"},
        machine_type=machine,
        topology=topology if hosts > 1 else "",
        hosts=hosts,
        mode=mode,
        reservation="R" if mode is Mode.RESERVATION else None,
    )
    assert expected == live_pool(NodePool.pb(listed))


@pytest.mark.parametrize("word", list(PoolStatus))
def test_status_word(word: PoolStatus) -> None:
    """Every word that GKE has is known; any other reads as unknown (P23)."""
    words: Any = NodePool.Status
    number = 99 if word is PoolStatus.UNKNOWN else words[word.name]
    raw: Any = NodePool.pb(NodePool(name="n"))
    raw.status = number
    assert word == live_pool(raw).status


def test_pool_with_odd_numbers_is_unknown() -> None:
    """A negative count makes the pool unknown, not absent (P23)."""
    raw = NodePool.pb(NodePool(name="n", status=NodePool.Status.RUNNING, initial_node_count=-3))
    assert LivePool(name="n", status=PoolStatus.UNKNOWN) == live_pool(raw)


@pytest.mark.parametrize(
    "config",
    [
        {"spot": True, "reservation_affinity": {"consume_reservation_type": 1}},
        {"preemptible": True, "reservation_affinity": {"consume_reservation_type": 1}},
        {"reservation_affinity": {"consume_reservation_type": 2}},
        {},
    ],
)
def test_foreign_supply_has_no_mode(config: dict[str, Any]) -> None:
    """Spot, preemptible and "any reservation" are no mode of ours."""
    assert live_pool(NodePool.pb(NodePool(name="n", config=config))).mode is None


def test_topology_of_a_pool_made_by_its_policy_alone() -> None:
    """Where only the policy is told, its name says the topology."""
    pool = NodePool(name="n", placement_policy={"policy_name": "falcon-v7x-2x2x4"})
    assert "2x2x4" == live_pool(NodePool.pb(pool)).topology


def test_pool_errors() -> None:
    """Status message and conditions are kept with their codes."""
    pool = NodePool(
        name="n",
        status=NodePool.Status.ERROR,
        status_message="it\nbroke",
        conditions=[
            {"code": "GCE_STOCKOUT", "message": "no machines"},
            {"canonical_code": 8, "message": "none left"},
            {"message": "only words"},
        ],
    )
    expected = ("it broke", "GCE_STOCKOUT: no machines", "RESOURCE_EXHAUSTED: none left", "only words")
    assert expected == live_pool(NodePool.pb(pool)).errors


@pytest.mark.parametrize(
    ("fields", "done", "error"),
    [
        ({"status": 2}, False, None),
        ({"status": 3}, True, None),
        ({"status": 4}, False, None),
        ({"status": 3, "error": {"code": 8, "message": "GCE_STOCKOUT"}}, True, "GCE_STOCKOUT"),
        ({"status": 3, "error": {"code": 8}}, True, "error code 8"),
        ({"status": 3, "status_message": "old style"}, True, "old style"),
    ],
)
def test_operation(fields: dict[str, Any], done: bool, error: str | None) -> None:
    """DONE is not success."""
    raw = container_v1.Operation(name="o", target_link="t", start_time="2026-11-01T00:00:00Z", **fields)
    expected = Operation(name="o", target="t", done=done, started="2026-11-01T00:00:00Z", error=error)
    assert expected == operation(container_v1.Operation.pb(raw))


def test_cluster_info() -> None:
    """GetCluster tells both endpoints, the CA and the zones."""
    cluster = container_v1.Cluster(
        endpoint="10.0.0.1",
        locations=["z1", "z2"],
        master_auth={"cluster_ca_certificate": "UEVN"},
        control_plane_endpoints_config={"dns_endpoint_config": {"endpoint": "gke-1.us-central1.gke.goog"}},
    )
    expected = ClusterInfo(("z1", "z2"), "10.0.0.1", "PEM", "gke-1.us-central1.gke.goog")
    assert expected == cluster_info(container_v1.Cluster.pb(cluster))


def test_cluster_whose_address_is_switched_off() -> None:
    """An IP endpoint that is not enabled is none."""
    cluster = container_v1.Cluster(
        endpoint="10.0.0.1", control_plane_endpoints_config={"ip_endpoints_config": {"enabled": False}}
    )
    assert ClusterInfo(()) == cluster_info(container_v1.Cluster.pb(cluster))


def test_certificate_that_cannot_be_read() -> None:
    """Nonsense instead of a certificate is unknown, not a crash (P81)."""
    cluster = container_v1.Cluster(master_auth={"cluster_ca_certificate": "???"})
    with pytest.raises(CloudError) as caught:
        cluster_info(container_v1.Cluster.pb(cluster))
    assert ErrorKind.UNKNOWN == caught.value.kind


# on the wire


@pytest.fixture
def credential(premises: Premises) -> Credential:
    """The application default credential of the session's metadata server."""
    return Credential()


class Cloud:
    """A GKE that answers each method with the first of what is left, or with the last one again."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = {}

    def __call__(self, request: tiny_servers.Request) -> Any:
        left = self.answers[request.method]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def cloud() -> Cloud:
    """What GKE answers."""
    return Cloud()


@pytest.fixture
def server(cloud: Cloud, premises: Premises) -> Iterator[tiny_servers.Server]:
    """GKE's server."""
    with tiny_servers.gke(premises.authority, cloud) as running:
        yield running


@pytest.fixture
def adapter(server: tiny_servers.Server, credential: Credential) -> Iterator[GkeAdapter]:
    """GKE as Falcon sees it."""
    made = GkeAdapter(credential=credential, endpoint=server.address, read_seconds=5, write_seconds=5)
    yield made
    made.close()


def refused(code: grpc.StatusCode, text: str) -> tiny_servers.Refused:
    """Return an error for the server to answer."""
    return tiny_servers.Refused(code, text)


def test_every_request_has_a_good_token(
    adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server, premises: Premises
) -> None:
    """Each request carries a token that is good at that moment (P100)."""
    cloud.answers = {"ListNodePools": [container_v1.ListNodePoolsResponse()]}
    for _ in range(3):
        adapter.list_pools(CLUSTER)
        assert premises.tokens.refusal(server.requests[-1].authorization) is None
    assert ["projects/p/locations/us-central1/clusters/gke-c1"] * 3 == [r.body.parent for r in server.requests]


def test_refused_token_is_renewed_once(adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """A 401 renews the credential and asks once more (P100)."""
    no = refused(grpc.StatusCode.UNAUTHENTICATED, "stale")
    cloud.answers = {"ListNodePools": [no, container_v1.ListNodePoolsResponse()]}
    assert () == adapter.list_pools(CLUSTER)
    assert 2 == len(server.requests)


@pytest.mark.parametrize(("method", "kind"), [("CreateNodePool", ErrorKind.BUSY), ("ListNodePools", ErrorKind.UNKNOWN)])
def test_token_refused_for_good(
    adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server, method: str, kind: ErrorKind
) -> None:
    """Refused twice is busy for a create, unknown for a read (P100)."""
    cloud.answers = {method: [refused(grpc.StatusCode.UNAUTHENTICATED, "stale")]}
    with pytest.raises(CloudError) as caught:
        adapter.create_pool(action()) if method == "CreateNodePool" else adapter.list_pools(CLUSTER)
    assert (kind, 2) == (caught.value.kind, len(server.requests))


def test_read_that_nobody_took_is_asked_again(adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """UNAVAILABLE is asked once more, and only once."""
    no = refused(grpc.StatusCode.UNAVAILABLE, "down")
    cloud.answers = {"ListNodePools": [no, container_v1.ListNodePoolsResponse()], "GetCluster": [no]}
    assert () == adapter.list_pools(CLUSTER)
    with pytest.raises(CloudError) as caught:
        adapter.get_cluster(CLUSTER)
    assert (ErrorKind.UNKNOWN, 4) == (caught.value.kind, len(server.requests))


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED])
def test_create_and_delete_are_never_repeated(
    adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server, code: grpc.StatusCode
) -> None:
    """The outcome of a create or delete is looked at, not guessed: neither we nor the library ask again."""
    cloud.answers = {"CreateNodePool": [refused(code, "lost")], "DeleteNodePool": [refused(code, "lost")]}
    for ask in (lambda: adapter.create_pool(action()), lambda: adapter.delete_pool(CLUSTER, "falcon-j1")):
        with pytest.raises(CloudError) as caught:
            ask()  # type: ignore[no-untyped-call]
        assert ErrorKind.UNKNOWN == caught.value.kind
    assert ["CreateNodePool", "DeleteNodePool"] == [request.method for request in server.requests]


def test_create_sends_the_request(adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """What is sent is the reviewed request, to the cluster's own location."""
    cloud.answers = {"CreateNodePool": [container_v1.Operation()]}
    adapter.create_pool(action(Mode.FLEX_START))
    (request,) = server.requests
    assert CLUSTER.path == request.body.parent
    assert plain(pool_request(action(Mode.FLEX_START))) == plain(request.body.node_pool)


def test_policy_alone_where_the_topology_is_refused(
    adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server
) -> None:
    """Where GKE will not have policy and topology together, the policy is sent alone, once (P40)."""
    text = "does not support TPU topology with group placement policy and workload policy at the same time"
    no = refused(grpc.StatusCode.INVALID_ARGUMENT, text)
    cloud.answers = {"CreateNodePool": [no, container_v1.Operation()]}
    adapter.create_pool(action(topology="2x2x4", hosts=4))
    sent = [request.body.node_pool.placement_policy for request in server.requests]
    assert [("falcon-v7x-2x2x4", "2x2x4"), ("falcon-v7x-2x2x4", "")] == [(p.policy_name, p.tpu_topology) for p in sent]


def test_policy_refused_both_ways(adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """Refused in both wordings is refused."""
    no = refused(grpc.StatusCode.INVALID_ARGUMENT, "bad TPU topology or workload policy")
    cloud.answers = {"CreateNodePool": [no]}
    with pytest.raises(CloudError) as caught:
        adapter.create_pool(action(topology="2x2x4", hosts=4))
    assert (ErrorKind.PERMANENT, 2) == (caught.value.kind, len(server.requests))


def test_upgrades_where_the_cluster_insists(adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """On a release channel upgrades cannot be off: then they are on."""
    no = refused(grpc.StatusCode.INVALID_ARGUMENT, "Auto_upgrade cannot be false when release_channel REGULAR is set.")
    cloud.answers = {"CreateNodePool": [no, container_v1.Operation()]}
    adapter.create_pool(action())
    assert [False, True] == [request.body.node_pool.management.auto_upgrade for request in server.requests]


def test_unknown_outcome_is_not_reworded(adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """Another wording is tried only after a refusal."""
    cloud.answers = {"CreateNodePool": [refused(grpc.StatusCode.INTERNAL, "topology policy auto_upgrade")]}
    with pytest.raises(CloudError):
        adapter.create_pool(action(topology="2x2x4", hosts=4))
    assert 1 == len(server.requests)


def test_delete_of_what_is_gone(adapter: GkeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """A pool that is gone is deleted."""
    path = f"{CLUSTER.path}/nodePools/falcon-j1"
    cloud.answers = {"DeleteNodePool": [refused(grpc.StatusCode.NOT_FOUND, f"Not found: {path}.")]}
    adapter.delete_pool(CLUSTER, "falcon-j1")
    assert [path] == [request.body.name for request in server.requests]


def test_delete_while_busy(adapter: GkeAdapter, cloud: Cloud) -> None:
    """A cluster that is busy is asked again next pass (P21)."""
    text = "Operation operation-1 is currently upgrading cluster c1. Please wait and try again once it is done."
    cloud.answers = {"DeleteNodePool": [refused(grpc.StatusCode.FAILED_PRECONDITION, text)]}
    with pytest.raises(CloudError) as caught:
        adapter.delete_pool(CLUSTER, "falcon-j1")
    assert (ErrorKind.BUSY, text) == (caught.value.kind, caught.value.text)


def test_pools_are_listed_with_words_nobody_knows(adapter: GkeAdapter, cloud: Cloud) -> None:
    """One strange pool is unknown, the others are as they are (P23)."""
    answer: Any = container_v1.ListNodePoolsResponse(node_pools=[{"name": "a", "status": 2}, {"name": "b"}])
    type(answer).pb(answer).node_pools[1].status = 99
    cloud.answers = {"ListNodePools": [answer]}
    statuses = {pool.name: pool.status for pool in adapter.list_pools(CLUSTER)}
    assert {"a": PoolStatus.RUNNING, "b": PoolStatus.UNKNOWN} == statuses


@pytest.mark.parametrize("names", [("a", ""), ("a", "a")])
def test_pool_list_with_impossible_names(adapter: GkeAdapter, cloud: Cloud, names: tuple[str, ...]) -> None:
    """A list with an empty or double name says nothing (P81)."""
    pools = [{"name": name, "initial_node_count": -1} for name in names]
    cloud.answers = {"ListNodePools": [container_v1.ListNodePoolsResponse(node_pools=pools)]}
    with pytest.raises(CloudError) as caught:
        adapter.list_pools(CLUSTER)
    assert ErrorKind.UNKNOWN == caught.value.kind


def test_operations_are_the_creates(adapter: GkeAdapter, cloud: Cloud) -> None:
    """Only creates of node pools are told."""
    entries = [{"name": "a", "operation_type": 7, "status": 3}, {"name": "b", "operation_type": 8, "status": 3}]
    cloud.answers = {"ListOperations": [container_v1.ListOperationsResponse(operations=entries)]}
    assert (Operation(name="a", target="", done=True),) == adapter.list_operations("p", "us-central1")


def test_operations_with_a_zone_missing(adapter: GkeAdapter, cloud: Cloud) -> None:
    """A partial answer is unknown."""
    cloud.answers = {"ListOperations": [container_v1.ListOperationsResponse(missing_zones=["us-central1-c"])]}
    with pytest.raises(CloudError) as caught:
        adapter.list_operations("p", "us-central1")
    assert ErrorKind.UNKNOWN == caught.value.kind


def test_silent_server(premises: Premises, credential: Credential) -> None:
    """A call that is never answered ends at its deadline (P101)."""
    release = threading.Event()
    with tiny_servers.gke(premises.authority, lambda request: release.wait(10)) as silent:
        adapter = GkeAdapter(credential=credential, endpoint=silent.address, read_seconds=0.5, write_seconds=0.5)
        with pytest.raises(CloudError) as caught:
            adapter.list_pools(CLUSTER)
        release.set()
        adapter.close()
    assert (ErrorKind.UNKNOWN, 1) == (caught.value.kind, len(silent.requests))
