"""
The closed sets of words that Falcon, its database and the clouds use, and the error that carries one of them.

1. Every member's value is the word as it stands in the database, a request or an answer.
"""

from enum import StrEnum


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
