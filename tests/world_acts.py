"""
What people, crashes and GKE do to a world beside the controller, and how tests look closer.

1. Nothing here is a step of Falcon's; a pool made here has a ledger row as an earlier pass would have left it.
"""

from collections.abc import Callable
from typing import Any, cast

from cloudsim.direct import DirectGke
from cloudsim.errors import SimError
from cloudsim.faults import Fault
from cloudsim.gke_pools import Pool as SimPool
from cloudsim.values import Json
from world import INTERVAL, ZONE, Falcon

from falcon_rm.core import names
from falcon_rm.core.actions import CreatePool
from falcon_rm.core.model import Pool
from falcon_rm.core.shapes import shape
from falcon_rm.core.words import Mode

NAMESPACE = "falcon-jobs"
CREATED_SECONDS = 120.0


class Killed(BaseException):
    """The process is gone: nothing in the product catches it."""


def kill_after(falcon: Falcon, call: str, *, passes: int = 50) -> None:
    """Make passes until a call of this name has had its effect, and end the process there."""
    falcon.sim.faults.add(Fault(call, "after", error=cast(SimError, Killed())))
    for _ in range(passes):
        try:
            if not falcon.step().progress:
                falcon.advance(INTERVAL)
        except Killed:
            return
    raise AssertionError(f"{call} was never made")


def quiet(falcon: Falcon, *, passes: int = 60) -> None:
    """Make passes, no time between them, until one makes no progress."""
    for _ in range(passes):
        if not falcon.step().progress:
            return
    raise AssertionError(f"never quiet:\n{falcon.describe()}")


def sim_pool(falcon: Falcon, name: str, cluster_id: str = "c1") -> SimPool:
    """Return a pool as the simulated GKE keeps it, to be changed by hand."""
    return falcon.sim.gke.pools.all[falcon.store.clusters[cluster_id].path, name]


def own_labels(falcon: Falcon, job_id: str, attempt: int = 1, cluster_id: str = "c1") -> dict[str, str]:
    """Return the labels that Falcon gives what it makes."""
    return names.labels(
        instance=falcon.store.instance, cluster_id=cluster_id, job_id=job_id, attempt=attempt, exp_id="", owner=""
    )


def make_pool(
    falcon: Falcon,
    job_id: str,
    topology: str = "4x4",
    *,
    tpu_type: str = "v6e",
    machine_type: str | None = None,
    mode: Mode = Mode.ON_DEMAND,
    attempt: int = 1,
    entered: bool = True,
) -> str:
    """Make a free pool of ours in c1 as if for an attempt of some job; without a ledger row unless *entered*."""
    made = shape(tpu_type, topology, machine_type)
    cluster = falcon.store.clusters["c1"]
    now = falcon.store.now
    pool = Pool(
        cluster_id=cluster.id,
        name=names.cloud_name(job_id, attempt),
        job_id=job_id,
        attempt=attempt,
        tpu_type=tpu_type,
        topology=topology,
        machine_type=made.machine_type,
        hosts=made.hosts,
        chips=made.chips,
        mode=mode,
        requested_at=now,
        seen_at=now,
        up_at=now,
        ready_at=None if mode is Mode.FLEX_START else now,
    )
    labels = own_labels(falcon, job_id, attempt)
    DirectGke(falcon.sim).create_pool(
        CreatePool(cluster, ZONE, pool, job_id, labels=labels, resource_labels={}, idle_seconds=600)
    )
    falcon.sim.calls.clear()
    if entered:
        falcon.store.pools[cluster.id, pool.name] = pool
    return pool.name


def objects(falcon: Falcon, kind: str, cluster_id: str = "c1") -> list[Json]:
    """Return the stored Kubernetes objects of a kind, to be looked at or changed by hand."""
    stored = falcon.sim.kube(falcon.store.clusters[cluster_id].path).store.objects[kind]
    return [stored[key] for key in sorted(stored) if kind in ("nodes", "namespaces") or key[0] == NAMESPACE]


def work(falcon: Falcon, name: str) -> Json:
    """Return a stored Kubernetes Job of c1."""
    return next(item for item in objects(falcon, "jobs") if item["metadata"]["name"] == name)


def pods(falcon: Falcon, job_id: str) -> list[Json]:
    """Return the stored pods of a job in c1, whatever their attempt."""
    return [item for item in objects(falcon, "pods") if item["metadata"]["labels"].get(names.JOB_ID) == job_id]


def pools_of_pods(falcon: Falcon, job_id: str) -> set[str]:
    """Return the pools on whose nodes pods of a job are."""
    pool_of = {
        node["metadata"]["name"]: node["metadata"]["labels"]["cloud.google.com/gke-nodepool"]
        for node in objects(falcon, "nodes")
    }
    return {pool_of[pod["spec"]["nodeName"]] for pod in pods(falcon, job_id) if "nodeName" in pod["spec"]}


def calls(falcon: Falcon, name: str, about: str = "") -> int:
    """Return how many calls of a name, about something, reached the clouds."""
    return sum(1 for call in falcon.sim.calls if call.name == name and call.target.endswith(about))


def watch(falcon: Falcon, seconds: float, holds: Callable[[], Any]) -> None:
    """Make passes for so long; something holds before and after each."""
    ends = falcon.store.now + seconds
    while falcon.store.now < ends:
        assert holds(), falcon.describe()
        if not falcon.step().progress:
            falcon.advance(INTERVAL)
    assert holds(), falcon.describe()
