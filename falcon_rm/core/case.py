"""
One job in one pass: what the machine decided on, and all that carrying its step out may need.

1. Built by plan.py, read by steps.py (which acts) and narrate.py (which tells people).
2. Its helpers only fill in values; nothing here decides.
"""

from typing import Any

from attrs import frozen

from falcon_rm.core.actions import Change, GiveUp
from falcon_rm.core.machine import Situation, Step
from falcon_rm.core.messages import Messages
from falcon_rm.core.model import Cluster, Job, TaskSpec
from falcon_rm.core.scene import Scene
from falcon_rm.core.schedule import Decision
from falcon_rm.core.situation import pool_fault
from falcon_rm.core.sweep import Demand
from falcon_rm.core.words import Status


@frozen
class Case:
    """One job in one pass, with all that a step may need."""

    job: Job
    step: Step
    situation: Situation
    scene: Scene
    messages: Messages
    demand: Demand
    decision: Decision | None

    @property
    def task(self) -> TaskSpec:
        """The parsed spec; only asked for where it parses."""
        assert isinstance(self.job.task, TaskSpec)
        return self.job.task

    def change(self, why: str, **fields: Any) -> Change:
        """Return a Change of this job that keeps its status and reason unless told otherwise."""
        job = self.job
        kept = job.reason if job.status in (Status.PENDING, Status.FAILED) else None  # upstream's Aborting leaves one
        own = {
            "to_status": job.status,
            "to_reason": kept,
            "cluster_id": job.cluster_id,
            "topology": job.topology,
            "attempt": job.attempt,
        }
        return Change(
            job_id=job.id,
            version=job.version,
            from_status=job.status,
            from_reason=job.reason,
            why=why,
            **(own | fields),
        )

    def give_up(self, ended: str, *, keep: bool = False) -> GiveUp | None:
        """Return the end of this job's lease, with the pool's error beside it; None if it holds none."""
        pool = self.scene.pool_of(self.job)
        if pool is None or pool.lease != self.job.id:
            return None
        live = self.scene.live.get((pool.cluster_id, pool.name))
        fault = pool_fault(pool, live, self.scene) if not keep else None
        return GiveUp(pool.name, keep, ended, (fault.kind, fault.text) if fault else None)

    @property
    def cluster(self) -> Cluster | None:
        """The row of the cluster the job stands in, if there is one."""
        view = self.scene.views.get(self.job.cluster_id or "")
        return view.cluster if view else None
