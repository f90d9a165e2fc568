"""
MySqlStore with what upstream, operators and the clock do in tests; the helper methods are MemoryStore's.

The store has a connection of the controller's, upstream one of its own; whoever sets up or looks is an administrator.
"""

import json
from collections.abc import Mapping
from typing import Any

from attrs import asdict, define, field, fields_dict
from database_roles import FALCON, UPSTREAM, Roles
from history import START, Audit, Event, Lease

from falcon_rm.cloud.database import Address, Database
from falcon_rm.cloud.rows import CLUSTER, JOB, job_of, named
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.core.model import Cluster, Job


@define
class SteeredStore(MySqlStore):
    """A store whose clock stands still until *now* is set."""

    others: Database = field(kw_only=True)
    upstream: Database = field(kw_only=True)

    @classmethod
    def under(cls, roles: Roles, timeout: float = 8) -> "SteeredStore":
        """Return the store over a database, everybody under a role of their own, its clock at START."""
        return cls.of(roles.address(FALCON), roles.address(UPSTREAM), roles.administrator.address, timeout)

    @classmethod
    def of(cls, falcon: Address, upstream: Address, others: Address, timeout: float) -> "SteeredStore":
        """Return the store over a database, by the users' addresses, its clock at START."""
        each = [Database(address, timeout) for address in (falcon, upstream, others)]
        store = cls(each[0], "tests", upstream=each[1], others=each[2])
        store.now = START
        return store

    @property
    def now(self) -> float:
        """The database's clock."""
        return float(self.database.session.partition("=")[2])

    @now.setter
    def now(self, value: float) -> None:
        for each in (self.database, self.upstream, self.others):
            each.session = f"timestamp = {value:.6f}"
            each.close()

    def close_all(self) -> None:
        """End every connection."""
        for each in (self.database, self.upstream, self.others):
            each.close()

    def insert_job(self, job_id: str, spec: str | Mapping[str, object], *, actor: str = "ann", **columns: Any) -> None:
        """Insert a row of `job`, Pending now unless *columns* say otherwise."""
        text = spec if isinstance(spec, str) else json.dumps(spec)
        self.upstream.unit(
            lambda run: run.must("INSERT INTO job (id, actor, spec) VALUES (%s, %s, %s)", (job_id, actor, text))
        )
        if columns:
            self.edit_job(job_id, **columns)

    def set_status(self, job_id: str, status: str) -> None:
        """Set a status as upstream does: the version stays."""
        asked = {"aborting_at": self.now} if status == "Aborting" else {}
        write(self.upstream, job_id, status=status, **asked)

    def edit_job(self, job_id: str, **columns: Any) -> None:
        """Change columns of a row by hand."""
        if columns:
            write(self.others, job_id, **columns)

    def delete_row(self, job_id: str) -> None:
        """Delete a row of `job`."""
        self.upstream.unit(lambda run: run.must("DELETE FROM job WHERE id = %s", (job_id,)))

    def row(self, job_id: str) -> Job:
        """Return a row of `job`, terminal ones too."""
        (row,) = named(self.others, JOB, "FROM job t WHERE t.id = %s", (job_id,))
        return job_of(row, {})

    def add_cluster(self, cluster: Cluster) -> None:
        """Register a cluster, or change it."""
        values = asdict(cluster)
        sql = f"REPLACE INTO clusters ({', '.join(CLUSTER)}) VALUES ({', '.join(['%s'] * len(CLUSTER))})"
        self.others.unit(lambda run: run.must(sql, [values[name] for name in CLUSTER]))

    def lease_rows(self) -> tuple[Lease, ...]:
        """Return the history of leases, oldest first."""
        names = list(fields_dict(Lease))
        return tuple(Lease(**row) for row in named(self.others, names, "FROM pool_leases t ORDER BY t.id"))

    def event_rows(self) -> tuple[Event, ...]:
        """Return the events, oldest first."""
        names = list(fields_dict(Event))
        return tuple(Event(**row) for row in named(self.others, names, "FROM job_events t ORDER BY t.id"))

    def audit_rows(self) -> tuple[Audit, ...]:
        """Return the audit, oldest first."""
        names = ("at", "kind", "subject", "text")
        return tuple(Audit(**row) for row in named(self.others, names, "FROM audit_events t ORDER BY t.id"))


def write(database: Database, job_id: str, **columns: Any) -> None:
    """Change columns of a row of `job`."""
    sets = ", ".join(f"{name} = FROM_UNIXTIME(%s)" if name.endswith("_at") else f"{name} = %s" for name in columns)
    values = (*columns.values(), job_id)
    database.unit(lambda run: run.must(f"UPDATE job SET {sets} WHERE id = %s", values))
