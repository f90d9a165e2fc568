"""
What must be true of the rows that Falcon leaves, and of what it made in the cloud, once everything has ended.

1. Each fault is a line; no line means that nothing was lost and nothing was done twice.
2. Attempts are told apart by name: the ledger and `workloads` say whose a name is, one name an attempt.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from falcon_rm.cloud.database import Database

LETTERS = {
    "Pending/Waiting": "W",
    "Pending/ClusterBusy": "C",
    "Pending/Provisioning": "P",
    "Pending/WaitingForNode": "N",
    "Pending/Dispatching": "D",
    "Running": "R",
    "Succeeded": "S",
    "Failed/InvalidSpec": "I",
    "Aborting": "X",
    "Aborted": "A",
}
"""States by letter; every other end is F."""

ACQUIRES = "((PN?)+D?|D)"
STORY = re.compile(f"I|[WC]+({ACQUIRES}R?[WC]+)*({ACQUIRES}(R[SF]|F)|({ACQUIRES}R?)?X?A)")
"""The paths of contract.md 3: attempts that came back to the queue, then one that ended. N to P: a better pool."""

HOLDS_SLOT = "PND"

NONE_OF = {
    "a lease that is not closed": "SELECT job_id, pool FROM pool_leases WHERE until_at IS NULL OR ended IS NULL",
    "a lease that ends before it begins": "SELECT job_id, pool FROM pool_leases WHERE until_at < from_at",
    "two leases of one pool, or of one job, at once": """
        SELECT a.job_id, a.pool, b.job_id, b.pool FROM pool_leases a JOIN pool_leases b ON a.id < b.id
        WHERE (a.job_id = b.job_id OR (a.cluster_id = b.cluster_id AND a.pool = b.pool))
          AND a.from_at < b.until_at AND b.from_at < a.until_at
    """,
    "a lease written twice": """
        SELECT job_id, attempt, pool FROM pool_leases GROUP BY cluster_id, pool, job_id, attempt HAVING COUNT(*) > 1
    """,
    "an attempt with two pools of its own": """
        SELECT job_id, attempt FROM node_pools WHERE job_id <> '' GROUP BY job_id, attempt HAVING COUNT(*) > 1
    """,
    "an attempt with two Jobs": "SELECT job_id, attempt FROM workloads GROUP BY job_id, attempt HAVING COUNT(*) > 1",
    "a pool that is not closed": "SELECT name FROM node_pools WHERE state <> 'Deleted' OR lease IS NOT NULL",
    "a slot that is held": "SELECT topology, holder FROM queue_slots WHERE holder IS NOT NULL",
}
"""What no row may answer once everything has ended."""

EVENTS = """
    SELECT e.job_id, CONCAT_WS('/', e.from_status, e.from_reason), CONCAT_WS('/', e.to_status, e.to_reason),
           COALESCE(e.cluster_id, ''), COALESCE(j.topology, '')
    FROM job_events e JOIN job j ON j.id = e.job_id ORDER BY e.id
"""


def faults(database: Database, state: Mapping[str, Any]) -> list[str]:
    """Return everything that should not be, in the database and in the cloud's log of what was made."""
    found = [f"{what}: {row}" for what, query in NONE_OF.items() for row in database.rows(query)]
    return [*found, *_made(database, state), *_told(database), *_acquired(database)]


def _made(database: Database, state: Mapping[str, Any]) -> Iterator[str]:
    """Yield pools and Jobs that were made twice, or that no row asked for."""
    for call, table in (("gke.create_node_pool", "node_pools"), ("kube.create.jobs", "workloads")):
        names = {str(name) for (name,) in database.rows(f"SELECT name FROM {table}")}
        for target, times in state["effects"].get(call, {}).items():
            if times > 1:
                yield f"{call} {target} took effect {times} times"
            if target.rpartition("/")[2] not in names:
                yield f"{call} {target} has no row in {table}"


def _told(database: Database) -> Iterator[str]:
    """Yield jobs whose events do not lead, step by step, from the submission to what the row says."""
    rows = database.rows("SELECT id, CONCAT_WS('/', status, reason) FROM job ORDER BY id")
    stories: dict[str, list[str]] = {str(job): ["Pending"] for job, _ in rows}
    for job, before, after, *_ in database.rows(EVENTS):
        last = stories[str(job)][-1]
        aborting = "/".join(["Aborting", *last.split("/")[1:]])  # upstream's write has no event
        if before not in (last, aborting):
            yield f"{job}: an event leads from {before}, the one before to {last}"
        stories[str(job)].append(str(after))
    for job, now in rows:
        _, *story = stories[str(job)]
        if not STORY.fullmatch("".join(LETTERS.get(state, "F") for state in story)) or story[-1] != now:
            yield f"{job}: {now} after {' -> '.join(story)}"


def _acquired(database: Database) -> Iterator[str]:
    """Yield jobs that acquired while another one of their queue did."""
    holders: dict[tuple[object, object], object] = {}
    for job, _, after, cluster_id, topology in database.rows(EVENTS):
        queue = (cluster_id, topology)
        holds = LETTERS.get(str(after), "F") in HOLDS_SLOT and topology != "cpu"
        if holds and holders.get(queue, job) != job:
            yield f"{job} acquired at {topology} while {holders[queue]} did"
        if holds:
            holders[queue] = job
        elif holders.get(queue) == job:
            del holders[queue]
