"""
What of the simulated clouds can influence a world's future; see fingerprint.py for what counts, and how times do.

1. Names drawn by chance (UIDs, pods, nodes) count by the order in which they first appear.
2. Of what falls due only that counts which will still have an effect.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cloudsim.gke_pools import Pool as SimPool
from cloudsim.kube import Kube
from cloudsim.values import Json
from cloudsim.world import World
from deadlines import moment, waiting_since, warnings_that_count

from falcon_rm.core.model import Bounds
from falcon_rm.core.pods import limits
from falcon_rm.core.words import PoolState

if TYPE_CHECKING:
    from world import Falcon

POD_STEPS = frozenset({"_initialize", "_start", "_exit", "_lose_node"})
POOL_STEPS = frozenset({"_running", "_register_one", "_doomed", "_fail", "_stockout", "_drain", "_repaired"})


class Names(dict[str, int]):
    """Names drawn by chance -> the order in which they were first seen."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


_CONSTANTS: dict[int, tuple[object, str]] = {}


def constant(value: object) -> str:
    """Return the text of a frozen value that many worlds share; kept with it, so that its id stays its own."""
    known = _CONSTANTS.get(id(value))
    if known is None:
        known = _CONSTANTS[id(value)] = (value, repr(value))
    return known[1]


# --- times


def age(at: float | None, now: float) -> float | None:
    return None if at is None else round(now - at, 3)


def ahead(until: float | None, now: float) -> float:
    return 0.0 if until is None or until <= now else round(until - now, 3)


def within(at: float | None, now: float, bound: float) -> float | None:
    return None if at is None else min(round(now - at, 3), bound)


# --- Kubernetes


def kubernetes_facts(kube: Kube, names: Names, bounds: Bounds) -> tuple[object, ...]:
    objects, jobs, longest = kube.store.objects, kube.jobs, max(limits(bounds).values())
    return (
        kube.cluster.path,
        tuple(_object(item, names) for item in objects["jobs"].values()),
        tuple((_object(item, names), _run(kube, item)) for item in objects["pods"].values()),
        tuple(_node(item, names) for item in objects["nodes"].values()),
        tuple(_object(item, names) for item in objects["services"].values()),
        tuple(sorted(objects["namespaces"])),
        tuple(sorted(objects["serviceaccounts"])),
        tuple(_warnings(objects, names)),
        tuple(starts(kube, longest)),
        sorted(names[uid] for uid in jobs.due),
        [(names[uid], sorted(names[pod] for pod in pods)) for uid, pods in jobs.counted.items()],
        [(names[uid], sorted(done)) for uid, done in jobs.indexes.items()],
        kube.nodes.due,
        kube.pods_refused,
    )


def _object(item: Json, names: Names) -> tuple[object, ...]:
    metadata, spec, status = item["metadata"], item.get("spec", {}), item.get("status", {})
    labels = metadata.get("labels") or {}
    template = spec.get("template", {}).get("spec", spec)
    return (
        names[metadata["uid"]],
        metadata["name"] if item["kind"] != "Pod" else names[metadata["name"]],
        metadata.get("namespace"),
        sorted(value for key, value in labels.items() if key.startswith("falcon.io/") or key == "managed-by"),
        "deletionTimestamp" in metadata,
        metadata.get("finalizers"),
        [names[owner["uid"]] for owner in metadata.get("ownerReferences") or ()],
        spec.get("suspend"),
        spec.get("parallelism"),
        template.get("nodeSelector"),
        names[spec["nodeName"]] if "nodeName" in spec else None,
        _status(status, names),
    )


def _status(status: Json, names: Names) -> tuple[object, ...]:
    conditions = [
        (item["type"], item["status"], item.get("reason"), worded(item.get("message", "")))
        for item in status.get("conditions") or ()
    ]
    counts = [status.get(key) for key in ("phase", "active", "ready", "succeeded", "failed", "terminating")]
    return (
        conditions,
        counts,
        [_container(item) for item in status.get("containerStatuses", ())],
        [_container(item) for item in status.get("initContainerStatuses", ())],
        "startTime" in status,
    )


def worded(text: str) -> str:
    """Return a condition's message without the words that may hold a name drawn by chance."""
    return " ".join(word for word in text.split() if "/" not in word and "-" not in word)


def _container(status: Json) -> tuple[object, ...]:
    return tuple(
        (name, state.get("reason"), state.get("exitCode"), state.get("message"))
        for name, state in status["state"].items()
    )


def _run(kube: Kube, pod: Json) -> object:
    run = kube.pods.runs.get(pod["metadata"]["uid"])
    return run and (constant(run.workload), run.started, run.cut_off)


def _node(node: Json, names: Names) -> tuple[object, ...]:
    labels = node["metadata"]["labels"]
    return (
        names[node["metadata"]["name"]],
        labels["cloud.google.com/gke-nodepool"],
        node["status"]["conditions"][0]["status"],
        node["spec"].get("unschedulable"),
    )


def _warnings(objects: Mapping[str, Mapping[Any, Json]], names: Names) -> Iterator[object]:
    """Yield the warnings about Jobs and pods that are still there."""
    there = {item["metadata"]["uid"] for kind in ("jobs", "pods") for item in objects[kind].values()}
    for event in objects["events"].values():
        about = event["involvedObject"]["uid"]
        if event["type"] == "Warning" and about in there:
            yield (names[about], event["reason"])


def starts(kube: Kube, longest: float) -> Iterator[object]:
    """Yield since when pods do not run, and which warnings about that were told when."""
    now = kube.world.now
    for pod in kube.store.objects["pods"].values():
        yield tuple(within(at, now, longest) for at in waiting_since(pod))
    for event in warnings_that_count(kube):
        told = (moment(event["firstTimestamp"]), moment(event["lastTimestamp"]))
        yield (event["reason"], worded(event["message"]), *(within(at, now, longest) for at in told))


# --- Google Cloud


def google_facts(sim: World, falcon: "Falcon", names: Names) -> Iterator[object]:
    now, gke, compute = sim.now, sim.gke, sim.compute
    yield tuple(_sim_pool(pool, now, names) for pool in gke.pools.all.values())
    open_names = {pool.name for pool in falcon.store.pools.values() if pool.state is not PoolState.DELETED}
    yield tuple(
        (item.kind, item.target, item.ended is None, item.error)
        for item in gke.operations.values()
        if item.ended is None or (item.kind == "CREATE_NODE_POOL" and item.target.rsplit("/", 1)[-1] in open_names)
    )
    yield tuple((constant(doom), times) for doom, times in gke.dooms)
    yield tuple(gke.pools.supply.capacities.items())
    yield tuple((key, constant(quota)) for key, quota in gke.pools.supply.quotas.items())
    yield tuple(
        (key, record.count, record.others, record.pools, record.shown, record.status)
        for key, record in compute.reservations.items()
    )
    yield tuple(compute.policies)
    yield tuple((cluster.path, cluster.gone, cluster.upgrading_until) for cluster in sim.clusters.values())
    made = (call.target for call in sim.effects if call.name in ("gke.create_node_pool", "kube.create.jobs"))
    yield tuple(sorted(made))


def _sim_pool(pool: SimPool, now: float, names: Names) -> tuple[object, ...]:
    config = pool.spec.get("config", {})
    return (
        pool.path,
        pool.name,
        tuple(sorted(config.get("labels", {}).items())),
        (pool.machine_type, pool.topology, pool.hosts, pool.mode, pool.reservation),
        pool.spec.get("initialNodeCount"),
        (pool.status, pool.message, [item.get("code") for item in pool.conditions]),
        [names[node] for node in pool.nodes],
        (pool.granted, pool.waiting, pool.scaling, ahead(pool.visible_at, now), age(pool.idle_since, now)),
    )


# --- what falls due


def agenda_facts(sim: World, names: Names) -> Iterator[object]:
    for at, _, act, arguments in sorted(sim.agenda.due, key=lambda item: item[:2]):
        owner = getattr(act, "__self__", None)
        if not _is_spent(act, owner, arguments):
            kube = getattr(owner, "kube", owner)
            where = kube.cluster.path if isinstance(kube, Kube) else None
            counted = (arguments[0], *arguments[2:]) if act.__name__ in POD_STEPS else arguments
            given = tuple(_argument(argument, names, sim.now) for argument in counted)
            yield (round(at - sim.now, 3), act.__qualname__, where, given)


def _is_spent(act: Callable[..., None], owner: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether something due will do nothing: what it is about is gone, or has other plans."""
    name = act.__name__
    if name in POD_STEPS:
        run = owner.runs.get(arguments[0]["metadata"]["uid"])
        return run is None or run.plan != arguments[1]
    if name in POOL_STEPS:
        pool = arguments[0]
        return bool(pool.gone or (name == "_stockout" and not pool.waiting))
    if name in ("_look_idle", "_expire"):
        return bool(arguments[0].gone or arguments[0].scaled_at != arguments[1])
    return False


def _argument(value: object, names: Names, now: float) -> object:
    if isinstance(value, SimPool):
        return (value.path, value.name)
    if isinstance(value, dict):
        return names[value["metadata"]["uid"]]
    if isinstance(value, str):
        return value if " " in value or value.startswith("projects/") else names[value]
    if isinstance(value, float):
        return age(value, now)
    if isinstance(value, int | tuple | None):
        return value
    return getattr(value, "name", type(value).__name__)
