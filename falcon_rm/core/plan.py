"""
The one function that decides: a Snapshot in, a Plan out.

1. Pure: the same snapshot gives the same plan, in whatever order its parts came.
2. At most one step a job a pass; each is a row of machine.py's table.
3. One bad row or cluster never stops the rest: what makes no sense is named in the plan and left alone.
4. A world at rest has an empty plan.
"""

from collections.abc import Iterable, Iterator, Mapping

from attrs import Factory, evolve, frozen

from falcon_rm.core.actions import Action, Change, EnsureSlot, Note, RecordHealth, RetirePool, order
from falcon_rm.core.case import Case
from falcon_rm.core.machine import Phase, PoolSeen, WorkSeen, decide
from falcon_rm.core.messages import Messages
from falcon_rm.core.model import ClusterView, Job, Snapshot, TaskSpec
from falcon_rm.core.scene import Scene, scene
from falcon_rm.core.schedule import Decision, Kind, schedule
from falcon_rm.core.situation import situation
from falcon_rm.core.steps import act
from falcon_rm.core.sweep import Brake, Demand, sweep
from falcon_rm.core.words import CPU_TOPOLOGY


@frozen
class Unknown:
    """Something nothing acts on in this pass, and why."""

    kind: str  # "cluster", "job"
    name: str
    cluster: str
    why: str


@frozen
class Plan:
    """What a pass will do, in order. *notes* are facts to keep once; they do not count as something to do."""

    actions: tuple[Action, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    brake: Brake | None = None
    foreign: Mapping[str, int] = Factory(dict)  # falcon-* pools that are not ours, by cluster name
    notes: tuple[Note, ...] = ()


def plan(snapshot: Snapshot) -> Plan:
    """Return what to do about this snapshot."""
    seen = scene(_sorted(snapshot))
    messages = Messages(snapshot.bounds.language)
    scheduled = schedule(seen, messages)
    decisions = scheduled.decisions
    demand = Demand(seen, _joins(decisions), scheduled.kept_for)
    actions: list[Action] = []
    unknown: list[Unknown] = [*_unread_clusters(seen)]
    for job in seen.snapshot.jobs:
        phase = seen.phases[job.id]
        if phase is None:
            why = f"a row that makes no sense: status={job.status} reason={job.reason} outcome={job.outcome}"
            unknown.append(Unknown("job", job.id, job.cluster_id or "", why))
        else:
            try:
                actions += _job(job, phase, seen, messages, demand, decisions.get(job.id), unknown)
            except Exception as error:  # noqa: BLE001 - one job is fenced off: it is unknown, the others go on
                unknown.append(Unknown("job", job.id, job.cluster_id or "", f"{type(error).__name__}: {error}"))
    actions += _missing_slots(seen, decisions)
    swept = sweep(seen, demand)
    actions += _unless_taken(swept.actions, actions)
    actions += _health(seen)
    return Plan(
        actions=tuple(sorted(actions, key=order)),
        unknown=tuple(sorted(unknown, key=lambda u: (u.kind, u.cluster, u.name))),
        brake=swept.brake,
        foreign=swept.foreign,
        notes=tuple(sorted(_notes(seen, unknown), key=order)),
    )


def _sorted(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its parts in one order, so that chance plays no part."""
    return evolve(
        snapshot,
        jobs=tuple(sorted(snapshot.jobs, key=lambda job: (-job.priority, job.created_at, job.id))),
        views=tuple(sorted(map(_sorted_view, snapshot.views), key=lambda view: (view.cluster.name, view.cluster.id))),
        pools=tuple(sorted(snapshot.pools, key=lambda pool: (pool.cluster_id, pool.name))),
    )


def _sorted_view(view: ClusterView) -> ClusterView:
    if not view.pods and not view.events:
        return view
    pods = None if view.pods is None else tuple(sorted(view.pods, key=lambda pod: (pod.name, pod.uid)))
    if view.events is None:
        return evolve(view, pods=pods)
    events = tuple(sorted(view.events, key=lambda event: (event.last_seen, event.about, event.reason, event.message)))
    return evolve(view, pods=pods, events=events)


def _job(
    job: Job,
    phase: Phase,
    seen: Scene,
    messages: Messages,
    demand: Demand,
    decision: Decision | None,
    unknown: list[Unknown],
) -> Iterator[Action]:
    """Yield the step of one job, if there is one."""
    seen_as = situation(job, phase, seen)
    case = Case(job, decide(seen_as), seen_as, seen, messages, demand, decision)
    if PoolSeen.UNKNOWN is case.situation.pool or WorkSeen.UNKNOWN is case.situation.work:
        blind = "pool" if case.situation.pool is PoolSeen.UNKNOWN else "Job"
        name = case.cluster.name if case.cluster else job.cluster_id or ""
        unknown.append(Unknown("job", job.id, name, f"left alone: the state of its {blind} is unknown"))
    yield from act(case)


def _joins(decisions: Mapping[str, Decision]) -> dict[str, str]:
    """Return the jobs that join the queue of a cluster in this pass."""
    return {
        job_id: decision.cluster_id
        for job_id, decision in decisions.items()
        if decision.kind is Kind.PLACE and decision.cluster_id
    }


def _unread_clusters(seen: Scene) -> Iterator[Unknown]:
    for view in seen.snapshot.views:
        if view.problem:
            yield Unknown("cluster", view.cluster.name, view.cluster.name, view.problem)


def _missing_slots(seen: Scene, decisions: Mapping[str, Decision]) -> Iterator[EnsureSlot]:
    """Yield the queues that somebody waits in, or joins now, and that have no row to lock yet."""
    wanted = set()
    for job in seen.snapshot.jobs:
        if not isinstance(job.task, TaskSpec) or job.task.topology == CPU_TOPOLOGY:
            continue
        decision = decisions.get(job.id)
        if decision and decision.kind in (Kind.PLACE, Kind.CLAIM, Kind.BUSY, Kind.STAY):
            cluster_id = decision.cluster_id or job.cluster_id
            if cluster_id:
                wanted.add((cluster_id, job.task.topology))
    yield from (EnsureSlot(*key) for key in sorted(wanted - set(seen.slots)))


def _unless_taken(swept: Iterable[Action], decided: Iterable[Action]) -> list[Action]:
    """Return what the sweep does, but for the end of pools that a job takes in this pass."""
    taken = {(each.cluster_id, each.takes) for each in decided if isinstance(each, Change) and each.takes}
    return [each for each in swept if not isinstance(each, RetirePool) or (each.cluster_id, each.name) not in taken]


def _health(seen: Scene) -> Iterator[RecordHealth]:
    for view in seen.snapshot.views:
        zone = view.zone or view.known_zone
        if (view.problem, zone) != (view.health, view.known_zone):
            yield RecordHealth(view.cluster.id, view.problem, zone)


def _notes(seen: Scene, unknown: list[Unknown]) -> Iterator[Note]:
    for entry in unknown:
        if entry.kind == "job" and entry.why.startswith("a row"):
            yield Note("impossible row", f"job/{entry.name}", entry.why)
    for job in seen.snapshot.jobs:
        if seen.phases[job.id] is Phase.NEW and isinstance(job.task, TaskSpec) and job.task.unknown_fields:
            yield Note("unknown fields", f"job/{job.id}", ", ".join(job.task.unknown_fields))


__all__ = ["Change", "Plan", "Unknown", "plan"]
