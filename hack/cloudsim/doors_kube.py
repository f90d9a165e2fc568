"""
The Kubernetes door of one cluster: its API server, over TLS.

1. The bearer token is Google's, on either endpoint; a missing, unknown or stale one is 401.
2. Refusals are Status objects, as the real server sends them; what the world calls raw is sent as it is.
3. `dryRun`, `fieldValidation`, `fieldManager` and `pretty` are accepted and change nothing.
"""

import ssl

from attrs import evolve, frozen

from cloudsim.doors_faults import WireFaults
from cloudsim.doors_http import Answer, HttpDoor, Request, json_answer
from cloudsim.errors import KubeError
from cloudsim.iam import CONNECT, required
from cloudsim.kube_select import check_version
from cloudsim.kube_tables import AS_TABLE, table
from cloudsim.metadata import Tokens
from cloudsim.values import Json
from cloudsim.world import SimCluster, World

GROUPS = {  # group version -> its kinds, and whether they live in a namespace
    ("api", "v1"): {
        "namespaces": False,
        "nodes": False,
        "serviceaccounts": True,
        "services": True,
        "pods": True,
        "events": True,
    },
    ("apis", "batch", "v1"): {"jobs": True},
}
REVIEWS = ("apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews")
NOT_FOUND = "the server could not find the requested resource"
NO_PAGE = "404 page not found\n"


@frozen
class Resource:
    """What a path names: a collection, or one object of it."""

    kind: str
    namespace: str | None
    name: str | None

    @property
    def target(self) -> str:
        """What a call is about, as `kube.py` writes it behind the cluster's path."""
        return "/".join((self.namespace or "-", self.kind, *filter(None, (self.name,))))


class KubeDoor:
    """The running server; the system chooses its `port`."""

    def __init__(
        self,
        world: World,
        cluster: SimCluster,
        tls: ssl.SSLContext,
        tokens: Tokens,
        wires: WireFaults,
        *,
        by_name: bool = False,
    ) -> None:
        """Listen at once; *by_name*: as the DNS endpoint, where IAM is asked first."""
        self._world = world
        self._cluster = cluster
        self._tokens = tokens
        self._wires = wires
        self._by_name = by_name
        self._door = HttpDoor(self._handle, tls)
        self.port = self._door.port

    def stop(self) -> None:
        """Close the port and every connection."""
        self._door.stop()

    def _handle(self, request: Request) -> Answer:
        if self._tokens.refusal(request.headers.get("authorization")) is not None:
            return error_answer(KubeError(401, "Unauthorized", "Unauthorized"))
        granted = self._world.permissions
        if self._by_name and granted is not None and CONNECT not in granted:
            text = required(CONNECT, self._cluster.path)
            return json_answer(403, {"error": {"code": 403, "message": text, "status": "PERMISSION_DENIED"}})
        if request.path == ("version",):
            return json_answer(200, {"major": "1", "minor": "35", "gitVersion": f"v{self._cluster.version}"})
        try:
            if (request.method, *request.path) == ("POST", *REVIEWS):
                return json_answer(201, self._review(request))
            return self._answer(request, resource_of(request.path))
        except KubeError as error:
            return error_answer(error)

    def _answer(self, request: Request, resource: Resource) -> Answer:
        verb = verb_of(request, resource)
        wire = self._wires.take(f"kube.{verb}.{resource.kind}", f"{self._cluster.path}/{resource.target}")
        if wire is not None and wire.lost:
            return Answer(200, b"", wire=wire)
        status = 201 if verb == "create" else 200
        return evolve(json_answer(status, self._act(verb, request, resource)), wire=wire)

    def _review(self, request: Request) -> Json:
        """Answer what the caller may do: everything that was not denied."""
        review = body_of(request)
        asked = review["spec"]["resourceAttributes"]
        target = f"{self._cluster.path}/{asked.get('namespace', '-')}/{asked['resource']}"
        fine = (asked["verb"], asked["resource"]) not in self._cluster.denied
        allowed = self._world.call("kube.create.selfsubjectaccessreviews", target, lambda: fine)
        return {**review, "status": {"allowed": allowed}}

    def _act(self, verb: str, request: Request, resource: Resource) -> Json:
        kube = self._world.kube(self._cluster.path)
        kind, namespace, name = resource.kind, resource.namespace, resource.name or ""
        if verb == "create":
            return kube.create(kind, namespace, body_of(request))
        if verb == "get":
            return kube.get(kind, namespace, name)
        if verb == "patch":
            return kube.patch(kind, namespace, name, body_of(request))
        if verb == "delete":
            return kube.delete(kind, namespace, name, {**options_of(request), **body_of(request)})
        check_version(request.query.get("resourceVersion", ""), kube.store.version)
        found = kube.list(
            kind,
            namespace,
            label_selector=request.query.get("labelSelector", ""),
            field_selector=request.query.get("fieldSelector", ""),
            limit=limit_of(request),
            continue_=request.query.get("continue") or None,
        )
        return shown(request, kind, found, self._world.now)


def resource_of(path: tuple[str, ...]) -> Resource:
    """Return what a path names."""
    for group, kinds in GROUPS.items():
        if path[: len(group)] != group:
            continue
        match path[len(group) :]:
            case ("namespaces", namespace, kind, *name) if kinds.get(kind) and len(name) <= 1:
                return Resource(kind, namespace, name[0] if name else None)
            case (kind, *name) if kind in kinds and len(name) <= (not kinds[kind]):
                return Resource(kind, None, name[0] if name else None)
        raise KubeError(404, "NotFound", NOT_FOUND, details={})
    raise KubeError(404, "", NOT_FOUND, raw=NO_PAGE)


def verb_of(request: Request, resource: Resource) -> str:
    """Return the verb: create and list belong to a collection, the others to an object."""
    of_object = {"GET": "get", "PATCH": "patch", "DELETE": "delete"}
    verbs = {"POST": "create", "GET": "list"} if resource.name is None else of_object
    if request.method not in verbs or (request.query.get("watch") in ("1", "true") and request.method == "GET"):
        raise KubeError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    return verbs[request.method]


def body_of(request: Request) -> Json:
    """Return a request's JSON body."""
    try:
        return request.json()
    except ValueError as error:
        message = f"couldn't get version/kind; json parse error: {error}"
        raise KubeError(400, "BadRequest", message) from error


def options_of(request: Request) -> Json:
    """Return the DeleteOptions that stand in the query instead of the body."""
    options: Json = {}
    if "propagationPolicy" in request.query:
        options["propagationPolicy"] = request.query["propagationPolicy"]
    if "gracePeriodSeconds" in request.query:
        options["gracePeriodSeconds"] = number(request.query["gracePeriodSeconds"])
    return options


def shown(request: Request, kind: str, found: Json, now: float) -> Json:
    """Return a list in the form that was asked for."""
    return table(kind, found, now) if AS_TABLE in request.headers.get("accept", "") else found


def limit_of(request: Request) -> int | None:
    """Return the size of a page; 0 and nothing are "all", and so is every list of what is at hand."""
    if request.query.get("resourceVersion") == "0":
        return None
    return number(request.query.get("limit", "") or "0") or None


def number(text: str) -> int:
    """Return a number of the query."""
    if not text.isdigit():
        raise KubeError(400, "BadRequest", f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def error_answer(error: KubeError) -> Answer:
    """Return a refusal as a Status, or the raw body it stands for."""
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.raw is not None:
        kind = "text/html" if error.raw.startswith("<") else "text/plain; charset=utf-8"
        return Answer(error.status, error.raw.encode(), kind, headers)
    return json_answer(error.status, error.body(), headers)
