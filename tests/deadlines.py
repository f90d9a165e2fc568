"""
When time alone makes a difference: the moments ahead at which a bound of Falcon's passes.

1. Every bound that the phase of a job, the state of a pool, or what holds a pod up is judged by is here. A moment too
   many costs a pass that does nothing; one too few would leave out passes.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from cloudsim.kube import Kube
from cloudsim.values import Json
from cloudsim.world import World

from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Bounds, Job, Pool, TaskSpec
from falcon_rm.core.pods import WARNING_LASTS, limits
from falcon_rm.core.scene import phase_of
from falcon_rm.core.words import PoolState

Times = Iterator[float | None]


def bounds_ahead(store: Any, bounds: Bounds, sim: World) -> list[float]:
    """Return the moments after now at which a bound of a live row, or of a pod that does not run yet, passes."""
    rows = store.read()
    pools = {pool.lease: pool for pool in rows.pools if pool.lease}
    stops = {row.job_id: row.stop_at for row in rows.submissions}
    found: list[float | None] = []
    for job in rows.jobs:
        phase = phase_of(job)
        if phase in BY_PHASE:
            found += BY_PHASE[phase](job, pools.get(job.id), stops.get(job.id), bounds)
    for pool in rows.pools:
        found += _of_pool(pool, bounds)
    for failure in rows.failures:
        found += [failure.at + bounds.backoff_base * 2**count for count in range(FAILURES)]
        found += [failure.at + bounds.backoff_max, failure.at + bounds.room_hold]
    found += [at for row in rows.submissions for at in _after(row.resumed_at, *_starts(bounds))]
    found += [trouble.at + bounds.cluster_pause for trouble in rows.troubles]
    found += [at for kube in sim._kubes.values() for at in _of_starts(kube, bounds)]
    return [at for at in found if at is not None and at >= rows.now]


FAILURES = 6  # after so many the back-off is FALCON_BACKOFF_MAX


def _after(at: float | None, *seconds: float | None) -> Times:
    if at is not None:
        yield from (at + each for each in seconds if each)


def _of_waiting(job: Job, pool: Pool | None, stopped: float | None, bounds: Bounds) -> Times:
    yield job.retry_at
    yield from _after(job.reason_since, bounds.room_hold)


def _of_creation(job: Job, pool: Pool | None, stopped: float | None, bounds: Bounds) -> Times:
    yield from _after(job.provisioning_at, bounds.pool_timeout)
    if pool:
        yield from _after(pool.requested_at, bounds.visibility_grace, bounds.pool_timeout)


def _of_nodes(job: Job, pool: Pool | None, stopped: float | None, bounds: Bounds) -> Times:
    for at in (job.provisioning_at, pool.up_at if pool else None, pool.leased_at if pool else None):
        yield from _after(at, bounds.node_wait, bounds.node_wait_flex)


def _of_dispatching(job: Job, pool: Pool | None, stopped: float | None, bounds: Bounds) -> Times:
    if job.dispatched_at is None:
        yield from _of_nodes(job, pool, stopped, bounds)
    yield from _after(job.dispatched_at, job.timeout_seconds, *_starts(bounds))


def _starts(bounds: Bounds) -> tuple[float, ...]:
    """Return how long each thing may hold a pod up."""
    others = (bounds.pod_start_sidecar, bounds.pod_start_unschedulable)
    return (bounds.pod_start_image, bounds.pod_start_configuration, *others)


def _of_running(job: Job, pool: Pool | None, stopped: float | None, bounds: Bounds) -> Times:
    yield from _after(job.dispatched_at, job.timeout_seconds)


def _of_release(job: Job, pool: Pool | None, stopped: float | None, bounds: Bounds) -> Times:
    grace = (job.task.grace_seconds if isinstance(job.task, TaskSpec) else 0) + bounds.stop_extra
    began = job.aborting_at if phase_of(job) is Phase.ABORTING else job.finished_at
    for at in (began, stopped):
        yield from _after(at, grace, bounds.release_timeout)


BY_PHASE: dict[Phase | None, Callable[[Job, Pool | None, float | None, Bounds], Times]] = {
    Phase.WAITING: _of_waiting,
    Phase.PROVISIONING: _of_creation,
    Phase.WAITING_FOR_NODE: _of_nodes,
    Phase.DISPATCHING: _of_dispatching,
    Phase.RUNNING: _of_running,
    Phase.ENDING: _of_release,
    Phase.ABORTING: _of_release,
}


def _of_pool(pool: Pool, bounds: Bounds) -> Times:
    if pool.seen_at is None:
        yield from _after(pool.requested_at, bounds.visibility_grace)
    if pool.lease is None and pool.up_at is None:
        yield from _after(pool.requested_at, bounds.pool_timeout)
    if pool.reservation and pool.state is PoolState.ACTIVE:
        yield from _after(pool.ready_at, bounds.visibility_grace)
        yield from _after(pool.up_at, bounds.node_wait)
        yield from _after(pool.requested_at, bounds.pool_timeout)
    yield from _after(pool.idle_at, bounds.idle, bounds.idle_flex, bounds.release_timeout)


# --- pods that do not run yet


def _of_starts(kube: Kube, bounds: Bounds) -> Times:
    for pod in kube.store.objects["pods"].values():
        for at in waiting_since(pod):
            yield from _after(at, *limits(bounds).values())
    for event in warnings_that_count(kube):
        yield from _after(moment(event["firstTimestamp"]), *limits(bounds).values())
        yield from _after(moment(event["lastTimestamp"]), WARNING_LASTS)


def waiting_since(pod: Json) -> list[float]:
    """Return since when a pending pod has, or lacks, its node, and when its init containers ended."""
    status = pod["status"]
    if status["phase"] != "Pending":
        return []
    ends = [item["state"].get("terminated", {}) for item in status.get("initContainerStatuses", ())]
    times = [item["lastTransitionTime"] for item in status["conditions"] if item["type"] == "PodScheduled"]
    return [moment(text) for text in (*times, *(end["finishedAt"] for end in ends if end.get("exitCode")))]


def warnings_that_count(kube: Kube) -> list[Json]:
    """Return the warnings about pending pods, and about Jobs that have not ended."""
    objects = kube.store.objects
    there = {pod["metadata"]["uid"] for pod in objects["pods"].values() if pod["status"]["phase"] == "Pending"}
    there |= {job["metadata"]["uid"] for job in objects["jobs"].values() if not job["status"].get("conditions")}
    events = objects["events"].values()
    return [item for item in events if item["type"] == "Warning" and item["involvedObject"]["uid"] in there]


def moment(text: str) -> float:
    """Return a time of Kubernetes."""
    return datetime.fromisoformat(text).timestamp()
