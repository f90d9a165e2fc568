"""
The parts of a transaction: one Change carried out, a lease opened or ended, an event, an audit row.

1. A guard that matches no row raises LostRace: the caller rolls the whole transaction back.
2. The order is slot, job, pool; a lease is given up before another is taken.
"""

import os
import socket
from hashlib import sha256

from falcon_rm.cloud.database import Argument, LostRace, Run
from falcon_rm.core.actions import Change, Now, Value
from falcon_rm.core.model import Pool
from falcon_rm.core.names import label_value
from falcon_rm.core.text import clean
from falcon_rm.core.words import PoolState

TIMES = frozenset({
    "retry_at", "queued_at", "provisioning_at", "dispatched_at", "started_at", "finished_at", "aborted_at",
})  # fmt: skip
COLUMNS = TIMES | {
    "cluster_id", "topology", "node_pool_name", "job_uid", "supply_mode",
    "attempt", "pool_failures", "losses", "outcome",
}  # fmt: skip
"""The columns of `job` that a Change may write beside status, reason, message and version (contract.md 2)."""

GUARD = "id = %s AND COALESCE(version, 0) = %s AND STRCMP(status, %s) = 0"
"""
Finds a row of `job` that is as it was read. An `=` would let MariaDB come by the index on status, and lock its entry
before the row: the opposite order of upstream's statements, and now and then upstream's would be the deadlock's victim.
"""
NEXT_VERSION = "version = COALESCE(version, 0) + 1"

PASS_OVER = f"""
    UPDATE job SET attempt = %s, {NEXT_VERSION}
    WHERE {GUARD} AND EXISTS (
        SELECT 1 FROM node_pools p WHERE p.cluster_id = %s AND p.name = %s AND p.job_id IN (job.id, %s)
    )
"""
LOCK_SLOT = "SELECT holder FROM queue_slots WHERE cluster_id = %s AND topology = %s FOR UPDATE"
TAKE_SLOT = "UPDATE queue_slots SET holder = %s, held_at = NOW(6) WHERE cluster_id = %s AND topology = %s"
FREE_SLOT = (
    "UPDATE queue_slots SET holder = NULL, held_at = NULL WHERE cluster_id = %s AND topology = %s AND holder = %s"
)
SERVE = """
    INSERT INTO queue_turns (cluster_id, topology, actor, served_at) VALUES (%s, %s, %s, NOW(6))
    ON DUPLICATE KEY UPDATE served_at = VALUES(served_at)
"""
EVENT = """
    INSERT INTO job_events
      (job_id, at, from_status, from_reason, to_status, to_reason, why, message, cluster_id, pool, attempt)
    SELECT id, NOW(6), %s, %s, %s, %s, %s, COALESCE(%s, CONVERT(message USING utf8mb4)), cluster_id,
      COALESCE(%s, node_pool_name), COALESCE(attempt, 0)
    FROM job WHERE id = %s
"""
AUDIT = """
    INSERT INTO audit_events (at, kind, subject, text, by_user, by_process, digest)
    VALUES (NOW(6), %s, %s, %s, CURRENT_USER(), %s, %s)
"""
POOL_FAULT = """
    UPDATE node_pools SET error_kind = %s, error_text = %s, error_at = NOW(6) WHERE cluster_id = %s AND name = %s
"""
INSERT_POOL = """
    INSERT INTO node_pools
      (cluster_id, name, job_id, attempt, tpu_type, topology, machine_type, hosts, chips, mode, reservation,
       state, found, lease, leased_at, seen_at, idle_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, {leased_at}, {seen_at}, {idle_at})
"""
TAKE_POOL = """
    UPDATE node_pools SET lease = %s, leased_at = NOW(6), idle_at = NULL
    WHERE cluster_id = %s AND name = %s AND lease IS NULL AND state = 'Active' AND found = FALSE
"""
OPEN_LEASE = """
    INSERT INTO pool_leases (cluster_id, pool, job_id, attempt, actor, exp_id, owner, mode, reservation, from_at)
    SELECT p.cluster_id, p.name, j.id, %s, j.actor, %s, %s, p.mode, p.reservation, NOW(6)
    FROM node_pools p, job j WHERE p.cluster_id = %s AND p.name = %s AND j.id = %s
"""
END_LEASE = """
    UPDATE node_pools
    SET lease = NULL, leased_at = NULL, idle_at = NOW(6), state = %s, deleting_at = IF(%s = 'Deleting', NOW(6), NULL)
    WHERE cluster_id = %s AND name = %s AND lease = %s AND state = 'Active'
"""
RUN_LEASE = """
    UPDATE pool_leases SET running_at = NOW(6)
    WHERE job_id = %s AND until_at IS NULL AND running_at IS NULL
"""
CLOSE_LEASE = """
    UPDATE pool_leases SET until_at = NOW(6), ended = %s, ended_text = %s
    WHERE cluster_id = %s AND pool = %s AND job_id = %s AND until_at IS NULL
"""


def this_process() -> str:
    """Return what the audit calls this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def carry_out(run: Run, change: Change, message: str | None, process: str) -> None:
    """Carry out a Change with this *message* in the row; None leaves the row's as it is."""
    if change.takes_slot is not None or change.frees_slot:
        _move_slot(run, change)
    _write_job(run, change, message)
    if "started_at" in change.columns:
        run.write(RUN_LEASE, (change.job_id,))
    if change.gives_up:
        end = change.gives_up
        text = clean(end.fault[1]) if end.fault else None
        end_lease(run, change.cluster_id, end.pool, change.job_id, keep=end.keep, ended=end.ended, text=text)
        if end.fault:
            run.must(POOL_FAULT, (end.fault[0], text, change.cluster_id, end.pool))
    if change.makes:
        insert_pool(run, change.makes, holder=change.job_id)
        open_lease(run, change, change.makes.cluster_id, change.makes.name)
        subject = f"pool/{change.makes.cluster_id}/{change.makes.name}"
        audit(run, process, "pool created", subject, f"for {change.job_id}, attempt {change.makes.attempt}")
    if change.takes is not None:
        run.must(TAKE_POOL, (change.job_id, change.cluster_id, change.takes))
        open_lease(run, change, change.cluster_id, change.takes)
    if (change.from_status, change.from_reason) != (change.to_status, change.to_reason):
        run.must(EVENT, _event(change))


def pass_over(run: Run, change: Change, name: tuple[str, str]) -> None:
    """
    Count the attempt of a claim as made, if the job has borne this name of a pool before.

    The row of a pool that was found without one has of the id only what a label can spell.
    """
    guard = (change.job_id, change.version, change.from_status)
    run.must(PASS_OVER, (change.attempt, *guard, *name, label_value(change.job_id)))


def insert_pool(run: Run, pool: Pool, *, holder: str | None) -> None:
    """Insert a ledger row: leased to *holder*, or, without one, seen and idle from now on."""
    held, seen = ("NOW(6)", "NULL") if holder else ("NULL", "NOW(6)")
    run.must(
        INSERT_POOL.format(leased_at=held, seen_at=seen, idle_at=seen),
        (
            pool.cluster_id, pool.name, pool.job_id, pool.attempt, pool.tpu_type, pool.topology, pool.machine_type,
            pool.hosts, pool.chips, pool.mode, pool.reservation, pool.state, pool.found, holder,
        ),
    )  # fmt: skip


def open_lease(run: Run, change: Change, cluster_id: str | None, pool: str) -> None:
    """Write that the job of *change* holds a pool from now on."""
    labels = (clean(change.exp_id, 255), clean(change.owner, 255))
    run.must(OPEN_LEASE, (change.attempt, *labels, cluster_id, pool, change.job_id))


def end_lease(
    run: Run, cluster_id: str | None, pool: str, job_id: str, *, keep: bool, ended: str, text: str | None = None
) -> None:
    """End a lease that *job_id* holds. Its history may be missing (a restored database): no matter."""
    state = PoolState.ACTIVE if keep else PoolState.DELETING
    run.must(END_LEASE, (state, state, cluster_id, pool, job_id))
    run.write(CLOSE_LEASE, (ended, text, cluster_id, pool, job_id))


def audit(run: Run, process: str, kind: str, subject: str, text: str, *, once: bool = False) -> None:
    """Write an `audit_events` row; *once*: LostRace if the same one stands there already."""
    values = (kind, clean(subject, 255), clean(text))
    digest = sha256("\0".join(values).encode()).hexdigest() if once else None
    run.must(AUDIT, (*values, clean(process, 255), digest))


def _move_slot(run: Run, change: Change) -> None:
    """Lock the slot; take it if it is empty, or empty it if the job holds it."""
    queue = (change.cluster_id, change.topology)
    found = run.rows(LOCK_SLOT, queue)
    if change.takes_slot is not None:
        if found != ((None,),):
            raise LostRace
        run.must(TAKE_SLOT, (change.job_id, *queue))
        run.must(SERVE, (*queue, change.takes_slot))
    elif found == ((change.job_id,),):
        run.must(FREE_SLOT, (*queue, change.job_id))


def _write_job(run: Run, change: Change, message: str | None) -> None:
    sets: list[str] = ["status = %s", "reason = %s"]
    arguments: list[Argument] = [change.to_status, change.to_reason]
    if message is not None:
        sets.append("message = %s")
        arguments.append(clean(message))
    for column, value in sorted(change.columns.items()):
        expression, values = _assigned(column, value)
        sets.append(f"{column} = {expression}")
        arguments.extend(values)
    run.must(
        f"UPDATE job SET {', '.join(sets)}, {NEXT_VERSION} WHERE {GUARD}",
        (*arguments, change.job_id, change.version, change.from_status),
    )


def _assigned(column: str, value: Value) -> tuple[str, tuple[Argument, ...]]:
    """Return the SQL expression of a column's new value, with its arguments."""
    if column not in COLUMNS:
        raise ValueError(f"a Change may not write job.{column}")
    if isinstance(value, Now):
        return "NOW(6)", ()
    if column in TIMES and value is not None:
        return "TIMESTAMPADD(MICROSECOND, %s, '1970-01-01')", (round(float(value) * 1e6),)
    return "%s", (value,)


def _event(change: Change) -> tuple[Argument, ...]:
    given_up = change.gives_up.pool if change.gives_up else None
    pool = change.makes.name if change.makes else change.takes or given_up
    message = None if change.message is None else clean(change.message)
    moved = (change.from_status, change.from_reason, change.to_status, change.to_reason)
    return (*moved, clean(change.why), message, pool, change.job_id)
