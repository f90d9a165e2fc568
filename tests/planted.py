"""
Worlds planted as no run would leave them: rows in every state beside clouds in every state, possible together or not.

1. The clouds' part is made once and shared: who wants to change it forks it first (walk.py). The simulated cloud makes
   it by its own rules, on a clock that begins earlier; only that a pool is gone from under its pods is done by force.
2. The rows' part is written directly. Everything is about attempt 2 of job j1 in cluster c1; attempt 1 is history.
3. A world is named by the words of its tables.
"""

from collections.abc import Mapping
from copy import copy
from functools import cache
from itertools import product
from typing import Any

from attrs import frozen
from cloudsim.direct import DirectGke
from cloudsim.direct_kube import NAMESPACE, DirectKubernetes
from cloudsim.gke_pools import Doom
from cloudsim.gke_pools import Pool as SimPool
from cloudsim.tempo import Tempo
from cloudsim.workload import NEVER_ENDS, NEVER_PULLS, Workload
from history import START, Lease
from memory_store import MemoryStore
from walk import BOUNDS, STOCKOUT
from world import ZONE, Falcon, cluster

from falcon_rm.core import manifest, names
from falcon_rm.core.actions import CreatePool
from falcon_rm.core.model import Fault, Job, Pool, Slot, Submission, TaskSpec
from falcon_rm.core.shapes import Shape, shape
from falcon_rm.core.words import ErrorKind, Mode, PoolState

TOPOLOGY, MACHINE = "2x4", "ct6e-standard-4t"  # two hosts
ATTEMPT = 2
NAME = names.cloud_name("j1", ATTEMPT)
SHAPE: Shape = shape("v6e", TOPOLOGY, MACHINE)
YOUNG, OLD = 30.0, 30_000.0  # seconds since what the rows tell of: within every bound, past every bound
BEGAN = 300.0  # seconds before now that the simulated cloud begins
TEMPO = Tempo(pod_gc_seconds=(50, 50))

# --- the clouds


@frozen
class Work:
    """A Kubernetes Job to plant: what it does, how far it is, and what the rows know of it."""

    does: Workload | None = None  # None: there is no Job
    seconds: float = 0.0  # since it was submitted
    then: str = ""  # "evict", "Foreground", "Background": what is done to it last
    asked: bool = True  # there is a row of `workloads`
    uid: str = "its"  # of the row of `job`: "its" own, "none", or "another"
    error: ErrorKind | None = None  # that the submit answered
    attempt: int = ATTEMPT
    suspended: bool = False  # as it was made
    resumed: bool = True  # the row says that it was let go


ENDS = Workload(seconds=60, stop_seconds=20)
FAILS = Workload(seconds=60, exit_code=3, stop_seconds=20)

WORKS: Mapping[str, Work] = {
    "never asked": Work(asked=False, uid="none"),
    "asked": Work(uid="none"),
    "refused": Work(uid="none", error=ErrorKind.PERMANENT),
    "denied": Work(uid="none", error=ErrorKind.CLUSTER),
    "gone": Work(uid="another"),
    "made unrecorded": Work(ENDS, 0.5, uid="none", suspended=True, resumed=False),
    "made": Work(ENDS, 0.5, suspended=True, resumed=False),
    "made, refused": Work(ENDS, 0.5, error=ErrorKind.PERMANENT, suspended=True, resumed=False),
    "suspended by hand": Work(ENDS, 0.5, suspended=True),
    "let go, not marked": Work(ENDS, 0.5, resumed=False),
    "starting unrecorded": Work(ENDS, 0.5, uid="none"),
    "starting": Work(ENDS, 0.5),
    "never starts": Work(NEVER_PULLS, 5),
    "running": Work(ENDS, 10),
    "running, fails": Work(FAILS, 10),
    "running, never ends": Work(NEVER_ENDS, 10),
    "running unrecorded": Work(ENDS, 10, uid="none"),
    "another of its name": Work(ENDS, 10, uid="another"),
    "succeeded": Work(Workload(seconds=1), 10),
    "failed": Work(Workload(seconds=1, exit_code=3), 10),
    "evicted": Work(ENDS, 10, "evict"),
    "deleting": Work(ENDS, 10, "Foreground"),
    "pods left": Work(ENDS, 10, "Background"),
    "attempt 1 runs": Work(ENDS, 10, asked=False, uid="none", attempt=1),
}

POOLS = (
    "absent", "creating", "creating, fails", "creating, vanishes", "hidden", "up", "error", "with errors",
    "ready", "reconciling", "node lost", "stopping", "not ours",
)  # fmt: skip
KEEPS_NODES = frozenset({"ready", "reconciling", "node lost", "stopping", "not ours"})
"""States of a pool that a Job may have come to run on; in the others the nodes of its pods are gone."""

DOOMS: Mapping[str, Doom] = {
    "creating, fails": Doom(message=STOCKOUT, condition="GCE_STOCKOUT", seconds=60),
    "creating, vanishes": Doom(message="Quota 'TPUS' exceeded", leaves="nothing", seconds=60),
    "error": Doom(message=STOCKOUT, condition="GCE_STOCKOUT", seconds=1),
    "with errors": Doom(message=STOCKOUT, leaves="RUNNING_WITH_ERROR", nodes=1, seconds=1),
}
MADE_FOR: Mapping[str, float] = {
    "creating": 0.5, "creating, fails": 0.5, "creating, vanishes": 0.5, "up": 60.5, "error": 20, "with errors": 20,
}  # fmt: skip
"""Seconds since a pool's create was asked for."""


@cache
def clouds(mode: Mode, pool: str, work: str) -> Falcon:
    """Return a world without rows: the job's pool and Kubernetes Job in one of their states."""
    falcon, planted = Falcon(cluster("c1", default_reservation="r"), tempo=TEMPO), WORKS[work]
    falcon.sim.faults.depth = 0  # no answer of old is asked for
    shift(falcon, -BEGAN)
    falcon.sim.add_reservation("p", ZONE, "r", MACHINE, 8)
    if pool in KEEPS_NODES or planted.does:
        _make_pool(falcon, mode, 100)
    if planted.does:
        _make_work(falcon, planted, planted.does, mode)
        if pool not in KEEPS_NODES:
            falcon.sim.gke.pools._forget(_pool(falcon))
    _bring(falcon, pool, mode)
    shift(falcon, START - falcon.sim.now)
    falcon.sim.calls.clear()
    falcon.sim.effects.clear()
    return falcon


def shift(falcon: Falcon, seconds: float) -> None:
    """Move a world's clock without anything happening: what is due stays as far away as it was."""
    sim = falcon.sim
    sim.now = falcon.store.now = sim.now + seconds
    sim.agenda.due = [(at + seconds, count, act, about) for at, count, act, about in sim.agenda.due]
    for pool in sim.gke.pools.all.values():
        pool.visible_at += seconds


def _make_pool(falcon: Falcon, mode: Mode, seconds: float) -> None:
    labels = names.labels(
        instance=falcon.store.instance, cluster_id="c1", job_id="j1", attempt=ATTEMPT, exp_id="", owner=""
    )
    asked = CreatePool(
        falcon.clusters["c1"], ZONE, ledger_row(mode), "j1", labels=labels, resource_labels={}, idle_seconds=600
    )
    DirectGke(falcon.sim).create_pool(asked)
    falcon.advance(seconds)


def _pool(falcon: Falcon) -> SimPool:
    return falcon.sim.gke.pools.find(falcon.clusters["c1"].path, NAME)


def _bring(falcon: Falcon, pool: str, mode: Mode) -> None:
    """Bring the pool into its state."""
    sim, path = falcon.sim, falcon.clusters["c1"].path
    if pool in DOOMS:
        sim.gke.doom(DOOMS[pool])
    if pool in MADE_FOR:
        _make_pool(falcon, mode, MADE_FOR[pool])
    match pool:
        case "hidden":
            _make_pool(falcon, mode, 0.5)
            _pool(falcon).visible_at = sim.now + 60
            sim.after(60, sim.gke.pools.retry)  # a moment at which time stops: nothing else does when it is listed
        case "reconciling":
            sim.gke.upgrade_pool(path, NAME, 120)
        case "node lost":  # of flex-start all: it never gets a part of its nodes again
            for node in _pool(falcon).nodes[: None if mode is Mode.FLEX_START else 1]:
                sim.gke.pools.lose_node(path, node)
        case "stopping":
            sim.gke.delete_by_hand(path, NAME)
        case "not ours":
            _pool(falcon).spec["config"]["labels"] = {}


def _make_work(falcon: Falcon, planted: Work, does: Workload, mode: Mode) -> None:
    """Submit the Job and let it come as far as it should."""
    sim, name = falcon.sim, names.cloud_name("j1", planted.attempt)
    kube = sim.kube(falcon.clusters["c1"].path)
    sim.scripts_by_job_id["j1"] = does
    row = Job(
        id="j1", actor="ann", task=task(mode), status="Pending", created_at=START, attempt=planted.attempt,
        cluster_id="c1", topology=TOPOLOGY, node_pool_name=NAME,
    )  # fmt: skip
    body, service = manifest.build(
        job=row, task=task(mode), cluster=falcon.clusters["c1"], name=name, pool=NAME,
        instance=falcon.store.instance, log_path_template=BOUNDS.log_path_template,
    )  # fmt: skip
    uid = DirectKubernetes(kube).submit(body, service)
    if not planted.suspended:
        DirectKubernetes(kube).resume_work(name, uid)
    falcon.advance(planted.seconds + (70 if mode is Mode.FLEX_START else 0))  # its nodes come for the pods
    if planted.then == "evict":
        kube.pods.evict(next(iter(kube.store.objects["pods"].values())))
        falcon.advance(30)
    elif planted.then:
        kube._delete("jobs", NAMESPACE, name, {"propagationPolicy": planted.then})
        falcon.advance(0.3)


# --- the rows


@cache
def task(mode: Mode) -> TaskSpec:
    """Return the job's spec."""
    return TaskSpec(image="busybox:1.36", command="true", shape=SHAPE, mode=mode)


def ledger_row(mode: Mode, **columns: Any) -> Pool:
    """Return the ledger row of the job's pool, never asked for."""
    reservation = "projects/p/reservations/r" if mode is Mode.RESERVATION else None
    return Pool(
        "c1", NAME, "j1", ATTEMPT, "v6e", TOPOLOGY, MACHINE, SHAPE.hosts, SHAPE.chips, mode, reservation, **columns
    )


HELD: dict[str, Any] = {"held": True}  # the row names a pool, and a Job if there is one
ENDED: dict[str, Any] = {"ago": ("finished_at",), **HELD}
PHASES: Mapping[str, dict[str, Any] | None] = {
    "new": {"status": "Pending", "cluster_id": None, "topology": None, "queued_at": None},
    "waiting": {"status": "Pending", "reason": "Waiting"},
    "waiting, names a pool": {"status": "Pending", "reason": "Waiting", **HELD},
    "busy": {"status": "Pending", "reason": "ClusterBusy"},
    "provisioning": {"status": "Pending", "reason": "Provisioning", **HELD},
    "waiting for node": {"status": "Pending", "reason": "WaitingForNode", **HELD},
    "dispatching": {"status": "Pending", "reason": "Dispatching", **HELD},
    "dispatched": {"status": "Pending", "reason": "Dispatching", "ago": ("dispatched_at",), **HELD},
    "running": {"status": "Running", "ago": ("dispatched_at", "started_at"), **HELD},
    "ending well": {"status": "Running", "outcome": "Succeeded", **ENDED},
    "ending badly": {"status": "Running", "outcome": "JobFailed", **ENDED},
    "ending unsent": {"status": "Pending", "reason": "Dispatching", "outcome": "JobSubmitFailed", **ENDED},
    "ending late": {"status": "Running", "outcome": "Timeout", **ENDED},
    "ending lost": {"status": "Running", "outcome": "Lost", "ago": ("dispatched_at",), **HELD},
    "yielding": {"status": "Pending", "reason": "WaitingForNode", "outcome": "Yield", **HELD},
    "aborting": {"status": "Aborting", "ago": ("aborting_at",), **HELD},
    "aborting, holds nothing": {"status": "Aborting", "ago": ("aborting_at",), "cluster_id": None, "attempt": 0},
    "succeeded": {"status": "Succeeded", **ENDED},
    "failed": {"status": "Failed", "reason": "NodePoolFailed", **ENDED},
    "no row": None,
}

ACTIVE, DELETING, DELETED = PoolState.ACTIVE, PoolState.DELETING, PoolState.DELETED
STAGES = ("requested_at", "seen_at", "up_at", "ready_at")
LEDGERS: Mapping[str, dict[str, Any] | None] = {
    "no row": None,
    "never asked": {},
    "asked": {"stages": 1},
    "no outcome": {"stages": 1, "error": ErrorKind.UNKNOWN},
    "no capacity": {"error": ErrorKind.CAPACITY},
    "full": {"error": ErrorKind.FULL},
    "impossible": {"error": ErrorKind.PERMANENT},
    "not allowed": {"error": ErrorKind.CLUSTER},
    "seen": {"stages": 2},
    "up": {"stages": 3},
    "ready": {"stages": 4},
    "found": {"found": True},
}
Ledger = tuple[str, str, PoolState]  # how far the pool is, who holds it, the row's state
HELD_BY: tuple[Ledger, ...] = (
    ("no row", "nobody", ACTIVE),
    *product((row for row in LEDGERS if row != "no row"), ("j1", "nobody", "ghost"), (ACTIVE,)),
    *product(("asked", "ready"), ("nobody",), (DELETING, DELETED)),
)
SLOTS = ("no slot", "nobody", "j1", "ghost")


@frozen
class Plant:
    """One world of one job, by the words of its tables."""

    phase: str
    ledger: Ledger
    slot: str
    pool: str
    work: str
    mode: Mode = Mode.ON_DEMAND
    age: float = YOUNG
    spent: bool = False  # no further failure is allowed

    def __str__(self) -> str:
        row, holder, state = self.ledger
        return (
            f"job {self.phase}; ledger {row}, held by {holder}, {state}; slot: {self.slot}; pool {self.pool}; "
            f"Job {self.work}; {self.mode}, {self.age:g} s{', nothing left' if self.spent else ''}"
        )


def plant(world: Plant) -> Falcon:
    """Return a world; its clouds are shared with others."""
    base = clouds(world.mode, world.pool, world.work)
    falcon = copy(base)
    falcon.bounds = BOUNDS
    store = falcon.store = MemoryStore(now=START, instance=base.store.instance, clusters=dict(base.store.clusters))
    store.health["c1"] = (None, ZONE)
    _plant_job(store, world, base)
    _plant_pool(store, world)
    if world.slot != "no slot":
        holder = None if world.slot == "nobody" else world.slot
        store.slots["c1", TOPOLOGY] = Slot("c1", TOPOLOGY, holder, START - world.age if holder else None)
    return falcon


def _plant_job(store: MemoryStore, world: Plant, base: Falcon) -> None:
    work, ago = WORKS[world.work], START - world.age
    if work.asked:
        fault = Fault(work.error, "refused", ago) if work.error else None
        resumed_at = ago if work.does and work.resumed else None
        store.works["c1", NAME] = Submission("c1", NAME, "j1", ATTEMPT, ago, resumed_at, error=fault)
    row = PHASES[world.phase]
    if row is None:
        return
    columns: dict[str, Any] = {
        "cluster_id": "c1", "topology": TOPOLOGY, "attempt": ATTEMPT, "timeout_seconds": 3600, "queued_at": ago, **row,
    }  # fmt: skip
    columns |= dict.fromkeys(columns.pop("ago", ()), ago)
    if columns.pop("held", False):
        columns |= {"node_pool_name": NAME, "supply_mode": world.mode, "provisioning_at": ago}
        columns["job_uid"] = {"none": None, "another": "another", "its": _uid(base)}[work.uid]
    if world.spent:
        columns["pool_failures"] = BOUNDS.pool_attempts - 1
    store.jobs["j1"] = Job(id="j1", actor="ann", task=task(world.mode), created_at=ago - 10, **columns)


def _uid(base: Falcon) -> str | None:
    jobs = base.sim.kube(base.clusters["c1"].path).store.objects["jobs"].values()
    return next((str(job["metadata"]["uid"]) for job in jobs), "another")


def _plant_pool(store: MemoryStore, world: Plant) -> None:
    name, holder, state = world.ledger
    row, ago = LEDGERS[name], START - world.age
    if row is None:
        return
    columns: dict[str, Any] = {"state": state, "found": row.get("found", False)}
    columns |= dict.fromkeys(STAGES[: row.get("stages", 0)], ago)
    if "error" in row:
        columns["error"] = Fault(row["error"], "refused", ago)
    if holder != "nobody":
        columns |= {"lease": holder, "leased_at": ago}
        store.leases.append(Lease("c1", NAME, holder, ATTEMPT, "ann", "", "", world.mode, None, from_at=ago))
    else:
        columns["idle_at"] = ago
    store.pools["c1", NAME] = ledger_row(world.mode, **columns)
