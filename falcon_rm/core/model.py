"""
The values a pass works on: what the database holds, what the clouds showed, and the bounds in force.

1. Everything is frozen. A pass builds one Snapshot, plan() reads it, nobody changes it.
2. Times are seconds since the epoch by the database's clock. No other clock decides anything.
3. None means "not read" where a field says so, and "has none" elsewhere; never both.
"""

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from falcon_rm.core.shapes import Shape


class Status(StrEnum):
    """`job.status`: the contract with upstream."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    ABORTING = "Aborting"
    ABORTED = "Aborted"


class Reason(StrEnum):
    """`job.reason`: set only in Pending (what it waits for) and Failed (why)."""

    WAITING = "Waiting"
    CLUSTER_BUSY = "ClusterBusy"
    PROVISIONING = "Provisioning"
    WAITING_FOR_NODE = "WaitingForNode"
    DISPATCHING = "Dispatching"
    INVALID_SPEC = "InvalidSpec"
    NODE_POOL_TIMEOUT = "NodePoolTimeout"
    NODE_POOL_FAILED = "NodePoolFailed"
    JOB_SUBMIT_FAILED = "JobSubmitFailed"
    JOB_FAILED = "JobFailed"
    TIMEOUT = "Timeout"


class Outcome(StrEnum):
    """`job.outcome`: how this attempt ended, written before anything of it is stopped or released."""

    SUCCEEDED = "Succeeded"
    JOB_FAILED = "JobFailed"
    JOB_SUBMIT_FAILED = "JobSubmitFailed"
    TIMEOUT = "Timeout"
    LOST = "Lost"
    YIELD = "Yield"


class Mode(StrEnum):
    """Where machines come from."""

    RESERVATION = "reservation"
    ON_DEMAND = "on-demand"
    FLEX_START = "flex-start"


class ErrorKind(StrEnum):
    """What an error of a cloud means for the next decision (design.md 4)."""

    BUSY = "busy"  # ask again next pass, no attempt used
    FULL = "full"  # the reservation has no room after all
    CAPACITY = "capacity"  # back off, attempts counted
    QUOTA = "quota"  # the same, and an operator may have to help
    CLUSTER = "cluster"  # the cluster's own trouble: it is no candidate for a while
    PERMANENT = "permanent"  # the request can never work
    EXISTS = "exists"
    GONE = "gone"
    UNKNOWN = "unknown"  # it may have happened: look before anything else


class ClusterStatus(StrEnum):
    """`clusters.status`."""

    ACTIVE = "active"
    MAINTENANCE = "maintenance"
    OFFLINE = "offline"


class PoolState(StrEnum):
    """`node_pools.state`: only ever Active -> Deleting -> Deleted."""

    ACTIVE = "Active"
    DELETING = "Deleting"
    DELETED = "Deleted"


class PoolStatus(StrEnum):
    """GKE's words for a node pool; a word nobody knows reads as UNKNOWN."""

    PROVISIONING = "PROVISIONING"
    RUNNING = "RUNNING"
    RUNNING_WITH_ERROR = "RUNNING_WITH_ERROR"
    RECONCILING = "RECONCILING"
    STOPPING = "STOPPING"
    ERROR = "ERROR"
    UNKNOWN = "UNKNOWN"


CPU_TOPOLOGY = "cpu"
"""`job.topology` of a job that needs no TPU: no pool, no slot."""


class CloudError(Exception):
    """A call to a cloud that did not do what was asked; *kind* says what to make of it."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


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
class ClusterInfo:
    """What GetCluster says that Falcon needs: how to reach Kubernetes, and the cluster's own zones."""

    locations: tuple[str, ...]
    ip_endpoint: str | None = None  # host or host:port
    ca_certificate: str | None = None  # PEM; for the IP endpoint only
    dns_endpoint: str | None = None  # host or host:port; a public certificate, so the system's CAs


@frozen
class LivePool:
    """A node pool as list_node_pools shows it."""

    name: str
    status: PoolStatus
    labels: Mapping[str, str] = field(factory=dict)  # node labels
    machine_type: str = ""
    topology: str = ""  # of the placement policy, else of the node label we set; "" if neither says
    hosts: int = 0  # fixed size, or the autoscaler's maximum
    mode: Mode | None = None  # None: spot, or an affinity Falcon never asks for
    reservation: str | None = None
    errors: tuple[str, ...] = ()  # status message and condition texts; history, explains a pool that is not well


@frozen
class Operation:
    """A create operation of a node pool, newest first matters: *target* is the pool's full path or self link."""

    name: str
    target: str
    done: bool
    started: str = ""  # RFC 3339; orders operations of one pool
    error: str | None = None  # text of operation.error; a done operation may carry one


@frozen
class Reservation:
    """A reservation as Compute shows it. Counts are *unit*s: VMs (specific) or chips (aggregate)."""

    path: str  # projects/P/reservations/R
    ready: bool
    unit: str  # "vm" or "chip"
    total: int
    used: int
    machine_type: str | None = None  # None for an aggregate reservation


@frozen
class Condition:
    """A Job condition with its status, which may be False."""

    status: bool
    reason: str = ""
    message: str = ""


@frozen
class LiveWork:
    """A Kubernetes Job as its list shows it."""

    name: str
    uid: str
    labels: Mapping[str, str] = field(factory=dict)
    annotations: Mapping[str, str] = field(factory=dict)
    conditions: Mapping[str, Condition] = field(factory=dict)
    parallelism: int = 1
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    deleting: bool = False
    pool: str | None = None  # the node pool its pods are pinned to


@frozen
class ContainerState:
    """One container of a pod: waiting, running or terminated."""

    name: str
    state: str  # "waiting", "running", "terminated"
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    finished: str = ""  # RFC 3339
    init: bool = False
    sidecar: bool = False  # an init container that restarts always


@frozen
class Pod:
    """A pod of a Kubernetes Job."""

    name: str
    work: str  # label job-name
    uid: str = ""
    labels: Mapping[str, str] = field(factory=dict)
    annotations: Mapping[str, str] = field(factory=dict)
    phase: str = "Pending"
    node: str | None = None
    reason: str = ""  # status.reason: Evicted, NodeLost, UnexpectedAdmissionError, ...
    message: str = ""
    deleting: bool = False
    unschedulable: str | None = None  # message of PodScheduled=False
    disrupted: str | None = None  # reason of DisruptionTarget=True
    containers: tuple[ContainerState, ...] = ()


@frozen
class KubeEvent:
    """A Kubernetes event about a Job or a pod, type Warning only."""

    about: str  # the object's name
    reason: str
    message: str
    last_seen: str = ""


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
    events: tuple[KubeEvent, ...] = ()
    ready_nodes: Mapping[str, int] = field(factory=dict)
    nodes: frozenset[str] | None = None  # names of the nodes of the pools looked at that are Ready
    reservation: Reservation | None = None
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
