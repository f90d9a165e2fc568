"""What must hold in every world after every pass (proof.md 2), checked on rows, ledger and clouds."""

from collections import Counter
from typing import Any

from world import Falcon

from falcon_rm.core.scene import ACQUIRING, phase_of
from falcon_rm.core.words import CPU_TOPOLOGY, PoolState


def check(falcon: Falcon) -> None:
    """What must hold after every pass (proof.md 2)."""
    store, sim = falcon.store, falcon.sim
    made = Counter(call.arguments[1]["name"] for call in sim.calls if call.name == "gke.create_node_pool")
    assert set(made) <= {pool.name for pool in store.pools.values()}, "a pool was asked for that the ledger lacks (S7)"
    acquiring = Counter(
        (job.cluster_id, job.topology)
        for job in store.jobs.values()
        if phase_of(job) in ACQUIRING and job.topology != CPU_TOPOLOGY
    )
    assert all(count == 1 for count in acquiring.values()), "two jobs of one queue acquire (S4)"
    held = Counter(pool.lease for pool in store.pools.values() if pool.lease)
    assert all(count == 1 for count in held.values()), "a job holds two leases (S3)"
    assert not [pool for pool in store.pools.values() if pool.lease and pool.state is not PoolState.ACTIVE], "S5"
    open_leases = sorted((lease.pool, lease.job_id) for lease in store.lease_rows() if lease.until_at is None)
    assert open_leases == sorted((pool.name, pool.lease) for pool in store.pools.values() if pool.lease), "S9"
    for job in store.jobs.values():
        if job.status in ("Succeeded", "Aborted") or job.reason in ("JobFailed", "Timeout"):
            assert job.id not in held, "a job is over and holds a pool (S2)"
            assert not running_pods(falcon, job.id), "a job is over and its pods run (S2)"
        attempts = {pod["metadata"]["labels"]["falcon.io/attempt"] for pod in running_pods(falcon, job.id)}
        assert len(attempts) <= 1, "pods of two attempts run at once (S3)"


def running_pods(falcon: Falcon, job_id: str) -> list[Any]:
    """Return the pods of a job that run."""
    return [
        pod
        for row in falcon.store.clusters.values()
        for pod in falcon.sim.kube(row.path).store.objects["pods"].values()
        if pod["metadata"].get("labels", {}).get("falcon.io/job-id") == job_id
        and pod["status"].get("phase") == "Running"
    ]
