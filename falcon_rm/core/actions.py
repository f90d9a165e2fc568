"""
What a pass may do, as values.

1. An action says everything apply needs: apply decides nothing and looks nothing up.
2. Change is the only thing that writes a row of `job`: one transaction, guarded by version and status.
3. Cloud calls are separate actions; whatever asks for them was committed in an earlier step.
4. Actions sort by their own key, so that order never depends on chance.
"""

from collections.abc import Mapping
from enum import Enum
from math import inf

from attrs import field, frozen

from falcon_rm.core.model import Cluster, Pool
from falcon_rm.core.words import ErrorKind, PoolState


class Now(Enum):
    """Stands in `Change.columns` for the database's NOW(6)."""

    NOW = "now"


NOW = Now.NOW

Value = str | int | float | Now | None


@frozen
class GiveUp:
    """The end of a lease inside a Change: the pool stays free (*keep*) or goes to Deleting."""

    pool: str
    keep: bool
    ended: str  # how the lease ended: an ErrorKind, "nodes", "released", "better", ...
    fault: tuple[ErrorKind, str] | None = None  # written to the ledger row beside it


@frozen
class Change:
    """
    One transaction on one job: row, slot, turn, ledger, leases and event together, or nothing.

    Locks are taken in the order slot, job, pool. The guard is (job_id, version, status).
    """

    job_id: str
    version: int
    from_status: str
    from_reason: str | None
    to_status: str
    to_reason: str | None
    why: str  # for the plan, the log and the event, in English
    cluster_id: str | None = None  # whose slot, turn and pools the rest is about
    topology: str | None = None
    message: str | None = None  # None: left as it is
    columns: Mapping[str, Value] = field(factory=dict)  # further columns of `job`; NOW is the database's
    takes_slot: str | None = None  # the actor served; the slot must be empty
    frees_slot: bool = False  # if this job holds it
    makes: Pool | None = None  # a new ledger row, leased to this job
    takes: str | None = None  # the lease of a free pool of that name
    gives_up: GiveUp | None = None
    attempt: int = 0  # of the lease that begins
    exp_id: str = ""
    owner: str = ""

    @property
    def only_message(self) -> bool:
        """Whether nothing but the text for people changes: no progress, no event."""
        return (
            self.to_status == self.from_status
            and self.to_reason == self.from_reason
            and not (self.columns or self.takes_slot or self.frees_slot or self.makes or self.takes or self.gives_up)
        )


@frozen
class EnsureSlot:
    """Make the row of a queue that somebody will lock."""

    cluster_id: str
    topology: str


@frozen
class FreeSlot:
    """Empty a slot whose holder is not acquiring any more; checked again in the transaction."""

    cluster_id: str
    topology: str
    holder: str


@frozen
class EnterPool:
    """Write a ledger row for a pool of ours that has none."""

    pool: Pool


@frozen
class MarkPool:
    """Write first times into the ledger: listed, running, all nodes Ready."""

    cluster_id: str
    name: str
    seen: bool = False
    up: bool = False
    ready: bool = False


@frozen
class RetirePool:
    """Move an unleased ledger row on: Active -> Deleting, or -> Deleted when a complete list lacks the pool."""

    cluster_id: str
    name: str
    from_state: PoolState
    to_state: PoolState
    why: str


@frozen
class EndLease:
    """End the lease of a job that is missing or terminal; the pool stays free (*keep*) or goes to Deleting."""

    cluster_id: str
    pool: str
    job_id: str
    keep: bool
    why: str


@frozen
class CreatePool:
    """Ask GKE for the pool of a ledger row that is leased to *job_id*."""

    cluster: Cluster
    zone: str
    pool: Pool
    job_id: str
    labels: Mapping[str, str]
    resource_labels: Mapping[str, str]
    idle_seconds: int  # consolidation delay of an autoscaled pool
    policy: str | None = None  # the workload policy to make first (tpu7x, several hosts)


@frozen
class DeletePool:
    """Ask GKE to delete a pool whose ledger row is Deleting or Deleted."""

    cluster: Cluster
    name: str
    why: str
    tried_at: float = 0  # when an answer about this pool was lost; 0: none was


@frozen
class SubmitWork:
    """Create the Kubernetes Job (and Service) of an attempt, suspended, or finish a submit that was cut short."""

    cluster: Cluster
    job_id: str
    version: int
    status: str
    attempt: int
    name: str
    manifest: Mapping[str, object]
    service: Mapping[str, object] | None
    dispatched: bool  # whether `dispatched_at` is written with `job_uid`
    tried_at: float = 0  # when its last answer was lost; 0: it never was


@frozen
class ResumeWork:
    """Let a Job go that was made suspended, if it still has this UID."""

    cluster: Cluster
    job_id: str
    attempt: int
    name: str
    uid: str
    tried_at: float = 0  # when its last answer was lost; 0: it never was


@frozen
class DeleteWork:
    """Delete a Kubernetes Job with its pods in the background, if it still has this UID."""

    cluster: Cluster
    name: str
    uid: str
    job_id: str
    attempt: int
    why: str
    tried_at: float = 0  # when it was first asked for, and it still is there; 0: it never was
    awaited: bool = True  # whether a job goes on only when it is gone


@frozen
class RecordHealth:
    """Write what is known of a cluster into `cluster_health`."""

    cluster_id: str
    problem: str | None
    zone: str | None


@frozen
class Note:
    """An `audit_events` row, written once per (kind, subject, text)."""

    kind: str
    subject: str
    text: str


Action = (
    Change
    | EnsureSlot
    | FreeSlot
    | EnterPool
    | MarkPool
    | RetirePool
    | EndLease
    | CreatePool
    | DeletePool
    | SubmitWork
    | ResumeWork
    | DeleteWork
    | RecordHealth
    | Note
)

ORDER = (
    RecordHealth,
    EnsureSlot,
    FreeSlot,
    EnterPool,
    MarkPool,
    Change,
    EndLease,
    RetirePool,
    CreatePool,
    DeleteWork,
    SubmitWork,
    ResumeWork,
    DeletePool,
    Note,
)
"""
The order of a pass: what is known, then what is decided, then the calls. In a cluster's Kubernetes deletions go first:
a submit that hangs holds no stop up.
"""
CALLS = CreatePool | DeleteWork | SubmitWork | ResumeWork | DeletePool


def order(action: Action) -> tuple[int, float, int, str]:
    """
    Return the sort key of an action: its kind, then what it is about; texts for people come last.

    Calls whose answer was lost go after all others, the one that was tried longest ago first: a call that hangs every
    time holds no other up. So do deletes of Jobs that were asked for before, or that nobody waits for.
    """
    tried_at = 0.0
    match action:
        case CreatePool(pool=pool):
            about = f"{pool.cluster_id}/{pool.name}"
            tried_at = pool.error.at if pool.error and pool.error.kind is ErrorKind.UNKNOWN else 0
        case EnterPool(pool=pool):
            about = f"{pool.cluster_id}/{pool.name}"
        case DeletePool(cluster=cluster, name=name, tried_at=tried_at):
            about = f"{cluster.id}/{name}"
        case DeleteWork(cluster=cluster, name=name):
            about = f"{cluster.id}/{name}"
            tried_at = action.tried_at if action.awaited else inf
        case SubmitWork(job_id=about, tried_at=tried_at) | ResumeWork(job_id=about, tried_at=tried_at):
            pass
        case Change(job_id=about):
            pass
        case EnsureSlot() | FreeSlot():
            about = f"{action.cluster_id}/{action.topology}"
        case EndLease():
            about = f"{action.cluster_id}/{action.pool}"
        case MarkPool() | RetirePool():
            about = f"{action.cluster_id}/{action.name}"
        case RecordHealth():
            about = action.cluster_id
        case _:  # a Note
            about = f"{action.kind}/{action.subject}/{action.text}"
    kind = ORDER.index(type(action))
    if isinstance(action, Change) and action.only_message:
        return len(ORDER), 0, kind, about
    return ORDER.index(CreatePool) if isinstance(action, CALLS) else kind, tried_at, kind, about
