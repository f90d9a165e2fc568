"""The truth about a Job and its pods (pitfalls.md 6), each input against the simulated cloud in memory."""

from typing import Any

import pytest
from cloudsim.values import kube_time
from cloudsim.workload import NEVER_ENDS, Workload
from world import Falcon, cluster, spec
from world_acts import NAMESPACE, calls, objects, pods, watch, work

from falcon_rm.core.model import Cluster

PATH = cluster("c1").path
BUCKET = cluster("c1", gcs_bucket="logs")


def started(task: Workload = NEVER_ENDS, state: str = "Running", **columns: Any) -> Falcon:
    """Return a world in which j1, v6e 4x4, has come to a state."""
    falcon = Falcon(BUCKET)
    falcon.sim.scripts_by_job_id["j1"] = task
    falcon.submit("j1", spec("4x4"), **columns)
    falcon.until_state("j1", state)
    return falcon


def condition(falcon: Falcon, kind: str, status: str = "True", reason: str = "", message: str = "") -> None:
    """Write a condition into the Job's status."""
    entry = {"type": kind, "status": status, "reason": reason, "message": message}
    now = kube_time(falcon.store.now)
    work(falcon, "falcon-j1")["status"].setdefault("conditions", []).append({**entry, "lastTransitionTime": now})


def test_counters_without_a_condition_are_no_end() -> None:
    """One failed pod is not the Job, nor are four succeeded ones; the run limit still applies (P47)."""
    falcon = started(timeout_seconds=3600)
    status = work(falcon, "falcon-j1")["status"]
    status |= {"failed": 1, "active": 3, "ready": 3}
    watch(falcon, 600, lambda: falcon.state("j1") == "Running")
    status |= {"failed": 0, "succeeded": 4, "active": 0, "ready": 0}
    dispatched = falcon.job("j1").dispatched_at
    assert dispatched is not None
    watch(falcon, dispatched + 3590 - falcon.store.now, lambda: falcon.state("j1") == "Running")
    falcon.until_state("j1", "Failed/Timeout")


def test_conditions_that_announce_an_end_are_none() -> None:
    """FailureTarget alone keeps job and pool; Failed ends them (P48)."""
    falcon = started()
    condition(falcon, "FailureTarget", reason="BackoffLimitExceeded")
    watch(falcon, 120, lambda: (falcon.state("j1"), falcon.pools()) == ("Running", ["falcon-j1"]))
    condition(falcon, "Failed", reason="BackoffLimitExceeded", message="Job has reached the specified backoff limit")
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")


def test_every_condition_is_read() -> None:
    """SuccessCriteriaMet before Complete is a success (P48)."""
    falcon = started()
    condition(falcon, "SuccessCriteriaMet")
    watch(falcon, 60, lambda: falcon.state("j1") == "Running")
    condition(falcon, "Complete")
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_condition_that_is_false_says_nothing() -> None:
    """Complete=False and Failed=False end nothing (P49)."""
    falcon = started()
    condition(falcon, "Complete", "False")
    condition(falcon, "Failed", "False")
    watch(falcon, 120, lambda: falcon.state("j1") == "Running")


def test_failed_wins_over_any_counter() -> None:
    """Failed=True beside succeeded pods is a failure (P49)."""
    falcon = started()
    work(falcon, "falcon-j1")["status"] |= {"succeeded": 1, "active": 0, "ready": 0}
    condition(falcon, "Failed", reason="BackoffLimitExceeded", message="limit")
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")


def test_suspended_job_does_not_run_and_the_message_says_it() -> None:
    """A Job suspended by hand stays Dispatching; resumed it runs (P49)."""
    falcon = started(Workload(seconds=60, pull_seconds=60), "Pending/Dispatching")
    falcon.until(lambda: any(row.resumed_at is not None for row in falcon.store.works.values()))
    falcon.sim.kube(PATH).suspend_by_hand(NAMESPACE, "falcon-j1")
    falcon.advance(5)
    falcon.passes(3)
    assert "Pending/Dispatching" == falcon.state("j1")
    assert "suspended" in (falcon.job("j1").message or "")
    falcon.sim.kube(PATH).suspend_by_hand(NAMESPACE, "falcon-j1", suspend=False)
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


@pytest.mark.parametrize(
    ("kind", "words", "seconds"),
    [
        ("image-pull", "busybox:1.36: not found", 900),
        ("invalid-image", "InvalidImageName", 180),
        ("config-error", "CreateContainerConfigError", 180),
        ("run-error", "RunContainerError", 180),
        ("mount-stuck", "FailedMount", 300),
        ("sidecar-stuck", "StartError", 300),
    ],
)
def test_pods_that_can_never_start_end_after_their_own_deadline(kind: str, words: str, seconds: float) -> None:
    """What holds a pod up is told at once and ends the job past its deadline, pool and all (P50)."""
    falcon = started(Workload(kind=kind), "Pending/Dispatching")
    falcon.until(lambda: words in (falcon.job("j1").message or ""), seconds=60)
    assert "Pending/Dispatching" == falcon.state("j1")
    dispatched = falcon.job("j1").dispatched_at
    assert dispatched is not None
    watch(falcon, dispatched + seconds - 20 - falcon.store.now, lambda: falcon.state("j1") == "Pending/Dispatching")
    falcon.until(lambda: falcon.job("j1").outcome == "JobFailed", seconds=60)
    falcon.settle()
    message = falcon.job("j1").message or ""
    assert ("Failed/JobFailed", True, True) == (falcon.state("j1"), words in message, "falcon-j1-" in message), message


def test_large_image_that_is_being_pulled_is_progress() -> None:
    """Twelve minutes of PodInitializing with init containers done is no failure (P51)."""
    falcon = started(Workload(seconds=20, pull_seconds=720), "Pending/Dispatching")
    watch(falcon, 690, lambda: falcon.state("j1") == "Pending/Dispatching")
    falcon.until_state("j1", "Running", seconds=120)


@pytest.mark.parametrize("reason", ["FailedMount", "FailedCreatePodSandBox"])
@pytest.mark.parametrize("of", [BUCKET, cluster("c1")], ids=["with a bucket", "without"])
def test_trouble_of_a_fresh_node_that_is_over_ends_nothing(reason: str, of: Cluster) -> None:
    """One warning at the start, then eight minutes of pulling the image: the job runs (P51)."""
    falcon = Falcon(of)
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=20, pull_seconds=480)
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: bool(pods(falcon, "j1")))
    for pod in pods(falcon, "j1"):
        falcon.sim.kube(PATH).events.add(pod, "Warning", reason, "not yet", "kubelet")
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_deadline_of_a_wrong_pod_counts_from_when_it_shows() -> None:
    """A secret that is missed after seven minutes of pulling has its three minutes still (P50)."""
    falcon = started(Workload(kind="config-error", pull_seconds=420), "Pending/Dispatching")
    falcon.until(lambda: "CreateContainerConfigError" in (falcon.job("j1").message or ""))
    watch(falcon, 160, lambda: falcon.job("j1").outcome is None)
    falcon.until(lambda: falcon.job("j1").outcome == "JobFailed", seconds=60)


def test_job_without_any_pod_says_why_and_ends() -> None:
    """Refused pods: the event's text is told at once, and is the last word past the deadline (P52)."""
    falcon = Falcon()
    falcon.sim.kube(PATH).pods_refused = "exceeded quota: q"
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: "exceeded quota: q" in (falcon.job("j1").message or ""))
    assert "Pending/Dispatching" == falcon.state("j1")
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")
    assert "exceeded quota: q" in (falcon.job("j1").message or "")


def test_job_that_finished_while_nobody_could_look_has_succeeded() -> None:
    """The finished Job is still there when the API is back; nothing runs twice (P53)."""
    falcon = started(Workload(seconds=100))
    down = falcon.sim.faults.cluster_down(PATH)
    watch(falcon, 900, lambda: falcon.state("j1") == "Running")
    falcon.sim.faults.remove(down)
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")
    assert 1 == calls(falcon, "kube.create.jobs")


def test_pods_on_a_dead_node_end_with_their_pool() -> None:
    """A pod that hangs in Terminating holds an abort up for a bounded time (P54)."""
    falcon = started()
    node = pods(falcon, "j1")[0]["spec"]["nodeName"]
    falcon.sim.kube(PATH).nodes.unreachable(node)
    falcon.store.set_status("j1", "Aborting")
    asked = falcon.store.now
    falcon.until(lambda: falcon.ledger("falcon-j1").lease is None)
    assert falcon.store.now - asked <= 30 + 300 + 30
    falcon.until_state("j1", "Aborted", seconds=600)
    falcon.settle()
    assert [] == objects(falcon, "pods")


def test_end_that_is_there_beats_a_limit_that_has_passed() -> None:
    """A job that ended within its limit while the controller was away has succeeded (P55)."""
    falcon = started(Workload(seconds=100), timeout_seconds=3600)
    falcon.advance(5000)
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_out_of_memory_is_named_with_pod_and_exit_code() -> None:
    """The Job's condition says back-off limit, the message says what happened (P56)."""
    oom = Workload(seconds=30, out_of_memory=True, exit_code=137)
    falcon = started(Workload(seconds=None, indexes={2: oom}))
    falcon.settle()
    message = falcon.job("j1").message or ""
    assert "Pod terminated: OOMKilled (exit code 137)" in message
    assert "pod falcon-j1-2" in message


def test_first_to_fail_is_blamed() -> None:
    """One pod fails by itself, the others are killed for it and their objects are gone (P57)."""
    falcon = started(Workload(seconds=None, ignores_term=True, indexes={2: Workload(seconds=100, exit_code=1)}))
    falcon.settle()
    message = falcon.job("j1").message or ""
    assert all(words in message for words in ("exit code 1)", "pod falcon-j1-2-")), message


def test_the_loudest_is_not_the_first() -> None:
    """Peers that die of it in the same moment are not blamed but counted (P57)."""
    first = Workload(seconds=100, exit_code=1)
    falcon = started(Workload(seconds=100.05, exit_code=137, indexes={2: first}))
    falcon.settle()
    message = falcon.job("j1").message or ""
    assert all(words in message for words in ("exit code 1)", "pod falcon-j1-2-", "and 3 more")), message


def test_pod_that_outlives_its_jobs_end_is_stopped_in_bounded_time() -> None:
    """An ended Job with a pod on a dead node is deleted, then the pool goes with the pod (P54)."""
    falcon = started()
    falcon.sim.kube(PATH).nodes.unreachable(pods(falcon, "j1")[0]["spec"]["nodeName"])
    condition(falcon, "Failed", reason="BackoffLimitExceeded", message="limit")
    falcon.settle(seconds=1200)
    assert "Failed/JobFailed" == falcon.state("j1")
    assert [] == objects(falcon, "pods")
