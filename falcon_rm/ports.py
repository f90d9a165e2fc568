"""
What a pass needs from the outside, as protocols: the adapters in `cloud/` meet them, and so do the simulated ones.

1. Every method is one bounded call (a list may be several pages under one deadline).
2. Clouds raise `CloudError` and nothing else; the store raises `StoreDown`, or answers False for a lost race.
3. Lists are complete or raise.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from attrs import frozen

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
from falcon_rm.core.live import ClusterInfo, KubeEvent, LivePool, LiveWork, Operation, Pod, Reservation
from falcon_rm.core.model import Cluster, Failure, Job, Pool, Slot, Submission, Turn
from falcon_rm.core.words import Mode


class StoreDown(Exception):
    """The database could not be reached or answered with an error: there is no pass; a write may have happened."""


class Refused(Exception):
    """What a person asked of the database cannot be done; the text, one line, says why. Nothing was written."""


@frozen
class Rows:
    """What the database held when the pass began, read in one go; times are seconds since the epoch."""

    now: float
    instance: str
    jobs: tuple[Job, ...]
    clusters: tuple[Cluster, ...]
    health: Mapping[str, tuple[str | None, str | None]]  # cluster id -> (problem, zone)
    pools: tuple[Pool, ...]
    submissions: tuple[Submission, ...]
    slots: tuple[Slot, ...]
    turns: tuple[Turn, ...]
    failures: tuple[Failure, ...]
    troubles: tuple[Failure, ...]


class Store(Protocol):
    """The database. Writes answer whether they took effect: False means somebody was first."""

    def read(self) -> Rows:
        """Return every live job, every cluster, every ledger row that is not Deleted, and what belongs to them."""

    def statuses(self, ids: Collection[str]) -> Mapping[str, str]:
        """Return id -> status of the rows of `job` among *ids* that exist now."""

    def pools_named(self, cluster_id: str, names: Collection[str]) -> tuple[Pool, ...]:
        """Return ledger rows by name, Deleted ones too."""

    def commit(self, change: Change) -> bool:
        """Carry out one Change as one transaction."""

    def ensure_slot(self, action: EnsureSlot) -> bool: ...

    def free_slot(self, action: FreeSlot) -> bool: ...

    def enter_pool(self, action: EnterPool) -> bool: ...

    def mark_pool(self, action: MarkPool) -> bool: ...

    def retire_pool(self, action: RetirePool) -> bool: ...

    def end_lease(self, action: EndLease) -> bool: ...

    def record_health(self, action: RecordHealth) -> bool: ...

    def note(self, action: Note) -> bool:
        """Write an audit row unless the same (kind, subject, text) stands there already."""

    def pool_requested(self, action: CreatePool) -> bool:
        """
        Write requested_at = now just before the create call, if the lease still is job_id's and the row Active.

        Not if somebody has seen the pool since it was planned, or asked for it first: it may have come, and gone.
        """

    def pool_answered(self, action: CreatePool, fault: tuple[str, str] | None) -> bool:
        """
        Write what the create call answered: None = accepted (clears an older error), else (ErrorKind value, text).

        A kind that surely had no effect (anything but exists and unknown) also takes requested_at back to NULL.
        """

    def delete_answered(self, cluster_id: str, name: str, fault: tuple[str, str]) -> bool:
        """Write the error that a delete of a pool answered into its ledger row, if the text is new."""

    def work_requested(self, action: SubmitWork) -> bool:
        """Insert the `workloads` row before the create call, if the job still has this version and status."""

    def work_submitted(self, action: SubmitWork, uid: str) -> bool:
        """Write job_uid (and dispatched_at) under the guard, clear the error of the `workloads` row."""

    def work_resumed(self, action: ResumeWork) -> bool:
        """Write resumed_at = now into the `workloads` row, if there is one and it has none, and clear its error."""

    def work_refused(self, action: SubmitWork | ResumeWork, fault: tuple[str, str]) -> bool:
        """Write the error that the call answered into the `workloads` row."""

    def work_stopping(self, cluster_id: str, name: str) -> bool:
        """Write stop_at = now into the `workloads` row, if there is one and it has none."""


class Gke(Protocol):
    """Google Kubernetes Engine."""

    def get_cluster(self, cluster: Cluster) -> ClusterInfo: ...

    def list_pools(self, cluster: Cluster) -> tuple[LivePool, ...]: ...

    def list_operations(self, project: str, location: str) -> tuple[Operation, ...]:
        """Return the CREATE_NODE_POOL operations of a location; raises UNKNOWN if zones are missing."""

    def create_pool(self, action: CreatePool) -> None: ...

    def delete_pool(self, cluster: Cluster, name: str) -> None: ...


class Compute(Protocol):
    """Google Compute Engine."""

    def get_reservation(self, project: str, zone: str, name: str) -> Reservation: ...

    def find_reservation(self, project: str, name: str) -> tuple[str, ...]:
        """Return the zones that have a reservation of this name."""

    def ensure_policy(self, *, project: str, region: str, name: str, topology: str) -> None:
        """Make the workload policy; there with the same content is fine, with other content raises PERMANENT."""


class Kubernetes(Protocol):
    """One cluster's Kubernetes API."""

    def list_works(self, selector: str) -> tuple[LiveWork, ...]: ...

    def list_pods(self, selector: str) -> tuple[Pod, ...]: ...

    def list_events(self, names: Collection[str]) -> tuple[KubeEvent, ...]:
        """Return Warning events about Jobs and pods whose name is, or begins with, one of *names*."""

    def list_ready_nodes(self, pools: Iterable[str]) -> Mapping[str, str]:
        """Return the Ready nodes of these pools: node name -> pool name."""

    def submit(self, manifest: Mapping[str, object], service: Mapping[str, object] | None) -> str:
        """
        Create the Job, then its Service owned by it, making namespace and service account if they are missing.

        A Job of that name with our job-id and attempt counts as created. Returns its UID.
        """

    def resume_work(self, name: str, uid: str) -> None:
        """Let a suspended Job run, if it still has this UID."""

    def delete_work(self, name: str, uid: str) -> None:
        """Delete a Job with background propagation and a UID precondition."""


class Rights(Protocol):
    """What one cluster's Kubernetes lets us do, and what is there for the pods; nothing is changed by asking."""

    def is_allowed(self, group: str, kind: str, verb: str) -> bool:
        """Return whether we may do this, in the jobs' namespace where the kind lives in one."""

    def has_namespace(self) -> bool: ...

    def service_account(self) -> Mapping[str, str] | None:
        """Return the annotations of the pods' service account; None if there is none."""


class Google(Protocol):
    """What Google Cloud lets us and the pods do; nothing is changed by asking."""

    def member(self) -> str:
        """Return how IAM calls us, or raise CloudError if we have no credential."""

    def permitted(self, project: str, permissions: Collection[str]) -> frozenset[str]:
        """Return those of the permissions that we have on a whole project."""

    def is_uniform(self, bucket: str) -> bool:
        """Return whether access to a bucket is uniform; raises GONE if there is none of this name."""

    def members(self, bucket: str) -> Mapping[str, frozenset[str]]:
        """Return role -> members of a bucket's own policy, without those under a condition."""


class Clouds(Protocol):
    """The clouds of one pass: thrown away after it."""

    @property
    def gke(self) -> Gke: ...

    @property
    def compute(self) -> Compute: ...

    def kubernetes(self, cluster: Cluster, info: ClusterInfo) -> Kubernetes: ...

    def close(self) -> None: ...


class Inspection(Clouds, Protocol):
    """The clouds, with what is asked of them only to see whether they would do."""

    @property
    def google(self) -> Google: ...

    def rights(self, cluster: Cluster, info: ClusterInfo) -> Rights: ...


__all__ = [
    "Clouds", "Compute", "Gke", "Google", "Inspection", "Kubernetes", "Mode", "Refused", "Rights", "Rows", "Store",
    "StoreDown",
]  # fmt: skip
