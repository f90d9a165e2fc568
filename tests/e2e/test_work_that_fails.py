"""Work that is refused, fails, runs too long or is aborted: the end is told with its cause, and nothing is left."""

import pytest
from cloudsim.errors import KubeError
from cloudsim.faults import Fault, Under
from cloudsim.workload import NEVER_ENDS, NEVER_PULLS, OUT_OF_MEMORY, SIDECAR_STUCK, Workload
from wire import Start
from world import Falcon, cluster, spec

from falcon_rm.core.model import Bounds

pytest_plugins = ["doors"]

HOOK = 'admission webhook "policy.example.com" denied the request: no image of this registry'
RIGHT = 'jobs.batch is forbidden: User "falcon" cannot create resource "jobs" in API group "batch"'
REFUSALS = {
    "unprocessable": KubeError(422, "Invalid", 'Job.batch "falcon-j1" is invalid: spec.template.spec: Invalid value'),
    "webhook": KubeError(403, "Forbidden", HOOK),
}
QUICK = Bounds(language="en", pod_start_image=60, pod_start_sidecar=60)
PHASES = [
    "Pending/Waiting",
    "Pending/Provisioning",
    "Pending/WaitingForNode",
    "Pending/Dispatching",
    "Running",
]


@pytest.mark.parametrize("refusal", list(REFUSALS))
def test_refused_submit_ends_the_job(start: Start, refusal: str) -> None:
    """What Kubernetes refuses for good is not asked again (P58)."""
    falcon = start()
    error = REFUSALS[refusal]
    falcon.sim.faults.add(Fault("kube.create.jobs", error=error, times=None))
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    assert "Failed/JobSubmitFailed" == falcon.state("j1")
    assert error.message in falcon.message("j1")
    assert 1 == len([call for call in falcon.sim.calls if call.name == "kube.create.jobs"])


def test_missing_right_is_the_clusters_trouble(start: Start) -> None:
    """Where Falcon may not create Jobs, the job goes elsewhere and nothing is counted (P16)."""
    falcon = start(cluster("c1"), cluster("c2"))
    denied = KubeError(403, "Forbidden", RIGHT)
    falcon.sim.faults.add(Fault("kube.create.jobs", error=denied, times=None, where=Under(falcon.clusters["c1"].path)))
    falcon.submit("j1")
    falcon.settle()
    assert ("Succeeded", "c2", 0) == (falcon.state("j1"), falcon.job("j1").cluster_id, falcon.job("j1").pool_failures)


def test_submit_whose_answer_was_lost_makes_one_job(start: Start) -> None:
    """A Job that was made although its create failed is found and recorded (P59)."""
    falcon = start()
    lost = KubeError(500, "InternalError", "etcdserver: request timed out")
    falcon.sim.faults.add(Fault("kube.create.jobs", "after", error=lost))
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: bool(falcon.works()))
    (uid,) = [item["metadata"]["uid"] for item in jobs(falcon)]
    falcon.until_state("j1", "Running")
    assert uid == falcon.job("j1").job_uid
    falcon.settle()
    assert ("Succeeded", 1) == (falcon.state("j1"), falcon.job("j1").attempt)


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (Workload(seconds=5, exit_code=3), "exit code 3"),
        (Workload(seconds=None, indexes={2: Workload(seconds=5, exit_code=7)}), "falcon-j1-2-"),
        (OUT_OF_MEMORY, "OOMKilled (exit code 137)"),
        (NEVER_PULLS, "ImagePull"),
        (SIDECAR_STUCK, "gke-gcsfuse-sidecar"),
    ],
    ids=["exit-code", "one-of-four", "out-of-memory", "image", "sidecar"],
)
def test_workload_that_fails_says_why(start: Start, workload: Workload, words: str) -> None:
    """A failed workload ends as JobFailed with pod, container and cause (P50, P56, P57, P60)."""
    falcon = start(cluster("c1", gcs_bucket="b"), bounds=QUICK)
    falcon.sim.scripts_by_job_id["j1"] = workload
    falcon.submit("j1", spec("4x4", max_retries=3))
    falcon.settle()
    assert ("Failed/JobFailed", 1) == (falcon.state("j1"), falcon.job("j1").attempt)
    assert words in falcon.message("j1"), falcon.message("j1")


def test_people_are_told_in_chinese_by_default(start: Start) -> None:
    """What a workload and its cloud say is stored as it was said, after our own words (P93)."""
    falcon = start(bounds=Bounds())
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=5, exit_code=1, message="坏了 😀\nline 2 \x00")
    falcon.submit("j1", timeout_seconds=60)
    falcon.until_state("j1", "Running")
    assert "Pod 运行中 (1/1 active)" == falcon.message("j1")
    falcon.settle()
    assert falcon.message("j1").startswith("Pod terminated: Error (exit code 1)")
    assert "坏了 😀 line 2" in falcon.message("j1")


def test_submit_that_waits_says_why(start: Start) -> None:
    """While Kubernetes takes no Job for now, pool and slot are kept and the message says so (P58, P105)."""
    falcon = start()
    later = KubeError(503, "ServiceUnavailable", "the server is currently unable to handle the request")
    fault = falcon.sim.faults.add(Fault("kube.create.jobs", error=later, times=None))
    falcon.submit("j1")
    falcon.until_state("j1", "Pending/Dispatching")
    falcon.passes(3)
    assert ("Pending/Dispatching", "j1") == (falcon.state("j1"), falcon.holder("2x2"))
    assert "currently unable to handle the request" in falcon.message("j1")
    falcon.sim.faults.remove(fault)
    falcon.settle()
    assert ("Succeeded", 1) == (falcon.state("j1"), falcon.job("j1").attempt)


def test_run_limit_ends_as_timeout(start: Start) -> None:
    """A job past timeout_seconds is stopped, its outcome written first (P111)."""
    falcon = start()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec(), timeout_seconds=60)
    falcon.until(lambda: falcon.job("j1").outcome is not None)
    assert ("Running", "Timeout", ["falcon-j1"]) == (falcon.state("j1"), falcon.job("j1").outcome, falcon.works())
    falcon.settle()
    assert ("Failed/Timeout", "Job timed out (60s), K8s Job cancelled") == (falcon.state("j1"), falcon.message("j1"))


def test_end_is_told_when_its_pool_is_gone(start: Start) -> None:
    """Succeeded is written when a list lacks the pool, not before (P110)."""
    falcon = start()
    falcon.submit("j1")
    falcon.until(lambda: falcon.job("j1").outcome == "Succeeded")
    falcon.until(lambda: not falcon.pools())
    assert "Running" == falcon.state("j1")
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


@pytest.mark.parametrize("state", PHASES)
def test_abort_works_from_every_phase(start: Start, state: str) -> None:
    """An aborted job ends Aborted and owns nothing (P32, P87)."""
    falcon = start()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    falcon.store.set_status("j1", "Aborting")
    falcon.settle()
    assert ("Aborted", "Aborted by user") == (falcon.state("j1"), falcon.message("j1"))
    seen = [each for each in falcon.story("j1") if not each.startswith("Abort")]
    assert PHASES[: PHASES.index(state) + 1] == seen


def test_abort_of_a_job_that_lacks_room(start: Start) -> None:
    """A job that shows ClusterBusy owns nothing: its abort is one write."""
    falcon = start(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", "us-central1-a", "r", "ct6e-standard-4t", 1, in_use=1)
    falcon.submit("j1", spec(mode=""))
    falcon.until_state("j1", "Pending/ClusterBusy")
    falcon.store.set_status("j1", "Aborting")
    falcon.step()
    assert "Aborted" == falcon.state("j1")


def test_abort_beats_an_end_that_is_not_written_yet(start: Start) -> None:
    """An abort while an end is being carried out stands: the job ends Aborted (P87)."""
    falcon = start()
    falcon.submit("j1")
    falcon.until(lambda: falcon.job("j1").outcome == "Succeeded")
    falcon.store.set_status("j1", "Aborting")
    falcon.settle()
    assert "Aborted" == falcon.state("j1")


def test_abort_before_the_first_pass_is_one_write(start: Start) -> None:
    """A job that owns nothing is aborted without a call to a cloud that acts."""
    falcon = start()
    falcon.submit("j1", spec())
    falcon.store.set_status("j1", "Aborting")
    falcon.step()
    assert "Aborted" == falcon.state("j1")
    assert [] == [call for call in falcon.sim.calls if call.mutating]


@pytest.mark.parametrize("state", PHASES[1:])
def test_row_deleted_while_the_job_lives_is_an_abort(start: Start, state: str) -> None:
    """Without a row the work is stopped, the pool released, the slot freed (P33)."""
    falcon = start()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    falcon.store.delete_row("j1")
    falcon.settle()
    assert None is falcon.holder("4x4")


def test_job_deleted_by_a_person_is_not_submitted_again(start: Start) -> None:
    """A Kubernetes Job that was seen and went ends its job."""
    falcon = start()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4", max_retries=3))
    falcon.until_state("j1", "Running")
    falcon.sim.kube(falcon.clusters["c1"].path).delete_by_hand("jobs", "falcon-jobs", "falcon-j1")
    falcon.settle()
    assert ("Failed/JobFailed", "K8s Job falcon-j1 was deleted by others") == (
        falcon.state("j1"),
        falcon.message("j1"),
    )


def jobs(falcon: Falcon) -> list[dict[str, dict[str, str]]]:
    """Return the Kubernetes Jobs of c1."""
    return list(falcon.sim.kube(falcon.clusters["c1"].path).store.objects["jobs"].values())
