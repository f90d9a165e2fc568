"""
The database in memory, for tests that need thousands of worlds: the same promises as MySqlStore, held by one suite.

1. A write checks every guard first and changes nothing unless all hold: that is the transaction.
2. What it needs beside the tables (bounds, columns, kinds) is the product's own, so that the two cannot drift apart.
"""

from collections.abc import Collection, Mapping
from typing import Any

from attrs import define, evolve
from history import Audit, Event, Lease
from memory_tables import Key, Tables

from falcon_rm.cloud.rows import BACKS_OFF, FAILURES_KEPT
from falcon_rm.cloud.store import NO_EFFECT, RETIREMENTS, pool_subject
from falcon_rm.cloud.transaction import COLUMNS
from falcon_rm.core.actions import (
    Change,
    CreatePool,
    EndLease,
    EnsureSlot,
    EnterPool,
    FreeSlot,
    MarkPool,
    Note,
    Now,
    RecordHealth,
    ResumeWork,
    RetirePool,
    SubmitWork,
)
from falcon_rm.core.model import Failure, Fault, Job, Pool, Slot, Submission, Turn
from falcon_rm.core.names import label_value
from falcon_rm.core.text import clean
from falcon_rm.core.words import ErrorKind, PoolState
from falcon_rm.ports import Rows

TERMINAL = frozenset({"Succeeded", "Failed", "Aborted"})
ACQUIRING = frozenset({"Provisioning", "WaitingForNode", "Dispatching"})


@define
class MemoryStore(Tables):
    """The tables with what a pass does; meets ports.Store."""

    def close(self) -> None:
        """End the pass."""

    def read(self) -> Rows:
        """Return what the tables hold now."""
        live = [job for job in self.jobs.values() if job.status not in TERMINAL]
        queues = {(job.cluster_id, job.topology) for job in live}
        return Rows(
            now=self.now,
            instance=self.instance,
            jobs=tuple(sorted((self._with_since(job) for job in live), key=lambda job: job.id)),
            clusters=tuple(sorted(self.clusters.values(), key=lambda cluster: cluster.name)),
            health=dict(self.health),
            pools=tuple(
                self.pools[key] for key in sorted(self.pools) if self.pools[key].state is not PoolState.DELETED
            ),
            submissions=tuple(work for work in self.works.values() if self._is_current(work)),
            slots=tuple(self.slots.values()),
            turns=tuple(turn for turn in self.turns.values() if (turn.cluster_id, turn.topology) in queues),
            failures=self._failures(),
            troubles=self._troubles(),
        )

    def statuses(self, ids: Collection[str]) -> Mapping[str, str]:
        """Return id -> status of the rows of `job` among *ids*."""
        return {job_id: self.jobs[job_id].status for job_id in ids if job_id in self.jobs}

    def pools_named(self, cluster_id: str, names: Collection[str]) -> tuple[Pool, ...]:
        """Return ledger rows by name, Deleted ones too."""
        return tuple(self.pools[key] for key in sorted((cluster_id, name) for name in set(names)) if key in self.pools)

    def commit(self, change: Change) -> bool:
        """Carry out one Change, all of it or nothing."""
        job = self._guarded(change.job_id, change.version, change.from_status)
        borne = change.makes and self.pools.get((change.makes.cluster_id, change.makes.name))
        if job is not None and borne and borne.job_id in (job.id, label_value(job.id)):
            self.jobs[job.id] = evolve(job, version=job.version + 1, attempt=change.attempt)
            return False
        if job is None or not self._allowed(change):
            return False
        cluster, topology = change.cluster_id or "", change.topology or ""
        if change.takes_slot is not None:
            self.slots[cluster, topology] = Slot(cluster, topology, job.id, self.now)
            self.turns[cluster, topology, change.takes_slot] = Turn(cluster, topology, change.takes_slot, self.now)
        elif change.frees_slot:
            self._empty_slot((cluster, topology), job.id)
        columns: dict[str, Any] = {
            name: self.now if isinstance(value, Now) else value for name, value in change.columns.items()
        }
        if change.message is not None:
            columns["message"] = clean(change.message)
        job = evolve(job, version=job.version + 1, status=change.to_status, reason=change.to_reason, **columns)
        self.jobs[job.id] = job
        if "started_at" in change.columns:
            self._run_lease(job.id)
        self._move_pools(change, job)
        if (change.from_status, change.from_reason) != (change.to_status, change.to_reason):
            self._event(change, job)
        return True

    def ensure_slot(self, action: EnsureSlot) -> bool:
        """Make the row of a queue."""
        self.slots.setdefault((action.cluster_id, action.topology), Slot(action.cluster_id, action.topology))
        return True

    def free_slot(self, action: FreeSlot) -> bool:
        """Empty a slot unless its holder is acquiring there."""
        job = self.jobs.get(action.holder)
        acquiring = job is not None and (job.status, job.cluster_id, job.topology, job.outcome) == (
            "Pending", action.cluster_id, action.topology, None,
        ) and job.reason in ACQUIRING  # fmt: skip
        return not acquiring and self._empty_slot((action.cluster_id, action.topology), action.holder)

    def enter_pool(self, action: EnterPool) -> bool:
        """Write a ledger row for a pool that has none, free or found."""
        pool = action.pool
        if (pool.cluster_id, pool.name) in self.pools:
            return False
        self._insert_pool(pool, seen_at=self.now, idle_at=self.now)
        self._audit("pool found", pool, "something runs on it: shown, never used" if pool.found else "free")
        return True

    def mark_pool(self, action: MarkPool) -> bool:
        """Write first times; False if all of them stood already."""
        pool = self.pools.get((action.cluster_id, action.name))
        marks = {"seen_at": action.seen, "up_at": action.up, "ready_at": action.ready}
        new = {name: self.now for name, wanted in marks.items() if wanted and pool and getattr(pool, name) is None}
        return bool(new) and self._edit_pool(action.cluster_id, action.name, **new)

    def retire_pool(self, action: RetirePool) -> bool:
        """Move an unleased ledger row on, and never back."""
        pool = self.pools.get((action.cluster_id, action.name))
        kind = RETIREMENTS.get((action.from_state, action.to_state))
        if pool is None or kind is None or pool.lease is not None or pool.state is not action.from_state:
            return False
        self._edit_pool(action.cluster_id, action.name, state=action.to_state)
        self._date(action.cluster_id, action.name, action.to_state)
        self._audit(kind, pool, action.why)
        return True

    def end_lease(self, action: EndLease) -> bool:
        """End the lease of a job whose row is missing, terminal or names another pool."""
        pool = self.pools.get((action.cluster_id, action.pool))
        job = self.jobs.get(action.job_id)
        holds = job is not None and (job.cluster_id, job.node_pool_name) == (action.cluster_id, action.pool)
        if pool is None or pool.lease != action.job_id or (holds and job and job.status not in TERMINAL):
            return False
        self._end_lease(pool, keep=action.keep, ended="orphan", text=None)
        self._audit("lease ended", pool, f"{action.job_id}: {action.why}")
        return True

    def record_health(self, action: RecordHealth) -> bool:
        """Write what is known of a cluster."""
        self.health[action.cluster_id] = (action.problem and clean(action.problem), action.zone)
        return True

    def note(self, action: Note) -> bool:
        """Write an audit row unless the same one stands there already."""
        key = (action.kind, action.subject, action.text)
        if key in self.noted:
            return False
        self.noted.add(key)
        self.audits.append(Audit(self.now, action.kind, clean(action.subject, 255), clean(action.text)))
        return True

    def pool_requested(self, action: CreatePool) -> bool:
        """Write requested_at just before the create call, if nobody has seen the pool, or asked for it, meanwhile."""
        pool = self.pools.get((action.cluster.id, action.pool.name))
        if (
            pool is None
            or pool.lease != action.job_id
            or pool.state is not PoolState.ACTIVE
            or pool.seen_at is not None
        ):
            return False
        if pool.requested_at is not None and action.pool.requested_at is None:
            return False
        return self._edit_pool(pool.cluster_id, pool.name, requested_at=self.now)

    def pool_answered(self, action: CreatePool, fault: tuple[str, str] | None) -> bool:
        """Write what the create call answered."""
        key = (action.cluster.id, action.pool.name)
        if fault is None:
            return self._edit_pool(*key, error=None)
        undone: dict[str, Any] = {"requested_at": None} if fault[0] in NO_EFFECT else {}
        return self._edit_pool(*key, error=self._fault(fault), **undone)

    def delete_answered(self, cluster_id: str, name: str, fault: tuple[str, str]) -> bool:
        """Write the error that a delete answered, if it says something new."""
        pool, new = self.pools.get((cluster_id, name)), self._fault(fault)
        if pool is None or (pool.error and (pool.error.kind, pool.error.text) == (new.kind, new.text)):
            return False
        return self._edit_pool(cluster_id, name, error=new)

    def work_requested(self, action: SubmitWork) -> bool:
        """Write down what is about to be submitted; the first time stands."""
        key = (action.cluster.id, action.name)
        if self._guarded(action.job_id, action.version, action.status) is None:
            return False
        self.works.setdefault(key, Submission(*key, action.job_id, action.attempt, self.now))
        return True

    def work_submitted(self, action: SubmitWork, uid: str) -> bool:
        """Write the UID under the guard, and clear the error beside it."""
        job = self._guarded(action.job_id, action.version, action.status)
        if job is None:
            return False
        dispatched = {"dispatched_at": self.now} if action.dispatched else {}
        self.edit_job(job.id, job_uid=uid, version=job.version + 1, **dispatched)
        if self._edit_work(action.cluster.id, action.name, error=None):
            self.uids[action.cluster.id, action.name] = uid
        return True

    def work_resumed(self, action: ResumeWork) -> bool:
        """Write when a Job was let go, and clear the error beside it."""
        work = self.works.get((action.cluster.id, action.name))
        if work is None or work.resumed_at is not None:
            return False
        return self._edit_work(action.cluster.id, action.name, resumed_at=self.now, error=None)

    def work_refused(self, action: SubmitWork | ResumeWork, fault: tuple[str, str]) -> bool:
        """Write the error that the call answered."""
        return self._edit_work(action.cluster.id, action.name, error=self._fault(fault))

    def work_stopping(self, cluster_id: str, name: str) -> bool:
        """Write when a Job was first asked to go."""
        work = self.works.get((cluster_id, name))
        return work is not None and work.stop_at is None and self._edit_work(cluster_id, name, stop_at=self.now)

    # The parts of a transaction.

    def _guarded(self, job_id: str, version: int, status: str) -> Job | None:
        job = self.jobs.get(job_id)
        return job if job is not None and (job.version, job.status) == (version, status) else None

    def _allowed(self, change: Change) -> bool:
        """Answer whether slot and pools are as the Change supposes."""
        wrong = change.columns.keys() - COLUMNS
        if wrong:
            raise ValueError(f"a Change may not write job.{min(wrong)}")
        cluster = change.cluster_id or ""
        slot = self.slots.get((cluster, change.topology or ""))
        if change.takes_slot is not None and (slot is None or slot.holder is not None):
            return False
        if change.gives_up:
            pool = self.pools.get((cluster, change.gives_up.pool))
            if pool is None or pool.lease != change.job_id or pool.state is not PoolState.ACTIVE:
                return False
        if change.makes and (cluster, change.makes.name) in self.pools:
            return False
        if change.takes is not None:
            pool = self.pools.get((cluster, change.takes))
            return pool is not None and (pool.lease, pool.state, pool.found) == (None, PoolState.ACTIVE, False)
        return True

    def _move_pools(self, change: Change, job: Job) -> None:
        cluster = change.cluster_id or ""
        if change.gives_up:
            end, pool = change.gives_up, self.pools[cluster, change.gives_up.pool]
            self._end_lease(pool, keep=end.keep, ended=end.ended, text=end.fault and clean(end.fault[1]))
            if end.fault:
                self._edit_pool(cluster, end.pool, error=self._fault(end.fault))
        if change.makes:
            self._insert_pool(change.makes, lease=job.id, leased_at=self.now)
            self._open_lease(change, job, change.makes)
            self._audit("pool created", change.makes, f"for {job.id}, attempt {change.makes.attempt}")
        if change.takes is not None:
            self._edit_pool(cluster, change.takes, lease=job.id, leased_at=self.now, idle_at=None)
            self._open_lease(change, job, self.pools[cluster, change.takes])

    def _open_lease(self, change: Change, job: Job, pool: Pool) -> None:
        labels = (clean(change.exp_id, 255), clean(change.owner, 255), pool.mode.value, pool.reservation)
        self.leases.append(Lease(pool.cluster_id, pool.name, job.id, change.attempt, job.actor, *labels, self.now))

    def _end_lease(self, pool: Pool, *, keep: bool, ended: str, text: str | None) -> None:
        state = PoolState.ACTIVE if keep else PoolState.DELETING
        self._edit_pool(pool.cluster_id, pool.name, lease=None, leased_at=None, idle_at=self.now, state=state)
        self._date(pool.cluster_id, pool.name, state)
        for index, lease in enumerate(self.leases):
            key = (lease.cluster_id, lease.pool, lease.job_id, lease.until_at)
            if key == (pool.cluster_id, pool.name, pool.lease, None):
                self.leases[index] = evolve(lease, until_at=self.now, ended=ended, ended_text=text)

    def _run_lease(self, job_id: str) -> None:
        for index, lease in enumerate(self.leases):
            if (lease.job_id, lease.until_at, lease.running_at) == (job_id, None, None):
                self.leases[index] = evolve(lease, running_at=self.now)

    def _date(self, cluster_id: str, name: str, state: PoolState) -> None:
        """Write since when a pool is Deleting or Deleted."""
        if state is not PoolState.ACTIVE:
            self.dates[cluster_id, name, state] = self.now

    def _event(self, change: Change, job: Job) -> None:
        given_up = change.gives_up.pool if change.gives_up else None
        pool = (change.makes.name if change.makes else change.takes or given_up) or job.node_pool_name
        message = job.message if change.message is None else clean(change.message)
        moved = (change.from_status, change.from_reason, change.to_status, change.to_reason)
        self.events.append(
            Event(job.id, self.now, *moved, clean(change.why), message, job.cluster_id, pool, job.attempt)
        )

    def _insert_pool(self, pool: Pool, **columns: Any) -> None:
        """Insert a ledger row: of *pool* only what a new row has."""
        blank = dict.fromkeys(
            ("lease", "leased_at", "requested_at", "seen_at", "up_at", "ready_at", "idle_at", "error")
        )
        self.pools[pool.cluster_id, pool.name] = evolve(pool, **{**blank, **columns})

    def _edit_pool(self, cluster_id: str, name: str, **columns: Any) -> bool:
        pool = self.pools.get((cluster_id, name))
        if pool is None:
            return False
        self.pools[cluster_id, name] = evolve(pool, **columns)
        return True

    def _edit_work(self, cluster_id: str, name: str, **columns: Any) -> bool:
        work = self.works.get((cluster_id, name))
        if work is None:
            return False
        self.works[cluster_id, name] = evolve(work, **columns)
        return True

    def _empty_slot(self, key: Key, holder: str) -> bool:
        slot = self.slots.get(key)
        if slot is None or slot.holder != holder:
            return False
        self.slots[key] = Slot(*key)
        return True

    def _fault(self, fault: tuple[str, str]) -> Fault:
        return Fault(ErrorKind(fault[0]), clean(fault[1]), self.now)

    def _audit(self, kind: str, pool: Pool, text: str) -> None:
        self.audits.append(Audit(self.now, kind, pool_subject(pool.cluster_id, pool.name), clean(text)))

    def _with_since(self, job: Job) -> Job:
        if (job.status, job.reason) != ("Pending", "ClusterBusy"):
            return job
        return evolve(
            job, reason_since=max((event.at for event in self.events if event.job_id == job.id), default=None)
        )

    def _is_current(self, work: Submission) -> bool:
        job = self.jobs.get(work.job_id)
        return job is not None and job.status not in TERMINAL and job.attempt == work.attempt

    def _failures(self) -> tuple[Failure, ...]:
        kept: dict[Key, list[Failure]] = {}
        for lease in reversed(self.leases):
            job = self.jobs.get(lease.job_id)
            if lease.ended in BACKS_OFF and lease.until_at is not None and job is not None and job.status == "Pending":
                failure = Failure(job.id, lease.cluster_id, lease.ended, lease.until_at, lease.ended_text or "")
                kept.setdefault((job.id, lease.cluster_id), []).append(failure)
        return tuple(failure for failures in kept.values() for failure in failures[:FAILURES_KEPT])

    def _troubles(self) -> tuple[Failure, ...]:
        found = [
            Failure(lease.job_id, lease.cluster_id, "cluster", lease.until_at, lease.ended_text or "")
            for lease in self.leases
            if lease.ended == "cluster" and lease.until_at is not None
        ] + [
            Failure(work.job_id, work.cluster_id, "cluster", work.error.at, work.error.text)
            for work in self.works.values()
            if work.error and work.error.kind is ErrorKind.CLUSTER
        ]
        return tuple(sorted((f for f in found if self.now - f.at < 86400), key=lambda f: f.at, reverse=True))
