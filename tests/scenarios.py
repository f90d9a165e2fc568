"""
The lives that the proof starts from: what contract.md, design.md 2, and proof.md 5 and 6 say can happen to a job.

1. A scenario is a world, what people and clouds do to it on the way, and the ends it may have: undisturbed, or with
   whatever faults that only delay. An act is done once, after the first pass that sees its moment; it may never come.
2. LIVES are told one by one; ACTS happen to a running job of an ordinary life in each phase that PHASES names.
"""

from collections.abc import Callable, Mapping
from functools import partial

from attrs import evolve, field, frozen
from cloudsim.gke_pools import Doom
from cloudsim.tempo import Tempo
from cloudsim.workload import CONFIG_ERROR, NEVER_ENDS, NEVER_PULLS, OUT_OF_MEMORY, SIDECAR_STUCK, Workload
from world import ZONE, Falcon, cluster, spec
from world_acts import make_pool

from falcon_rm.core.manifest import NAMESPACE
from falcon_rm.core.model import Bounds
from falcon_rm.core.words import ClusterStatus

MACHINE = "ct6e-standard-4t"
Act = Callable[[Falcon], object]
Moment = str | float
"""When something is done: "j1 Running", as the row says, or so many seconds after what was done before."""


@frozen
class Scenario:
    """A world to begin with, what is done to it and when, and how each of its jobs may end."""

    build: Callable[[], Falcon]
    ends: Mapping[str, str]  # job -> ends, several with " or "
    acts: tuple[tuple[Moment, Act], ...] = field(default=())


def world(*clusters: object, **bounds: object) -> Falcon:
    """Return a world in which nothing but names is drawn by chance."""
    rows = clusters or (cluster("c1"),)
    return Falcon(
        *rows,  # type: ignore[arg-type]
        bounds=Bounds(language="en", **bounds),  # type: ignore[arg-type]
        tempo=Tempo(pod_gc_seconds=(50, 50), numeric_targets=False),
    )


def with_job(workload: Workload | None = None, task: Mapping[str, object] | None = None, **columns: object) -> Falcon:
    """Return a world of one cluster with j1 in it."""
    falcon = world()
    if workload:
        falcon.sim.scripts_by_job_id["j1"] = workload
    falcon.submit("j1", spec("4x4") if task is None else task, **columns)
    return falcon


# --- lives told one by one


def slice_of_v7x() -> Falcon:
    """A slice that needs a workload policy."""
    falcon = world(cluster("c1", "v7x"))
    falcon.submit("j1", spec("2x2x2", "v7x"))
    return falcon


def without_nodes() -> Falcon:
    """Flex-start, and no machines for a while."""
    falcon = with_job(task=spec("4x4", mode="flex-start"))
    falcon.sim.set_capacity(ZONE, "flex-start", MACHINE, 0)
    falcon.sim.after(600, falcon.sim.set_capacity, ZONE, "flex-start", MACHINE, None)
    return falcon


def reservation(free: int, count: int = 4, jobs: int = 1) -> Falcon:
    """Jobs that ask for a reservation of which so many VMs are free."""
    falcon = world(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", MACHINE, count, in_use=count - free)
    for number in range(1, jobs + 1):
        falcon.submit(f"j{number}", spec("4x4", mode="reservation"), actor=f"actor-{number}")
    return falcon


def full_for_a_while() -> Falcon:
    """A reservation that is full, then is not."""
    falcon = reservation(free=0)
    falcon.sim.after(700, give_room, falcon.sim)
    return falcon


def give_room(sim: object) -> None:
    """Let others give a reservation back."""
    sim.compute.set_reservation("p", ZONE, "r", in_use=0)  # type: ignore[attr-defined]


def full_unseen() -> Falcon:
    """A reservation that shows room it has not: the create is refused."""
    falcon = reservation(free=4)
    record = falcon.sim.compute.reservations[("p", ZONE, "r")]
    record.others, record.shown = 4, 0
    falcon.sim.after(200, give_room, falcon.sim)
    return falcon


def stockout_once() -> Falcon:
    """No machines for a while: the create operation is DONE with an error."""
    falcon = with_job()
    falcon.sim.set_capacity(ZONE, "on-demand", MACHINE, 0)
    falcon.sim.after(3000, falcon.sim.set_capacity, ZONE, "on-demand", MACHINE, None)
    return falcon


def quota_for_a_while(*, late: bool = False) -> Falcon:
    """Too little quota, then enough."""
    falcon = with_job()
    falcon.sim.set_quota("p", MACHINE, 0, late=late)
    falcon.sim.after(150, falcon.sim.set_quota, "p", MACHINE, None)
    return falcon


def quota_for_ever() -> Falcon:
    """Too little quota for good."""
    falcon = with_job()
    falcon.sim.set_quota("p", MACHINE, 0)
    return falcon


def upgrading() -> Falcon:
    """A cluster whose control plane is upgraded: every pool operation is refused as busy."""
    falcon = with_job()
    falcon.sim.gke.upgrade_cluster(cluster("c1").path, 300)
    return falcon


def doomed(**doom: object) -> Falcon:
    """A pool whose create goes wrong once."""
    falcon = with_job()
    falcon.sim.gke.doom(Doom(**doom))  # type: ignore[arg-type]
    return falcon


def answered_late() -> Falcon:
    """A create whose pool is listed only after a while."""
    falcon = with_job()
    falcon.sim.tempo.visibility_seconds = 45
    return falcon


def two_topologies() -> Falcon:
    """Nodes that never come for one topology while another waits: the first gives way."""
    falcon = world(node_wait=120)
    falcon.sim.set_capacity(ZONE, "flex-start", MACHINE, 0)
    falcon.submit("j1", spec("4x4", mode="flex-start"))
    falcon.submit("j2", spec("2x2"), actor="bob")
    falcon.bounds = evolve(falcon.bounds, node_wait_flex=120)
    falcon.sim.after(500, falcon.sim.set_capacity, ZONE, "flex-start", MACHINE, None)
    return falcon


def two_jobs(**columns: object) -> Falcon:
    """Two jobs of one queue: the second takes the first one's pool over."""
    falcon = with_job(task=spec("4x4"))
    falcon.submit("j2", spec("4x4"), actor="bob", **columns)
    return falcon


def two_clusters() -> Falcon:
    """Two clusters, two jobs, one of them without a preference."""
    falcon = world(cluster("c1"), cluster("c2"))
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4"), actor="bob")
    return falcon


def bad_spec_beside_good() -> Falcon:
    """A spec that can never run, and one that does."""
    falcon = with_job()
    falcon.submit("j2", spec("7x7"), actor="bob")
    return falcon


def unknown_pool() -> Falcon:
    """A pool of ours that the ledger does not know."""
    falcon = with_job()
    make_pool(falcon, "older", entered=False)
    return falcon


def idle_pools() -> Falcon:
    """Two free pools that nobody needs."""
    falcon = with_job(task=spec("2x2"))
    make_pool(falcon, "older")
    make_pool(falcon, "oldest")
    return falcon


def strangers() -> Falcon:
    """Pools that look like ours and are not."""
    falcon = with_job()
    for name, labels in (("falcon-stranger", {}), ("falcon-other", {"falcon.io/instance": "other"})):
        node_pool = {"name": name, "initialNodeCount": 1, "config": {"machineType": "e2-medium", "labels": labels}}
        falcon.sim.gke.create_by_hand(cluster("c1").path, node_pool)
        falcon.advance(100)
    return falcon


def refused_work() -> Falcon:
    """A Job whose name in Kubernetes belongs to a stranger's."""
    falcon = with_job()
    kube = falcon.sim.kube(cluster("c1").path)
    kube.create_by_hand("namespaces", None, {"metadata": {"name": NAMESPACE}})
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    kube.create_by_hand(
        "jobs", NAMESPACE, {"metadata": {"name": "falcon-j1"}, "spec": {"suspend": True, "template": template}}
    )
    return falcon


def retries(attempt: Workload) -> Workload:
    """A run that goes wrong, and a second one that does not."""
    return Workload(seconds=20, attempts={1: attempt})


LOSES_A_NODE = Workload(seconds=None, indexes={1: Workload(seconds=None, lose_node_after=30)})
RETRY = spec("4x4", max_retries=1)
CPU = {"image": "i", "device_type": "cpu", "command": "true"}
STOCKOUT = {"message": "GCE_STOCKOUT: no", "condition": "GCE_STOCKOUT"}

LIVES: dict[str, Scenario] = {
    "one host": Scenario(lambda: with_job(task=spec()), {"j1": "Succeeded"}),
    "a slice": Scenario(with_job, {"j1": "Succeeded"}),
    "a v7x slice": Scenario(slice_of_v7x, {"j1": "Succeeded"}),
    "flex-start": Scenario(lambda: with_job(task=spec("4x4", mode="flex-start")), {"j1": "Succeeded"}),
    "flex-start without nodes": Scenario(without_nodes, {"j1": "Succeeded"}),
    "reservation": Scenario(lambda: reservation(free=4), {"j1": "Succeeded"}),
    "reservation for one of two": Scenario(lambda: reservation(free=4, jobs=2), {"j1": "Succeeded", "j2": "Succeeded"}),
    "reservation full for a while": Scenario(full_for_a_while, {"j1": "Succeeded"}),
    "reservation full for ever": Scenario(lambda: reservation(free=0), {"j1": "Pending/ClusterBusy"}),
    "reservation full unseen": Scenario(full_unseen, {"j1": "Succeeded"}),
    "no reservation": Scenario(lambda: with_job(task=spec("4x4", mode="reservation")), {"j1": "Pending/Waiting"}),
    "no cluster": Scenario(lambda: with_job(task=spec("2x2x1", "v7x")), {"j1": "Pending/Waiting"}),
    "stockout once": Scenario(stockout_once, {"j1": "Succeeded"}),
    "quota for a while": Scenario(quota_for_a_while, {"j1": "Succeeded or Failed/NodePoolFailed"}),
    "quota told late": Scenario(lambda: quota_for_a_while(late=True), {"j1": "Succeeded or Failed/NodePoolFailed"}),
    "quota for ever": Scenario(quota_for_ever, {"j1": "Failed/NodePoolFailed"}),
    "cluster upgraded": Scenario(upgrading, {"j1": "Succeeded"}),
    "pool in error": Scenario(lambda: doomed(**STOCKOUT), {"j1": "Succeeded"}),
    "pool in error, then gone": Scenario(lambda: doomed(**STOCKOUT, leaves="nothing"), {"j1": "Succeeded"}),
    "pool half made": Scenario(
        lambda: doomed(message="Not all instances running", leaves="RUNNING_WITH_ERROR", nodes=1), {"j1": "Succeeded"}
    ),
    "pool never made": Scenario(
        lambda: doomed(**STOCKOUT, seconds=2450), {"j1": "Failed/NodePoolTimeout or Succeeded"}
    ),
    "create answered late": Scenario(answered_late, {"j1": "Succeeded"}),
    "fails": Scenario(lambda: with_job(Workload(seconds=5, exit_code=3)), {"j1": "Failed/JobFailed"}),
    "out of memory": Scenario(lambda: with_job(OUT_OF_MEMORY), {"j1": "Failed/JobFailed"}),
    "never pulls": Scenario(lambda: with_job(NEVER_PULLS), {"j1": "Failed/JobFailed"}),
    "never configured": Scenario(lambda: with_job(CONFIG_ERROR), {"j1": "Failed/JobFailed"}),
    "sidecar stuck": Scenario(lambda: with_job(SIDECAR_STUCK), {"j1": "Failed/JobFailed"}),
    "refused for good": Scenario(refused_work, {"j1": "Failed/JobSubmitFailed or Succeeded"}),
    "lost once": Scenario(lambda: with_job(retries(LOSES_A_NODE), RETRY), {"j1": "Succeeded"}),
    "lost twice": Scenario(lambda: with_job(LOSES_A_NODE, RETRY), {"j1": "Failed/JobFailed"}),
    "too late": Scenario(lambda: with_job(NEVER_ENDS, timeout_seconds=600), {"j1": "Failed/Timeout"}),
    "too late to start": Scenario(lambda: with_job(NEVER_PULLS, timeout_seconds=60), {"j1": "Failed/Timeout"}),
    "ignores its end": Scenario(
        lambda: with_job(Workload(seconds=None, ignores_term=True), timeout_seconds=60), {"j1": "Failed/Timeout"}
    ),
    "cpu": Scenario(lambda: with_job(task=CPU), {"j1": "Succeeded"}),
    "two topologies contested": Scenario(two_topologies, {"j1": "Succeeded", "j2": "Succeeded"}),
    "a pool for two": Scenario(two_jobs, {"j1": "Succeeded", "j2": "Succeeded"}),
    "priority": Scenario(lambda: two_jobs(priority=5), {"j1": "Succeeded", "j2": "Succeeded"}),
    "two clusters": Scenario(two_clusters, {"j1": "Succeeded", "j2": "Succeeded"}),
    "a bad spec beside a good one": Scenario(bad_spec_beside_good, {"j1": "Succeeded", "j2": "Failed/InvalidSpec"}),
    "a pool without a row": Scenario(unknown_pool, {"j1": "Succeeded"}),
    "idle pools": Scenario(idle_pools, {"j1": "Succeeded"}),
    "strangers": Scenario(strangers, {"j1": "Succeeded"}),
}


# --- what happens to a job in a phase of its life


def abort(falcon: Falcon) -> None:
    """Ask for the end, as upstream does."""
    job = falcon.store.jobs.get("j1")
    if job is not None and job.status in ("Pending", "Running"):
        falcon.store.set_status("j1", "Aborting")


def delete_row(falcon: Falcon) -> None:
    """Delete the row, as upstream may, unless it is gone."""
    if "j1" in falcon.store.jobs:
        falcon.store.delete_row("j1")


def delete_pool(falcon: Falcon) -> None:
    """Delete the pool, as people do; busy or gone, they are refused."""
    job = falcon.store.jobs.get("j1")
    pool = falcon.sim.gke.pools.all.get((cluster("c1").path, (job and job.node_pool_name) or ""))
    if pool is not None and pool.status in ("RUNNING", "ERROR"):
        falcon.sim.gke.delete_by_hand(pool.path, pool.name)


def delete_work(falcon: Falcon) -> None:
    """Delete the Kubernetes Job."""
    for name in falcon.works():
        falcon.sim.kube(cluster("c1").path).delete_by_hand("jobs", NAMESPACE, name)


def set_cluster(status: ClusterStatus) -> Act:
    """Return what sets the cluster's status."""
    return lambda falcon: falcon.store.add_cluster(evolve(falcon.store.clusters["c1"], status=status))


def cut_off(falcon: Falcon) -> None:
    """Let nobody reach Kubernetes."""
    falcon.sim.faults.cluster_down(cluster("c1").path)


def reconnect(falcon: Falcon) -> None:
    """Let it be reached again."""
    falcon.sim.faults.clear()


OFFLINE, MAINTENANCE, ACTIVE = (
    set_cluster(status) for status in (ClusterStatus.OFFLINE, ClusterStatus.MAINTENANCE, ClusterStatus.ACTIVE)
)
WAITING, PROVISIONING, NODES = "j1 Pending/Waiting", "j1 Pending/Provisioning", "j1 Pending/WaitingForNode"
DISPATCHING, RUNNING = "j1 Pending/Dispatching", "j1 Running"
PHASES = (WAITING, PROVISIONING, NODES, DISPATCHING, RUNNING)
AGAIN = retries(NEVER_ENDS)

ACTS: dict[str, tuple[tuple[Moment, ...], Workload, tuple[tuple[float, Act], ...], str]] = {
    "aborted": (PHASES, NEVER_ENDS, ((0.0, abort),), "Aborted"),
    "row deleted": (PHASES, NEVER_ENDS, ((0.0, delete_row),), ""),
    "pool deleted": (PHASES[2:], AGAIN, ((0.0, delete_pool),), "Succeeded or Running"),
    "Job deleted": (PHASES[3:], Workload(seconds=60), ((0.0, delete_work),), "Failed/JobFailed or Succeeded"),
    "offline for a while": (PHASES, Workload(), ((0.0, OFFLINE), (400.0, ACTIVE)), "Succeeded"),
    "in maintenance for a while": (PHASES, Workload(), ((0.0, MAINTENANCE), (400.0, ACTIVE)), "Succeeded"),
    "cut off for a while": (PHASES[1:], Workload(), ((0.0, cut_off), (400.0, reconnect)), "Succeeded"),
    "aborted while cut off": (
        PHASES[3:], NEVER_ENDS, ((0.0, cut_off), (20.0, abort), (400.0, reconnect)), "Aborted",
    ),
}  # fmt: skip
"""Act -> the phases it is tried in, what the workload does, what is done and when, how the job ends."""


def in_each_phase() -> dict[str, Scenario]:
    """Return the scenarios that ACTS stands for."""
    found = {}
    for name, (phases, workload, acts, end) in ACTS.items():
        for phase in phases:
            (_, first), *others = acts
            ends = {"j1": end} if end else {}
            begins = partial(with_nodes_late, workload)
            found[f"{name}: {phase}"] = Scenario(begins, ends, ((phase, first), *others))
    return found


def with_nodes_late(workload: Workload) -> Falcon:
    """Return the ordinary life: a slice whose nodes come some time after its pool is up."""
    falcon = with_job(workload, RETRY)
    falcon.sim.tempo.node_seconds = 15
    return falcon


SCENARIOS: dict[str, Scenario] = {**LIVES, **in_each_phase()}
