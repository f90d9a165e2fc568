"""Kubernetes' JSON as values."""

from typing import Any

import pytest

from falcon_rm.cloud.kube_values import kube_event, live_work, pod, ready_node, understood
from falcon_rm.core.live import Condition, ContainerState, KubeEvent, LiveWork, Pod
from falcon_rm.core.words import CloudError, ErrorKind


def test_job() -> None:
    """A Job keeps every condition with its status, and the pool it is pinned to (P48, P49)."""
    raw = {
        "metadata": {"name": "falcon-j1", "uid": "u", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {
            "parallelism": 4,
            "template": {"spec": {"nodeSelector": {"cloud.google.com/gke-nodepool": "falcon-j1"}}},
        },
        "status": {
            "active": 1,
            "ready": 1,
            "succeeded": 2,
            "failed": 1,
            "conditions": [
                {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"},
                {"type": "Complete", "status": "False"},
            ],
        },
    }
    expected = LiveWork(
        name="falcon-j1",
        uid="u",
        labels={"a": "b"},
        annotations={"c": "d"},
        conditions={"FailureTarget": Condition(True, "BackoffLimitExceeded", "m"), "Complete": Condition(False)},
        parallelism=4,
        active=1,
        ready=1,
        succeeded=2,
        failed=1,
        pool="falcon-j1",
    )
    assert expected == live_work(raw)


def test_job_that_was_just_made() -> None:
    """A Job without a status has defaults."""
    assert LiveWork(name="n", uid="u") == live_work({"metadata": {"name": "n", "uid": "u", "labels": None}})


def test_job_that_is_being_deleted() -> None:
    """A deletion timestamp is seen."""
    assert live_work({"metadata": {"name": "n", "uid": "u", "deletionTimestamp": "2026-11-01T00:00:00Z"}}).deleting


def test_pod() -> None:
    """A pod keeps what every container says, sidecars told apart."""
    raw = {
        "metadata": {"name": "falcon-j1-0-x", "uid": "u", "labels": {"job-name": "falcon-j1"}},
        "spec": {
            "nodeName": "n1",
            "initContainers": [{"name": "sidecar", "restartPolicy": "Always"}, {"name": "init"}],
        },
        "status": {
            "phase": "Failed",
            "reason": "Evicted",
            "message": "disk",
            "conditions": [
                {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z"},
                {"type": "PodReadyToStartContainers", "status": "True"},
            ],
            "initContainerStatuses": [
                {"name": "sidecar", "state": {"running": {"startedAt": "2026-11-01T00:00:00Z"}}},
                {"name": "init", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
            ],
            "containerStatuses": [
                {
                    "name": "task",
                    "state": {
                        "terminated": {
                            "exitCode": 137,
                            "reason": "OOMKilled",
                            "message": "m",
                            "finishedAt": "2026-11-01T00:01:00Z",
                        }
                    },
                }
            ],
        },
    }
    expected = Pod(
        name="falcon-j1-0-x",
        work="falcon-j1",
        uid="u",
        labels={"job-name": "falcon-j1"},
        phase="Failed",
        node="n1",
        reason="Evicted",
        message="disk",
        disrupted="DeletionByTaintManager",
        scheduled_at="2026-11-01T00:00:00Z",
        has_sandbox=True,
        containers=(
            ContainerState("sidecar", "running", init=True, sidecar=True),
            ContainerState("init", "terminated", "Completed", exit_code=0, init=True),
            ContainerState("task", "terminated", "OOMKilled", "m", 137, "2026-11-01T00:01:00Z"),
        ),
    )
    assert expected == pod(raw)


def test_pod_that_waits() -> None:
    """A pod that no node takes says why; a container without a state waits."""
    raw = {
        "metadata": {"name": "p", "uid": "u", "deletionTimestamp": "2026-11-01T00:00:00Z"},
        "status": {
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"},
                {"type": "DisruptionTarget", "status": "False", "reason": "x"},
                {"type": "PodReadyToStartContainers", "status": "False"},
            ],
            "containerStatuses": [
                {"name": "a", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}},
                {"name": "b", "state": {}},
            ],
        },
    }
    expected = Pod(
        name="p",
        work="",
        uid="u",
        deleting=True,
        unschedulable="0/1 nodes",
        containers=(
            ContainerState("a", "waiting", "ImagePullBackOff", "not found"),
            ContainerState("b", "waiting"),
        ),
    )
    assert expected == pod(raw)


@pytest.mark.parametrize(
    ("fields", "seen", "first"),
    [
        ({"series": {"lastObservedTime": "3"}, "lastTimestamp": "2"}, "3", "0"),
        ({"lastTimestamp": "2", "eventTime": "1"}, "2", "1"),
        ({"lastTimestamp": None, "eventTime": "1"}, "1", "1"),
        ({"lastTimestamp": "3", "firstTimestamp": "2", "eventTime": None}, "3", "2"),
        ({}, "0", "0"),
    ],
)
def test_event(fields: dict[str, Any], seen: str, first: str) -> None:
    """The latest time an event has is when it was last seen, the time it was told first is beside it."""
    raw = {
        "metadata": {"creationTimestamp": "0"},
        "involvedObject": {"name": "a"},
        "reason": "r",
        "message": "m",
        **fields,
    }
    assert KubeEvent("a", "r", "m", seen, first) == kube_event(raw)


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_node(status: str, ready: bool) -> None:
    """Only a node whose Ready is True is Ready."""
    meta = {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "p"}}
    raw = {"metadata": meta, "status": {"conditions": [{"type": "Ready", "status": status}]}}
    assert ("n", "p", ready) == ready_node(raw)


@pytest.mark.parametrize("item", [{}, {"metadata": {}}, {"metadata": {"name": "n", "uid": 7}}, None, "text", 3])
def test_item_of_another_form(item: Any) -> None:
    """One item that nobody understands makes the list unknown (P81)."""
    good = {"metadata": {"name": "n", "uid": "u"}}
    with pytest.raises(CloudError) as caught:
        understood(live_work, [good, item])
    assert ErrorKind.UNKNOWN == caught.value.kind
