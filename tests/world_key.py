"""
What of a world decides anything: its key, equal for worlds that passes and clouds treat alike.

1. Times count from now, and only those that the phase of their row compares with a bound; names drawn by chance, texts
   for people, versions and history count for nothing.
2. Beside fingerprint.py it takes worlds as one that differ in history alone: in which attempt a job is, what became of
   the earlier ones. Budgets and back-offs, which that history leaves behind, are in the key.
"""

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any

from cloudsim.gke_pools import Pool as SimPool
from cloudsim.kube import Kube
from cloudsim.kube_jobs import Jobs
from cloudsim.values import Json
from cloudsim.world import World
from fingerprint_clouds import starts
from memory_store import MemoryStore

from falcon_rm.cloud.rows import BACKS_OFF
from falcon_rm.core import names
from falcon_rm.core.backoff import BACKOFF_ENDS
from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Bounds, Job, Pool
from falcon_rm.core.scene import phase_of
from falcon_rm.core.words import Mode, PoolState

F = Phase
Alias = Mapping[str, str]

COMPARED: Mapping[Phase | None, tuple[str, ...]] = {
    F.WAITING: ("retry_at",),
    F.PROVISIONING: ("provisioning_at",),
    F.WAITING_FOR_NODE: ("provisioning_at",),
    F.DISPATCHING: ("dispatched_at",),
    F.RUNNING: ("dispatched_at",),
    F.ENDING: ("finished_at",),
    F.ABORTING: ("aborting_at",),
}
"""Which times of a row are compared with a bound, by phase."""

CREATION, RELEASE = {F.PROVISIONING, F.WAITING_FOR_NODE}, {F.ENDING, F.ABORTING}
PAUSE = Bounds().cluster_pause
LONGEST_AGE = 50_000.0  # past every bound
MOST_FAILURES = 6  # after so many the back-off grows no more


def key_of(store: MemoryStore, sim: World) -> Hashable:
    """Return the key of a world."""
    alias = aliases(store, sim)
    return rows_key(store, sim, alias), clouds_key(store, sim, alias)


@cache
def names_of(job_id: str, attempt: int) -> Alias:
    """Return what the names of a job's attempts stand for, seen from the attempt it is in."""
    return {names.cloud_name(job_id, number): f"{job_id}{number - attempt:+}" for number in range(1, attempt + 9)}


def aliases(store: MemoryStore, sim: World) -> Alias:
    """Return what cloud names stand for: whether a job is in its second or fourth attempt decides nothing."""
    found: dict[str, str] = {}
    for job in store.jobs.values():
        found |= names_of(job.id, job.attempt)
    for pool in sim.gke.pools.all.values():
        if pool.name in found and is_strange(pool):
            found[pool.name] = "a stranger"
    return found


def is_strange(pool: SimPool) -> bool:
    """Return whether a pool lacks our labels."""
    return not pool.spec.get("config", {}).get("labels")


def alias_of(name: str, alias: Alias) -> str:
    """Return what a name, or the beginning of a pod's, stands for."""
    bare = name.rstrip("-")
    head, _, index = bare.rpartition("-")
    if bare in alias:
        return alias[bare]
    return f"{alias[head]}, pod {index}" if head in alias else name


# --- rows


def rows_key(store: MemoryStore, sim: World, alias: Alias) -> Hashable:
    """Return what the tables hold that decides anything."""
    now, jobs = store.now, store.jobs
    return (
        tuple(_job_key(jobs[job_id], now, sim, alias) for job_id in sorted(jobs)),
        tuple(
            _pool_key(pool, jobs, now, alias)
            for _, pool in sorted(store.pools.items())
            if pool.state is not PoolState.DELETED or _is_to_come(pool, jobs)
        ),
        tuple(
            (
                work.cluster_id,
                alias.get(work.name),
                _age(work.resumed_at, now) if phase_of(jobs[work.job_id]) is F.DISPATCHING else work.resumed_at is None,
                _age(work.stop_at, now),
                work.error and work.error.kind,
            )
            for _, work in sorted(store.works.items())
            if work.job_id in jobs and jobs[work.job_id].attempt == work.attempt
        ),
        tuple((key, slot.holder) for key, slot in sorted(store.slots.items())),
        tuple(_failures(store, job) for job in jobs.values() if job.status == "Pending"),
        tuple((row.id, row.status) for row in store.clusters.values()),
        min((now - trouble.at for trouble in store._troubles() if now - trouble.at < PAUSE), default=None),
        tuple(turn.actor for turn in sorted(store.turns.values(), key=lambda turn: (turn.served_at, turn.actor))),
    )


def _age(at: float | None, now: float) -> float | None:
    return None if at is None else min(round(now - at, 1), LONGEST_AGE)


def _is_to_come(pool: Pool, jobs: Mapping[str, Job]) -> bool:
    """Return whether the name of a pool that is gone is one that its job may still come to."""
    return pool.job_id in jobs and pool.attempt > jobs[pool.job_id].attempt


def _failures(store: MemoryStore, job: Job) -> Hashable:
    """Return how often a job has failed where, and since when it waits for that."""
    ends: dict[str, list[float]] = {}
    for lease in store.leases:
        if lease.job_id == job.id and lease.ended in BACKS_OFF and lease.until_at is not None:
            counts = lease.ended in BACKOFF_ENDS and lease.until_at > (job.started_at or 0)
            ends.setdefault(lease.cluster_id, []).append(lease.until_at if counts else 0.0)
    waits = phase_of(job) is F.WAITING
    return tuple(
        (
            where,
            min(len(moments), MOST_FAILURES),
            min(sum(map(bool, moments)), MOST_FAILURES),
            _age(max(moments), store.now) if waits and max(moments) else None,
            _found_full(store, job, where),
        )
        for where, moments in sorted(ends.items())
    )


def _found_full(store: MemoryStore, job: Job, cluster_id: str) -> bool:
    """Return whether a job's last lease on a cluster found the reservation full: room may be kept for it."""
    leases = [lease for lease in store.leases if (lease.job_id, lease.cluster_id) == (job.id, cluster_id)]
    ended = [lease for lease in leases if lease.ended in BACKOFF_ENDS and lease.until_at is not None]
    last = max(ended, key=lambda lease: lease.until_at or 0.0, default=None)
    return last is not None and last.ended == "full"


def _job_key(job: Job, now: float, sim: World, alias: Alias) -> Hashable:
    phase = phase_of(job)
    if phase is F.TERMINAL:
        return job.id, job.status, job.reason
    return (
        (job.id, job.actor, job.priority, job.status, job.reason, job.outcome, job.cluster_id, job.topology),
        alias.get(job.node_pool_name or "", job.node_pool_name),
        (job.attempt > 0, job.pool_failures, job.losses, job.supply_mode, job.timeout_seconds, job.queued_at is None),
        _whose(job.job_uid, sim, alias),
        job.dispatched_at is None,
        tuple(_age(getattr(job, name), now) for name in COMPARED.get(phase, ())),
    )


def _whose(uid: str | None, sim: World, alias: Alias) -> str | None:
    """Return which Job has the UID that a row holds."""
    if uid is None:
        return None
    for path in sim.clusters:
        for found in sim.kube(path).store.objects["jobs"].values():
            if found["metadata"]["uid"] == uid:
                return alias_of(found["metadata"]["name"], alias)
    return "nobody's"


def _pool_key(pool: Pool, jobs: Mapping[str, Job], now: float, alias: Alias) -> Hashable:
    name = alias.get(pool.name, pool.name)
    if pool.state is PoolState.DELETED:
        return name, pool.cluster_id
    phases = {phase_of(job) for job in jobs.values() if job.node_pool_name == pool.name}
    awaited, released = phases & CREATION, phases & RELEASE or pool.state is PoolState.ACTIVE
    return (
        (name, pool.cluster_id, pool.topology, pool.mode, pool.state, pool.lease, pool.found),
        _age(pool.requested_at, now) if pool.up_at is None else None,
        (pool.requested_at is None, pool.seen_at is None, pool.up_at is None, pool.ready_at is None),
        (_age(pool.up_at, now), _age(pool.leased_at, now)) if awaited else None,
        _age(pool.up_at, now) if pool.mode is Mode.RESERVATION and pool.ready_at is None else None,
        _age(pool.idle_at, now) if released else None,
        pool.error and pool.error.kind,
    )


# --- the clouds


def clouds_key(store: MemoryStore, sim: World, alias: Alias) -> Hashable:
    """Return what the clouds hold, and have still to do, without the names that chance gave."""
    kept = {pool.name for pool in store.pools.values() if pool.state is not PoolState.DELETED}
    return (
        tuple(_sim_pool_key(pool, sim.now, alias) for pool in sim.gke.pools.all.values()),
        tuple(
            (operation.kind, alias.get(pool, pool), operation.ended is None, operation.error)
            for operation in sim.gke.operations.values()
            for pool in (operation.target.rsplit("/", 1)[-1],)
            if operation.ended is None or (operation.kind == "CREATE_NODE_POOL" and pool in kept)
        ),
        tuple(_kube_key(sim.kube(path), alias) for path in sim.clusters),
        tuple(
            sorted(
                (round(at - sim.now, 1), getattr(act, "__qualname__", ""), tuple(_word(item, alias) for item in about))
                for at, _, act, about in sim.agenda.due
            )
        ),
        tuple((record.count, record.others, record.shown) for record in sim.compute.reservations.values()),
    )


def _sim_pool_key(pool: SimPool, now: float, alias: Alias) -> Hashable:
    return (
        (pool.path, alias.get(pool.name, pool.name), pool.status, pool.message, len(pool.nodes)),
        (pool.granted, pool.waiting, pool.scaling, max(0.0, round(pool.visible_at - now, 1)), is_strange(pool)),
    )


def _word(item: Any, alias: Alias) -> str:
    """Return a name for what something on the agenda is about; of names drawn by chance nothing."""
    if isinstance(item, dict):
        metadata = item["metadata"]
        return alias_of(metadata.get("generateName") or metadata["name"], alias)
    if isinstance(item, str):
        return ""
    return f"{item}" if isinstance(item, int | float) else alias_of(getattr(item, "name", type(item).__name__), alias)


def _kube_key(kube: Kube, alias: Alias) -> Hashable:
    objects = kube.store.objects
    pool_of = {
        node["metadata"]["name"]: alias_of(node["metadata"]["labels"]["cloud.google.com/gke-nodepool"], alias)
        for node in objects["nodes"].values()
    }
    return (
        tuple(_work_key(job, kube.jobs, alias) for _, job in sorted(objects["jobs"].items())),
        tuple(sorted((_pod_key(pod, kube, pool_of, alias) for pod in objects["pods"].values()), key=repr)),
        tuple(starts(kube, LONGEST_AGE)),
        tuple(sorted(alias_of(name, alias) for _, name in objects["services"])),
        tuple(
            (pool_of[name], node["status"]["conditions"][0]["status"], node["spec"].get("unschedulable"))
            for (_, name), node in objects["nodes"].items()
        ),
    )


def _work_key(job: Json, jobs: Jobs, alias: Alias) -> Hashable:
    metadata, status, script = job["metadata"], job["status"], None
    if len(jobs.pods_of(metadata["uid"])) < job["spec"]["parallelism"] and not status.get("conditions"):
        script = repr(jobs.kube.world.scripts_by_job_id.get(metadata["labels"].get(names.JOB_ID)))
    return (
        (alias_of(metadata["name"], alias), "deletionTimestamp" in metadata, script),
        len(jobs.counted.get(metadata["uid"], ())),
        tuple((item["type"], item["status"], item["reason"]) for item in status.get("conditions", ())),
        tuple(status.get(word, 0) for word in ("active", "ready", "succeeded", "failed", "terminating")),
    )


def _pod_key(pod: Json, kube: Kube, pool_of: Mapping[str, str], alias: Alias) -> Hashable:
    metadata, status, run = pod["metadata"], pod["status"], kube.pods.runs.get(pod["metadata"]["uid"])
    does = run and run.workload
    return (
        (alias_of(metadata["generateName"], alias), "deletionTimestamp" in metadata, bool(metadata["finalizers"])),
        (status["phase"], pool_of.get(pod["spec"].get("nodeName", ""), "nodeName" in pod["spec"])),
        tuple(sorted((item["type"], item["status"], item.get("reason") or "") for item in status["conditions"])),
        tuple(
            (word, state.get("reason"), state.get("exitCode"))
            for container in status.get("containerStatuses", ())
            for word, state in container["state"].items()
        ),
        run and (run.plan, run.started, run.cut_off),
        does and (does.kind, does.exit_code, does.seconds, does.stop_seconds, does.lose_node_after),
    )
