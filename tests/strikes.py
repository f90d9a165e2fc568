"""
Every fault of proof.md 5 that this layer can show, by the call it can strike (striking.py lets it).

1. MySQL's error numbers come down to four things here: nothing was written, it was written and the answer is lost, it
   will be written later, somebody else was first. The clouds answer real errors, which the product's tables classify.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Answer
from world import INTERVAL

from falcon_rm.core.errors import Call as ErrorCall
from falcon_rm.core.errors import classify, classify_kubernetes
from falcon_rm.core.words import ErrorKind
from falcon_rm.ports import Store

LATER = (1.0, INTERVAL + 1, 150.0)
"""When an effect comes whose caller gave up: before the next pass, after it, and beyond the grace for visibility."""
DELAYS = frozenset[str]()
OF_STORE = frozenset(name for name in vars(Store) if not name.startswith("_"))
READS = frozenset({"read", "statuses", "pools_named"})


@frozen
class Strike:
    """One fault at one call. *verdicts*: ends it may bring about by what it says, besides the delay it costs."""

    name: str
    kind: str  # crash, down, lost, late, replayed: of the database; crash, error, hang, changed: of a cloud
    after: bool = False  # the effect happens before the answer is lost
    later: float | None = None
    error: SimError | KubeError | None = None
    change: Callable[[Any], Any] | None = None
    verdicts: frozenset[str] = DELAYS

    @property
    def ends_the_pass(self) -> bool:
        """Whether nothing of the pass comes after it."""
        return self.kind in ("crash", "down", "late")


@frozen
class Site:
    """One call of a pass."""

    number: int
    name: str
    target: str
    mutating: bool
    items: int = 0  # of the list that it answered

    @property
    def of_store(self) -> bool:
        """Whether it goes to the database."""
        return self.name in OF_STORE


# --- what can strike


def of_each_class(site: Site) -> tuple[Strike, ...]:
    """Return one fault of each class that the product can tell apart: by what the error is to it, and by its effect."""
    classes: dict[tuple[object, ...], Strike] = {}
    for strike in strikes(site):
        told = strike.kind if strike.kind in ("lost", "changed") or site.of_store else _class_of(strike, site)
        change = strike.name if strike.kind == "changed" else None
        classes.setdefault((told, strike.ends_the_pass, strike.after, strike.later, change), strike)
    return tuple(classes.values())


def _class_of(strike: Strike, site: Site) -> object:
    """Return what a fault of a cloud is to the product."""
    error = strike.error
    if strike.kind == "crash":
        return "crash"
    if not site.mutating and not site.name.startswith(("kube.get", "compute.get_resource_policy")):
        return "unread"
    if isinstance(error, SimError):
        return classify(call=CALL[site.name], code=error.code, text=error.message)
    if isinstance(error, KubeError):
        call, text = CALL[site.name], error.message if error.raw is None else error.raw
        return classify_kubernetes(call=call, status=error.status, reason=error.reason, text=text)
    return ErrorKind.UNKNOWN


def strikes(site: Site) -> tuple[Strike, ...]:
    """Return every fault that can strike a call."""
    if site.of_store:
        return STORE_WRITE if site.mutating else STORE_READ
    if site.mutating:
        return CLOUD_WRITE + HANGS + refusals(site.name)
    return CLOUD_READ + READ_ERRORS[site.name.startswith("kube.")] + lists(site)


CRASHES = (Strike("crash before", "crash"), Strike("crash after", "crash", after=True))
STORE_READ = (Strike("crash", "crash"), Strike("down", "down"))
STORE_WRITE = (
    *CRASHES,
    Strike("down before effect", "down"),
    Strike("down after effect", "down", after=True),
    Strike("somebody was first", "lost"),
    *(Strike(f"down, effect {later:g} s later", "late", later=later) for later in LATER[:2]),
)
CLOUD_READ = (Strike("crash", "crash"), Strike("hang", "hang"))
CLOUD_WRITE = (
    *CRASHES,
    Strike("hang without effect", "hang"),
    Strike("hang with effect", "hang", after=True),
)
HANGS = tuple(Strike(f"hang, effect {later:g} s later", "hang", later=later) for later in LATER)


def google(code: str, text: str, *verdicts: str, after: bool = False) -> Strike:
    """Return an error of GKE or Compute."""
    name = f"{code}: {text[:40]}{' after effect' if after else ''}"
    return Strike(name, "error", after=after, error=SimError(code, text), verdicts=frozenset(verdicts))


def kubernetes(status: int, reason: str, text: str, *verdicts: str, after: bool = False) -> Strike:
    """Return an error of Kubernetes."""
    name = f"{status} {reason}: {text[:40]}{' after effect' if after else ''}"
    return Strike(name, "error", after=after, error=KubeError(status, reason, text), verdicts=frozenset(verdicts))


TRIES = "Failed/NodePoolFailed"
UNCLEAR = (
    google("UNAVAILABLE", "try again"),
    google("UNAVAILABLE", "try again", after=True),
    google("INTERNAL", "internal error", after=True),
)
DENIED = google("PERMISSION_DENIED", 'Required "container.clusters.update" permission(s) for "projects/p".')
BUSY = (
    google("RESOURCE_EXHAUSTED", "Too many operations: concurrent operations quota 5, please try again later."),
    google("FAILED_PRECONDITION", "Cluster is running incompatible operation operation-1."),
    google("UNAUTHENTICATED", "Request had invalid authentication credentials."),
)
NO_REASON = "<html><body>Bad Gateway</body></html>"
UNCLEAR_KUBERNETES = (
    kubernetes(500, "InternalError", "etcdserver: request timed out"),
    kubernetes(500, "InternalError", "etcdserver: request timed out", after=True),
    Strike("502 HTML", "error", error=KubeError(502, "", "", raw=NO_REASON)),
    kubernetes(429, "TooManyRequests", "too many requests"),
    kubernetes(401, "Unauthorized", "Unauthorized"),
)
WEBHOOK = 'admission webhook "policy.example.com" denied the request: no'
RIGHTS = 'jobs.batch is forbidden: User "u" cannot create resource "jobs" in API group "batch"'
SUBMIT = (
    *UNCLEAR_KUBERNETES,
    kubernetes(403, "Forbidden", 'User "system:anonymous" cannot create resource "jobs"'),
    kubernetes(403, "Forbidden", RIGHTS),
    kubernetes(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q', "Failed/JobSubmitFailed"),
    kubernetes(400, "BadRequest", WEBHOOK, "Failed/JobSubmitFailed"),
    kubernetes(409, "AlreadyExists", 'jobs.batch "x" already exists', after=True),
    kubernetes(409, "AlreadyExists", 'object is being deleted: jobs.batch "x" already exists'),
    kubernetes(422, "Invalid", "spec: Invalid value", "Failed/JobSubmitFailed"),
)
RESUME = (
    *UNCLEAR_KUBERNETES,
    kubernetes(403, "Forbidden", RIGHTS.replace("create", "patch")),
    kubernetes(400, "BadRequest", WEBHOOK, "Failed/JobSubmitFailed"),
    kubernetes(404, "NotFound", "not found"),
    kubernetes(422, "Invalid", "metadata.uid: Invalid value: field is immutable"),
)
REFUSALS: Mapping[str, tuple[Strike, ...]] = {
    "gke.create_node_pool": (
        *UNCLEAR,
        *BUSY,
        DENIED,
        google("ALREADY_EXISTS", "Already exists: pool.", after=True),
        google("NOT_FOUND", "Not found: projects/p/locations/l/clusters/c1."),
        google("NOT_FOUND", "Not found: projects/p/locations/l/clusters/c1/nodePools/x.", after=True),
        google("RESOURCE_EXHAUSTED", "Reservation does not have enough resources for the request"),
        google("RESOURCE_EXHAUSTED", "GCE_STOCKOUT: no machines", TRIES),
        google("PERMISSION_DENIED", 'Insufficient regional quota to satisfy request: resource "X"', TRIES),
        google("INVALID_ARGUMENT", "unsupported TPU configuration", TRIES),
    ),
    "gke.delete_node_pool": (*UNCLEAR, *BUSY, DENIED, google("NOT_FOUND", "Not found: pool.", after=True)),
    "compute.insert_resource_policy": (
        *UNCLEAR,
        DENIED,
        google("ALREADY_EXISTS", "already exists", after=True),
        google("INVALID_ARGUMENT", "unsupported TPU configuration", TRIES),
    ),
    "kube.create.jobs": SUBMIT,
    "kube.create.services": SUBMIT,
    "kube.create.namespaces": SUBMIT,
    "kube.create.serviceaccounts": SUBMIT,
    "kube.patch.jobs": RESUME,
    "kube.delete.jobs": (
        *UNCLEAR_KUBERNETES,
        kubernetes(403, "Forbidden", RIGHTS),
        kubernetes(404, "NotFound", "not found", after=True),
        kubernetes(409, "Conflict", "the UID in the precondition does not match"),
    ),
}
"""Call -> the errors it can answer, each with its required reaction in proof.md 5."""


CALL: Mapping[str, ErrorCall] = defaultdict(
    lambda: "read",
    {
        "gke.create_node_pool": "create",
        "gke.delete_node_pool": "delete",
        "compute.insert_resource_policy": "create",
        "kube.patch.jobs": "submit",
        "kube.delete.jobs": "delete",
        **dict.fromkeys((name for name in REFUSALS if name.startswith("kube.create")), "submit"),
    },
)
"""What a call is to the product's tables of errors."""


def refusals(name: str) -> tuple[Strike, ...]:
    """Return the errors that a call which changes something can answer."""
    return REFUSALS[name]


READ_ERRORS = {
    False: (google("UNAVAILABLE", "try again"), DENIED, google("NOT_FOUND", "Not found: projects/p/x/clusters/c1.")),
    True: (
        kubernetes(500, "InternalError", "etcdserver: request timed out"),
        kubernetes(401, "Unauthorized", "Unauthorized"),
        kubernetes(403, "Forbidden", 'jobs.batch is forbidden: User "u" cannot list resource "jobs"'),
        kubernetes(410, "Expired", "too old resource version"),
        Strike("404 of a proxy", "error", error=KubeError(404, "", "", raw="<html>404</html>")),
    ),
}


def lists(site: Site) -> tuple[Strike, ...]:
    """Return what can be wrong with a list that was answered: an item twice, of a status nobody knows, a stranger's."""
    if site.name == "gke.list_operations":
        return (Strike("a zone is missing", "changed", change=without_a_zone),)
    found = []
    for index in range(site.items):
        found.append(Strike(f"item {index} twice", "changed", change=Twice(index)))
        if site.name in STATUSES:
            change = Unknown(index, site.name)
            found.append(Strike(f"item {index} of unknown status", "changed", change=change, verdicts=DELAYS))
    if site.name == "gke.list_node_pools":
        found.append(Strike("strangers", "changed", change=among_strangers))
    return tuple(found)


def items_of(answer: Any) -> list[Any] | None:
    """Return the items of a list, None of any other answer."""
    if isinstance(answer, dict):
        answer = answer.get("items")
    return answer if isinstance(answer, list) else None


def with_items(answer: Any, items: list[Any]) -> Any:
    """Return a list with other items."""
    return {**answer, "items": items} if isinstance(answer, dict) else Answer(items)


def without_a_zone(answer: Any) -> Any:
    """Return a list of operations that says a zone did not answer."""
    short = Answer(answer)
    short.missing_zones = ("some-zone",)
    return short


@frozen
class Twice:
    """A list in which an item stands twice."""

    index: int

    def __call__(self, answer: Any) -> Any:
        items = items_of(answer) or []
        return with_items(answer, [*items, *items[self.index : self.index + 1]])


@frozen
class Unknown:
    """A list in which an item has a status that nobody knows."""

    index: int
    name: str

    def __call__(self, answer: Any) -> Any:
        items = list(items_of(answer) or [])
        if self.index < len(items):
            items[self.index] = STATUSES[self.name](items[self.index])
        return with_items(answer, items)


STATUSES: Mapping[str, Callable[[Any], Any]] = {
    "gke.list_node_pools": lambda pool: {**pool, "status": "STATUS_UNSPECIFIED"},
    "kube.list.pods": lambda pod: {**pod, "status": {**pod["status"], "phase": "Unknown"}},
}


def among_strangers(answer: Any) -> Any:
    """Return a list of pools with others between ours: no label, another instance's, our prefix by chance."""
    config = {"machineType": "e2-medium"}
    found = [
        {"name": "falcon-by-chance", "status": "RUNNING", "config": config},
        {"name": "falcon-other", "status": "RUNNING", "config": {**config, "labels": {"falcon.io/instance": "other"}}},
    ]
    return with_items(answer, [found[0], *(items_of(answer) or []), found[1]])
