"""
Taking a cluster out of use: what still lives on it, and how all of that is written off when it is gone for good.

1. A job lives on a cluster while it acquires, runs or ends there; one that only waits owns nothing and goes elsewhere.
2. What is written off goes through the store as a pass writes it: one guarded transaction a row, with its event or
   audit row. What somebody else wrote first is read again.
3. No cloud is asked: the operator's word is that nothing is there any more.
"""

from collections.abc import Callable, Iterator

from attrs import frozen

from falcon_rm.core.actions import NOW, Change, EndLease, FreeSlot, GiveUp, RetirePool, Value
from falcon_rm.core.machine import Phase
from falcon_rm.core.messages import Messages
from falcon_rm.core.model import Job, Pool
from falcon_rm.core.scene import phase_of
from falcon_rm.core.steps import FINAL
from falcon_rm.core.words import Outcome, PoolState, Status
from falcon_rm.ports import Rows, Store

OWNS_NOTHING = (Phase.NEW, Phase.WAITING, Phase.TERMINAL)

ROUNDS = 20
"""How often what is left is read again: a pool takes two, everything else is somebody's write that came first."""


@frozen
class Living:
    """What is left of ours on one cluster."""

    jobs: tuple[Job, ...]
    pools: tuple[Pool, ...]
    strays: tuple[str, ...] = ()  # Kubernetes Jobs that may run though the rows of their jobs are gone

    def __bool__(self) -> bool:
        return bool(self.jobs or self.pools or self.strays)

    def named(self) -> tuple[str, ...]:
        """Return each by name, with how it stands."""
        jobs = (f"job/{job.id} ({f'{job.status}/{job.reason}' if job.reason else job.status})" for job in self.jobs)
        pools = (f"pool/{pool.name} ({pool.state})" for pool in self.pools)
        return (*jobs, *pools, *(f"work/{name} (its job is gone)" for name in self.strays))


def living(rows: Rows, cluster_id: str, strays: tuple[str, ...] = ()) -> Living:
    """Return what lives on a cluster, by the database; *strays* are people.read_strays'."""
    return Living(
        jobs=tuple(job for job in rows.jobs if job.cluster_id == cluster_id and phase_of(job) not in OWNS_NOTHING),
        pools=tuple(pool for pool in rows.pools if pool.cluster_id == cluster_id),
        strays=strays,
    )


def write_off(store: Store, cluster_id: str, name: str, messages: Messages) -> Living:
    """
    Write off what lives on a cluster, and return what is left of it: nothing, unless others write all the time.

    Args:
        store: where it stands.
        cluster_id: the cluster's id.
        name: its name, for what is written.
        messages: in the language of the messages in `job`.
    """
    for _ in range(ROUNDS):
        rows = store.read()
        left = living(rows, cluster_id)
        steps = list(_steps(store, rows, left, cluster_id, name, messages))
        if not steps:
            return left
        for step in steps:
            step()
    return living(store.read(), cluster_id)


def _steps(
    store: Store, rows: Rows, left: Living, cluster_id: str, name: str, messages: Messages
) -> Iterator[Callable[[], bool]]:
    """Yield what is to be written now, each a transaction."""
    why = f"cluster {name} was abandoned"
    pools = {pool.name: pool for pool in left.pools}
    ending = {job.id for job in left.jobs}
    for job in left.jobs:
        change = _ended(job, pools.get(job.node_pool_name or ""), why, messages.say("abandoned", cluster=name))
        yield lambda change=change: store.commit(change)  # type: ignore[misc]
    for pool in left.pools:
        if pool.lease is None:
            gone = RetirePool(cluster_id, pool.name, pool.state, PoolState.DELETED, why)
            yield lambda gone=gone: store.retire_pool(gone)  # type: ignore[misc]
        elif pool.lease not in ending:
            end = EndLease(cluster_id, pool.name, pool.lease, keep=False, why=why)
            yield lambda end=end: store.end_lease(end)  # type: ignore[misc]
    for slot in rows.slots:
        if slot.cluster_id == cluster_id and slot.holder and slot.holder not in ending:
            free = FreeSlot(cluster_id, slot.topology, slot.holder)
            yield lambda free=free: store.free_slot(free)  # type: ignore[misc]


def _ended(job: Job, pool: Pool | None, why: str, text: str) -> Change:
    """Return the end of a job: aborted if that was asked, as it ended if that was seen, else failed."""
    status, reason = FINAL[Outcome(job.outcome)] if job.outcome in set(Outcome) else (Status.PENDING, None)
    columns: dict[str, Value] = {} if job.finished_at else {"finished_at": NOW}
    message: str | None = None
    if job.status == Status.ABORTING:
        status, reason, columns, message = Status.ABORTED, None, {"aborted_at": NOW}, text
    elif status is Status.SUCCEEDED:
        message = ""
    elif status is not Status.FAILED:
        status, reason = FINAL[Outcome.JOB_FAILED]
        message, columns["outcome"] = text, Outcome.JOB_FAILED
    holds = pool is not None and pool.lease == job.id and pool.state is PoolState.ACTIVE
    return Change(
        job.id,
        job.version,
        job.status,
        job.reason,
        status,
        reason,
        why,
        cluster_id=job.cluster_id,
        topology=job.topology,
        message=message,
        columns=columns,
        frees_slot=True,
        gives_up=GiveUp(pool.name, keep=False, ended="abandoned") if pool and holds else None,
    )
