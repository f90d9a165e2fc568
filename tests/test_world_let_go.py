"""A Kubernetes Job is made suspended and let go once its UID is in the row: what comes too late never runs (R6, S3)."""

from typing import Any

import pytest
from cloudsim.direct_kube import NAMESPACE
from cloudsim.faults import Fault
from cloudsim.workload import NEVER_ENDS
from interruptions import overtaken
from laws import check
from world import Falcon, spec
from world_acts import calls, objects, pods

TASKS: dict[str, dict[str, Any]] = {
    "one host": spec(),
    "four hosts": spec("4x4"),
    "cpu": {"image": "i", "device_type": "cpu", "command": "true"},
}
EVERY_TASK = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
PATH = "projects/p/locations/us-central1-a/clusters/c1"


def dispatching(task: dict[str, Any]) -> Falcon:
    """Return a world whose next pass submits the Job."""
    falcon = Falcon()
    falcon.submit("j1", task)
    falcon.until_state("j1", "Pending/Dispatching")
    return falcon


def let_go(falcon: Falcon) -> bool:
    """Return whether the Job is not suspended any more."""
    return any(not item["spec"]["suspend"] for item in objects(falcon, "jobs"))


def delete_job(falcon: Falcon) -> None:
    """Let a person delete the Job."""
    falcon.sim.kube(PATH).delete_by_hand("jobs", NAMESPACE, "falcon-j1")


@EVERY_TASK
def test_job_is_made_before_it_may_run(task: dict[str, Any]) -> None:
    """After the pass that submits it the UID is in the row and no pod is there; the next one lets it go."""
    falcon = dispatching(task)
    falcon.step()
    (made,) = objects(falcon, "jobs")
    assert (made["metadata"]["uid"], True) == (falcon.job("j1").job_uid, made["spec"]["suspend"])
    falcon.advance(5)
    assert [] == pods(falcon, "j1")
    falcon.step()
    assert let_go(falcon)
    falcon.settle()
    assert ("Succeeded", 1) == (falcon.state("j1"), calls(falcon, "kube.patch.jobs", "falcon-j1"))


@EVERY_TASK
@pytest.mark.parametrize("later", [1.0, 30.0, 600.0])
def test_create_that_takes_effect_after_the_end_never_runs(task: dict[str, Any], later: float) -> None:
    """Its answer is lost, the job is aborted and over; the Job that comes then has no pods, and goes."""
    falcon = dispatching(task)
    falcon.sim.faults.add(Fault("kube.create.jobs", "hang", later=later))
    falcon.step()
    falcon.store.set_status("j1", "Aborting")
    began = falcon.sim.now
    seen = 0
    while falcon.sim.now < began + later + 300:
        seen += len(pods(falcon, "j1"))
        check(falcon)
        if not falcon.step().progress:
            falcon.advance(0.5 if falcon.sim.now < began + 2 else 10)
    assert ("Aborted", 0, []) == (falcon.state("j1"), seen, falcon.leftovers())


@EVERY_TASK
def test_controller_that_wakes_before_its_create_starts_nothing(task: dict[str, Any]) -> None:
    """Frozen between its last check and its create while others bring the job to its end, it makes no second run."""
    falcon = dispatching(task)
    overtaken(falcon, falcon.settle)
    ran = [call for call in falcon.sim.effects if call.name == "kube.patch.jobs"]
    falcon.settle()
    falcon.passes(10)
    assert ("Succeeded", []) == (falcon.state("j1"), falcon.leftovers())
    assert ran == [call for call in falcon.sim.effects if call.name == "kube.patch.jobs"]


@EVERY_TASK
def test_job_deleted_before_anybody_knew_it_runs_once(task: dict[str, Any]) -> None:
    """Deleted by hand between its creation and the write of its UID it had not run: it is made again, and runs."""
    falcon = dispatching(task)
    falcon.sim.faults.add(Fault("kube.create.jobs", "hang", effect=True))
    falcon.step()
    delete_job(falcon)
    falcon.settle()
    assert ("Succeeded", 1) == (falcon.state("j1"), calls(falcon, "kube.patch.jobs", "falcon-j1"))


@EVERY_TASK
@pytest.mark.parametrize("started", [False, True])
def test_job_deleted_once_its_uid_is_in_the_row_is_never_submitted_again(task: dict[str, Any], started: bool) -> None:
    """Whether it was let go or not, and before any pass has seen it: JobFailed."""
    falcon = dispatching(task)
    falcon.sim.default_workload = NEVER_ENDS
    falcon.step()
    if started:
        falcon.step()
    assert started == let_go(falcon)
    delete_job(falcon)
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")
    assert 1 == calls(falcon, "kube.create.jobs", "falcon-j1")


@EVERY_TASK
def test_resume_whose_answer_is_lost_is_asked_again(task: dict[str, Any]) -> None:
    """Without effect the Job stays suspended and the next pass lets it go; with it nothing is left to do."""
    for effect in (False, True):
        falcon = dispatching(task)
        falcon.step()
        falcon.sim.faults.add(Fault("kube.patch.jobs", "hang", effect=effect))
        falcon.step()
        assert effect == let_go(falcon)
        falcon.settle()
        assert "Succeeded" == falcon.state("j1")
