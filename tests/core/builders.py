"""
Legal situations in one line: rows, what the clouds show of them, and the snapshot of a pass that sees both.

1. Every builder fills in what belongs to its first words: a job in a state has that state's names, times and queue.
2. Keywords replace fields as they are; nothing here is clever about them.
3. The world of snapshot() is NOW; one cluster c1 (v6e) unless a test says otherwise.
"""

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from falcon_rm.core import names
from falcon_rm.core.actions import Action, Change, CreatePool, SubmitWork
from falcon_rm.core.live import Condition, ContainerState, LivePool, LiveWork, Pod, Reservation
from falcon_rm.core.machine import Situation
from falcon_rm.core.model import Bounds, Cluster, ClusterView, InvalidSpec, Job, Pool, Slot, Snapshot, TaskSpec
from falcon_rm.core.plan import plan
from falcon_rm.core.scene import ACQUIRING, phase_of, scene, work_name
from falcon_rm.core.shapes import shape
from falcon_rm.core.situation import situation
from falcon_rm.core.words import CPU_TOPOLOGY, Mode, PoolStatus

NOW = 1_700_000_000.0
INSTANCE = "i"
ZONE = "us-central1-a"
RESERVATION = "projects/p/reservations/r"
EN = Bounds(language="en")
OK = {"Complete": Condition(status=True)}
FAILED = {"Failed": Condition(status=True, reason="BackoffLimitExceeded", message="Job has reached the limit")}


def cluster(cluster_id: str = "c1", tpu_type: str = "v6e", **columns: Any) -> Cluster:
    """Return a zonal cluster whose name is its id."""
    return Cluster(
        **{"id": cluster_id, "name": cluster_id, "project": "p", "location": ZONE, "tpu_type": tpu_type} | columns
    )


def task(topology: str = "2x2", tpu_type: str = "v6e", mode: Mode | None = Mode.ON_DEMAND, **fields: Any) -> TaskSpec:
    """Return a parsed spec; topology "cpu" needs no TPU. *machine* and *replica* choose the shape."""
    machine, replica = fields.pop("machine", None), fields.pop("replica", None)
    made = None if topology == CPU_TOPOLOGY else shape(tpu_type, topology, machine, replica)
    return TaskSpec(image="busybox:1.36", command="true", shape=made, mode=mode, **fields)


def job(
    job_id: str = "j1", state: str = "Pending/Waiting", work: TaskSpec | InvalidSpec | None = None, **columns: Any
) -> Job:
    """Return a row of `job` in Status or Status/Reason with the columns that belong to it; it stands in c1."""
    asked = task() if work is None else work
    status, _, reason = state.partition("/")
    row: dict[str, Any] = {"id": job_id, "actor": "ann", "task": asked, "status": status, "created_at": NOW - 5000}
    topology = asked.topology if isinstance(asked, TaskSpec) else None
    if reason:
        row |= {"reason": reason, "cluster_id": "c1", "topology": topology, "queued_at": NOW - 4000}
    phase = phase_of(Job(**row | {"outcome": columns.get("outcome")}))
    if status in ("Running", "Aborting") or phase in ACQUIRING:
        row |= {
            "cluster_id": "c1",
            "topology": topology,
            "queued_at": NOW - 4000,
            "attempt": 1,
            "provisioning_at": NOW - 50,
        }
        if topology != CPU_TOPOLOGY and isinstance(asked, TaskSpec):
            row |= {"node_pool_name": names.cloud_name(job_id, 1), "supply_mode": asked.mode or Mode.FLEX_START}
    if status == "Running":
        row |= {"job_uid": f"uid-{job_id}", "dispatched_at": NOW - 40, "started_at": NOW - 30}
    if status == "Aborting":
        row |= {"aborting_at": NOW - 10}
    if columns.get("outcome") not in (None, "Lost", "Yield"):
        row |= {"finished_at": NOW - 5}
    return Job(**row | columns)


def pool(of: Job, **columns: Any) -> Pool:
    """Return the ledger row of a job's pool, leased to it, asked for and seen, up and ready."""
    assert isinstance(of.task, TaskSpec)
    made = of.task.shape
    assert made is not None
    row: dict[str, Any] = {
        "cluster_id": of.cluster_id or "c1",
        "name": of.node_pool_name or names.cloud_name(of.id, max(of.attempt, 1)),
        "job_id": of.id,
        "attempt": max(of.attempt, 1),
        "tpu_type": made.tpu_type,
        "topology": made.topology,
        "machine_type": made.machine_type,
        "hosts": made.hosts,
        "chips": made.chips,
        "mode": of.task.mode or Mode.FLEX_START,
        "lease": of.id,
        "leased_at": NOW - 50,
        "requested_at": NOW - 45,
        "seen_at": NOW - 40,
        "up_at": NOW - 35,
        "ready_at": NOW - 30,
    }
    return Pool(**row | columns)


def fresh(of: Job, **columns: Any) -> Pool:
    """Return the ledger row of a pool that was never asked for."""
    return pool(of, **{"requested_at": None, "seen_at": None, "up_at": None, "ready_at": None} | columns)


def free(name: str, work: TaskSpec | None = None, **columns: Any) -> Pool:
    """Return a ready pool that nobody holds, made for a job that is gone."""
    made_for = job("gone", work=work)
    return pool(made_for, **{"name": name, "lease": None, "leased_at": None, "idle_at": NOW - 10} | columns)


def live(of: Pool, status: PoolStatus = PoolStatus.RUNNING, **fields: Any) -> LivePool:
    """Return a pool of ours as GKE lists it."""
    row: dict[str, Any] = {
        "name": of.name,
        "status": status,
        "labels": labels(of.cluster_id, of.job_id, of.attempt),
        "machine_type": of.machine_type,
        "topology": of.topology if of.hosts > 1 else "",
        "hosts": of.hosts,
        "mode": of.mode,
        "reservation": of.reservation,
    }
    return LivePool(**row | fields)


def labels(cluster_id: str, job_id: str, attempt: int, instance: str = INSTANCE) -> dict[str, str]:
    """Return the labels of what is ours."""
    return names.labels(instance=instance, cluster_id=cluster_id, job_id=job_id, attempt=attempt, exp_id="", owner="")


def work(of: Job, conditions: Mapping[str, Condition] | None = None, **fields: Any) -> LiveWork:
    """Return the Kubernetes Job of a job's attempt, all its pods active and ready unless it has ended."""
    hosts = of.task.hosts if isinstance(of.task, TaskSpec) else 1
    well = 0 if conditions else hosts
    row: dict[str, Any] = {
        "name": work_name(of),
        "uid": f"uid-{of.id}",
        "labels": labels(of.cluster_id or "c1", of.id, of.attempt),
        "annotations": {names.JOB_ID: of.id},
        "conditions": conditions or {},
        "parallelism": hosts,
        "active": well,
        "ready": well,
        "pool": of.node_pool_name,
    }
    return LiveWork(**row | fields)


def pod(of: Job, index: int = 0, phase: str = "Running", *containers: ContainerState, **fields: Any) -> Pod:
    """Return a pod of a job's attempt on a node."""
    row: dict[str, Any] = {
        "name": f"{work_name(of)}-{index}",
        "work": work_name(of),
        "phase": phase,
        "node": f"n{index}",
    }
    return Pod(**row | {"containers": containers} | fields)


def view(*seen: LivePool | LiveWork | Pod, of: Cluster | None = None, **fields: Any) -> ClusterView:
    """Return what a pass read of a cluster: whole lists, the pods of every Job, every listed pool's nodes Ready."""
    works = tuple(item for item in seen if isinstance(item, LiveWork))
    pods = tuple(item for item in seen if isinstance(item, Pod))
    pools = tuple(item for item in seen if isinstance(item, LivePool))
    row: dict[str, Any] = {
        "cluster": of or cluster(),
        "zone": ZONE,
        "known_zone": ZONE,
        "pools": pools,
        "operations": (),
        "works": works,
        "looked_at": frozenset({item.name for item in works} | {item.work for item in pods}),
        "pods": pods,
        "ready_nodes": {item.name: item.hosts for item in pools if item.status is PoolStatus.RUNNING},
    }
    return ClusterView(**row | fields)


def unread(of: Cluster | None = None, problem: str = "no answer") -> ClusterView:
    """Return a cluster of which nothing could be read."""
    return ClusterView(of or cluster(), problem=problem, health=problem)


def room(total: int, used: int = 0, **fields: Any) -> Reservation:
    """Return a reservation r, counted in VMs."""
    row: dict[str, Any] = {"path": RESERVATION, "ready": True, "unit": "vm", "total": total, "used": used}
    return Reservation(**row | fields)


def snapshot(*jobs: Job, **fields: Any) -> Snapshot:
    """Return the snapshot of a pass: a slot for every queue, held by the job that acquires there."""
    slots: dict[tuple[str, str], Slot] = {}
    for row in jobs:
        key = (row.cluster_id or "", row.topology or "")
        if row.cluster_id and row.topology and row.topology != CPU_TOPOLOGY:
            holder = row.id if phase_of(row) in ACQUIRING else slots[key].holder if key in slots else None
            slots[key] = Slot(*key, holder, NOW - 50 if holder else None)
    row_fields: dict[str, Any] = {
        "now": NOW,
        "instance": INSTANCE,
        "bounds": EN,
        "jobs": jobs,
        "views": (view(),),
        "slots": tuple(slots.values()),
        "later": {},
    }
    return Snapshot(**row_fields | fields)


# --- what a pass makes of it


def seen(world: Snapshot, job_id: str = "j1") -> Situation:
    """Return the case of the table that a job is in."""
    joined = scene(world)
    phase = joined.phases[job_id]
    assert phase is not None
    return situation(joined.jobs[job_id], phase, joined)


def step(world: Snapshot, job_id: str = "j1") -> Action | None:
    """Return what the plan does about a job, before what it only says; None if neither."""
    found = [
        action
        for action in plan(world).actions
        if isinstance(action, Change | CreatePool | SubmitWork) and action.job_id == job_id
    ]
    return next((action for action in found if not isinstance(action, Change)), found[0] if found else None)


def change(world: Snapshot, job_id: str = "j1") -> Change:
    """Return the Change that the plan makes of a job."""
    found = step(world, job_id)
    assert isinstance(found, Change), found
    return found


def state(world: Snapshot, job_id: str = "j1") -> str:
    """Return Status or Status/Reason that a job has after the plan."""
    found = step(world, job_id)
    if isinstance(found, Change):
        status, reason = found.to_status, found.to_reason
    else:
        row = next(row for row in world.jobs if row.id == job_id)
        status, reason = row.status, row.reason
    return f"{status}/{reason}" if reason else str(status)


def message(world: Snapshot, job_id: str = "j1") -> str | None:
    """Return the message that a job has after the plan."""
    texts = [a.message for a in plan(world).actions if isinstance(a, Change) and a.job_id == job_id]
    kept = next(row.message for row in world.jobs if row.id == job_id)
    return next((text for text in texts if text is not None), kept)


def told(world: Snapshot) -> Snapshot:
    """Return the world with the texts of its plan written, and nothing else."""
    texts = {a.job_id: a.message for a in plan(world).actions if isinstance(a, Change) and a.only_message}
    return evolve(world, jobs=tuple(evolve(row, message=texts.get(row.id, row.message)) for row in world.jobs))
