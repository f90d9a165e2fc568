"""
What of a world can influence its future, as one short text: two worlds with equal fingerprints have equal futures.

1. The database counts by what a pass can read of it, the clouds by what their state machines look at, the agenda by
   what will still have an effect.
2. Times count as the distance from now to where a bound of that time still decides something, else only as "there".
   Where only their order matters (submissions, turns), it is the order that counts.
3. What counts of the clouds is told in fingerprint_clouds.py.

Left out on purpose, since nothing reads it to decide: histories (calls, effects, events, closed leases, audits, notes),
rows of terminal jobs but for their names and state, versions and resource versions (only equality within one world is
compared), texts for people, also those on a cluster's health (one that differs is written once more), Normal events,
finished operations of pools that are closed, timestamps inside Kubernetes objects but for those that say since when a
pod does not run, and the state of the random source (runs that compare fingerprints let nothing but names depend on
it). What was made stays in: cloud names in the ledger,
and those of effects that made them.
"""

import marshal
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from fingerprint_clouds import Names, age, agenda_facts, ahead, constant, google_facts, kubernetes_facts, within

from falcon_rm.core.actions import Change, MarkPool, SubmitWork
from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Bounds, Job, Pool, Submission
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


def fingerprint(falcon: "Falcon") -> str:
    """Return the fingerprint of a world."""
    return blake2b(marshal.dumps(facts(falcon), PLAIN), digest_size=16).hexdigest()


def facts(falcon: "Falcon") -> tuple[Any, ...]:
    """Return what a fingerprint is made of, for a person who asks why two worlds differ."""
    names = Names()
    sim = falcon.sim
    return (
        constant(falcon.bounds),
        tuple(_database(falcon, names)),
        tuple(kubernetes_facts(kube, names, falcon.bounds) for kube in sim._kubes.values()),
        tuple(google_facts(sim, falcon, names)),
        tuple(agenda_facts(sim, names)),
        tuple(
            (fault.call, fault.when, fault.times and fault.times - fault.struck, fault.skip, repr(fault.error))
            for fault in sim.faults.set_up
            if fault.times is None or fault.struck < fault.times
        ),
    )


# --- the database


def _database(falcon: "Falcon", names: Names) -> Iterator[object]:
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
        yield (failure.job_id, failure.cluster_id, failure.ended, counts, ahead(until, rows.now))
    for trouble in rows.troubles:
        if rows.now - trouble.at < falcon.bounds.cluster_pause:
            yield (trouble.cluster_id, rows.now - trouble.at)


def _job(job: Job, rows: Rows, bounds: Bounds, names: Names) -> tuple[object, ...]:
    phase, now = phase_of(job), rows.now
    pool = next((pool for pool in rows.pools if pool.name == job.node_pool_name), None)
    times: tuple[object, ...] = (
        job.queued_at is None,
        _creation(job, pool, now) if phase in CREATION or (phase in ACQUIRING and not job.dispatched_at) else None,
        age(job.dispatched_at, now) if phase in ACQUIRING or job.timeout_seconds else job.dispatched_at is None,
        _release(job, pool, rows) if phase in RELEASE else None,
        ahead(job.retry_at, now) if phase is Phase.WAITING else None,
        None if job.reason_since is None else min(now - job.reason_since, bounds.room_hold),
        job.started_at is None,
    )
    words = tuple(_plain(getattr(job, name)) for name in JOB_WORDS)
    return (words, constant(job.task), None if job.job_uid is None else names[job.job_uid], times)


def _creation(job: Job, pool: Pool | None, now: float) -> object:
    """Return what the bounds of creation and of the wait for nodes count from: the latest of what has happened."""
    if pool is None or pool.seen_at is None:
        return age(job.provisioning_at, now)
    if pool.up_at is None:
        return age(_latest(job.provisioning_at, pool.requested_at), now)
    return age(_latest(job.provisioning_at, pool.up_at, pool.leased_at), now)


def _release(job: Job, pool: Pool | None, rows: Rows) -> object:
    """Return what the bounds of a release count from: when its latest stage began, and when the work was stopped."""
    began = job.aborting_at if phase_of(job) is Phase.ABORTING else job.finished_at
    stopped = next((row.stop_at for row in rows.submissions if row.job_id == job.id), None)
    released = pool.idle_at if pool and pool.lease != job.id else None
    stage = age(_latest(began, stopped, released), rows.now)
    return stage, age(stopped, rows.now) if stopped else age(began, rows.now)


def _latest(*times: float | None) -> float | None:
    return max((at for at in times if at is not None), default=None)


def _pool(pool: Pool, now: float, bounds: Bounds) -> tuple[object, ...]:
    decides = pool.seen_at is None or (pool.error and pool.error.kind in FAILED_POOL)
    counted = pool.mode is Mode.RESERVATION
    times = (
        pool.requested_at is None if pool.up_at is not None else age(pool.requested_at, now),
        pool.seen_at is None,
        within(pool.up_at, now, bounds.node_wait) if counted and pool.ready_at is None else pool.up_at is None,
        pool.leased_at is not None and pool.leased_at >= now,
        within(pool.ready_at, now, bounds.visibility_grace) if counted else pool.ready_at is None,
        age(pool.idle_at, now) if pool.state is PoolState.ACTIVE else None,
    )
    words = tuple(_plain(getattr(pool, name)) for name in POOL_WORDS)
    return (*words, pool.error.kind.value if decides and pool.error else None, times)


def _submission(row: Submission, now: float | None) -> tuple[object, ...]:
    """Return a submission; since when it was let go while its pods start, *now* given."""
    let_go = row.resumed_at is None if now is None or row.resumed_at is None else age(row.resumed_at, now)
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
