"""The error tables, a row a test, and the way from the libraries' exceptions to them."""

import json
from typing import Any

import google.api_core.exceptions
import google.auth.exceptions
import grpc
import pytest
import requests
import urllib3
from kubernetes.client import V1Container
from kubernetes.client.exceptions import ApiException
from pydantic import ValidationError

from falcon_rm.cloud.errors import TEXT_LIMIT, Expired, Unauthenticated, Unavailable, translate, translating
from falcon_rm.core.errors import GOOGLE, KUBERNETES, Call, classify, classify_kubernetes, deciding
from falcon_rm.core.words import CloudError, ErrorKind

google_errors: Any = google.api_core.exceptions
auth_errors: Any = google.auth.exceptions

BUSY, FULL, CAPACITY, QUOTA = ErrorKind.BUSY, ErrorKind.FULL, ErrorKind.CAPACITY, ErrorKind.QUOTA
CLUSTER, PERMANENT = ErrorKind.CLUSTER, ErrorKind.PERMANENT
EXISTS, GONE, UNKNOWN = ErrorKind.EXISTS, ErrorKind.GONE, ErrorKind.UNKNOWN

BAD, LATER, DENIED = "INVALID_ARGUMENT", "FAILED_PRECONDITION", "PERMISSION_DENIED"
EXHAUSTED, NOT_FOUND = "RESOURCE_EXHAUSTED", "NOT_FOUND"

IGM = "Google Compute Engine: Not all instances running in IGM after 35m11s. Expected 1, running 0, transitioning 1. "

GOOGLE_TEXTS: tuple[tuple[Call, str, str, ErrorKind], ...] = (
    (
        "create",
        EXHAUSTED,
        'Too many operations: cluster "c1" hits the concurrent operations quota 5, please try again later.',
        BUSY,
    ),
    (
        "create",
        LATER,
        "Operation operation-1 is currently creating a node pool for cluster c1. "
        "Please wait and try again once it is done.",
        BUSY,
    ),
    (
        "delete",
        LATER,
        "Operation operation-1 is currently deleting a node pool for cluster c1. "
        "Please wait and try again once it is done.",
        BUSY,
    ),
    (
        "create",
        LATER,
        "Operation operation-1 is currently upgrading cluster c1. Please wait and try again once it is done.",
        BUSY,
    ),
    (
        "create",
        LATER,
        "Operation operation-1 is currently repairing cluster c1. Please wait and try again once it is done.",
        BUSY,
    ),
    ("delete", LATER, "Cluster is running incompatible operation operation-1.", BUSY),
    (
        "create",
        LATER,
        "Cluster is currently being created, deleted, updated or repaired and cannot be updated.",
        BUSY,
    ),
    ("create", LATER, "CLUSTER_ALREADY_HAS_OPERATION", BUSY),
    ("create", DENIED, "Rate Limit Exceeded", BUSY),
    ("read", DENIED, "Rate Limit Exceeded", BUSY),
    ("create", EXHAUSTED, "too fast (rateLimitExceeded)", BUSY),
    ("create", EXHAUSTED, "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", BUSY),
    (
        "read",
        EXHAUSTED,
        "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute' of service "
        "'container.googleapis.com' for consumer 'project_number:1'.",
        BUSY,
    ),
    ("create", "UNAUTHENTICATED", "Request had invalid authentication credentials.", BUSY),
    ("delete", "UNAUTHENTICATED", "Request had invalid authentication credentials.", BUSY),
    ("read", "UNAUTHENTICATED", "Request had invalid authentication credentials.", UNKNOWN),
    (
        "create",
        DENIED,
        "Insufficient regional quota to satisfy request: resource \"CPUS\": request requires '72.0' and is short "
        "'48.0'. project has a quota of '24.0' with '24.0' available.",
        QUOTA,
    ),
    (
        "operation",
        "",
        "Insufficient quota to satisfy the request: Not all instances running in IGM after 43.56s. Expected 1, "
        "running 0, transitioning 1. Current errors: [GCE_QUOTA_EXCEEDED]: Instance 'gke-1' creation failed: "
        "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.",
        QUOTA,
    ),
    ("operation", "", "[IP_SPACE_EXHAUSTED_WITH_DETAILS]: the subnetwork is used up", QUOTA),
    ("create", DENIED, 'The network "default" does not have available private IP space', QUOTA),
    ("create", DENIED, "Cannot find pod range with enough available IPs for nodepool", QUOTA),
    ("operation", "", "Cluster byte size limit reached", QUOTA),
    (
        "operation",
        "",
        IGM + "Current errors: [GCE_STOCKOUT]: Instance 'gke-1' creation failed: The zone 'projects/p/zones/z' does "
        "not have enough resources available to fulfill the request. Try a different zone, or try again later.",
        CAPACITY,
    ),
    ("operation", "", "Atomic resize failed with [GCE_STOCKOUT]", CAPACITY),
    (
        "operation",
        "",
        "The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request. "
        "Try a different zone, or try again later.",
        CAPACITY,
    ),
    (
        "operation",
        "",
        "Requested resource is exhausted: Zone 'us-central1-c' is not available. Please try another zone.",
        CAPACITY,
    ),
    ("operation", "", "ZONE_RESOURCE_POOL_EXHAUSTED", CAPACITY),
    ("operation", "", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: none left", CAPACITY),
    ("operation", "", "INSUFFICIENT_CAPACITY", CAPACITY),
    ("operation", "", "Zone does not currently have sufficient capacity for the requested resources", CAPACITY),
    (
        "operation",
        "",
        "TPU: the nodes (in pool falcon-j1) cannot be created now due to lack of capacity in your reservation. They "
        "will be created asynchronously once capacity is available. You can either wait for the nodes to be up, or "
        "delete the node pool and try re-creating it again later",
        FULL,
    ),
    (
        "create",
        EXHAUSTED,
        'Reservation does not have enough resources for the request: specific reservation "r" is insufficient for '
        'node pool "np4" at zone "z": required 1 and short of 1 VM count of machine type ct5p-hightpu-4t',
        FULL,
    ),
    (
        "operation",
        "",
        "CONDITION_NOT_MET: Specified reservation 'r' does not have available resources for the request.",
        FULL,
    ),
    ("operation", "", "CONDITION_NOT_MET: No available resources in specified reservations", FULL),
    (
        "operation",
        "",
        "CONDITION_NOT_MET: Reservation 'r' does not have sufficient capacity for the requested resources.",
        FULL,
    ),
    (
        "operation",
        "",
        "All automatic reservations in your project, or shared with your project, are fully consumed",
        FULL,
    ),
    ("operation", "", "Cannot use reservation r: it requires reservation to be in READY state", FULL),
    (
        "create",
        NOT_FOUND,
        'Google Compute Engine: reservation "r" not found for node pool "falcon-j1" at zone "z"',
        PERMANENT,
    ),
    ("create", NOT_FOUND, "Specified reservation(s) 'r' do(es) not exist", PERMANENT),
    ("operation", "", "Specified reservations [r] do not exist", PERMANENT),
    ("create", NOT_FOUND, "Could not find the given reservation with the following name", PERMANENT),
    ("operation", "", "Reservation 'r' is incorrect for the requested resources.", PERMANENT),
    ("operation", "", "Incompatible AggregateReservation VMFamily", PERMANENT),
    ("operation", "", "The VM must use ReservationAffinity of SPECIFIC_RESERVATION", PERMANENT),
    ("operation", "", "The reservation must exist in the same project as the instance", PERMANENT),
    ("operation", "", "This machine is only compatible with Aggregate Reservations", PERMANENT),
    ("operation", "", "Please target a reservation with workload_type = BATCH", PERMANENT),
    ("operation", "", "VM Family: CT6E is not supported for aggregate reservations", PERMANENT),
    ("operation", "", "There is no automatic reservation matching the instance in your project", PERMANENT),
    (
        "create",
        BAD,
        "TPU topology can't be specified with single-host TPU slice pool; please remove the tpu_topology",
        PERMANENT,
    ),
    (
        "operation",
        "",
        "does not support TPU topology with group placement policy and workload policy at the same time",
        PERMANENT,
    ),
    (
        "operation",
        "",
        "Creation of a managed instance group with tpu7x-standard-4t machine type with placement policy is not "
        "supported. Use workload policy instead.",
        PERMANENT,
    ),
    (
        "operation",
        "",
        "Google Compute Engine: Invalid value for field 'resource.resizeBy': '16'. Requested invalid target size '16' "
        "for a Managed Instance Group in the gang mode of size '8'",
        PERMANENT,
    ),
    ("create", BAD, "Flex start node pools require autoscaling enabled.", PERMANENT),
    ("create", BAD, "Flex start node pools require initial node count to be set to 0.", PERMANENT),
    ("create", BAD, "Flex start node pools don't support TPUs with queued provisioning.", PERMANENT),
    ("create", BAD, "Flex start is not supported for machine type ct4p-hightpu-4t.", PERMANENT),
    ("create", BAD, 'Maximum node count 0 is not a valid size of TPU pod slice with topology "2x2x4"', PERMANENT),
    ("create", BAD, "Queued_provisioning requires reservation affinity to be set to none", PERMANENT),
    ("operation", "", "CONDITION_NOT_MET: Unsupported TPU configuration", PERMANENT),
    (
        "operation",
        "",
        "CONDITION_NOT_MET: Constraint constraints/compute.requireShieldedVm violated for project p",
        PERMANENT,
    ),
    (
        "operation",
        "",
        "CONDITION_NOT_MET: Constraint constraints/compute.vmExternalIpAccess violated for project p",
        PERMANENT,
    ),
    ("create", DENIED, 'Required "container.nodePools.create" permission(s) for "projects/p".', CLUSTER),
    ("operation", "", "Google Compute Engine: Required 'compute.instances.create' permission for 'p'", CLUSTER),
    ("operation", "", "The Kubernetes Engine service account is missing required permissions", CLUSTER),
    ("operation", "", "PERMISSIONS_ERROR", CLUSTER),
    ("operation", "", "Service account a@p.iam.gserviceaccount.com does not exist", CLUSTER),
    (
        "create",
        BAD,
        'The user does not have access to service account "default". Ask a project owner to grant you the '
        "iam.serviceAccountUser role on the service account.",
        CLUSTER,
    ),
    (
        "operation",
        "",
        "Clusters/node pools cannot be created while google-compute-default-zone is specified in the project metadata",
        CLUSTER,
    ),
    (
        "create",
        DENIED,
        "Kubernetes Engine API has not been used in project p before or it is disabled (SERVICE_DISABLED)",
        CLUSTER,
    ),
    ("create", DENIED, "a text nobody knows", CLUSTER),
    ("read", DENIED, 'Required "container.clusters.get" permission(s) for "projects/p".', CLUSTER),
    ("create", "ALREADY_EXISTS", "Already exists: projects/p/locations/l/clusters/c/nodePools/n.", EXISTS),
    ("delete", NOT_FOUND, "Not found: projects/p/locations/l/clusters/c/nodePools/n.", GONE),
    ("read", NOT_FOUND, "Not found: projects/p/locations/l/clusters/c/nodePools/n.", GONE),
    ("delete", NOT_FOUND, "Not found: projects/p/locations/l/clusters/c.", GONE),
    ("create", NOT_FOUND, "Not found: projects/p/locations/l/clusters/c.", CLUSTER),
    ("read", NOT_FOUND, "Not found: projects/p/locations/l/clusters/c.", UNKNOWN),
    ("create", NOT_FOUND, "Not found: projects/p/locations/l/clusters/c/nodePools/n.", UNKNOWN),
    ("delete", LATER, "a text nobody knows", BUSY),
    ("create", BAD, "something nobody has seen", CAPACITY),
    ("operation", "", "something nobody has seen", CAPACITY),
    ("read", BAD, "something nobody has seen", UNKNOWN),
    *(
        (call, code, text, UNKNOWN)
        for call in ("create", "delete", "read")
        for code in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "ABORTED", "CANCELLED", "DATA_LOSS", "")
        for text in ("", "GCE_STOCKOUT", "quota exceeded")
    ),
)

KUBERNETES_TEXTS: tuple[tuple[Call, int, str, str, ErrorKind], ...] = (
    ("read", 401, "Unauthorized", "Unauthorized", UNKNOWN),
    ("submit", 401, "Unauthorized", "Unauthorized", BUSY),
    ("delete", 401, "", "", BUSY),
    (
        "submit",
        403,
        "Forbidden",
        'jobs.batch is forbidden: User "system:anonymous" cannot create resource "jobs" in API group "batch" in the '
        'namespace "falcon-jobs"',
        UNKNOWN,
    ),
    (
        "read",
        403,
        "Forbidden",
        'jobs.batch is forbidden: User "system:anonymous" cannot list resource "jobs" in API group "batch"',
        UNKNOWN,
    ),
    (
        "submit",
        403,
        "Forbidden",
        'jobs.batch is forbidden: User "a@p.iam.gserviceaccount.com" cannot create resource "jobs" in API group '
        '"batch" in the namespace "falcon-jobs": requires one of ["container.jobs.create"] permission(s).',
        CLUSTER,
    ),
    (
        "read",
        403,
        "Forbidden",
        'pods is forbidden: User "a" cannot list resource "pods" in API group "" in the namespace "falcon-jobs"',
        CLUSTER,
    ),
    ("read", 403, "Forbidden", "no", CLUSTER),
    ("submit", 403, "Forbidden", 'admission webhook "w" denied the request: no', PERMANENT),
    ("submit", 400, "BadRequest", 'admission webhook "w" denied the request without explanation', PERMANENT),
    (
        "submit",
        422,
        "Invalid",
        "jobs.batch \"falcon-j1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
        PERMANENT,
    ),
    ("submit", 403, "Forbidden", 'jobs.batch "falcon-j1" is forbidden: not by this plug-in', PERMANENT),
    (
        "submit",
        403,
        "Forbidden",
        'jobs.batch "falcon-j1" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: '
        "count/jobs.batch=5, limited: count/jobs.batch=5",
        QUOTA,
    ),
    (
        "submit",
        403,
        "Forbidden",
        'jobs.batch "falcon-j1" is forbidden: unable to create new content in namespace falcon-jobs because it is '
        "being terminated",
        BUSY,
    ),
    ("read", 403, "", "<html>forbidden by a proxy</html>", UNKNOWN),
    ("submit", 403, "", "<html>forbidden by a proxy</html>", UNKNOWN),
    ("read", 404, "NotFound", 'jobs.batch "falcon-j1" not found', GONE),
    ("delete", 404, "NotFound", 'jobs.batch "falcon-j1" not found', GONE),
    ("read", 404, "", "404 page not found", UNKNOWN),
    ("delete", 404, "", "<html>no such page</html>", UNKNOWN),
    ("submit", 404, "NotFound", 'namespaces "falcon-jobs" not found', UNKNOWN),
    (
        "submit",
        422,
        "Invalid",
        'Job.batch "falcon-j1" is invalid: metadata.uid: Invalid value: "a": field is immutable',
        GONE,
    ),
    ("submit", 409, "AlreadyExists", 'jobs.batch "falcon-j1" already exists', EXISTS),
    ("submit", 409, "AlreadyExists", 'object is being deleted: jobs.batch "falcon-j1" already exists', BUSY),
    (
        "delete",
        409,
        "Conflict",
        'Operation cannot be fulfilled on jobs.batch "falcon-j1": Precondition failed: UID in precondition: a, UID in '
        "object meta: b",
        GONE,
    ),
    ("delete", 409, "Conflict", "the object has been modified", BUSY),
    ("submit", 409, "Conflict", "please try again", BUSY),
    ("read", 410, "Expired", "The provided continue parameter is too old", UNKNOWN),
    ("submit", 422, "Invalid", 'Job.batch "falcon-j1" is invalid: spec.template: Required value', PERMANENT),
    ("submit", 400, "BadRequest", 'Job in version "v1" cannot be handled as a Job', PERMANENT),
    ("submit", 413, "RequestEntityTooLarge", "limit is 3145728", PERMANENT),
    ("submit", 400, "", "<html>bad request, says a proxy</html>", UNKNOWN),
    ("submit", 429, "TooManyRequests", "too many requests, please try again later", UNKNOWN),
    ("submit", 500, "InternalError", 'failed calling webhook "w": connection refused', UNKNOWN),
    ("submit", 502, "", "<html>502 Bad Gateway</html>", UNKNOWN),
    ("delete", 503, "ServiceUnavailable", "apiserver is shutting down", UNKNOWN),
    ("read", 504, "Timeout", "the server was unable to return a response in time", UNKNOWN),
    ("submit", 0, "", "SSLError", UNKNOWN),
    ("read", 418, "", "a teapot", UNKNOWN),
)


@pytest.mark.parametrize(("call", "code", "text", "kind"), GOOGLE_TEXTS)
def test_google_error(call: Call, code: str, text: str, kind: ErrorKind) -> None:
    """An error of GKE or Compute means what gke.md 3.3 says (P16, P20, P21)."""
    assert kind == classify(call=call, code=code, text=text)


GOOGLE_ORDER: tuple[tuple[Call, str, str, ErrorKind], ...] = (
    ("create", LATER, "Cluster is running incompatible operation operation-1.", BUSY),
    ("operation", "", "GCE_STOCKOUT: not a matter of quota", CAPACITY),
    ("operation", "", "does not have enough resources available to fulfill the request, quota or not", CAPACITY),
    ("operation", "", "The requested resource is exhausted; quota is left", CAPACITY),
    ("operation", "", "ZONE_RESOURCE_POOL_EXHAUSTED: not a matter of quota", CAPACITY),
    ("operation", "", "INSUFFICIENT_CAPACITY: not a matter of quota", CAPACITY),
    ("operation", "", "The zone does not currently have sufficient capacity; quota is left", CAPACITY),
    ("operation", "", "SERVICE_DISABLED: compute.googleapis.com", CLUSTER),
)
"""Texts that a later row would read otherwise."""


@pytest.mark.parametrize(("call", "code", "text", "kind"), GOOGLE_ORDER)
def test_google_rows_stand_in_order(call: Call, code: str, text: str, kind: ErrorKind) -> None:
    """Busy goes before capacity, capacity before quota, the cluster's trouble before a text nobody knows."""
    assert kind == classify(call=call, code=code, text=text)


@pytest.mark.parametrize(("call", "status", "reason", "text", "kind"), KUBERNETES_TEXTS)
def test_kubernetes_error(call: Call, status: int, reason: str, text: str, kind: ErrorKind) -> None:
    """An error of Kubernetes means what proof.md 5 says (P58, P103)."""
    assert kind == classify_kubernetes(call=call, status=status, reason=reason, text=text)


@pytest.mark.parametrize(
    ("status", "reason", "text", "kind"),
    [
        (429, "TooManyRequests", "exceeded quota of requests", UNKNOWN),
        (403, "Forbidden", 'admission webhook "w" denied the request: no permission for this image', PERMANENT),
    ],
)
def test_kubernetes_rows_stand_in_order(status: int, reason: str, text: str, kind: ErrorKind) -> None:
    """An open outcome goes before what its text says, a webhook's refusal before a missing right."""
    assert kind == classify_kubernetes(call="submit", status=status, reason=reason, text=text)


def test_every_google_row_decides() -> None:
    """No row of the table is without a text that it alone decides."""
    decided = {id(deciding(GOOGLE, call=call, code=code, text=text)) for call, code, text, _ in GOOGLE_TEXTS}
    assert [] == [row for row in GOOGLE if id(row) not in decided]


def test_every_kubernetes_row_decides() -> None:
    """The same for Kubernetes."""
    decided = {
        id(deciding(KUBERNETES, call=call, code=f"{status} {reason}", text=text))
        for call, status, reason, text, _ in KUBERNETES_TEXTS
    }
    assert [] == [row for row in KUBERNETES if id(row) not in decided]


def status_body(code: int, reason: str, message: str) -> str:
    """Return what the API server sends with an error."""
    return json.dumps({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})


def api_error(status: int, body: str) -> ApiException:
    """Return what the kubernetes client raises."""
    error = ApiException(status=status, reason="Reason")
    error.body = body
    return error


def rest_error(kind: type[Any], message: str, reason: str) -> Any:
    """Return what a REST client of Google raises: no gRPC code, reasons in a list."""
    return kind(message, errors=[{"reason": reason, "message": message}])


TRANSLATED: tuple[tuple[Call, Exception, ErrorKind, type[CloudError]], ...] = (
    ("create", google_errors.AlreadyExists("Already exists: n", errors=()), EXISTS, CloudError),
    ("create", google_errors.Aborted("try again", errors=()), UNKNOWN, CloudError),
    ("create", google_errors.FailedPrecondition("is currently upgrading cluster c"), BUSY, CloudError),
    ("create", google_errors.ServiceUnavailable("down"), UNKNOWN, Unavailable),
    ("read", google_errors.DeadlineExceeded("late"), UNKNOWN, CloudError),
    ("create", google_errors.Unauthenticated("who are you"), BUSY, Unauthenticated),
    ("read", google_errors.RetryError("gave up", cause=None), UNKNOWN, CloudError),
    ("create", rest_error(google_errors.Conflict, "The resource already exists", "alreadyExists"), EXISTS, CloudError),
    ("read", rest_error(google_errors.NotFound, "The resource 'r' was not found", "notFound"), GONE, CloudError),
    ("create", rest_error(google_errors.Forbidden, "slow down", "rateLimitExceeded"), BUSY, CloudError),
    ("read", google_errors.InternalServerError("oops"), UNKNOWN, CloudError),
    ("read", google_errors.BadGateway("<html>"), UNKNOWN, Unavailable),
    ("read", auth_errors.RefreshError("no token"), UNKNOWN, Unauthenticated),
    ("create", auth_errors.TransportError("no metadata"), BUSY, Unauthenticated),
    ("read", requests.ConnectionError("refused"), UNKNOWN, Unavailable),
    ("create", requests.ReadTimeout("late"), UNKNOWN, CloudError),
    ("read", urllib3.exceptions.ProtocolError("cut"), UNKNOWN, Unavailable),
    ("read", urllib3.exceptions.ReadTimeoutError(None, None, "late"), UNKNOWN, CloudError),  # type: ignore[arg-type]
    ("read", ConnectionResetError("reset"), UNKNOWN, Unavailable),
    ("read", json.JSONDecodeError("not JSON", "<html>", 0), UNKNOWN, CloudError),
    ("submit", api_error(403, status_body(403, "Forbidden", 'webhook "w" denied the request')), PERMANENT, CloudError),
    ("read", api_error(404, "404 page not found"), UNKNOWN, CloudError),
    ("read", api_error(404, status_body(404, "NotFound", "jobs.batch not found")), GONE, CloudError),
    ("read", api_error(410, status_body(410, "Expired", "too old")), UNKNOWN, Expired),
    ("read", api_error(401, status_body(401, "Unauthorized", "Unauthorized")), UNKNOWN, Unauthenticated),
    ("submit", api_error(502, "<html>502</html>"), UNKNOWN, Unavailable),
    ("submit", api_error(0, ""), UNKNOWN, CloudError),
    ("read", api_error(200, '["no", "Status"]'), UNKNOWN, CloudError),
)


@pytest.mark.parametrize(("call", "error", "kind", "type_"), TRANSLATED, ids=lambda value: type(value).__name__)
def test_translation(call: Call, error: Exception, kind: ErrorKind, type_: type[CloudError]) -> None:
    """Whatever a library raises becomes one kind of CloudError."""
    with pytest.raises(CloudError) as caught, translating(call):
        raise error
    assert (kind, type_) == (caught.value.kind, type(caught.value))


def test_grpc_reason_is_part_of_the_text() -> None:
    """A machine's reason beside the sentence helps to tell errors apart."""
    error = rest_error(google_errors.BadRequest, "Sorry.", "CLUSTER_ALREADY_HAS_OPERATION")
    translated = translate("create", error)
    assert (BUSY, "Sorry. (CLUSTER_ALREADY_HAS_OPERATION)") == (translated.kind, translated.text)


def test_grpc_code_stands_above_the_class() -> None:
    """Aborted is a Conflict for Python, and no "already exists"."""
    error = google_errors.Aborted("Already exists, or not", errors=())
    assert grpc.StatusCode.ABORTED == error.grpc_status_code
    assert UNKNOWN == translate("create", error).kind


def test_manifest_refused_by_the_client() -> None:
    """What the kubernetes client will not send is permanent, and the text does not quote the manifest."""
    with pytest.raises(ValidationError) as caught:
        V1Container(name="task", image=["s3cret"])  # type: ignore[arg-type]
    refusal = translate("submit", caught.value)
    assert PERMANENT == refusal.kind
    assert refusal.text.startswith("not a legal manifest: image: ")
    assert "s3cret" not in refusal.text


def test_text_is_one_bounded_line_without_tokens() -> None:
    """A text that is kept has no token, no line break and no more than its bound."""
    text = "refused\nAuthorization: Bearer ya29.abc-def\n" + '{"access_token": "xyz"} ' + "long " * 1000
    kept = translate("read", ConnectionError(text)).text
    assert len(kept.encode()) <= TEXT_LIMIT
    assert [] == [piece for piece in ("\n", "abc-def", "xyz") if piece in kept]
    assert kept.startswith("ConnectionError: refused Authorization: Bearer ***")
