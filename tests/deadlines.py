"""
When the database alone makes a difference: the moments ahead at which a bound of Falcon's passes.

1. Every bound that the phase of a job, or the state of a pool, is judged by is here. A moment too many costs a pass
   that does nothing; one too few would leave out passes.
"""

from collections.abc import Callable, Iterator
from typing import Any

from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Bounds, Job, Pool, TaskSpec
from falcon_rm.core.scene import phase_of
from falcon_rm.core.words import PoolState

Times = Iterator[float | None]


def bounds_ahead(store: Any, bounds: Bounds) -> list[float]:
    """Return the moments after now at which a bound of a live row passes."""
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
        found.append(failure.at + bounds.backoff_max)
    found += [trouble.at + bounds.cluster_pause for trouble in rows.troubles]
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
    starts = (bounds.pod_start_image, bounds.pod_start_configuration)
    others = (bounds.pod_start_sidecar, bounds.pod_start_unschedulable)
    yield from _after(job.dispatched_at, job.timeout_seconds, *starts, *others)


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
    yield from _after(pool.idle_at, bounds.idle, bounds.idle_flex, bounds.release_timeout)
