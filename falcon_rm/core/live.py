"""
What the clouds show, as values: node pools, operations, reservations, Kubernetes Jobs, pods, events.

1. Adapters translate an answer into these and nothing else; a field that is missing there has its default here.
2. What could not be read has no value here: see ClusterView in model.py.
"""

from collections.abc import Mapping

from attrs import field, frozen

from falcon_rm.core.words import Mode, PoolStatus


@frozen
class ClusterInfo:
    """What GetCluster says that Falcon needs: how to reach Kubernetes, and the cluster's own zones."""

    locations: tuple[str, ...]
    ip_endpoint: str | None = None  # host or host:port
    ca_certificate: str | None = None  # PEM; for the IP endpoint only
    dns_endpoint: str | None = None  # host or host:port; a public certificate, so the system's CAs
    workload_pool: str | None = None  # of Workload Identity
    gcs_fuse: bool = False  # the add-on by which pods mount buckets


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
    suspended: bool = False  # asked to run no pods
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
    scheduled_at: str = ""  # RFC 3339; when PodScheduled became what it is
    has_sandbox: bool = False  # volumes and network are there: PodReadyToStartContainers=True
    containers: tuple[ContainerState, ...] = ()


@frozen
class KubeEvent:
    """A Kubernetes event about a Job or a pod, type Warning only."""

    about: str  # the object's name
    reason: str
    message: str
    last_seen: str = ""  # RFC 3339, as the next
    first_seen: str = ""
