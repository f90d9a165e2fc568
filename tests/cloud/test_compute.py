"""Reservations and workload policies over REST."""

from collections.abc import Iterator
from typing import Any

import google.cloud.compute_v1  # noqa: F401 - it takes seconds, which would be the first test's
import pytest
import tiny_servers
from cloudsim.premises import Premises
from tiny_servers import Answer, Request

from falcon_rm.cloud.compute import ComputeAdapter
from falcon_rm.cloud.credential import Credential
from falcon_rm.core.live import Reservation
from falcon_rm.core.words import CloudError, ErrorKind

RESERVATION = "/compute/v1/projects/p/zones/z/reservations/r"
RESERVATIONS = "/compute/v1/projects/p/aggregated/reservations"
POLICIES = "/compute/v1/projects/p/regions/us-central1/resourcePolicies"
POLICY = f"{POLICIES}/falcon-v7x-2x2x4"
GOOD_POLICY = {
    "name": "falcon-v7x-2x2x4",
    "status": "READY",
    "workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "2x2x4"},
}


class Cloud:
    """A Compute that answers each (method, path) with the first of what is left, or with the last one again."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], list[Answer]] = {}

    def __call__(self, request: Request) -> Answer:
        left = self.answers.get((request.method, request.path), [missing()])
        return left.pop(0) if len(left) > 1 else left[0]


def failure(status: int, message: str, reason: str) -> Answer:
    """Return Compute's form of an error."""
    return Answer(status, {"error": {"code": status, "message": message, "errors": [{"reason": reason}]}})


def missing() -> Answer:
    """Return a 404."""
    return failure(404, "The resource was not found", "notFound")


@pytest.fixture
def cloud() -> Cloud:
    """What Compute answers."""
    return Cloud()


@pytest.fixture
def server(cloud: Cloud, premises: Premises) -> Iterator[tiny_servers.Server]:
    """Compute's server."""
    with tiny_servers.https(premises.authority.context(), cloud) as running:
        yield running


@pytest.fixture
def adapter(server: tiny_servers.Server) -> Iterator[ComputeAdapter]:
    """Compute as Falcon sees it."""
    made = ComputeAdapter(credential=Credential(), endpoint=server.address, read_seconds=8, write_seconds=8)
    yield made
    made.close()


def specific(count: int, used: int, status: str = "READY") -> Answer:
    """Return a reservation of machines."""
    machines = {
        "count": str(count),
        "inUseCount": str(used),
        "instanceProperties": {"machineType": "tpu7x-standard-4t"},
    }
    return Answer(200, {"name": "r", "status": status, "specificReservation": machines})


def aggregate(chips: int, used: int) -> Answer:
    """Return a reservation of chips."""
    parts = {
        key: [{"accelerator": {"acceleratorCount": number}}]
        for key, number in (("reservedResources", chips), ("inUseResources", used))
    }
    return Answer(200, {"name": "r", "status": "READY", "aggregateReservation": parts})


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (specific(16, 4), Reservation("projects/p/reservations/r", True, "vm", 16, 4, "tpu7x-standard-4t")),
        (
            specific(16, 0, "CREATING"),
            Reservation("projects/p/reservations/r", False, "vm", 16, 0, "tpu7x-standard-4t"),
        ),
        (aggregate(64, 16), Reservation("projects/p/reservations/r", True, "chip", 64, 16)),
    ],
)
def test_reservation(
    adapter: ComputeAdapter, cloud: Cloud, server: tiny_servers.Server, answer: Answer, expected: Reservation
) -> None:
    """A reservation counts VMs or chips."""
    cloud.answers = {("GET", RESERVATION): [answer]}
    assert expected == adapter.get_reservation("p", "z", "r")
    assert [("GET", RESERVATION)] == server.asked


@pytest.mark.parametrize(
    "answer",
    [specific(4, 5), specific(-4, 0), specific(4, -1), aggregate(4, 8), Answer(200, {}), Answer(200, "<html>")],
)
def test_reservation_that_makes_no_sense(adapter: ComputeAdapter, cloud: Cloud, answer: Answer) -> None:
    """Numbers that cannot be are unknown, not room (P81)."""
    cloud.answers = {("GET", RESERVATION): [answer]}
    with pytest.raises(CloudError) as caught:
        adapter.get_reservation("p", "z", "r")
    assert ErrorKind.UNKNOWN == caught.value.kind


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (missing(), ErrorKind.GONE),
        (failure(403, "Required 'compute.reservations.get' permission for 'r'", "forbidden"), ErrorKind.CLUSTER),
        (failure(403, "Rate Limit Exceeded", "rateLimitExceeded"), ErrorKind.BUSY),
        (failure(500, "Internal error", "backendError"), ErrorKind.UNKNOWN),
    ],
)
def test_reservation_refused(adapter: ComputeAdapter, cloud: Cloud, answer: Answer, kind: ErrorKind) -> None:
    """A refusal keeps its meaning over REST, where the libraries know no gRPC codes."""
    cloud.answers = {("GET", RESERVATION): [answer]}
    with pytest.raises(CloudError) as caught:
        adapter.get_reservation("p", "z", "r")
    assert kind == caught.value.kind


def listing(items: dict[str, Any], **more: Any) -> Answer:
    """Return one page of an aggregated list."""
    return Answer(200, {"items": items, **more})


def test_find_reservation_over_pages(adapter: ComputeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """Every page is read; a zone without reservations is no fault."""
    empty = {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": "none"}}
    first = listing({"zones/b": {"reservations": [{"name": "r"}, {"name": "r2"}]}, "zones/c": empty}, nextPageToken="t")
    second = listing({"zones/a": {"reservations": [{"name": "r"}]}, "zones/d": {"reservations": [{"name": "other"}]}})
    cloud.answers = {("GET", RESERVATIONS): [first, second]}
    assert ("a", "b") == adapter.find_reservation("p", "r")
    assert [None, "t"] == [request.query.get("pageToken") for request in server.requests]


@pytest.mark.parametrize(
    "answer",
    [
        listing({"zones/a": {"reservations": [{"name": "r"}]}, "zones/b": {"warning": {"code": "UNREACHABLE"}}}),
        listing({"zones/a": {"reservations": [{"name": "r"}]}}, unreachables=["zones/b"]),
        listing({"zones/a": {"reservations": [{"name": "r"}]}}, warning={"code": "UNREACHABLE"}),
    ],
)
def test_find_reservation_in_a_partial_list(adapter: ComputeAdapter, cloud: Cloud, answer: Answer) -> None:
    """A zone that did not answer makes the whole answer unknown."""
    cloud.answers = {("GET", RESERVATIONS): [answer]}
    with pytest.raises(CloudError) as caught:
        adapter.find_reservation("p", "r")
    assert ErrorKind.UNKNOWN == caught.value.kind


def ensure(adapter: ComputeAdapter) -> None:
    """Ask for the policy of these tests."""
    adapter.ensure_policy(project="p", region="us-central1", name="falcon-v7x-2x2x4", topology="2x2x4")


def test_policy_is_there(adapter: ComputeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """A policy with our content is used as it is."""
    cloud.answers = {("GET", POLICY): [Answer(200, GOOD_POLICY)]}
    ensure(adapter)
    assert [("GET", POLICY)] == server.asked


def test_policy_is_made(adapter: ComputeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """A policy that is missing is made with its topology (P40)."""
    cloud.answers = {
        ("GET", POLICY): [missing(), Answer(200, GOOD_POLICY)],
        ("POST", POLICIES): [Answer(200, {"name": "op", "status": "RUNNING"})],
    }
    ensure(adapter)
    body = {key: value for key, value in GOOD_POLICY.items() if key != "status"}
    assert [None, body, None] == [request.body for request in server.requests]


def test_policy_is_being_made(adapter: ComputeAdapter, cloud: Cloud) -> None:
    """What is not there yet is asked for again next pass, not waited for (P24)."""
    cloud.answers = {("POST", POLICIES): [Answer(200, {"name": "op", "status": "RUNNING"})]}
    with pytest.raises(CloudError) as caught:
        ensure(adapter)
    assert (ErrorKind.BUSY, "policy falcon-v7x-2x2x4 is being made") == (caught.value.kind, caught.value.text)


def test_policy_made_by_somebody_else(adapter: ComputeAdapter, cloud: Cloud) -> None:
    """Another pass may be first."""
    cloud.answers = {
        ("GET", POLICY): [missing(), Answer(200, GOOD_POLICY)],
        ("POST", POLICIES): [failure(409, "The resource already exists", "alreadyExists")],
    }
    ensure(adapter)


@pytest.mark.parametrize(
    "content",
    [
        {"workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "4x4x4"}},
        {"workloadPolicy": {"type": "HIGH_AVAILABILITY", "acceleratorTopology": "2x2x4"}},
        {"groupPlacementPolicy": {"collocation": "COLLOCATED"}},
    ],
)
def test_policy_with_other_content(
    adapter: ComputeAdapter, cloud: Cloud, server: tiny_servers.Server, content: dict[str, Any]
) -> None:
    """A policy of our name with other content is named, never used, never touched (P40)."""
    cloud.answers = {("GET", POLICY): [Answer(200, {"name": "falcon-v7x-2x2x4", **content})]}
    with pytest.raises(CloudError) as caught:
        ensure(adapter)
    assert ErrorKind.PERMANENT == caught.value.kind
    assert "falcon-v7x-2x2x4" in caught.value.text
    assert [("GET", POLICY)] == server.asked


@pytest.mark.parametrize("status", ["CREATING", "DELETING"])
def test_policy_in_motion(adapter: ComputeAdapter, cloud: Cloud, status: str) -> None:
    """A policy that is coming or going is waited for."""
    cloud.answers = {("GET", POLICY): [Answer(200, {**GOOD_POLICY, "status": status})]}
    with pytest.raises(CloudError) as caught:
        ensure(adapter)
    assert ErrorKind.BUSY == caught.value.kind


def test_policy_that_cannot_be_made(adapter: ComputeAdapter, cloud: Cloud) -> None:
    """An insert that ends with an error is told by its text."""
    errors = [{"code": "QUOTA_EXCEEDED", "message": "Quota 'RESOURCE_POLICIES' exceeded."}]
    cloud.answers = {("POST", POLICIES): [Answer(200, {"name": "op", "status": "DONE", "error": {"errors": errors}})]}
    with pytest.raises(CloudError) as caught:
        ensure(adapter)
    assert (ErrorKind.QUOTA, "QUOTA_EXCEEDED: Quota 'RESOURCE_POLICIES' exceeded.") == (
        caught.value.kind,
        caught.value.text,
    )


def test_insert_is_never_repeated(adapter: ComputeAdapter, cloud: Cloud, server: tiny_servers.Server) -> None:
    """Whether an insert that failed took effect is looked at in the next pass."""
    cloud.answers = {("POST", POLICIES): [failure(503, "down", "backendError")]}
    with pytest.raises(CloudError) as caught:
        ensure(adapter)
    assert (ErrorKind.UNKNOWN, [("GET", POLICY), ("POST", POLICIES)]) == (caught.value.kind, server.asked)


def test_every_request_has_a_good_token(
    adapter: ComputeAdapter, cloud: Cloud, server: tiny_servers.Server, premises: Premises
) -> None:
    """Each request carries a token that is good at that moment (P100)."""
    cloud.answers = {("GET", RESERVATION): [specific(4, 0)]}
    for _ in range(2):
        adapter.get_reservation("p", "z", "r")
        assert premises.tokens.refusal(server.requests[-1].authorization) is None


def test_trickling_body(cloud: Cloud, server: tiny_servers.Server) -> None:
    """A body that comes byte by byte ends with the call's deadline (P113)."""
    adapter = ComputeAdapter(credential=Credential(), endpoint=server.address, read_seconds=8)
    cloud.answers = {("GET", RESERVATION): [specific(4, 0)]}
    adapter.get_reservation("p", "z", "r")  # the library's import takes its time
    hasty = ComputeAdapter(credential=Credential(), endpoint=server.address, read_seconds=1)
    cloud.answers = {("GET", RESERVATION): [Answer(200, {}, trickle=0.1)]}
    with pytest.raises(CloudError) as caught:
        hasty.get_reservation("p", "z", "r")
    assert ErrorKind.UNKNOWN == caught.value.kind
