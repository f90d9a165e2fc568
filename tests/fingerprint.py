"""
What of a world can influence its future, as one short text: two worlds with equal fingerprints have equal futures.

1. The database counts by what a pass can read of it, the clouds by what their state machines look at, the agenda by
   what will still have an effect.
2. Times count as the distance from now to where a bound of that time still decides something, else only as "there".
   Where only their order matters (submissions, turns), it is the order that counts.
3. Names drawn by chance (UIDs, pods, nodes) count by the order in which they first appear.

Left out on purpose, since nothing reads it to decide: histories (calls, effects, events, closed leases, audits, notes),
rows of terminal jobs but for their names and state, versions and resource versions (only equality within one world is
compared), texts for people, also those on a cluster's health (one that differs is written once more), Normal events,
finished operations of pools that are closed, timestamps inside Kubernetes objects but for those that say since when a
pod does not run, and the state of the random source (runs that compare fingerprints let nothing but names depend on
it). What was made stays in: cloud names in the ledger,
and those of effects that made them.
"""

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from cloudsim.gke_pools import Pool as SimPool
from cloudsim.kube import Kube
from cloudsim.values import Json
from cloudsim.world import World
from deadlines import moment, waiting_since, warnings_that_count

from falcon_rm.core.actions import Change, MarkPool, SubmitWork
from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Bounds, Job, Pool, Submission
from falcon_rm.core.pods import limits
from falcon_rm.core.scene import ACQUIRING, TERMINAL, phase_of
from falcon_rm.core.situation import FAILED_POOL
from falcon_rm.core.words import Mode, PoolState
from falcon_rm.ports import Rows

if TYPE_CHECKING:
    from world import Falcon

PLAIN = 0  # of marshal's versions: what is equal is written alike, whether or not it is one object
CREATION = frozenset({Phase.PROVISIONING, Phase.WAITING_FOR_NODE})
RELEASE = frozenset({Phase.ENDING, Phase.ABORTING})
JOB_WORDS = (
    "id", "actor", "priority", "timeout_seconds", "status", "reason", "cluster_id", "topology", "node_pool_name",
    "supply_mode", "attempt", "pool_failures", "losses", "outcome",
)  # fmt: skip
POOL_WORDS = (
    "cluster_id", "name", "job_id", "attempt", "machine_type", "topology", "hosts", "mode", "reservation", "state",
    "lease", "found",
)  # fmt: skip
POD_STEPS = frozenset({"_initialize", "_start", "_exit", "_lose_node"})
POOL_STEPS = frozenset({"_running", "_register_one", "_doomed", "_fail", "_stockout", "_drain", "_repaired"})


def fingerprint(falcon: "Falcon") -> str:
    """Return the fingerprint of a world."""
    return blake2b(marshal.dumps(facts(falcon), PLAIN), digest_size=16).hexdigest()


def facts(falcon: "Falcon") -> tuple[Any, ...]:
    """Return what a fingerprint is made of, for a person who asks why two worlds differ."""
    names = _Names()
    sim = falcon.sim
    return (
        constant(falcon.bounds),
        tuple(_database(falcon, names)),
        tuple(_kubernetes(kube, names, falcon.bounds) for kube in sim._kubes.values()),
        tuple(_google(sim, falcon, names)),
        tuple(_agenda(sim, names)),
        tuple(
            (fault.call, fault.when, fault.times and fault.times - fault.struck, fault.skip, repr(fault.error))
            for fault in sim.faults.set_up
            if fault.times is None or fault.struck < fault.times
        ),
    )


class _Names(dict[str, int]):
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


# --- the database


def _database(falcon: "Falcon", names: _Names) -> Iterator[object]:
    store = falcon.store
    rows: Rows = store.read()
    live = {job.id: job for job in rows.jobs}
    yield tuple(constant(cluster) for cluster in rows.clusters)
    yield tuple(sorted((cluster_id, zone) for cluster_id, (_, zone) in rows.health.items()))
    yield tuple(
        (job.id, str(job.status), str(job.reason), job.cluster_id, job.node_pool_name)
        for job in store.jobs.values()
        if job.status in TERMINAL
    )
    yield tuple(
        _job(job, rows, falcon.bounds, names) for job in sorted(rows.jobs, key=lambda job: (job.created_at, job.id))
    )
    yield tuple(_pool(pool, rows.now, falcon.bounds) for pool in rows.pools)
    yield tuple(
        (pool.cluster_id, pool.name, pool.job_id, pool.attempt)
        for _, pool in sorted(store.pools.items())
        if pool.state is PoolState.DELETED
    )
    starting = {job.id for job in rows.jobs if phase_of(job) is Phase.DISPATCHING}
    yield tuple(sorted(_submission(row, rows.now if row.job_id in starting else None) for row in rows.submissions))
    yield tuple(sorted((slot.cluster_id, slot.topology, slot.holder) for slot in rows.slots))
    yield tuple(_turns(store.turns.values()))
    yield tuple(_late(falcon, live))
    for failure in rows.failures:
        job, until = live[failure.job_id], failure.at + max(falcon.bounds.backoff_max, falcon.bounds.room_hold)
        counts = failure.at > (job.started_at or 0)
        yield (failure.job_id, failure.cluster_id, failure.ended, counts, _ahead(until, rows.now))
    for trouble in rows.troubles:
        if rows.now - trouble.at < falcon.bounds.cluster_pause:
            yield (trouble.cluster_id, rows.now - trouble.at)


def _job(job: Job, rows: Rows, bounds: Bounds, names: _Names) -> tuple[object, ...]:
    phase, now = phase_of(job), rows.now
    pool = next((pool for pool in rows.pools if pool.name == job.node_pool_name), None)
    times: tuple[object, ...] = (
        job.queued_at is None,
        _creation(job, pool, now) if phase in CREATION or (phase in ACQUIRING and not job.dispatched_at) else None,
        _age(job.dispatched_at, now) if phase in ACQUIRING or job.timeout_seconds else job.dispatched_at is None,
        _release(job, pool, rows) if phase in RELEASE else None,
        _ahead(job.retry_at, now) if phase is Phase.WAITING else None,
        None if job.reason_since is None else min(now - job.reason_since, bounds.room_hold),
        job.started_at is None,
    )
    words = tuple(_plain(getattr(job, name)) for name in JOB_WORDS)
    return (words, constant(job.task), None if job.job_uid is None else names[job.job_uid], times)


def _creation(job: Job, pool: Pool | None, now: float) -> object:
    """Return what the bounds of creation and of the wait for nodes count from: the latest of what has happened."""
    if pool is None or pool.seen_at is None:
        return _age(job.provisioning_at, now)
    if pool.up_at is None:
        return _age(_latest(job.provisioning_at, pool.requested_at), now)
    return _age(_latest(job.provisioning_at, pool.up_at, pool.leased_at), now)


def _release(job: Job, pool: Pool | None, rows: Rows) -> object:
    """Return what the bounds of a release count from: when its latest stage began, and when the work was stopped."""
    began = job.aborting_at if phase_of(job) is Phase.ABORTING else job.finished_at
    stopped = next((row.stop_at for row in rows.submissions if row.job_id == job.id), None)
    released = pool.idle_at if pool and pool.lease != job.id else None
    stage = _age(_latest(began, stopped, released), rows.now)
    return stage, _age(stopped, rows.now) if stopped else _age(began, rows.now)


def _latest(*times: float | None) -> float | None:
    return max((at for at in times if at is not None), default=None)


def _pool(pool: Pool, now: float, bounds: Bounds) -> tuple[object, ...]:
    decides = pool.seen_at is None or (pool.error and pool.error.kind in FAILED_POOL)
    counted = pool.mode is Mode.RESERVATION
    times = (
        pool.requested_at is None if pool.up_at is not None else _age(pool.requested_at, now),
        pool.seen_at is None,
        _within(pool.up_at, now, bounds.node_wait) if counted and pool.ready_at is None else pool.up_at is None,
        pool.leased_at is not None and pool.leased_at >= now,
        _within(pool.ready_at, now, bounds.visibility_grace) if counted else pool.ready_at is None,
        _age(pool.idle_at, now) if pool.state is PoolState.ACTIVE else None,
    )
    words = tuple(_plain(getattr(pool, name)) for name in POOL_WORDS)
    return (*words, pool.error.kind.value if decides and pool.error else None, times)


def _submission(row: Submission, now: float | None) -> tuple[object, ...]:
    """Return a submission; since when it was let go while its pods start, *now* given."""
    let_go = row.resumed_at is None if now is None or row.resumed_at is None else _age(row.resumed_at, now)
    return (row.cluster_id, row.name, row.attempt, str(let_go), str(row.error and row.error.kind))


def _plain(value: object) -> object:
    """Return a word as a plain string, whether or not it comes from an enum."""
    return str(value) if isinstance(value, str) else value


def _late(falcon: "Falcon", live: Mapping[str, Job]) -> Iterator[object]:
    """Yield the writes of clients that gave up which may still change something."""
    for at, name, given in falcon.late:
        if _may_hold(falcon, name, given, live):
            yield (round(at - falcon.store.now, 3), name, tuple(_about(argument) for argument in given))


def _may_hold(falcon: "Falcon", name: str, given: tuple[Any, ...], live: Mapping[str, Job]) -> bool:
    """Return whether the guard of a late write still holds: versions only grow, first times are written once."""
    first = given[0]
    if isinstance(first, Change | SubmitWork):
        return first.job_id in live and live[first.job_id].version == first.version
    if isinstance(first, MarkPool):
        pool = falcon.store.pools.get((first.cluster_id, first.name))
        if pool is None:
            return False
        wanted = ((first.seen, pool.seen_at), (first.up, pool.up_at), (first.ready, pool.ready_at))
        return any(asked and at is None for asked, at in wanted)
    return name not in ("record_health", "note")


def _about(argument: object) -> object:
    """Return what a late write is about."""
    if isinstance(argument, str | tuple | None):
        return argument
    words = ("job_id", "cluster_id", "topology", "name", "pool", "holder", "to_status", "to_reason")
    return tuple(str(getattr(argument, word, "")) for word in words)


def _turns(turns: Iterable[Any]) -> Iterator[object]:
    """Yield who was served in each queue, in order; who was served at one moment stands together."""
    served: dict[tuple[str, str], dict[float, list[str]]] = {}
    for turn in turns:
        served.setdefault((turn.cluster_id, turn.topology), {}).setdefault(turn.served_at, []).append(turn.actor)
    for key in sorted(served):
        yield (key, [sorted(actors) for _, actors in sorted(served[key].items())])


def _age(at: float | None, now: float) -> float | None:
    return None if at is None else round(now - at, 3)


def _ahead(until: float | None, now: float) -> float:
    return 0.0 if until is None or until <= now else round(until - now, 3)


def _within(at: float | None, now: float, bound: float) -> float | None:
    return None if at is None else min(round(now - at, 3), bound)


# --- Kubernetes


def _kubernetes(kube: Kube, names: _Names, bounds: Bounds) -> tuple[object, ...]:
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


def _object(item: Json, names: _Names) -> tuple[object, ...]:
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


def _status(status: Json, names: _Names) -> tuple[object, ...]:
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


def _node(node: Json, names: _Names) -> tuple[object, ...]:
    labels = node["metadata"]["labels"]
    return (
        names[node["metadata"]["name"]],
        labels["cloud.google.com/gke-nodepool"],
        node["status"]["conditions"][0]["status"],
        node["spec"].get("unschedulable"),
    )


def _warnings(objects: Mapping[str, Mapping[Any, Json]], names: _Names) -> Iterator[object]:
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
        yield tuple(_within(at, now, longest) for at in waiting_since(pod))
    for event in warnings_that_count(kube):
        told = (moment(event["firstTimestamp"]), moment(event["lastTimestamp"]))
        yield (event["reason"], worded(event["message"]), *(_within(at, now, longest) for at in told))


# --- Google Cloud


def _google(sim: World, falcon: "Falcon", names: _Names) -> Iterator[object]:
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


def _sim_pool(pool: SimPool, now: float, names: _Names) -> tuple[object, ...]:
    config = pool.spec.get("config", {})
    return (
        pool.path,
        pool.name,
        tuple(sorted(config.get("labels", {}).items())),
        (pool.machine_type, pool.topology, pool.hosts, pool.mode, pool.reservation),
        pool.spec.get("initialNodeCount"),
        (pool.status, pool.message, [item.get("code") for item in pool.conditions]),
        [names[node] for node in pool.nodes],
        (pool.granted, pool.waiting, pool.scaling, _ahead(pool.visible_at, now), _age(pool.idle_since, now)),
    )


# --- what falls due


def _agenda(sim: World, names: _Names) -> Iterator[object]:
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


def _argument(value: object, names: _Names, now: float) -> object:
    if isinstance(value, SimPool):
        return (value.path, value.name)
    if isinstance(value, dict):
        return names[value["metadata"]["uid"]]
    if isinstance(value, str):
        return value if " " in value or value.startswith("projects/") else names[value]
    if isinstance(value, float):
        return _age(value, now)
    if isinstance(value, int | tuple | None):
        return value
    return getattr(value, "name", type(value).__name__)
