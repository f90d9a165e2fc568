"""Preemption and maintenance: what the platform takes away is told from what the workload does (P58 to P66)."""

from typing import Any

import pytest
from cloudsim.errors import KubeError
from cloudsim.faults import Fault
from cloudsim.values import Json
from cloudsim.workload import NEVER_ENDS, Workload
from world import Falcon, cluster, spec
from world_acts import calls, pods, work

LOST, AGAIN = Workload(seconds=20, attempts={1: NEVER_ENDS}), "falcon-j1-2"


def running(task: Json, workload: Workload = LOST, *, state: str = "Running") -> Falcon:
    """Return a world in which j1 stands at a state; from its second attempt on it ends by itself."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = workload
    falcon.submit("j1", task)
    falcon.until_state("j1", state)
    return falcon


def change(falcon: Falcon, kind: str, item: Json, **status: Any) -> None:
    """Write into the status of a Kubernetes object, and let its Job's controller look."""
    kube = falcon.sim.kube(cluster("c1").path)
    item["status"] |= status
    kube.store.touch(item)
    for owner in item["metadata"].get("ownerReferences", ()):
        kube.jobs.poke(owner["uid"])


def node_of(falcon: Falcon, index: int) -> str:
    """Return the node on which one pod of j1 runs."""
    return str(pods(falcon, "j1")[index]["spec"]["nodeName"])


# --- submitting


def test_refusal_of_the_job_fails_it_once_with_the_servers_words() -> None:
    """An admission webhook's denial is final: one submit, its text in the message, the pool released (P58)."""
    falcon = Falcon()
    text = 'admission webhook "w" denied the request: no'
    falcon.sim.faults.add(Fault("kube.create.jobs", error=KubeError(403, "Forbidden", text), times=None))
    falcon.submit("j1", spec("4x4"))
    falcon.settle()
    assert "Failed/JobSubmitFailed" == falcon.state("j1")
    assert text in (falcon.job("j1").message or "")
    assert 1 == calls(falcon, "kube.create.jobs", "falcon-j1")


@pytest.mark.parametrize(("status", "reason"), [(503, "ServiceUnavailable"), (429, "TooManyRequests"), (500, "")])
def test_hiccup_of_the_submit_is_no_refusal(status: int, reason: str) -> None:
    """A server that is busy three times gets the Job in the end, on the same pool (P58)."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("kube.create.jobs", error=KubeError(status, reason, "busy"), times=3))
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    assert ["falcon-j1"] == falcon.works() == falcon.pools()
    assert 4 == calls(falcon, "kube.create.jobs", "falcon-j1")


def test_submit_that_timed_out_but_worked_is_found_by_name() -> None:
    """A Job that an unanswered submit made is taken as submitted, and its UID is written (P59)."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("kube.create.jobs", "hang", effect=True))
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    assert ["falcon-j1"] == falcon.works()
    assert work(falcon, "falcon-j1")["metadata"]["uid"] == falcon.job("j1").job_uid
    assert 1 == falcon.job("j1").attempt


# --- whose fault it was


def test_pod_that_its_node_rejects_is_a_loss() -> None:
    """After a repair the kubelet refuses the pod: the platform's doing, so the user's retry is used (P61)."""
    falcon = running(spec(max_retries=1))
    (pod,) = pods(falcon, "j1")
    falcon.sim.kube(cluster("c1").path).pods.cut_off(pod)
    change(falcon, "pods", pod, phase="Failed", reason="UnexpectedAdmissionError", containerStatuses=[])
    falcon.settle()
    assert ("Succeeded", 2, 1) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.job("j1").losses)


def test_drained_pod_is_a_loss() -> None:
    """A pod that a drain stopped ends with 143 and DisruptionTarget: a loss (P61)."""
    falcon = running(spec(max_retries=1))
    falcon.sim.kube(cluster("c1").path).nodes.drain([node_of(falcon, 0)])
    falcon.settle()
    assert ("Succeeded", 2, 1) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.job("j1").losses)


def test_exit_143_without_disruption_is_the_workloads_own() -> None:
    """The same exit code by itself is the workload's failure, retry or not (P61)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=5, exit_code=143)
    falcon.submit("j1", spec(max_retries=1))
    falcon.settle()
    assert ("Failed/JobFailed", 1) == (falcon.state("j1"), falcon.job("j1").attempt)
    assert "exit code 143" in (falcon.job("j1").message or "")


def test_second_loss_ends_the_job_and_says_so() -> None:
    """One retry is one retry: the second lost node ends the job with a message about the loss (P62)."""
    falcon = running(spec("4x4", max_retries=1), NEVER_ENDS)
    for _ in range(2):
        falcon.until_state("j1", "Running")
        falcon.sim.gke.pools.lose_node(cluster("c1").path, node_of(falcon, 2))
        falcon.until(lambda: falcon.state("j1") != "Running")
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")
    assert "lost with its infrastructure" in (falcon.job("j1").message or "")
    assert ["falcon-j1", AGAIN] == falcon.creates()


@pytest.mark.parametrize(("retries", "end"), [(0, "Failed/JobFailed"), (1, "Succeeded")])
def test_host_that_is_gone_ends_the_slice_though_the_job_says_nothing(retries: int, end: str) -> None:
    """One node and its pod vanish and the Job stays active: the peers are not left hanging (P63)."""
    falcon = running(spec("4x4", max_retries=retries))
    kube, lost = falcon.sim.kube(cluster("c1").path), pods(falcon, "j1")[2]
    node = kube.store.find("nodes", None, lost["spec"]["nodeName"])
    assert node is not None
    kube.store.drop("nodes", node)
    kube.store.drop("pods", lost)
    change(falcon, "jobs", work(falcon, "falcon-j1"), active=3, ready=3)
    falcon.settle()
    assert (end, retries) == (falcon.state("j1"), falcon.job("j1").losses)


def test_host_that_falls_silent_ends_the_slice() -> None:
    """A node that stops answering holds its pod in Terminating for ever: the pool goes, then the next attempt (P63)."""
    falcon = running(spec("4x4", max_retries=1))
    falcon.sim.kube(cluster("c1").path).nodes.unreachable(node_of(falcon, 2))
    falcon.settle()
    assert ("Succeeded", 2) == (falcon.state("j1"), falcon.job("j1").attempt)


def test_pods_are_not_to_be_evicted_and_idle_time_follows_the_mode() -> None:
    """Every pod says so to the autoscaler, and a flex-start pool may idle for six hours (P64)."""
    falcon = running(spec("4x4", mode=""), NEVER_ENDS)
    (create,) = (call for call in falcon.sim.calls if call.name == "gke.create_node_pool")
    assert "21600s" == create.arguments[1]["config"]["consolidationDelay"]
    key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    assert ["false"] * 4 == [pod["metadata"]["annotations"][key] for pod in pods(falcon, "j1")]


def test_old_attempts_job_is_not_the_new_ones() -> None:
    """A failed Job of attempt 1 that is still listed neither fails attempt 2 nor stays (P65)."""
    falcon = running(spec("4x4", max_retries=1), Workload(seconds=60, attempts={1: NEVER_ENDS}))
    kube, old = falcon.sim.kube(cluster("c1").path), dict(work(falcon, "falcon-j1"))
    falcon.sim.gke.pools.lose_node(cluster("c1").path, node_of(falcon, 2))
    falcon.until(lambda: falcon.state("j1") == "Pending/Dispatching" and falcon.job("j1").attempt == 2)
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "old"}
    kube.store.add("jobs", {**old, "metadata": dict(old["metadata"]), "status": {"failed": 1, "conditions": [failed]}})
    falcon.until(lambda: falcon.works() == [AGAIN])
    falcon.settle()
    assert ["Running", "Succeeded"] == falcon.story("j1")[-2:]
    assert 2 == falcon.job("j1").attempt


def test_loss_before_all_pods_ran_is_a_pool_that_could_not_be_made() -> None:
    """A node lost while pods start costs a pool attempt, no retry of the user, and frees the slot (P66)."""
    slow = Workload(seconds=20, indexes={3: Workload(seconds=20, pull_seconds=600)})
    falcon = running(spec("4x4"), Workload(seconds=20, attempts={1: slow}), state="Pending/Dispatching")
    falcon.until(lambda: ["Pending"] == [pod["status"]["phase"] for pod in pods(falcon, "j1")][3:])
    falcon.until(lambda: "nodeName" in pods(falcon, "j1")[3]["spec"])
    falcon.sim.gke.pools.lose_node(cluster("c1").path, node_of(falcon, 3))
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    assert None is falcon.store.slots["c1", "4x4"].holder
    falcon.settle()
    assert ("Succeeded", 2, 0) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.job("j1").losses)
    assert "Running" == falcon.story("j1")[-2]


def test_losses_before_all_pods_ran_are_bounded() -> None:
    """The third pool that is lost under starting pods ends the job, and its message names the loss (P66)."""
    falcon = Falcon()
    falcon.sim.default_workload = Workload(seconds=20, indexes={3: Workload(seconds=20, pull_seconds=600)})
    falcon.submit("j1", spec("4x4"))
    for attempt in (1, 2, 3):
        falcon.until(lambda: len([pod for pod in pods(falcon, "j1") if "nodeName" in pod["spec"]]) == 4)
        falcon.sim.gke.pools.lose_node(cluster("c1").path, node_of(falcon, 3))
        falcon.until(lambda attempt=attempt: falcon.job("j1").attempt > attempt or falcon.is_over())  # type: ignore[misc]
    assert ("Failed/JobFailed", 3) == (falcon.state("j1"), falcon.job("j1").attempt)
    assert "lost with its infrastructure" in (falcon.job("j1").message or "")


def test_flex_start_loss_under_starting_pods_tries_again() -> None:
    """The same of a flex-start pool, whose pods start while the job still waits for its nodes (P66)."""
    slow = Workload(seconds=20, indexes={3: Workload(seconds=20, pull_seconds=600)})
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=20, attempts={1: slow})
    falcon.submit("j1", spec("4x4", mode="flex-start"))
    falcon.until(lambda: len([pod for pod in pods(falcon, "j1") if "nodeName" in pod["spec"]]) == 4)
    falcon.sim.gke.pools.lose_node(cluster("c1").path, node_of(falcon, 3))
    falcon.settle(seconds=24 * 3600)
    assert ("Succeeded", 2, 0) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.job("j1").losses)
