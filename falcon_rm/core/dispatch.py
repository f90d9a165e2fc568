"""
How the steps that concern a Kubernetes Job become calls: submit, let go, delete.

1. A Job is made suspended and let go by its UID once that is in the row: a create that takes effect late, or whose
   answer is lost, makes a Job that never runs.
2. A Job is deleted by its UID too: what others made under its name stays.
"""

from falcon_rm.core import manifest, names
from falcon_rm.core.actions import Action, DeleteWork, ResumeWork, SubmitWork
from falcon_rm.core.case import Case
from falcon_rm.core.machine import Phase, Verb
from falcon_rm.core.words import CPU_TOPOLOGY, ErrorKind


def submit(case: Case) -> Action:
    """Return the call that makes the Job of this attempt, suspended, or finishes a submit that was cut short."""
    job, scene = case.job, case.scene
    cluster = scene.views[job.cluster_id or ""].cluster
    name = names.cloud_name(job.id, job.attempt)
    body, service = manifest.build(
        job=job,
        task=case.task,
        cluster=cluster,
        name=name,
        pool=job.node_pool_name if job.topology != CPU_TOPOLOGY else None,
        instance=scene.snapshot.instance,
        log_path_template=scene.bounds.log_path_template,
    )
    return SubmitWork(
        cluster=cluster,
        job_id=job.id,
        version=job.version,
        status=job.status,
        attempt=job.attempt,
        name=name,
        manifest=body,
        service=service,
        dispatched=case.situation.phase is Phase.DISPATCHING,
        tried_at=_tried_at(case),
    )


def resume(case: Case) -> Action:
    """Return the call that lets the Job go whose UID is in the row."""
    job = case.job
    return ResumeWork(
        cluster=case.scene.views[job.cluster_id or ""].cluster,
        job_id=job.id,
        attempt=job.attempt,
        name=names.cloud_name(job.id, job.attempt),
        uid=job.job_uid or "",
        tried_at=_tried_at(case),
    )


def _tried_at(case: Case) -> float:
    """Return when the last answer about this Job was lost; 0 if none was."""
    submission = case.scene.submission_of(case.job)
    fault = submission.error if submission else None
    return fault.at if fault and fault.kind is ErrorKind.UNKNOWN else 0


def delete(case: Case) -> Action:
    """Return the call that deletes the Job that was seen."""
    job, work = case.job, case.scene.work_of(case.job)
    assert work is not None
    cluster = case.scene.views[job.cluster_id or ""].cluster
    why = "it is over" if case.step.verb is Verb.CLEAN else f"it is to stop: {job.outcome or job.status}"
    submission = case.scene.submission_of(job)
    asked = submission.stop_at if submission else None
    return DeleteWork(cluster, work.name, work.uid, job.id, job.attempt, why, tried_at=asked or 0)
