"""
The values a pass works on: what the database holds, what the clouds showed, and the bounds in force.

1. Everything is frozen. A pass builds one Snapshot, plan() reads it, nobody changes it.
2. Times are seconds since the epoch by the database's clock. No other clock decides anything.
3. None means "not read" where a field says so, and "has none" elsewhere; never both.
"""

from collections.abc import Mapping

from attrs import field, frozen

from falcon_rm.core.live import KubeEvent, LivePool, LiveWork, Operation, Pod, Reservation
from falcon_rm.core.shapes import Shape
from falcon_rm.core.words import CPU_TOPOLOGY, ClusterStatus, ErrorKind, Mode, PoolState


@frozen
class Fault:
    """An error that is kept as a fact: its kind, the other side's own words, and when it was written."""

    kind: ErrorKind
    text: str
    at: float


@frozen
class Mount:
    """One GCS bucket mounted into the pods."""

    name: str
    bucket: str
    mount_path: str
    prefix: str = ""
    read_only: bool = False
    options: tuple[str, ...] = ()


@frozen
class TaskSpec:
    """`job.spec`, parsed and possible. *shape* is None for a CPU job; *mode* is None if none was named."""

    image: str
    shape: Shape | None
    command: str | tuple[str, ...] | None = None
    args: tuple[str, ...] = ()
    mode: Mode | None = None
    envs: Mapping[str, str] = field(factory=dict)
    mounts: tuple[Mount, ...] = ()
    resources: Mapping[str, str] = field(factory=dict)  # cpu_request, cpu_limit, memory_request, memory_limit
    exp_id: str = ""
    owner: str = ""
    labels: Mapping[str, str] = field(factory=dict)
    max_retries: int = 0
    log: bool = True
    grace_seconds: int = 30
    unknown_fields: tuple[str, ...] = ()

    @property
    def topology(self) -> str:
        """The queue's name inside a cluster."""
        return self.shape.topology if self.shape else CPU_TOPOLOGY

    @property
    def tpu_type(self) -> str | None:
        """The TPU type a cluster must offer; None for a CPU job."""
        return self.shape.tpu_type if self.shape else None

    @property
    def hosts(self) -> int:
        """Pods of the Job."""
        return self.shape.hosts if self.shape else 1


@frozen
class InvalidSpec:
    """Why a spec can never run: the field, what it holds, what is allowed."""

    field: str
    got: str
    allowed: str


@frozen
class Job:
    """One live row of `job` (contract.md 2), with its spec parsed."""

    id: str
    actor: str
    task: TaskSpec | InvalidSpec
    status: str
    created_at: float
    version: int = 0
    name: str | None = None
    priority: int = 0
    timeout_seconds: int | None = None
    artifact_path: str | None = None
    reason: str | None = None
    message: str | None = None
    aborting_at: float | None = None
    cluster_id: str | None = None
    topology: str | None = None
    node_pool_name: str | None = None
    job_uid: str | None = None
    supply_mode: str | None = None
    attempt: int = 0
    pool_failures: int = 0
    losses: int = 0
    retry_at: float | None = None
    outcome: str | None = None
    queued_at: float | None = None
    provisioning_at: float | None = None
    dispatched_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    aborted_at: float | None = None
    reason_since: float | None = None  # when status or reason last changed, from `job_events`; only for ClusterBusy


@frozen
class Cluster:
    """One row of `clusters`."""

    id: str
    name: str
    project: str
    location: str
    tpu_type: str
    status: ClusterStatus = ClusterStatus.ACTIVE
    gcs_bucket: str | None = None
    default_reservation: str | None = None  # a name, or projects/P/reservations/R[/reservationBlocks/...]
    gke_name: str | None = None
    zone: str | None = None
    node_service_account: str | None = None
    endpoint: str | None = None  # "ip", "dns" or None: the first that GetCluster offers

    @property
    def gke(self) -> str:
        """The name GKE knows the cluster by."""
        return self.gke_name or self.name

    @property
    def path(self) -> str:
        """projects/P/locations/L/clusters/C."""
        return f"projects/{self.project}/locations/{self.location}/clusters/{self.gke}"


@frozen
class ClusterView:
    """
    What this pass could read of one cluster. A field that is None was not read or its read failed: unknown, not absent.

    *works*, *pools* and *operations* are complete lists or None. *pods*, *events* cover the works named in *looked_at*;
    *ready_nodes* has the number of Ready nodes of the pools that were looked at.
    """

    cluster: Cluster
    problem: str | None = None  # why it cannot be used or was not (fully) read
    zone: str | None = None
    pools: tuple[LivePool, ...] | None = None
    operations: tuple[Operation, ...] | None = None
    works: tuple[LiveWork, ...] | None = None
    looked_at: frozenset[str] = frozenset()
    pods: tuple[Pod, ...] | None = None
    events: tuple[KubeEvent, ...] | None = ()
    ready_nodes: Mapping[str, int] = field(factory=dict)
    reservation: Reservation | None = None
    room_problem: str | None = None  # why the reservation was not read
    health: str | None = None  # what `cluster_health` says now: written only when it changes
    known_zone: str | None = None  # the zone `cluster_health` holds

    @property
    def readable(self) -> bool:
        """Whether pools and Jobs were both read whole."""
        return self.pools is not None and self.works is not None


@frozen
class Pool:
    """One row of `node_pools`, the ledger."""

    cluster_id: str
    name: str
    job_id: str  # whom it was made for
    attempt: int
    tpu_type: str
    topology: str
    machine_type: str
    hosts: int
    chips: int
    mode: Mode
    reservation: str | None = None
    state: PoolState = PoolState.ACTIVE
    lease: str | None = None  # the job that holds it
    leased_at: float | None = None
    requested_at: float | None = None  # just before the create call; None again if the call surely had no effect
    seen_at: float | None = None  # first listed
    up_at: float | None = None  # first listed as running
    ready_at: float | None = None  # all nodes first Ready
    idle_at: float | None = None  # since when nobody holds it
    error: Fault | None = None
    found: bool = False  # entered by the sweep while something ran on it: shown, never used


@frozen
class Submission:
    """One row of `workloads`: a Kubernetes Job that was, or is about to be, submitted."""

    cluster_id: str
    name: str
    job_id: str
    attempt: int
    requested_at: float
    resumed_at: float | None = None  # when it was let go: it is made suspended
    stop_at: float | None = None  # when its deletion was first asked
    error: Fault | None = None


@frozen
class Slot:
    """One row of `queue_slots`: at most one job of a queue acquires."""

    cluster_id: str
    topology: str
    holder: str | None = None
    held_at: float | None = None


@frozen
class Turn:
    """One row of `queue_turns`: when an actor was last served in a queue."""

    cluster_id: str
    topology: str
    actor: str
    served_at: float


@frozen
class Failure:
    """A lease of a live job that ended in a back-off: `pool_leases.ended` is an ErrorKind or "nodes"."""

    job_id: str
    cluster_id: str
    ended: str
    at: float
    text: str = ""  # the cloud's own words


@frozen
class Bounds:
    """Every bound and choice that decides something; seconds unless said otherwise (contract.md 6)."""

    visibility_grace: float = 120
    pool_timeout: float = 2400
    pool_attempts: int = 3
    backoff_base: float = 60
    backoff_max: float = 1800
    cluster_pause: float = 600
    node_wait: float = 900
    node_wait_flex: float = 21600
    pod_start_image: float = 900
    pod_start_configuration: float = 180
    pod_start_sidecar: float = 300
    pod_start_unschedulable: float = 900
    idle: float = 600
    idle_flex: float = 21600
    room_hold: float = 1800
    release_timeout: float = 900
    stop_extra: float = 300  # on top of the pods' own grace: then they go with their pool
    language: str = "zh"
    log_path_template: str = "logs/{job_id}/{pod_name}.log"
    allow_mass_delete: bool = False


@frozen
class Snapshot:
    """All that one pass knows. *later* has the status of every row's id, read once more after the clouds; None: not."""

    now: float
    instance: str
    bounds: Bounds
    jobs: tuple[Job, ...] = ()  # every row that is not terminal
    views: tuple[ClusterView, ...] = ()
    pools: tuple[Pool, ...] = ()  # every ledger row that is not Deleted
    submissions: tuple[Submission, ...] = ()  # of live jobs' current attempts
    slots: tuple[Slot, ...] = ()
    turns: tuple[Turn, ...] = ()
    failures: tuple[Failure, ...] = ()
    troubles: tuple[Failure, ...] = ()  # of clusters, whoever met them; newest first
    later: Mapping[str, str] | None = None
