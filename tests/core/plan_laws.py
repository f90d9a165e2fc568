"""
What must hold of every plan, whatever the world: one function a law, which asserts it (design.md 1, proof.md 2).

1. The laws are written from the contract; of the core they use the join of rows and clouds and names, no choice.
2. A law looks at the snapshot and its plan alone; what needs a second pass stands in test_plan_properties.py.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from falcon_rm.core import names
from falcon_rm.core.actions import (
    Change,
    CreatePool,
    DeletePool,
    DeleteWork,
    EndLease,
    ResumeWork,
    RetirePool,
    SubmitWork,
    order,
)
from falcon_rm.core.live import Reservation
from falcon_rm.core.machine import Phase
from falcon_rm.core.model import Job, Pool, Snapshot, TaskSpec
from falcon_rm.core.plan import Plan
from falcon_rm.core.room import units
from falcon_rm.core.scene import ACQUIRING, TERMINAL, Scene, fits, phase_of, scene, work_name
from falcon_rm.core.words import CPU_TOPOLOGY, Mode, PoolState

GKE_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
KNOWN_UNKNOWNS = ("a row that makes no sense: ", "left alone: the state of its ")

Law = Callable[[Snapshot, Plan], None]


def changes(plan: Plan) -> list[Change]:
    """Return the Changes of a plan."""
    return [action for action in plan.actions if isinstance(action, Change)]


def no_fault(snapshot: Snapshot, plan: Plan) -> None:
    """No job is unknown because of an exception."""
    raised = [entry.why for entry in plan.unknown if entry.kind == "job" and not entry.why.startswith(KNOWN_UNKNOWNS)]
    assert [] == raised


def sorted_actions(snapshot: Snapshot, plan: Plan) -> None:
    """Actions stand in their own order."""
    assert sorted(plan.actions, key=order) == list(plan.actions)


def blind_clusters_are_left_alone(snapshot: Snapshot, plan: Plan) -> None:
    """Where a list was not read, nothing is made, deleted or released that rests on it (S6)."""
    no_pools = {view.cluster.id for view in snapshot.views if view.pools is None}
    no_works = {view.cluster.id for view in snapshot.views if view.works is None}
    touched = {action.cluster.id for action in plan.actions if isinstance(action, CreatePool | DeletePool)}
    touched |= {action.cluster_id for action in plan.actions if isinstance(action, EndLease | RetirePool)}
    assert set() == touched & no_pools
    assert (
        set()
        == {action.cluster.id for action in plan.actions if isinstance(action, SubmitWork | ResumeWork | DeleteWork)}
        & no_works
    )
    seen = scene(snapshot)
    for change in changes(plan):
        job = seen.jobs[change.job_id]
        claims = change.takes is not None or change.takes_slot is not None
        assert not (claims and change.cluster_id in no_pools | no_works)
        if job.cluster_id in no_pools & no_works and _rests_on_reading(job, seen):
            assert job.status == change.to_status
            assert change.to_reason in (job.reason, None)
            assert not (change.columns or change.takes or change.makes or change.gives_up or change.frees_slot)


def _rests_on_reading(job: Job, seen: Scene) -> bool:
    """Tell whether a job is past Waiting and may own something in its cluster, as far as the rows say."""
    acquiring_or_later = phase_of(job) not in (None, Phase.NEW, Phase.WAITING, Phase.TERMINAL)
    ledger = seen.pool_of(job)
    owns_pool = bool(job.node_pool_name and job.topology != CPU_TOPOLOGY and (ledger is None or ledger.lease == job.id))
    return acquiring_or_later and (owns_pool or bool(job.job_uid) or seen.submission_of(job) is not None)


def one_claim_a_slot(snapshot: Snapshot, plan: Plan) -> None:
    """A slot is claimed once, only if it is there, empty, and nobody acquires in its queue (S4)."""
    claims = [(change.cluster_id, change.topology) for change in changes(plan) if change.takes_slot is not None]
    assert len(claims) == len(set(claims))
    empty = {(slot.cluster_id, slot.topology) for slot in snapshot.slots if slot.holder is None}
    assert set(claims) <= empty
    acquiring = {(job.cluster_id, job.topology) for job in snapshot.jobs if phase_of(job) in ACQUIRING}
    assert set() == set(claims) & acquiring


def one_step_a_job(snapshot: Snapshot, plan: Plan) -> None:
    """A job takes at most one step a pass, what it is told aside; the sweep deletes nothing that goes on (law 5)."""
    steps = Counter(
        action.job_id
        for action in plan.actions
        if isinstance(action, CreatePool | SubmitWork | ResumeWork)
        or (isinstance(action, Change) and not action.only_message)
    )
    jobs = {job.id: job for job in snapshot.jobs}
    for action in [a for a in plan.actions if isinstance(a, DeleteWork)]:
        job = jobs.get(action.job_id)
        if job and action.name == work_name(job) and phase_of(job) not in (Phase.NEW, Phase.WAITING):
            steps[job.id] += 1
    assert set() == {job_id for job_id, count in steps.items() if count > 1}
    deletes = [order(action) for action in plan.actions if isinstance(action, DeletePool | DeleteWork)]
    assert len(deletes) == len(set(deletes))


def no_pool_twice(snapshot: Snapshot, plan: Plan) -> None:
    """A free pool is promised once, is really free, and does not go in the same pass (P78)."""
    pools = {(pool.cluster_id, pool.name): pool for pool in snapshot.pools}
    taken = [(change.cluster_id or "", change.takes) for change in changes(plan) if change.takes is not None]
    assert len(taken) == len(set(taken))
    for key in taken:
        assert (PoolState.ACTIVE, None, False) == (pools[key].state, pools[key].lease, pools[key].found)
    assert set() == set(taken) & {
        (action.cluster_id, action.name) for action in plan.actions if isinstance(action, RetirePool)
    }


def no_room_twice(snapshot: Snapshot, plan: Plan) -> None:
    """New pools take no more of a reservation than it has left, our uncounted pools taken off."""
    asked: Counter[str] = Counter()
    rooms: dict[str, Reservation] = {v.reservation.path: v.reservation for v in snapshot.views if v.reservation}
    jobs = {job.id: job for job in snapshot.jobs}
    for change in changes(plan):
        if change.makes and change.makes.mode is Mode.RESERVATION:
            path = change.makes.reservation or ""
            shape = jobs[change.job_id].task.shape  # type: ignore[union-attr]
            assert path in rooms
            assert shape is not None
            asked[path] += units(shape, rooms[path])
    for path, needed in asked.items():
        room = rooms[path]
        own = sum(pool.hosts for pool in snapshot.pools if pool.reservation == path and _uncounted(pool, snapshot))
        assert room.ready
        assert needed <= room.total - room.used - own


def _uncounted(pool: Pool, snapshot: Snapshot) -> bool:
    young = pool.ready_at is None or snapshot.now - pool.ready_at < snapshot.bounds.visibility_grace
    return (pool.state, pool.mode) == (PoolState.ACTIVE, Mode.RESERVATION) and young


def only_ours_is_deleted(snapshot: Snapshot, plan: Plan) -> None:
    """Pools and Jobs that are deleted carry our name and labels, Jobs the UID that was seen (S8)."""
    seen = scene(snapshot)
    for pool in [a for a in plan.actions if isinstance(a, DeletePool)]:
        live = seen.live[pool.cluster.id, pool.name]
        assert names.is_ours(live.name, live.labels, instance=snapshot.instance, cluster_id=pool.cluster.id)
        row = seen.pools[pool.cluster.id, pool.name]
        assert row.state is not PoolState.ACTIVE
        assert row.lease is None
    for work in [a for a in plan.actions if isinstance(a, DeleteWork)]:
        found = seen.works[work.cluster.id, work.name]
        assert names.is_ours(found.name, found.labels, instance=snapshot.instance, cluster_id=work.cluster.id)
        assert found.uid == work.uid


def only_orphans_lose_their_lease(snapshot: Snapshot, plan: Plan) -> None:
    """The sweep ends leases of missing or terminal jobs, by both reads, and of waiting jobs that name no pool (S5)."""
    live = {job.id: job for job in snapshot.jobs}
    for action in [a for a in plan.actions if isinstance(a, EndLease)]:
        if action.job_id in live:
            job = live[action.job_id]
            assert phase_of(job) in (Phase.NEW, Phase.WAITING)
            assert (job.cluster_id, job.node_pool_name) != (action.cluster_id, action.pool)
            continue
        assert snapshot.later is not None
        assert snapshot.later.get(action.job_id) in (None, *TERMINAL)


def needed_pools_stay(snapshot: Snapshot, plan: Plan) -> None:
    """Retiring free pools leaves no waiting job without one that it could have had (P34, P36)."""
    seen = scene(snapshot)
    retired = {(action.cluster_id, action.name) for action in plan.actions if isinstance(action, RetirePool)}
    for key in retired:
        assert seen.pools[key].lease is None
    moved = {change.job_id: change.columns.get("cluster_id") for change in changes(plan)}
    for view in snapshot.views:
        waiting = [
            job.task
            for job in snapshot.jobs
            if phase_of(job) in (Phase.NEW, Phase.WAITING) and isinstance(job.task, TaskSpec)
            if (moved.get(job.id) or job.cluster_id) == view.cluster.id
        ]
        usable = seen.free_pools(view.cluster.id)
        staying = [pool for pool in usable if (pool.cluster_id, pool.name) not in retired]
        assert served(waiting, usable) == served(waiting, staying)


def served(waiting: list[TaskSpec], pools: Sequence[Pool]) -> int:
    """Return how many waiting jobs can have a free pool each: those that name a mode choose first."""
    left, count = list(pools), 0
    for asked in sorted(waiting, key=lambda asked: asked.mode is None):
        found = next((pool for pool in left if fits(pool, asked)), None)
        if found:
            left.remove(found)
            count += 1
    return count


def names_are_legal(snapshot: Snapshot, plan: Plan) -> None:
    """Names fit GKE and Kubernetes, and belong to one attempt of one job (S3)."""
    named: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for change in changes(plan):
        if change.makes:
            named[change.makes.name].add((change.makes.job_id, change.makes.attempt))
    for action in [a for a in plan.actions if isinstance(a, SubmitWork)]:
        named[action.name].add((action.job_id, action.attempt))
    for name, attempts in named.items():
        assert GKE_NAME.fullmatch(name)
        assert 1 == len(attempts)


def messages_are_lines(snapshot: Snapshot, plan: Plan) -> None:
    """Every message is one line of UTF-8 of at most 4,096 bytes (S10)."""
    for change in changes(plan):
        if change.message:
            assert len(change.message.encode()) <= 4096
            assert change.message.isprintable()


def ends_own_nothing(snapshot: Snapshot, plan: Plan) -> None:
    """A status that says it is over is written when the job holds no pool and no Job of it is listed (S1, S2)."""
    seen = scene(snapshot)
    for change in changes(plan):
        job = seen.jobs[change.job_id]
        assert job.status not in TERMINAL
        over = change.to_status in TERMINAL and change.to_reason not in (
            "InvalidSpec",
            "NodePoolTimeout",
            "NodePoolFailed",
        )
        if not over or "the release is stuck" in (change.message or "") or "资源释放超时" in (change.message or ""):
            continue
        pool = seen.pool_of(job)
        assert pool is None or pool.lease != job.id
        assert seen.work_of(job) is None


LAWS: tuple[Law, ...] = (
    no_fault,
    sorted_actions,
    blind_clusters_are_left_alone,
    one_claim_a_slot,
    one_step_a_job,
    no_pool_twice,
    no_room_twice,
    only_ours_is_deleted,
    only_orphans_lose_their_lease,
    needed_pools_stay,
    names_are_legal,
    messages_are_lines,
    ends_own_nothing,
)
