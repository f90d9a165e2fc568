"""
What the ledger and the history of leases say of the lives of node pools; no pass reads it.

1. Only `node_pools` and `pool_leases` are read, and for names `clusters` and the audit: rows of `job` and of clusters
   may be gone.
2. Only pools that were there in the window are read.
"""

from typing import Any

from falcon_rm.cloud.database import Argument, Database
from falcon_rm.cloud.history import cluster_names
from falcon_rm.cloud.rows import NOW, named, seconds
from falcon_rm.core.usage import Lease, Life, Window

POOL = (
    "cluster_id", "name", "topology", "chips", "mode", "reservation", "requested_at", "seen_at", "deleting_at",
    "deleted_at",
)  # fmt: skip
LEASE = ("cluster_id", "pool", "job_id", "actor", "exp_id", "from_at", "running_at", "until_at")

AT = "TIMESTAMPADD(MICROSECOND, %s, '1970-01-01')"


def read_now(database: Database) -> float:
    """Return what time it is by the database's clock."""
    ((now,),) = database.rows(NOW)
    return seconds(now) or 0.0


def read_lives(database: Database, window: Window) -> tuple[Life, ...]:
    """Return the pools that may count in a window, by cluster and in the order in which they were asked for."""
    condition, arguments = _inside(window)
    names = cluster_names(database)
    leases: dict[tuple[str, str], list[Lease]] = {}
    join = "FROM pool_leases t JOIN node_pools p ON p.cluster_id = t.cluster_id AND p.name = t.pool"
    for row in named(database, LEASE, f"{join} WHERE {condition} ORDER BY t.id", arguments):
        leases.setdefault((row["cluster_id"], row["pool"]), []).append(_lease(row))
    lives = []
    for row in named(database, POOL, f"FROM node_pools t WHERE {condition.replace('p.', 't.')}", arguments):
        cluster_id, pool = row.pop("cluster_id"), row.pop("name")
        held = tuple(leases.get((cluster_id, pool), ()))
        lives.append(Life(cluster=names.get(cluster_id, cluster_id), pool=pool, leases=held, **row))
    return tuple(sorted(lives, key=lambda life: (life.cluster, life.requested_at or life.seen_at or 0.0, life.pool)))


def _inside(window: Window) -> tuple[str, list[Argument]]:
    """Return the condition that a row p of `node_pools` meets, with its arguments."""
    conditions, arguments = ["COALESCE(p.requested_at, p.seen_at) IS NOT NULL"], list[Argument]()
    if window.since is not None:
        conditions.append(f"(p.deleted_at IS NULL OR p.deleted_at > {AT})")
        arguments.append(round(window.since * 1e6))
    if window.until is not None:
        conditions.append(f"COALESCE(LEAST(p.requested_at, p.seen_at), p.requested_at, p.seen_at) < {AT}")
        arguments.append(round(window.until * 1e6))
    return " AND ".join(conditions), arguments


def _lease(row: dict[str, Any]) -> Lease:
    return Lease(
        job=row["job_id"],
        actor=row["actor"],
        experiment=row["exp_id"],
        from_at=row["from_at"],
        running_at=row["running_at"],
        until_at=row["until_at"],
    )
