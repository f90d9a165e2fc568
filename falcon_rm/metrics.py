"""
What Prometheus is told, read from values: a pass as it ended in, samples out.

1. Pure: nothing here remembers, calls or looks at a clock.
2. Labels come from closed sets (words, shapes, registered clusters): never a job, an actor or a text.
3. What was not measured has no sample, rather than 0: of a cluster that was not read nothing of the clouds is told.
4. Gauges show the last pass, counters and times what passes did; a pass that broke off has counted itself alone.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from itertools import product

from attrs import frozen

from falcon_rm.apply import Result
from falcon_rm.core.actions import ORDER, Change, DeleteWork, EndLease
from falcon_rm.core.live import LivePool
from falcon_rm.core.machine import Phase
from falcon_rm.core.model import ClusterView, Job, Pool, Slot, TaskSpec
from falcon_rm.core.scene import ACQUIRING, PHASE, TERMINAL, phase_of
from falcon_rm.core.words import ClusterStatus, ErrorKind, Outcome, PoolState, Reason, Status
from falcon_rm.loop import Acted, Pass
from falcon_rm.ports import StoreDown

Labels = tuple[str, ...]
Values = Mapping[Labels, float]

OTHER = "other"
"""What a word that belongs to no closed set is told as."""

CHIPS = ("busy", "acquiring", "idle", "releasing")
SOURCES = ("pools", "works", OTHER)
FAILED_STARTS = tuple(dict.fromkeys(map(str, (*ErrorKind, "nodes", "lost", "broken", *Reason, *Outcome))))
"""Why a job that held the slot did not come to run: how its lease ended, its reason, or its outcome."""

HOURS = (5, 15, 30, 60, 120, 300, 600, 1200, 1800, 2700, 3600, 7200, 14400, 28800, 86400)
SHORT = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


@frozen
class Sample:
    """One thing that happened: a counter that moves by *value*, or a time of so many seconds."""

    name: str
    labels: Labels
    value: float = 1


@frozen
class Family:
    """A counter, or with *buckets* a histogram; *known* are the label values that stand at 0 from the start."""

    name: str
    help: str
    labels: tuple[str, ...]
    known: tuple[Labels, ...] = ()
    buckets: tuple[float, ...] = ()


@frozen
class Gauge:
    """A gauge, and how it is read from a pass."""

    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[Pass], Values]


# --- how the last pass found the world


def _jobs(made: Pass) -> Values:
    known = [*PHASE, (Status.RUNNING, ""), (Status.ABORTING, "")]
    found = Counter[Labels]({(str(status), str(reason or "")): 0 for status, reason in known})
    found.update(
        (_word(job.status, tuple(Status)), _word(job.reason or "", ("", *Reason))) for job in made.snapshot.jobs
    )
    return found


def _queue(made: Pass) -> Values:
    depth = Counter[Labels]({(name, slot.topology): 0 for slot, name in _slots(made)})
    depth.update(key for _, key in _waiting(made))
    return depth


def _oldest(made: Pass) -> Values:
    oldest: dict[Labels, float] = {}
    for job, key in _waiting(made):
        since = job.queued_at if job.queued_at is not None else job.created_at
        oldest[key] = max(oldest.get(key, 0.0), made.snapshot.now - since)
    return oldest


def _running(made: Pass) -> Values:
    names = _names(made)
    found = Counter[Labels]({(name, slot.topology): 0 for slot, name in _slots(made)})
    found.update(
        _queue_of(job, job.task, names)
        for job in made.snapshot.jobs
        if phase_of(job) is Phase.RUNNING and isinstance(job.task, TaskSpec)
    )
    return found


def _held(made: Pass) -> Values:
    now = made.snapshot.now
    return {
        (name, slot.topology): max(0.0, now - slot.held_at)
        for slot, name in _slots(made)
        if slot.holder and slot.held_at is not None
    }


def _creating(made: Pass) -> Values:
    names = {view.cluster.id: view.cluster.name for view in made.snapshot.views if view.readable}
    oldest: dict[Labels, float] = {}
    for row in made.snapshot.pools:
        asked = row.requested_at if row.state is PoolState.ACTIVE and row.up_at is None else None
        if asked is not None and row.cluster_id in names:
            key = (names[row.cluster_id], row.topology, row.mode.value)
            oldest[key] = max(oldest.get(key, 0.0), made.snapshot.now - asked)
    return oldest


def _pools(made: Pass) -> Values:
    return Counter[Labels](
        (view.cluster.name, row.topology, live.status.value, row.mode.value) for view, live, row in _listed(made)
    )


def _chips(made: Pass) -> Values:
    phases = {job.id: phase_of(job) for job in made.snapshot.jobs}
    readable = [view.cluster.name for view in made.snapshot.views if view.readable]
    found = Counter[Labels](dict.fromkeys(product(readable, CHIPS), 0))
    for view, _, row in _listed(made):
        found[view.cluster.name, _use(row, phases.get(row.lease or ""))] += row.chips
    return found


def _use(row: Pool, phase: Phase | None) -> str:
    """Return what the chips of a listed pool are for; *phase* is that of the job that holds it."""
    if row.state is PoolState.ACTIVE and row.lease is None:
        return "idle"
    if row.state is PoolState.ACTIVE and phase is Phase.RUNNING:
        return "busy"
    return "acquiring" if row.state is PoolState.ACTIVE and phase in ACQUIRING else "releasing"


def _up(made: Pass) -> Values:
    return {
        (view.cluster.name,): float(view.readable and not view.problem)
        for view in made.snapshot.views
        if view.cluster.status is not ClusterStatus.OFFLINE
    }


def _total(made: Pass) -> Values:
    seen = [(view.cluster.name, view.reservation) for view in made.snapshot.views]
    return {(name, room.unit): room.total for name, room in seen if room}


def _used(made: Pass) -> Values:
    seen = [(view.cluster.name, view.reservation) for view in made.snapshot.views]
    return {(name, room.unit): room.used for name, room in seen if room}


def _orphans(made: Pass) -> Values:
    """Count what is swept in this pass; while the brake holds, only whole numbers are known: see _orphans_held."""
    if made.plan.brake:
        return {}
    live = {job.id for job in made.snapshot.jobs}
    names = {view.cluster.id: view.cluster.name for view in made.snapshot.views if view.readable}
    found = Counter[Labels](dict.fromkeys(product(names.values(), ("pool", "work")), 0))
    for action in made.plan.actions:
        if isinstance(action, EndLease) and action.cluster_id in names:
            found[names[action.cluster_id], "pool"] += 1
        elif isinstance(action, DeleteWork) and action.cluster.id in names and action.job_id not in live:
            found[action.cluster.name, "work"] += 1
    return found


def _orphans_held(made: Pass) -> Values:
    brake = made.plan.brake
    return {("pool",): brake.pools if brake else 0, ("work",): brake.works if brake else 0}


def _foreign(made: Pass) -> Values:
    return {
        (view.cluster.name,): made.plan.foreign.get(view.cluster.name, 0)
        for view in made.snapshot.views
        if view.pools is not None
    }


QUEUE, POOL = ("cluster", "topology"), ("cluster", "topology", "mode")

GAUGES = (
    Gauge("falcon_jobs", "Jobs that are not over.", ("status", "reason"), _jobs),
    Gauge("falcon_queue_depth", "Jobs that wait; no cluster: none fits yet.", QUEUE, _queue),
    Gauge("falcon_oldest_waiting_seconds", "Age of the job that waits longest.", QUEUE, _oldest),
    Gauge("falcon_running_jobs", "Jobs whose pods all run.", QUEUE, _running),
    Gauge("falcon_slot_held_seconds", "Since when one job acquires; no sample: the slot is free.", QUEUE, _held),
    Gauge("falcon_pool_creating_seconds", "Since when the oldest pool is made.", POOL, _creating),
    Gauge("falcon_pools", "Pools of ours that GKE lists.", ("cluster", "topology", "state", "mode"), _pools),
    Gauge("falcon_chips", "Chips of the pools of ours that GKE lists.", ("cluster", "state"), _chips),
    Gauge("falcon_reservation_size", "Size of a reservation that was asked for.", ("cluster", "unit"), _total),
    Gauge("falcon_reservation_used", "What is in use of it.", ("cluster", "unit"), _used),
    Gauge("falcon_cluster_up", "Whether a cluster was read whole; offline ones are not told.", ("cluster",), _up),
    Gauge("falcon_orphans", "Leases and Jobs swept since their jobs are over.", ("cluster", "kind"), _orphans),
    Gauge("falcon_orphans_held", "Orphans that the brake holds.", ("kind",), _orphans_held),
    Gauge("falcon_foreign_pools", "Pools named like ours that are not ours.", ("cluster",), _foreign),
    Gauge("falcon_sweep_braked", "Whether the brake holds.", (), lambda made: {(): float(bool(made.plan.brake))}),
)


# --- what passes did

PASSES, STAGES = ("done", "unread", "no-database", "failed"), ("observe", "plan", "apply")
ACTIONS = tuple(kind.__name__ for kind in ORDER)
STAGE: tuple[Labels, ...] = tuple((stage,) for stage in STAGES)
ACQUIRED: tuple[Labels, ...] = (("started",), ("failed",))
ENDS: tuple[Labels, ...] = (
    (Status.SUCCEEDED, ""),
    (Status.ABORTED, ""),
    *((Status.FAILED, reason) for reason in Reason if (Status.PENDING, reason) not in PHASE),
)
RESULTS = (*(result.value for result in Result), "failed")

COUNTERS = (
    Family("falcon_passes_total", "Passes.", ("result",), tuple((result,) for result in PASSES)),
    Family("falcon_actions_total", "Actions.", ("action", "result"), tuple(product(ACTIONS, RESULTS))),
    Family("falcon_api_errors_total", "Errors that calls of an action met.", ("action", "kind")),
    Family("falcon_stale_writes_total", "Writes that came second and had no effect.", ()),
    Family("falcon_unknown_reads_total", "Lists of a cluster that were not had.", ("cluster", "source")),
    Family("falcon_failed_starts_total", "Starts that failed.", ("reason",), tuple((why,) for why in FAILED_STARTS)),
    Family("falcon_jobs_ended_total", "Jobs that came to their end.", ("status", "reason"), ENDS),
)
API_REQUESTS = Family("falcon_api_requests_total", "Requests to the clouds.", ("api", "method", "code"))
"""Counted where they leave, in falcon_rm/cloud/asked.py; the code is ok or the class of the error."""

HISTOGRAMS = (
    Family("falcon_pass_duration_seconds", "Time of a pass by stage.", ("stage",), STAGE, SHORT),
    Family(
        "falcon_acquire_seconds", "From claiming the slot to the start, or its failure.", ("result",), ACQUIRED, HOURS
    ),
    Family("falcon_dispatch_latency_seconds", "From joining a queue to all pods running.", (), buckets=HOURS),
    Family("falcon_run_seconds", "Run time of jobs that ended.", ("status",), buckets=HOURS),
)


def happened(made: Pass | Exception) -> Iterator[Sample]:
    """Yield what one pass adds to counters and histograms; an exception is what ended it."""
    if not isinstance(made, Pass):
        yield Sample("falcon_passes_total", ("no-database" if isinstance(made, StoreDown) else "failed",))
        return
    yield Sample("falcon_passes_total", ("unread" if made.unread else "done",))
    for stage, seconds in zip(STAGES, made.seconds, strict=True):
        yield Sample("falcon_pass_duration_seconds", (stage,), seconds)
    for view in made.snapshot.views:
        if view.cluster.name in made.unread:
            yield Sample("falcon_unknown_reads_total", (view.cluster.name, _source(view)))
    jobs = {job.id: job for job in made.snapshot.jobs}
    for acted in made.acted:
        yield from _acted(acted)
        if isinstance(acted.action, Change) and acted.result is Result.DONE:
            yield from _changed(acted.action, jobs[acted.action.job_id], made.snapshot.now)


def _source(view: ClusterView) -> str:
    return "pools" if view.pools is None else "works" if view.works is None else OTHER


def _acted(acted: Acted) -> Iterator[Sample]:
    kind = type(acted.action).__name__
    yield Sample("falcon_actions_total", (kind, acted.result.value if acted.result else "failed"))
    if acted.error:
        yield Sample("falcon_api_errors_total", (kind, acted.error.value))
    if acted.result is Result.LOST:
        yield Sample("falcon_stale_writes_total", ())


def _changed(change: Change, job: Job, now: float) -> Iterator[Sample]:
    """Yield what a job's step ends: a start, well or badly, and the job itself."""
    if phase_of(job) in ACQUIRING:
        failed = _failed_start(change)
        if failed:
            yield Sample("falcon_failed_starts_total", (_word(failed, FAILED_STARTS),))
        if (failed or change.to_status == Status.RUNNING) and job.provisioning_at is not None:
            yield Sample("falcon_acquire_seconds", ("failed" if failed else "started",), now - job.provisioning_at)
        if change.to_status == Status.RUNNING and job.queued_at is not None:
            yield Sample("falcon_dispatch_latency_seconds", (), now - job.queued_at)
    if change.to_status in TERMINAL:
        yield Sample("falcon_jobs_ended_total", (change.to_status, _word(change.to_reason or "", ("", *Reason))))
        if job.started_at is not None and job.finished_at is not None:
            yield Sample("falcon_run_seconds", (change.to_status,), job.finished_at - job.started_at)


def _failed_start(change: Change) -> str | None:
    """Return why an acquiring job stops to acquire without running; None if it goes on, runs or was aborted."""
    if change.to_status == Status.FAILED:
        return str(change.to_reason)
    if change.columns.get("outcome"):
        return str(change.columns["outcome"])
    if change.to_status == Status.PENDING and change.to_reason in (Reason.WAITING, Reason.CLUSTER_BUSY):
        return change.gives_up.ended if change.gives_up else "lost"
    return None


# --- how values are joined


def _word(word: str, known: Container[str]) -> str:
    return str(word) if word in known else OTHER


def _names(made: Pass) -> dict[str, str]:
    return {view.cluster.id: view.cluster.name for view in made.snapshot.views}


def _slots(made: Pass) -> Iterator[tuple[Slot, str]]:
    """Yield the slots with the names of their clusters."""
    names = _names(made)
    yield from ((slot, names[slot.cluster_id]) for slot in made.snapshot.slots if slot.cluster_id in names)


def _waiting(made: Pass) -> Iterator[tuple[Job, Labels]]:
    """Yield the jobs that wait, each with its queue."""
    names = _names(made)
    for job in made.snapshot.jobs:
        if phase_of(job) in (Phase.NEW, Phase.WAITING) and isinstance(job.task, TaskSpec):
            yield job, _queue_of(job, job.task, names)


def _queue_of(job: Job, task: TaskSpec, names: Mapping[str, str]) -> Labels:
    return names.get(job.cluster_id or "", ""), task.topology


def _listed(made: Pass) -> Iterator[tuple[ClusterView, LivePool, Pool]]:
    """Yield the pools that clusters which were read whole list, with their ledger rows: what has none is not ours."""
    rows = {(row.cluster_id, row.name): row for row in made.snapshot.pools}
    for view in made.snapshot.views:
        for live in (view.pools or ()) if view.readable else ():
            row = rows.get((view.cluster.id, live.name))
            if row:
                yield view, live, row
