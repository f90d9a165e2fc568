"""
What nobody needs any more, and the brake (design.md 5).

What can be stale: rows were read before pools, pools before workloads; so a holder counts as missing or terminal only
if `later`, read after all of them, says so too. Never judged: a cluster whose lists are not complete.

1. The sweep starts from the clouds' lists, not from the ledger: what has no row is found as well.
2. Only what is ours by name and labels is touched; the rest is counted.
3. Free pools are kept only while, and only as many as, waiting jobs fit them.
4. The brake: more orphans than max(3, 30 %) of our live pools, or of our live Jobs, and none is swept.
"""

from collections.abc import Iterator, Mapping

from attrs import Factory, define, frozen

from falcon_rm.core import names
from falcon_rm.core.actions import Action, DeletePool, DeleteWork, EndLease, EnterPool, FreeSlot, MarkPool, RetirePool
from falcon_rm.core.live import LivePool, LiveWork
from falcon_rm.core.machine import Phase
from falcon_rm.core.model import ClusterView, Job, Pool, TaskSpec
from falcon_rm.core.scene import ACQUIRING, TERMINAL, Key, Scene, fits
from falcon_rm.core.shapes import shape_of
from falcon_rm.core.situation import may_still_show
from falcon_rm.core.tally import task_of
from falcon_rm.core.words import ErrorKind, PoolState, PoolStatus


@frozen
class Brake:
    """A sweep that was held: how many orphans there are, and how many may go in one pass."""

    pools: int
    works: int
    pool_limit: int
    work_limit: int

    @property
    def text(self) -> str:
        """Say what is held and what lifts it."""
        return (
            f"sweep held: {self.pools} orphaned pools (limit {self.pool_limit}), {self.works} orphaned Jobs "
            f"(limit {self.work_limit}); check that this is the right database, then run-once --allow-mass-delete"
        )


@define
class Demand:
    """Which free pools waiting jobs can use, and which waiting jobs no free pool is left for."""

    scene: Scene
    joins: Mapping[str, str] = Factory(dict)  # job -> cluster: who joins a queue, or moves to another, in this pass
    kept_for: Mapping[str, str] = Factory(dict)  # reservation -> the one job that may have of it now
    kept: set[Key] = Factory(set)
    unserved: dict[Key, list[Job]] = Factory(dict)  # by (cluster, topology)

    def __attrs_post_init__(self) -> None:
        for job in self.scene.snapshot.jobs:
            waits = self.scene.phases[job.id] is Phase.WAITING
            cluster_id = self.joins.get(job.id) or (job.cluster_id if waits else None)
            if cluster_id and isinstance(job.task, TaskSpec) and job.task.shape:
                self.unserved.setdefault((cluster_id, job.task.topology), []).append(job)
        for jobs in self.unserved.values():
            jobs.sort(key=lambda job: task_of(job).mode is None)  # who named a mode has fewer pools to choose from
        for cluster_id in sorted({cluster_id for cluster_id, _ in self.unserved}):
            for pool in self.scene.free_pools(cluster_id):
                if self.wants(pool):
                    self.kept.add((cluster_id, pool.name))

    def wants(self, pool: Pool) -> bool:
        """Return whether a waiting job that has no free pool yet fits this one; it is then served."""
        view = self.scene.views.get(pool.cluster_id)
        if view is None or view.cluster.status != "active":
            return False
        jobs = self.unserved.get((pool.cluster_id, pool.topology), [])
        job = next((job for job in jobs if self._may_have(job, pool)), None)
        if job:
            jobs.remove(job)
        return job is not None

    def _may_have(self, job: Job, pool: Pool) -> bool:
        return fits(pool, task_of(job)) and self.kept_for.get(pool.reservation or "", job.id) == job.id


@define
class _Found:
    """What a sweep found: orphans fall under the brake, the rest carries out what was committed."""

    actions: list[Action] = Factory(list)
    orphans: list[Action] = Factory(list)
    orphan_pools: int = 0
    orphan_works: int = 0
    pools: int = 0
    works: int = 0
    foreign: dict[str, int] = Factory(dict)


@frozen
class Sweep:
    """What to do about what nobody needs, whether the brake holds, and what is not ours by cluster name."""

    actions: tuple[Action, ...]
    brake: Brake | None
    foreign: dict[str, int]


def sweep(scene: Scene, demand: Demand) -> Sweep:
    """Return the sweep of one pass."""
    found = _Found(actions=[*_slots(scene)])
    for view in scene.snapshot.views:
        if view.pools is not None:
            _sweep_pools(view, scene, demand, found)
        if view.works is not None:
            _sweep_works(view, scene, found)
    limit_pools, limit_works = _limit(found.pools), _limit(found.works)
    held = found.orphan_pools > limit_pools or found.orphan_works > limit_works
    if held and not scene.bounds.allow_mass_delete:
        brake = Brake(found.orphan_pools, found.orphan_works, limit_pools, limit_works)
        return Sweep(tuple(found.actions), brake, found.foreign)
    return Sweep((*found.actions, *found.orphans), None, found.foreign)


def _limit(live: int) -> int:
    """Return how many orphans may go in one pass: max(3, 30 %)."""
    return max(3, live * 3 // 10)


def _is_over(job_id: str, scene: Scene) -> bool | None:
    """Return whether the row of a job that is not live is missing or terminal; None if the second read is not there."""
    later = scene.snapshot.later
    if later is None:
        return None
    return later.get(job_id) in (None, *TERMINAL)


def _slots(scene: Scene) -> Iterator[FreeSlot]:
    """Yield slots whose holder does not acquire in that queue any more."""
    for slot in scene.snapshot.slots:
        if slot.holder is None:
            continue
        job = scene.jobs.get(slot.holder)
        acquires = job is not None and scene.phases[job.id] in ACQUIRING
        here = job is not None and (job.cluster_id, job.topology) == (slot.cluster_id, slot.topology)
        if (job is not None and not (acquires and here)) or (job is None and _is_over(slot.holder, scene)):
            yield FreeSlot(slot.cluster_id, slot.topology, slot.holder)


# --- pools


def _sweep_pools(view: ClusterView, scene: Scene, demand: Demand, found: _Found) -> None:
    cluster = view.cluster
    listed = set()
    others = set()  # not ours by their labels: perhaps no longer, so no row of such a name is closed
    for live in view.pools or ():
        if not scene.ours(cluster.id, live.name, live.labels):
            others.add(live.name)
            if live.name.startswith(names.PREFIX):
                found.foreign[cluster.name] = found.foreign.get(cluster.name, 0) + 1
            continue
        found.pools += 1
        listed.add(live.name)
        ledger = scene.pools.get((cluster.id, live.name))
        if ledger is None:
            _enter(live, view, found)
        else:
            _mark(live, ledger, view, found)
            _sweep_listed(live, ledger, view, scene, demand, found)
    for (cluster_id, name), ledger in scene.pools.items():
        if cluster_id == cluster.id and name not in listed:
            _sweep_missing(ledger, scene, found, bears_name=name in others and ledger.seen_at is not None)


def _enter(live: LivePool, view: ClusterView, found: _Found) -> None:
    """
    Enter a pool of ours that has no ledger row: as free, or as found if something runs on it.

    One that Falcon could not have made (machine, topology or mode) is a person's: counted with what is not ours.
    """
    shape = shape_of(live.machine_type, live.topology)
    if shape is None or live.mode is None:
        found.foreign[view.cluster.name] = found.foreign.get(view.cluster.name, 0) + 1
        return
    if view.works is None:
        return
    pool = Pool(
        cluster_id=view.cluster.id,
        name=live.name,
        job_id=live.labels.get(names.JOB_ID, ""),
        attempt=int(live.labels.get(names.ATTEMPT, "0")) if live.labels.get(names.ATTEMPT, "0").isdigit() else 0,
        tpu_type=shape.tpu_type,
        topology=shape.topology,
        machine_type=shape.machine_type,
        hosts=shape.hosts,
        chips=shape.chips,
        mode=live.mode,
        reservation=live.reservation,
        found=any(work.pool == live.name for work in view.works),
    )
    found.actions.append(EnterPool(pool))


def _mark(live: LivePool, ledger: Pool, view: ClusterView, found: _Found) -> None:
    """Write first times of a pool into the ledger."""
    running = live.status in (PoolStatus.RUNNING, PoolStatus.RUNNING_WITH_ERROR, PoolStatus.RECONCILING)
    ready = running and view.ready_nodes.get(live.name, 0) >= ledger.hosts
    mark = MarkPool(
        view.cluster.id,
        live.name,
        seen=ledger.seen_at is None,
        up=running and ledger.up_at is None,
        ready=ready and ledger.ready_at is None,
    )
    if ledger.state is not PoolState.DELETED and (mark.seen or mark.up or mark.ready):
        found.actions.append(mark)


def _sweep_listed(live: LivePool, ledger: Pool, view: ClusterView, scene: Scene, demand: Demand, found: _Found) -> None:
    cluster = view.cluster
    if ledger.state is not PoolState.ACTIVE:
        if live.status is not PoolStatus.STOPPING:
            lost = ledger.error.at if ledger.error and ledger.error.kind is ErrorKind.UNKNOWN else 0
            why = "nobody holds it and nobody waits for it"
            found.actions.append(DeletePool(cluster, live.name, why, tried_at=lost))
        return
    if ledger.lease:
        if view.works is not None and _is_orphan(ledger, scene):
            found.orphan_pools += 1
            found.orphans.append(
                EndLease(cluster.id, live.name, ledger.lease, keep=False, why="its job is gone or over")
            )
        return
    pinned = view.works is None or any(work.pool == live.name for work in view.works)
    if (cluster.id, live.name) in demand.kept or (ledger.found and pinned):
        return
    retire = RetirePool(cluster.id, live.name, PoolState.ACTIVE, PoolState.DELETING, "no waiting job can use it")
    if ledger.requested_at is None:  # entered by the sweep: this database never asked for it
        found.orphan_pools += 1
        found.orphans.append(retire)
    else:
        found.actions.append(retire)


def _is_orphan(ledger: Pool, scene: Scene) -> bool:
    """Return whether a lease's job is over, or waits and names no such pool. Its Job, if one is left, goes as well."""
    holder = ledger.lease or ""
    job = scene.jobs.get(holder)
    if ledger.leased_at is not None and ledger.leased_at >= scene.snapshot.now:
        return False  # another controller gave it since the rows were read
    if job is not None:
        named = (job.cluster_id, job.node_pool_name) == (ledger.cluster_id, ledger.name)
        return not named and scene.phases[holder] in (Phase.NEW, Phase.WAITING)
    return bool(_is_over(holder, scene))


def _sweep_missing(ledger: Pool, scene: Scene, found: _Found, *, bears_name: bool) -> None:
    """Close the ledger row of a pool that a complete list lacks; where one *bears_name* that is not ours, not quite."""
    key = (ledger.cluster_id, ledger.name)
    if ledger.state is PoolState.DELETED or may_still_show(ledger, scene):
        return
    if ledger.lease:
        if ledger.lease not in scene.jobs and _is_over(ledger.lease, scene):
            found.actions.append(EndLease(*key, ledger.lease, keep=False, why="its job is over and the pool is gone"))
        return
    if ledger.state is PoolState.ACTIVE:
        why = "one of its name is listed, with other labels" if bears_name else "a complete list lacks it"
        found.actions.append(RetirePool(*key, PoolState.ACTIVE, PoolState.DELETING, why))
    elif not bears_name:
        found.actions.append(RetirePool(*key, PoolState.DELETING, PoolState.DELETED, "a complete list lacks it"))


# --- Kubernetes Jobs


def _sweep_works(view: ClusterView, scene: Scene, found: _Found) -> None:
    works = [work for work in view.works or () if scene.ours(view.cluster.id, work.name, work.labels)]
    found.works += len(works)
    bare = any(names.JOB_ID not in work.annotations for work in works)  # others took it away: the label tells as well
    labelled = {names.label_value(job.id): job for job in scene.snapshot.jobs} if bare else {}
    for work in works:
        told = work.annotations.get(names.JOB_ID)
        job = scene.jobs.get(told) if told else labelled.get(_job_id(work))
        why, orphan = _why_superfluous(work, job, view, scene)
        if why and not work.deleting:
            action = DeleteWork(view.cluster, work.name, work.uid, _job_id(work), _attempt(work), why, awaited=False)
            (found.orphans if orphan else found.actions).append(action)
            found.orphan_works += orphan


def _why_superfluous(work: LiveWork, job: Job | None, view: ClusterView, scene: Scene) -> tuple[str | None, bool]:
    """Return why a Job of ours may go (None: it may not), and whether its *job* is missing or terminal."""
    if job is None:
        return ("its job is gone or over", True) if _is_over(_job_id(work), scene) else (None, False)
    phase, attempt = scene.phases[job.id], _attempt(work)
    if phase is None or attempt > job.attempt:
        return None, False
    waits = phase in (Phase.NEW, Phase.WAITING)
    if attempt < job.attempt or waits or job.cluster_id != view.cluster.id:
        return "an older attempt", False
    return None, False


def _job_id(work: LiveWork) -> str:
    return work.annotations.get(names.JOB_ID) or work.labels.get(names.JOB_ID, "")


def _attempt(work: LiveWork) -> int:
    text = work.labels.get(names.ATTEMPT, "")
    return int(text) if text.isdigit() else 0
