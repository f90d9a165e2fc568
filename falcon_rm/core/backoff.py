"""
How long a job keeps off a cluster on which its leases failed (design.md 3 and 4).

1. Worked out per job and cluster from the ledger, so that a change of cluster and back forgets nothing.
2. Doubling and bounded; what was before the last run does not count.
3. The row's `retry_at` says the same once more. One further ahead than any back-off is not Falcon's and says nothing.
"""

from falcon_rm.core.model import Failure, Job
from falcon_rm.core.scene import Scene

BACKOFF_ENDS = frozenset({"busy", "capacity", "quota", "full", "nodes", "broken"})
"""Ends of a lease after which the same job does not try the same cluster again for a while."""


def backoff_until(job: Job, cluster_id: str, scene: Scene) -> float | None:
    """Return until when a job does not try a cluster again, worked out from its leases that failed there; None: now."""
    now, failed = scene.snapshot.now, failed_leases(job, cluster_id, scene)
    until = max((failure.at for failure in failed), default=0.0) + backoff(len(failed), scene) if failed else 0.0
    if job.cluster_id == cluster_id and job.retry_at is not None and job.retry_at <= now + scene.bounds.backoff_max:
        until = max(until, job.retry_at)
    return until if until > now else None


def failed_leases(job: Job, cluster_id: str, scene: Scene) -> list[Failure]:
    """Return how the job's leases on a cluster ended since it last ran, those that keep it off that cluster."""
    return [
        failure
        for failure in scene.failures.get((job.id, cluster_id), ())
        if backoff_ends(failure.ended) and failure.at > (job.started_at or 0)
    ]


def is_off(job: Job, cluster_id: str, scene: Scene) -> bool:
    """Return whether a job keeps off a cluster for another reason than a reservation that it found full."""
    last = max(failed_leases(job, cluster_id, scene), key=lambda failure: failure.at, default=None)
    return backoff_until(job, cluster_id, scene) is not None and not (last and last.ended == "full")


def busy_since(job: Job, cluster_id: str, scene: Scene) -> float | None:
    """Return since when a job that shows ClusterBusy lacks room: a try that found the reservation full ends nothing."""
    full = [failure.at for failure in failed_leases(job, cluster_id, scene) if failure.ended == "full"]
    return min((at for at in (job.reason_since, *full) if at is not None), default=None)


def backoff_ends(ended: str) -> bool:
    """Return whether a lease that ended so keeps the job off that cluster for a while."""
    return ended in BACKOFF_ENDS


def backoff(failures: int, scene: Scene) -> float:
    """Return the seconds to wait after that many failures: doubling, bounded."""
    bounds = scene.bounds
    return float(min(bounds.backoff_base * 2 ** min(failures - 1, 30), bounds.backoff_max))
