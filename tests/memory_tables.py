"""
The tables in memory, with what upstream and operators do to them and what the tests look at.

1. State is plain dicts and lists of frozen values; copy() forks a world.
2. *now* is the database's clock; it moves only when a test sets it.
"""

import json
from collections.abc import Mapping
from typing import Any, Self

from attrs import define, evolve, field
from history import START, Audit, Event, Lease

from falcon_rm.core.model import Cluster, InvalidSpec, Job, Pool, Slot, Submission, TaskSpec, Turn
from falcon_rm.core.spec import parse
from falcon_rm.core.usage import Lease as Held
from falcon_rm.core.usage import Life
from falcon_rm.core.words import PoolState

Key = tuple[str, str]

TABLES = (
    "jobs", "clusters", "health", "pools", "works", "uids", "slots", "turns", "leases", "events", "audits", "noted",
    "dates",
)  # fmt: skip
"""The fields of MemoryStore that hold rows."""


@define
class Tables:
    """The tables, and what upstream, operators and history do with them."""

    now: float = START
    instance: str = "memory"
    jobs: dict[str, Job] = field(factory=dict)
    clusters: dict[str, Cluster] = field(factory=dict)
    health: dict[str, tuple[str | None, str | None]] = field(factory=dict)
    pools: dict[Key, Pool] = field(factory=dict)
    works: dict[Key, Submission] = field(factory=dict)
    uids: dict[Key, str] = field(factory=dict)
    slots: dict[Key, Slot] = field(factory=dict)
    turns: dict[tuple[str, str, str], Turn] = field(factory=dict)
    dates: dict[tuple[str, str, PoolState], float] = field(factory=dict)  # deleting_at and deleted_at of the ledger
    leases: list[Lease] = field(factory=list)
    events: list[Event] = field(factory=list)
    audits: list[Audit] = field(factory=list)
    noted: set[tuple[str, str, str]] = field(factory=set)

    def copy(self) -> Self:
        """Return a world of its own with the same content."""
        other = type(self)(now=self.now, instance=self.instance)
        for name in TABLES:
            setattr(other, name, getattr(self, name).copy())
        return other

    def insert_job(
        self,
        job_id: str,
        spec: str | Mapping[str, object] | TaskSpec | InvalidSpec,
        *,
        actor: str = "ann",
        **columns: Any,
    ) -> None:
        """Insert a row of `job`, Pending now unless *columns* say otherwise."""
        task = (
            spec
            if isinstance(spec, TaskSpec | InvalidSpec)
            else parse(spec if isinstance(spec, str) else json.dumps(spec))
        )
        self.jobs[job_id] = Job(
            id=job_id, actor=actor, task=task, **{"status": "Pending", "created_at": self.now, **columns}
        )

    def set_status(self, job_id: str, status: str) -> None:
        """Set a status as upstream does: the version stays."""
        aborting_at = self.now if status == "Aborting" else self.jobs[job_id].aborting_at
        self.edit_job(job_id, status=status, aborting_at=aborting_at)

    def edit_job(self, job_id: str, **columns: Any) -> None:
        """Change columns of a row by hand."""
        self.jobs[job_id] = evolve(self.jobs[job_id], **columns)

    def delete_row(self, job_id: str) -> None:
        """Delete a row of `job`."""
        del self.jobs[job_id]

    def row(self, job_id: str) -> Job:
        """Return a row of `job`, terminal ones too."""
        return self.jobs[job_id]

    def add_cluster(self, cluster: Cluster) -> None:
        """Register a cluster, or change it."""
        self.clusters[cluster.id] = cluster

    def lease_rows(self) -> tuple[Lease, ...]:
        """Return the history of leases, oldest first."""
        return tuple(self.leases)

    def lives(self) -> tuple[Life, ...]:
        """Return the lives of pools, as far as they count, by cluster and in the order in which they were asked for."""
        held: dict[Key, list[Held]] = {}
        for each in self.leases:
            times = (each.from_at, each.running_at, each.until_at)
            held.setdefault((each.cluster_id, each.pool), []).append(Held(each.job_id, each.actor, each.exp_id, *times))
        lives = [
            Life(
                cluster=self.clusters[pool.cluster_id].name,
                pool=pool.name,
                topology=pool.topology,
                chips=pool.chips,
                mode=pool.mode,
                reservation=pool.reservation,
                requested_at=pool.requested_at,
                seen_at=pool.seen_at,
                deleting_at=self.dates.get((*key, PoolState.DELETING)),
                deleted_at=self.dates.get((*key, PoolState.DELETED)),
                leases=tuple(held.get(key, ())),
            )
            for key, pool in self.pools.items()
            if pool.requested_at or pool.seen_at
        ]
        return tuple(sorted(lives, key=lambda life: (life.cluster, life.requested_at or life.seen_at or 0, life.pool)))

    def event_rows(self) -> tuple[Event, ...]:
        """Return the events, oldest first."""
        return tuple(self.events)

    def audit_rows(self) -> tuple[Audit, ...]:
        """Return the audit, oldest first."""
        return tuple(self.audits)
