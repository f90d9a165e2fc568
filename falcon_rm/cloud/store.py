"""
MySQL as the passes use it: what they read, and the transactions they write.

Who else writes: upstream inserts rows of `job`, sets Aborting without touching `version`, and deletes rows; operators
write `clusters`; a second Falcon may do all that this one does. So:

1. Every write of `job` is guarded by id, version *and* status, and adds 1 to `version`; 0 rows: somebody was first.
2. Locks are taken by full primary key, on rows that exist, in the order slot, job, pool. No lock outlives a method.
3. Status, reason, event, slot, ledger and lease of one Change are one transaction, all of it or nothing.
4. If a message cannot be stored, the status is stored without it.
5. Facts about clouds (requested, answered, refused) are written where they belong whoever holds the lease by then.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from attrs import define, field

from falcon_rm.cloud.database import Argument, Database, LostRace, Run, Unstorable, is_storable, parse_url
from falcon_rm.cloud.rows import LIVE, pools_where, read_rows, read_statuses
from falcon_rm.cloud.transaction import (
    FREE_SLOT,
    GUARD,
    LOCK_SLOT,
    NEXT_VERSION,
    POOL_FAULT,
    audit,
    carry_out,
    end_lease,
    insert_pool,
    pass_over,
    this_process,
)
from falcon_rm.core.actions import (
    Change,
    CreatePool,
    EndLease,
    EnsureSlot,
    EnterPool,
    FreeSlot,
    MarkPool,
    Note,
    RecordHealth,
    ResumeWork,
    RetirePool,
    SubmitWork,
)
from falcon_rm.core.model import Pool
from falcon_rm.core.text import clean
from falcon_rm.core.words import ErrorKind, PoolState
from falcon_rm.ports import Rows

NO_EFFECT = frozenset(ErrorKind) - {ErrorKind.EXISTS, ErrorKind.UNKNOWN}
"""Answers to a create after which no pool of it can exist."""

RETIREMENTS = {
    (PoolState.ACTIVE, PoolState.DELETING): "pool deleting",
    (PoolState.DELETING, PoolState.DELETED): "pool deleted",
    (PoolState.ACTIVE, PoolState.DELETED): "pool lost",
}
"""The only ways a ledger row goes, and what the audit calls them."""

ACQUIRING = """
    SELECT id FROM job
    WHERE id = %s AND cluster_id = %s AND topology = %s AND outcome IS NULL
      AND status = 'Pending' AND reason IN ('Provisioning', 'WaitingForNode', 'Dispatching')
"""
WORK_FAULT = """
    UPDATE workloads SET error_kind = %s, error_text = %s, error_at = NOW(6) WHERE cluster_id = %s AND name = %s
"""


@define
class MySqlStore:
    """The database of a pass; meets ports.Store. close() ends its connection, the next use makes a new one."""

    database: Database
    process: str = field(factory=this_process)

    @classmethod
    def at(cls, url: str, *, password: str | None = None, timeout: float = 8, session: str = "") -> "MySqlStore":
        """
        Return the store behind a URL; nothing is connected to yet.

        Args:
            url: see database.parse_url. ValueError if it is no such URL.
            password: stands above the one in the URL.
            timeout: bound of each answer, in seconds.
            session: further settings of each connection, `name = value, ...`.
        """
        return cls(Database(parse_url(url, password), timeout=timeout, session=session))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection: a pass is over."""
        self.database.close()

    def read(self) -> Rows:
        """Return what the database holds now."""
        return read_rows(self.database)

    def statuses(self, ids: Collection[str]) -> Mapping[str, str]:
        """Return id -> status of the rows of `job` among *ids*."""
        return read_statuses(self.database, ids)

    def pools_named(self, cluster_id: str, names: Collection[str]) -> tuple[Pool, ...]:
        """Return ledger rows by name, Deleted ones too."""
        wanted = sorted(filter(is_storable, names)) if is_storable(cluster_id) else []
        if not wanted:
            return ()
        places = ", ".join(["%s"] * len(wanted))
        return pools_where(self.database, f"t.cluster_id = %s AND t.name IN ({places})", (cluster_id, *wanted))

    def commit(self, change: Change) -> bool:
        """
        Carry out one Change as one transaction, if need be without its message.

        Where the name of the pool was borne before (the row was deleted and inserted anew), that attempt is passed
        over: the row goes on to the next one, and the claim is lost.
        """
        done = self._commit(change)
        if not done and change.makes:
            name = (change.makes.cluster_id, change.makes.name)
            self._unit(lambda run: pass_over(run, change, name), f"job/{change.job_id}")
        return done

    def _commit(self, change: Change) -> bool:
        subject = f"job/{change.job_id}"
        try:
            return self.database.unit(lambda run: carry_out(run, change, change.message, self.process))
        except Unstorable as error:
            self.note(Note("unstorable", subject, str(error)))
        if change.message is None or change.only_message:
            return False
        return self._unit(lambda run: carry_out(run, change, "", self.process), subject)

    def ensure_slot(self, action: EnsureSlot) -> bool:
        """Make the row of a queue; True if it stands, whoever made it."""
        sql = "INSERT INTO queue_slots (cluster_id, topology) VALUES (%s, %s)"
        key = (action.cluster_id, action.topology)
        if self._write(sql, key, f"slot/{action.cluster_id}/{action.topology}"):
            return True
        look = "SELECT 1 FROM queue_slots WHERE cluster_id = %s AND topology = %s"
        return all(map(is_storable, key)) and bool(self.database.rows(look, key))

    def free_slot(self, action: FreeSlot) -> bool:
        """Empty a slot unless its holder is acquiring there."""
        key = (action.cluster_id, action.topology)

        def work(run: Run) -> None:
            if run.rows(LOCK_SLOT, key) != ((action.holder,),) or run.rows(ACQUIRING, (action.holder, *key)):
                raise LostRace
            run.must(FREE_SLOT, (*key, action.holder))

        return self._unit(work, f"slot/{action.cluster_id}/{action.topology}")

    def enter_pool(self, action: EnterPool) -> bool:
        """Write a ledger row for a pool that has none, free or found."""
        pool, subject = action.pool, pool_subject(action.pool.cluster_id, action.pool.name)
        text = "something runs on it: shown, never used" if pool.found else "free"

        def work(run: Run) -> None:
            insert_pool(run, pool, holder=None)
            audit(run, self.process, "pool found", subject, text)

        return self._unit(work, subject)

    def mark_pool(self, action: MarkPool) -> bool:
        """Write first times; False if all of them stood already."""
        marks = {"seen_at": action.seen, "up_at": action.up, "ready_at": action.ready}
        columns = [column for column, wanted in marks.items() if wanted]
        if not columns:
            return False
        sets = ", ".join(f"{column} = COALESCE({column}, NOW(6))" for column in columns)
        missing = " OR ".join(f"{column} IS NULL" for column in columns)
        sql = f"UPDATE node_pools SET {sets} WHERE cluster_id = %s AND name = %s AND ({missing})"
        return self._write(sql, (action.cluster_id, action.name), pool_subject(action.cluster_id, action.name))

    def retire_pool(self, action: RetirePool) -> bool:
        """Move an unleased ledger row on, and never back."""
        kind = RETIREMENTS.get((action.from_state, action.to_state))
        if kind is None:
            return False
        since = "deleted_at" if action.to_state is PoolState.DELETED else "deleting_at"
        guard = "cluster_id = %s AND name = %s AND lease IS NULL AND state = %s"
        sql = f"UPDATE node_pools SET state = %s, {since} = NOW(6) WHERE {guard}"
        subject = pool_subject(action.cluster_id, action.name)

        def work(run: Run) -> None:
            run.must(sql, (action.to_state, action.cluster_id, action.name, action.from_state))
            audit(run, self.process, kind, subject, action.why)

        return self._unit(work, subject)

    def end_lease(self, action: EndLease) -> bool:
        """End the lease of a job whose row is missing, terminal or names another pool: it never comes back to it."""
        subject = pool_subject(action.cluster_id, action.pool)

        def work(run: Run) -> None:
            named = "cluster_id = %s AND node_pool_name = %s"
            arguments = (action.job_id, action.cluster_id, action.pool)
            if run.rows(f"SELECT id FROM job WHERE id = %s AND {LIVE} AND {named}", arguments):
                raise LostRace
            end_lease(run, action.cluster_id, action.pool, action.job_id, keep=action.keep, ended="orphan")
            audit(run, self.process, "lease ended", subject, f"{action.job_id}: {action.why}")

        return self._unit(work, subject)

    def record_health(self, action: RecordHealth) -> bool:
        """Write what is known of a cluster."""
        problem = None if action.problem is None else clean(action.problem)
        return self._write(
            "INSERT INTO cluster_health (cluster_id, problem, zone, at) VALUES (%s, %s, %s, NOW(6))"
            " ON DUPLICATE KEY UPDATE problem = VALUES(problem), zone = VALUES(zone), at = VALUES(at)",
            (action.cluster_id, problem, action.zone),
            f"cluster/{action.cluster_id}",
        )

    def note(self, action: Note) -> bool:
        """Write an audit row unless the same one stands there already."""
        try:
            return self.database.unit(
                lambda run: audit(run, self.process, action.kind, action.subject, action.text, once=True)
            )
        except Unstorable:  # nothing is left that could be said about it
            return False

    def pool_requested(self, action: CreatePool) -> bool:
        """
        Write requested_at, and the zone, just before the create call.

        Not if somebody has seen it since it was planned, or asked for it: it may have come, and gone.
        """
        return self._write(
            "UPDATE node_pools SET requested_at = NOW(6), zone = %s"
            " WHERE cluster_id = %s AND name = %s AND lease = %s AND state = 'Active' AND seen_at IS NULL"
            " AND (requested_at IS NULL OR %s)",
            (
                action.zone,
                action.cluster.id,
                action.pool.name,
                action.job_id,
                int(action.pool.requested_at is not None),
            ),
            pool_subject(action.cluster.id, action.pool.name),
        )

    def pool_answered(self, action: CreatePool, fault: tuple[str, str] | None) -> bool:
        """Write what the create call answered."""
        key = (action.cluster.id, action.pool.name)
        if fault is None:
            sql = "UPDATE node_pools SET error_kind = NULL, error_text = NULL, error_at = NULL"
            return self._write(f"{sql} WHERE cluster_id = %s AND name = %s", key, pool_subject(*key))
        kind, text = fault
        sql = POOL_FAULT.replace("SET ", "SET requested_at = NULL, ") if kind in NO_EFFECT else POOL_FAULT
        return self._write(sql, (kind, clean(text), *key), pool_subject(*key))

    def delete_answered(self, cluster_id: str, name: str, fault: tuple[str, str]) -> bool:
        """Write the error that a delete answered, if it says something new."""
        kind, text = fault[0], clean(fault[1])
        new = " AND (error_kind IS NULL OR error_kind <> %s OR error_text <> %s)"
        values = (kind, text, cluster_id, name, kind, text)
        return self._write(POOL_FAULT + new, values, pool_subject(cluster_id, name))

    def work_requested(self, action: SubmitWork) -> bool:
        """Write down what is about to be submitted; the first time stands."""

        def work(run: Run) -> None:
            if not run.rows(f"SELECT id FROM job WHERE {GUARD}", (action.job_id, action.version, action.status)):
                raise LostRace
            run.write(
                "INSERT INTO workloads (cluster_id, name, job_id, attempt, requested_at)"
                " VALUES (%s, %s, %s, %s, NOW(6))"
                " ON DUPLICATE KEY UPDATE requested_at = COALESCE(requested_at, VALUES(requested_at))",
                (action.cluster.id, action.name, action.job_id, action.attempt),
            )

        return self._unit(work, work_subject(action.cluster.id, action.name))

    def work_submitted(self, action: SubmitWork, uid: str) -> bool:
        """Write the UID under the guard, and clear the error beside it."""
        dispatched = ", dispatched_at = NOW(6)" if action.dispatched else ""

        def work(run: Run) -> None:
            run.must(
                f"UPDATE job SET job_uid = %s{dispatched}, {NEXT_VERSION} WHERE {GUARD}",
                (uid, action.job_id, action.version, action.status),
            )
            run.write(
                "UPDATE workloads SET uid = %s, error_kind = NULL, error_text = NULL, error_at = NULL"
                " WHERE cluster_id = %s AND name = %s",
                (uid, action.cluster.id, action.name),
            )

        return self._unit(work, work_subject(action.cluster.id, action.name))

    def work_resumed(self, action: ResumeWork) -> bool:
        """Write when a Job was let go, and clear the error beside it."""
        sql = (
            "UPDATE workloads SET resumed_at = NOW(6), error_kind = NULL, error_text = NULL, error_at = NULL"
            " WHERE cluster_id = %s AND name = %s AND resumed_at IS NULL"
        )
        return self._write(sql, (action.cluster.id, action.name), work_subject(action.cluster.id, action.name))

    def work_refused(self, action: SubmitWork | ResumeWork, fault: tuple[str, str]) -> bool:
        """Write the error that the call answered."""
        values = (fault[0], clean(fault[1]), action.cluster.id, action.name)
        return self._write(WORK_FAULT, values, work_subject(action.cluster.id, action.name))

    def work_stopping(self, cluster_id: str, name: str) -> bool:
        """Write when a Job was first asked to go."""
        sql = "UPDATE workloads SET stop_at = NOW(6) WHERE cluster_id = %s AND name = %s AND stop_at IS NULL"
        return self._write(sql, (cluster_id, name), work_subject(cluster_id, name))

    def _write(self, sql: str, arguments: Sequence[Argument], subject: str) -> bool:
        """Carry out one statement about *subject*; whether it matched a row."""
        return self._unit(lambda run: run.must(sql, arguments), subject)

    def _unit(self, work: Callable[[Run], None], subject: str) -> bool:
        """Carry out one transaction; a value that its column refuses is noted, and costs *subject* alone."""
        try:
            return self.database.unit(work)
        except Unstorable as error:
            self.note(Note("unstorable", subject, str(error)))
            return False


def pool_subject(cluster_id: str, name: str) -> str:
    """Return what the audit calls a pool."""
    return f"pool/{cluster_id}/{name}"


def work_subject(cluster_id: str, name: str) -> str:
    """Return what the audit calls a Kubernetes Job."""
    return f"work/{cluster_id}/{name}"
