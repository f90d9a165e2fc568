"""
Which cluster a job waits for, who is picked for a free slot, and what everyone else is waiting for (design.md 3).

1. One slot a (cluster, topology); whoever is picked takes it together with its pool's name, in one transaction.
2. A choice of cluster is kept while the job waits; it is made again when the cluster is no candidate any more, or when
   another could start the job now and its own cannot.
3. Choices of one pass are made against one running tally (tally.py): no pool, slot or room is promised twice.
4. Reservation and UNKNOWN: a cluster that was not read whole is no candidate; room that was not read is not promised.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

from attrs import frozen

from falcon_rm.core.backoff import backoff_until, busy_since, is_off
from falcon_rm.core.line import line, place
from falcon_rm.core.machine import Phase
from falcon_rm.core.messages import EXACT_POSITIONS, Messages, moment
from falcon_rm.core.model import ClusterView, Job, Pool, TaskSpec
from falcon_rm.core.room import mode_for, reservation_path
from falcon_rm.core.scene import Key, Scene
from falcon_rm.core.tally import Tally, task_of
from falcon_rm.core.words import CPU_TOPOLOGY, ClusterStatus, Mode, Reason


class Kind(Enum):
    """What the scheduler says of a job that waits."""

    STAY = "stay"
    PLACE = "place"  # join the queue of a cluster
    CLAIM = "claim"  # take the slot, and a free pool or the name of a new one
    BUSY = "busy"  # would be picked, but the reservation lacks room


@frozen
class Decision:
    """What the scheduler says of one job."""

    kind: Kind
    message: str
    cluster_id: str | None = None
    pool: Pool | None = None  # a free pool to take; None: a new one
    mode: Mode | None = None
    reason: Reason = Reason.WAITING  # what a job that stays shows


@frozen
class Schedule:
    """What every job that is new or waits should do now, and for which job a reservation's room is kept."""

    decisions: Mapping[str, Decision]
    kept_for: Mapping[str, str]


def schedule(scene: Scene, messages: Messages) -> Schedule:
    """Return the schedule of one pass; jobs whose spec is invalid are left out."""
    tally = Tally(scene, messages)
    jobs = [job for job in scene.snapshot.jobs if isinstance(job.task, TaskSpec)]
    waiting = [job for job in jobs if scene.phases[job.id] is Phase.WAITING]
    for job in waiting:
        key = (job.cluster_id or "", task_of(job).topology)
        tally.depth[key] = tally.depth.get(key, 0) + 1
    for key, acquiring in scene.acquiring.items():
        tally.depth[key] = tally.depth.get(key, 0) + len(acquiring)
    for job in scene.snapshot.jobs:
        if job.cluster_id and job.topology == CPU_TOPOLOGY and scene.phases[job.id] is not Phase.WAITING:
            key = (job.cluster_id, CPU_TOPOLOGY)
            tally.depth[key] = tally.depth.get(key, 0) + 1
    decisions = _serve_queues([job for job in waiting if task_of(job).shape and job.cluster_id], tally)
    decisions |= _move(waiting, decisions, tally)
    for job in sorted((job for job in jobs if scene.phases[job.id] is Phase.NEW), key=place):
        decisions[job.id] = _choose(job, tally)
    return Schedule(decisions, {path: job.id for path, job in tally.held_for.items()})


# --- the cluster


def _choose(job: Job, tally: Tally) -> Decision:
    """Return the cluster a job joins: one that can ever start it, no failure just now, a free pool, a short queue."""
    scene, messages, task = tally.scene, tally.messages, task_of(job)
    fitting, reasons = tally.candidates(task)
    if not fitting:
        why = messages.join(*reasons) or messages.say("no-cluster-type", tpu_type=task.tpu_type or "cpu")
        shown = _shown(job, unknown=_is_blind(job.cluster_id or "", scene))
        return Decision(Kind.STAY, messages.say("no-cluster", why=why), reason=shown)

    def rank(view: ClusterView) -> tuple[bool, bool, bool, int, str]:
        cluster = view.cluster
        return (
            tally.never(job, view) is not None,
            backoff_until(job, cluster.id, scene) is not None,
            task.shape is not None and tally.free_pool(job, cluster.id) is None,
            tally.depth.get((cluster.id, task.topology), 0),
            cluster.name,
        )

    best = min(fitting.values(), key=rank).cluster
    pool = tally.free_pool(job, best.id)
    if pool:
        tally.promised.add((best.id, pool.name))
    key = (best.id, task.topology)
    tally.depth[key] = tally.depth.get(key, 0) + 1
    position = tally.depth[key] - len(scene.acquiring.get(key, ()))
    return Decision(Kind.PLACE, messages.queue(position, []) if task.shape else messages.say("soon"), best.id)


def _move(waiting: Iterable[Job], decided: Mapping[str, Decision], tally: Tally) -> dict[str, Decision]:
    """Return decisions of waiting jobs whose cluster is no candidate any more, or that another could start now."""
    moves: dict[str, Decision] = {}
    for job in sorted(waiting, key=lambda job: (-job.priority, place(job))):
        task = task_of(job)
        current = decided.get(job.id)
        if current and current.kind is Kind.CLAIM:
            continue
        fitting, _ = tally.candidates(task)
        if job.cluster_id not in fitting:
            moves[job.id] = _choose(job, tally)
        elif task.shape is None:
            moves[job.id] = Decision(Kind.CLAIM, tally.messages.say("dispatching-cpu"), job.cluster_id)
        else:
            better = next((view for view in tally.vacant(task) if _could_start(job, view, tally)), None)
            if better:
                tally.promise(task, better, tally.free_pool(job, better.cluster.id), mode_for(task, better.cluster))
                moves[job.id] = Decision(Kind.PLACE, tally.messages.say("soon"), better.cluster.id)
            elif _is_hopeless(job, tally):
                moves[job.id] = _choose(job, tally)
    return moves


def _is_hopeless(job: Job, tally: Tally) -> bool:
    """Return whether a job's own cluster can never start it, and another is known to be able to."""
    own = tally.scene.views[job.cluster_id or ""]
    return tally.never(job, own) is not None and any(
        tally.never(job, view) is None for view in tally.hopeful(task_of(job))
    )


def _could_start(job: Job, view: ClusterView, tally: Tally) -> bool:
    """Return whether another cluster could start a job at once: slot and queue empty, pool or room there."""
    task, cluster = task_of(job), view.cluster
    if cluster.id == job.cluster_id or not tally.is_vacant(task, view):
        return False
    if tally.keeps_off_until(job, cluster.id) is not None:
        return False
    if tally.free_pool(job, cluster.id) or mode_for(task, cluster) is not Mode.RESERVATION:
        return True
    return (tally.room(task, view) or 0) > 0 and reservation_path(cluster) not in tally.held_for


# --- the slot


def _serve_queues(waiting: Iterable[Job], tally: Tally) -> dict[str, Decision]:
    """Return decisions of the jobs that wait in queues of candidate clusters: who claims, who lacks room, who stays."""
    scene, queues = tally.scene, dict[Key, list[Job]]()
    for job in waiting:
        queues.setdefault((job.cluster_id or "", task_of(job).topology), []).append(job)
    served: dict[Key, dict[str, float]] = {}
    for turn in scene.snapshot.turns:
        served.setdefault((turn.cluster_id, turn.topology), {})[turn.actor] = turn.served_at
    lines = {key: list(line(jobs, served.get(key, {}))) for key, jobs in queues.items()}

    def head(key: Key) -> tuple[int, tuple[float, str]]:
        jobs, view = lines[key], scene.views.get(key[0])
        ready = _ready(jobs, view, tally) if view else []
        first = next(line(ready, served.get(key, {})), jobs[0])
        return -first.priority, place(first)

    decisions: dict[str, Decision] = {}
    for key in sorted(lines, key=head):
        view = scene.views.get(key[0])
        usable = view is not None and view.cluster.status is ClusterStatus.ACTIVE and view.readable and not view.problem
        chosen = _serve(key, lines[key], served.get(key, {}), view, tally) if usable and view else {}
        decisions |= _tell(key, lines[key], chosen, tally)
    return decisions


def _serve(
    key: Key, jobs: list[Job], served: Mapping[str, float], view: ClusterView, tally: Tally
) -> dict[str, Decision]:
    """Return who claims the slot of one queue now, if anybody, and who shows that the reservation lacks room."""
    scene, chosen = tally.scene, dict[str, Decision]()
    fitting = [job for job in jobs if tally.never(job, view) is None]
    ready = _ready(jobs, view, tally)
    head = next(line(ready, served), None)
    first = next(line([job for job in fitting if not is_off(job, key[0], scene)], served), None)
    if first and first is not head and not scene.trouble(key[0]):
        _keep_room(first, view, tally)
    if head is None or scene.trouble(key[0]):
        return chosen
    now = _try(head, view, tally)
    if now.kind is not Kind.CLAIM:
        chosen[head.id] = now
        _keep_room(head, view, tally)
    if key not in scene.slots or not tally.slot_free(key):
        return chosen
    able = [job for job in ready if _try(job, view, tally).kind is Kind.CLAIM]
    picked = next(line(able, served), None)
    if picked:
        chosen[picked.id] = _try(picked, view, tally)
        tally.promise(task_of(picked), view, chosen[picked.id].pool, chosen[picked.id].mode)
    return chosen


def _ready(jobs: Iterable[Job], view: ClusterView, tally: Tally) -> list[Job]:
    """Return who of a queue may be picked now: whom its cluster takes and can start, and who does not keep off."""
    return [
        job
        for job in jobs
        if tally.never(job, view) is None
        and tally.keeps_off_until(job, view.cluster.id) is None
        and view.cluster.id in tally.candidates(task_of(job))[0]
    ]


def _try(job: Job, view: ClusterView, tally: Tally) -> Decision:
    """Return whether a job could start here now: with a free pool, or with a new one if there is room for it."""
    task, cluster, messages = task_of(job), view.cluster, tally.messages
    pool = tally.free_pool(job, cluster.id)
    if pool:
        say = messages.say("taking", pool=pool.name, mode=pool.mode)
        return Decision(Kind.CLAIM, say, cluster.id, pool, pool.mode)
    mode = mode_for(task, cluster)
    claim = Decision(Kind.CLAIM, messages.say("provisioning", mode=mode), cluster.id, None, mode)
    if mode is not Mode.RESERVATION:
        return claim
    path = reservation_path(cluster) or ""
    remaining, keeper = tally.room(task, view), tally.held_for.get(path)
    if remaining is None:
        why = view.room_problem
        say = messages.say("room-unread", path=path, why=why) if why else messages.say("room-unknown", path=path)
        return Decision(Kind.STAY, say)
    if remaining > 0 and keeper in (None, job):
        return claim
    kept = messages.say("room-held", job=keeper.id) if keeper and keeper is not job else None
    closed = messages.say("room-not-ready", path=path) if view.reservation and not view.reservation.ready else None
    say = messages.join(messages.say("room", remaining=remaining, needed=1), closed, kept)
    return Decision(Kind.BUSY, say, cluster.id)


def _keep_room(head: Job, view: ClusterView, tally: Tally) -> None:
    """Keep a reservation's room for a head that has shown ClusterBusy long enough: nobody behind it takes any."""
    path = reservation_path(view.cluster)
    since = busy_since(head, view.cluster.id, tally.scene) if head.reason == Reason.CLUSTER_BUSY else None
    if path and path not in tally.held_for and tally.scene.age(since) >= tally.scene.bounds.room_hold:
        tally.held_for[path] = head


# --- what everyone is told


def _tell(key: Key, jobs: list[Job], chosen: dict[str, Decision], tally: Tally) -> dict[str, Decision]:
    """
    Return the decisions of a whole queue: those chosen, and for the rest their place and what they wait for.

    Who claims now counts as started. Behind the exact positions nothing is said that changes with every start.
    """
    scene, messages = tally.scene, tally.messages
    claiming = next((job for job in jobs if job.id in chosen and chosen[job.id].kind is Kind.CLAIM), None)
    told = {claiming.id: chosen[claiming.id]} if claiming else {}
    waiting = [job for job in jobs if job is not claiming]
    ahead = [(job.actor, job.name or job.id) for job in waiting[:EXACT_POSITIONS]]
    view, wrong = scene.views.get(key[0]), _what_is_wrong(key[0], tally)
    why_not = _who_acquires(key, claiming, tally) or wrong or messages.say("others-first")
    for index, job in enumerate(waiting):
        decision = chosen.get(job.id)
        if decision and decision.kind is not Kind.STAY:
            told[job.id] = decision
            continue
        never_fits = tally.never(job, view) if view else None
        until = None if never_fits else tally.keeps_off_until(job, key[0])
        last = max(scene.failures.get((job.id, key[0]), ()), key=lambda failure: failure.at, default=None)
        waits = never_fits or (why_not if index < EXACT_POSITIONS else wrong)
        if until:
            waits = messages.say("backoff", until=moment(until), why=last.text if last else "")
        place_text = messages.queue(index + 1, ahead[:index])
        text = messages.join(place_text, decision.message if decision else waits)
        unknown = decision is not None or until is not None or _is_blind(key[0], scene)
        told[job.id] = Decision(Kind.STAY, text, key[0], reason=_shown(job, unknown=unknown))
    return told


def _shown(job: Job, *, unknown: bool) -> Reason:
    """Return the reason of a job that stays: while nobody knows whether there is room, what it showed before."""
    return Reason.CLUSTER_BUSY if unknown and job.reason == Reason.CLUSTER_BUSY else Reason.WAITING


def _is_blind(cluster_id: str, scene: Scene) -> bool:
    """Return whether a cluster that takes jobs could not be read in this pass."""
    view = scene.views.get(cluster_id)
    if view is None or view.cluster.status is not ClusterStatus.ACTIVE:
        return False
    return bool(view.problem) or not view.readable


def _who_acquires(key: Key, claiming: Job | None, tally: Tally) -> str | None:
    """Return who holds the slot of a queue, or takes it now; None if nobody does."""
    holder = next(iter(tally.scene.acquiring.get(key, ())), claiming)
    if holder is None:
        return None
    reason = Reason.PROVISIONING if holder is claiming else holder.reason
    return tally.messages.say("slot-held", actor=holder.actor, job=holder.name or holder.id, reason=reason)


def _what_is_wrong(cluster_id: str, tally: Tally) -> str | None:
    """Return why a cluster starts nobody; None if it could."""
    scene, messages = tally.scene, tally.messages
    view = scene.views.get(cluster_id)
    if view is None or not view.readable or view.problem:
        name, why = (view.cluster.name, view.problem or "?") if view else (cluster_id, "?")
        return messages.say("cluster-unread", cluster=name, why=why)
    if view.cluster.status is not ClusterStatus.ACTIVE:
        return messages.say("cluster-status", cluster=view.cluster.name, status=view.cluster.status)
    trouble = scene.trouble(cluster_id)
    if trouble:
        until = moment(trouble.at + scene.bounds.cluster_pause)
        return messages.say("cluster-trouble", cluster=view.cluster.name, until=until, why=trouble.text)
    return None
