"""
Every call that leaves a pass goes through one seam here, where a fault can strike it.

1. The seam numbers the calls of a run; one number and one fault name what goes wrong, everything else stays as it is.
2. A crash is a BaseException: no fence holds it, the pass ends there as a killed process does.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

from attrs import define, field, frozen
from cloudsim.direct import DirectClouds

from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import CloudError, ErrorKind
from falcon_rm.ports import StoreDown

WRITES = frozenset({
    "commit", "ensure_slot", "free_slot", "enter_pool", "mark_pool", "retire_pool", "end_lease", "record_health",
    "note", "pool_requested", "pool_answered", "delete_answered", "work_requested", "work_submitted", "work_refused",
    "work_resumed", "work_stopping", "create_pool", "delete_pool", "ensure_policy", "submit", "resume_work",
    "delete_work",
})  # fmt: skip
READS = frozenset({
    "read", "statuses", "pools_named", "get_cluster", "list_pools", "list_operations", "get_reservation",
    "find_reservation", "list_works", "list_pods", "list_events", "list_ready_nodes",
})  # fmt: skip
OF_STORE = frozenset({
    "read", "statuses", "pools_named", "commit", "ensure_slot", "free_slot", "enter_pool", "mark_pool", "retire_pool",
    "end_lease", "record_health", "note", "pool_requested", "pool_answered", "delete_answered", "work_requested",
    "work_submitted", "work_refused", "work_resumed", "work_stopping",
})  # fmt: skip


class Crash(BaseException):
    """The process was killed here."""


class Strike(Enum):
    """What goes wrong at one call."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    FAIL_BEFORE = "fail before effect"
    FAIL_AFTER = "fail after effect"


@frozen
class Site:
    """One call of a run, by its number."""

    number: int
    name: str

    def strikes(self) -> tuple[Strike, ...]:
        """Return the faults that can strike it: a read has no effect that could be told apart."""
        return tuple(Strike) if self.name in WRITES else (Strike.FAIL_BEFORE,)


@define
class Seam:
    """Numbers the calls of a run and lets one fault strike."""

    at: int | None = None
    strike: Strike | None = None
    sites: list[Site] = field(factory=list)

    def call(self, name: str, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """Make one call, or what the fault makes of it."""
        site = Site(len(self.sites), name)
        self.sites.append(site)
        if site.number != self.at:
            return function(*arguments, **named)
        if self.strike in (Strike.CRASH_AFTER, Strike.FAIL_AFTER):
            function(*arguments, **named)
        if self.strike in (Strike.CRASH_BEFORE, Strike.CRASH_AFTER):
            raise Crash
        raise StoreDown("gone away") if name in OF_STORE else CloudError(ErrorKind.UNKNOWN, "no answer")


class Through:
    """Any port, with its methods passing the seam."""

    def __init__(self, port: Any, seam: Seam) -> None:
        self._port = port
        self._seam = seam

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in WRITES | READS:
            return found
        return lambda *arguments, **named: self._seam.call(name, found, *arguments, **named)


class SeamClouds:
    """The simulated clouds behind the seam."""

    def __init__(self, clouds: DirectClouds, seam: Seam) -> None:
        self._clouds = clouds
        self._seam = seam
        self.gke: Any = Through(clouds.gke, seam)
        self.compute: Any = Through(clouds.compute, seam)

    def kubernetes(self, cluster: Cluster, info: ClusterInfo) -> Any:
        """Return one cluster's Kubernetes behind the seam."""
        return Through(self._clouds.kubernetes(cluster, info), self._seam)

    def close(self) -> None:
        """Nothing is open."""
