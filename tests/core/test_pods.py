"""What pods say: whether they run, what holds them up, whose fault an end was."""

from datetime import UTC, datetime
from typing import Any

import pytest
from attrs import evolve
from builders import FAILED, NOW, change, job, live, message, pod, pool, snapshot, state, step, task, view, work

from falcon_rm.core.actions import Change
from falcon_rm.core.live import Condition, ContainerState, KubeEvent, LiveWork, Pod
from falcon_rm.core.model import Bounds, Fault, Job, Snapshot, Submission
from falcon_rm.core.pods import Ended, HeldUp, count_running, first_end, held_up, is_infrastructure
from falcon_rm.core.words import ErrorKind

SLICE = job("j1", "Running", task("4x4", max_retries=1), message="Pods running (4/4 active)")
STARTS = job("j1", "Pending/Dispatching", task("4x4"), job_uid="uid-j1", dispatched_at=NOW - 40)
POLICY = {"Failed": Condition(status=True, reason="PodFailurePolicy", message="Pod disrupted")}


def container(state: str, reason: str = "", text: str = "", **fields: Any) -> ContainerState:
    """Return the state of the container `task`."""
    return ContainerState(**{"name": "task", "state": state, "reason": reason, "message": text} | fields)


def ended(code: int, reason: str = "Error", at: int = 100, **fields: Any) -> ContainerState:
    """Return a container that ended so many seconds after the start."""
    return container("terminated", reason, exit_code=code, finished=f"2026-01-01T00:00:{at - 100:02}Z", **fields)


def world(of: Job, *listed: LiveWork | Pod, **fields: Any) -> Snapshot:
    """Return the world of a job on its ready pool."""
    return snapshot(of, views=(view(live(pool(of)), *listed, **fields),), pools=(pool(of),))


# --- what runs


def test_pods_that_run_or_have_run_count() -> None:
    """A pod that is being deleted does not, one that waits or failed does not."""
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    assert 2 == count_running([*(pod(SLICE, 0, phase) for phase in phases), pod(SLICE, deleting=True)])


# --- what holds up


def held(of: Pod, *events: KubeEvent) -> HeldUp:
    """Return what holds one pod up."""
    (found,) = held_up(work(STARTS, parallelism=1), [of], events, NOW)
    return found


NAME = "falcon-j1-0"
HELD = [
    ("an image being pulled", "image", "PodInitializing", container("waiting", "PodInitializing")),
    ("an image that is not there", "image", "ImagePullBackOff: x not found", container(
        "waiting", "ImagePullBackOff", "x not found")),
    ("a bad name", "configuration", "InvalidImageName", container("waiting", "InvalidImageName")),
    ("a missing secret", "configuration", "CreateContainerConfigError: secret s", container(
        "waiting", "CreateContainerConfigError", "secret s")),
    ("a command that is not there", "configuration", "RunContainerError", container("waiting", "RunContainerError")),
    ("a word nobody knows", "configuration", "Strange", container("waiting", "Strange")),
    ("no word at all", "configuration", "Waiting", container("waiting")),
    ("a sidecar that cannot start", "sidecar", "fuse: StartError", ContainerState(
        "fuse", "waiting", "StartError", init=True, sidecar=True)),
    ("an init container that failed", "sidecar", "setup: Error", ContainerState(
        "setup", "terminated", "Error", exit_code=1, init=True)),
    ("an init container that is done", "image", "Pending", ContainerState(
        "setup", "terminated", "Completed", exit_code=0, init=True)),
    ("an init container being made", "image", "Pending", ContainerState(
        "fuse", "waiting", "PodInitializing", init=True)),
    ("a container that runs already", "image", "Pending", container("running")),
]  # fmt: skip


@pytest.mark.parametrize(("category", "text", "of"), [case[1:] for case in HELD], ids=[case[0] for case in HELD])
def test_container_that_holds_a_pod_up(category: str, text: str, of: ContainerState) -> None:
    """Each reason has its category, which names its deadline (P50, P51)."""
    assert HeldUp(NAME, category, text) == held(pod(STARTS, 0, "Pending", of))


@pytest.mark.parametrize(
    ("reason", "category"),
    [("FailedMount", "sidecar"), ("FailedCreatePodSandBox", "sidecar"), ("FailedCreate", "configuration")],
)
def test_event_that_holds_a_pod_up(reason: str, category: str) -> None:
    """A Warning about the pod goes before what its containers say; one about another pod is not its own."""
    waits = pod(STARTS, 0, "Pending", container("waiting", "ContainerCreating"))
    others = (KubeEvent("falcon-j1-1", reason, "no"), KubeEvent(NAME, "BackOff", "no"))
    assert HeldUp(NAME, category, f"{reason}: why") == held(waits, *others, KubeEvent(NAME, reason, "why"))
    assert HeldUp(NAME, "image", "ContainerCreating") == held(waits, *others)


def at(seconds: float) -> str:
    """Return a moment so many seconds before NOW, as Kubernetes writes it."""
    return datetime.fromtimestamp(NOW - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


MOUNT = KubeEvent(NAME, "FailedMount", "no", at(60), at(200))
CREATING = container("waiting", "ContainerCreating")


@pytest.mark.parametrize(
    ("of", "event", "category"),
    [
        (pod(STARTS, 0, "Pending", CREATING), MOUNT, "sidecar"),
        (pod(STARTS, 0, "Pending", CREATING), evolve(MOUNT, last_seen=at(180)), "sidecar"),
        (pod(STARTS, 0, "Pending", CREATING), evolve(MOUNT, last_seen=at(181)), "image"),
        (pod(STARTS, 0, "Pending", CREATING, has_sandbox=True), MOUNT, "image"),
        (pod(STARTS, 0, "Pending", ContainerState("fuse", "running", init=True, sidecar=True), CREATING),
         evolve(MOUNT, reason="FailedCreatePodSandBox"), "image"),
    ],
    ids=["told again", "a while ago", "not told again", "sandbox made", "sidecar runs"],
)  # fmt: skip
def test_warning_that_is_over_holds_nothing_up(of: Pod, event: KubeEvent, category: str) -> None:
    """A mount or sandbox that failed at first counts while it goes on, not for as long as its event is listed (P51)."""
    assert category == held(of, event).category


SECRET = container("waiting", "CreateContainerConfigError", 'secret "s" not found')
CRASHED = ContainerState("fuse", "terminated", "Error", exit_code=1, init=True, finished=at(30))


@pytest.mark.parametrize(
    ("of", "events", "since"),
    [
        (pod(STARTS, 0, "Pending", CREATING), (evolve(MOUNT, first_seen=at(250)), MOUNT), 250),
        (pod(STARTS, 0, "Pending", SECRET, scheduled_at=at(400)),
         (KubeEvent(NAME, "Failed", "Error: ErrImagePull", at(390), at(390)),
          KubeEvent(NAME, "Failed", 'Error: secret "s" not found', at(9), at(20))), 20),
        (pod(STARTS, 0, "Pending", SECRET, scheduled_at=at(400)), (), 400),
        (pod(STARTS, 0, "Pending", CREATING, scheduled_at=at(300)), (), 300),
        (pod(STARTS, 0, "Pending", CRASHED, scheduled_at=at(300)), (), 30),
        (pod(STARTS, 0, "Pending", node=None, unschedulable="0/4 nodes", scheduled_at=at(70)), (), 70),
        (pod(STARTS, 0, "Pending", CREATING, scheduled_at="yesterday"), (), None),
        (pod(STARTS, 0, "Pending", CREATING, scheduled_at="yesterdaZ"), (), None),
    ],
    ids=["first mount", "first such warning", "no warning", "bound", "crash", "no node", "no time", "no such time"],
)  # fmt: skip
def test_deadline_counts_from_when_it_began(of: Pod, events: tuple[KubeEvent, ...], since: float | None) -> None:
    """What holds a pod up began when Kubernetes first said it, however long ago the Job was submitted (P50)."""
    assert (None if since is None else NOW - since) == held(of, *events).since


@pytest.mark.parametrize(("ahead", "reached"), [(20, "Pending/Dispatching"), (40, "JobFailed")])
def test_time_of_a_clock_far_ahead_counts_for_nothing(ahead: float, reached: str) -> None:
    """A little ahead a fault has only just begun; far ahead nobody can say, and it counts from dispatch (P50)."""
    late = job("j1", "Pending/Dispatching", task("4x4"), job_uid="uid-j1", dispatched_at=NOW - 901)
    waits = container("waiting", "ImagePullBackOff", "Back-off pulling image")
    of = world(late, work(late, ready=0), pod(late, 0, "Pending", waits, scheduled_at=at(-ahead)))
    assert reached == change(of).columns.get("outcome", "Pending/Dispatching")


@pytest.mark.parametrize(("let_go", "reached"), [(30, "Pending/Dispatching"), (901, "JobFailed")])
def test_nothing_holds_up_pods_before_their_job_was_let_go(let_go: float, reached: str) -> None:
    """Submitted long ago and let go only now, by who came after a process that was killed between the two."""
    late = job("j1", "Pending/Dispatching", task("4x4"), job_uid="uid-j1", dispatched_at=NOW - 901)
    sent = Submission("c1", NAME.rsplit("-", 1)[0], "j1", 1, NOW - 902, resumed_at=NOW - let_go)
    waits = container("waiting", "ImagePullBackOff", "Back-off pulling image")
    of = evolve(world(late, work(late, ready=0), pod(late, 0, "Pending", waits)), submissions=(sent,))
    assert reached == change(of).columns.get("outcome", "Pending/Dispatching")


@pytest.mark.parametrize(
    ("seconds", "events", "reached"),
    [(300, (), "JobFailed"), (899, None, "Pending/Dispatching"), (901, None, "JobFailed")],
    ids=["read", "unread", "unread for long"],
)
def test_events_that_were_not_read_leave_the_longest_deadline(
    seconds: float, events: tuple[KubeEvent, ...] | None, reached: str
) -> None:
    """Without the events nobody knows since when a pod is wrongly configured."""
    late = job("j1", "Pending/Dispatching", job_uid="uid-j1", dispatched_at=NOW - seconds)
    made = change(world(late, work(late, ready=0), pod(late, 0, "Pending", SECRET), events=events))
    assert reached == made.columns.get("outcome", "Pending/Dispatching")


def test_pod_without_a_node() -> None:
    """The scheduler's words, or none yet."""
    assert HeldUp(NAME, "unschedulable", "Unschedulable: 0/4 nodes") == held(
        pod(STARTS, 0, "Pending", node=None, unschedulable="0/4 nodes")
    )
    assert HeldUp(NAME, "unschedulable", "Pending") == held(pod(STARTS, 0, "Pending", node=None))


def test_job_without_pods_is_held_up_by_its_last_refusal() -> None:
    """The Job's FailedCreate event is the reason (P52)."""
    events = (KubeEvent("falcon-j1", "FailedCreate", "first"), KubeEvent("falcon-j1", "FailedCreate", "quota: q"))
    assert (HeldUp("falcon-j1", "configuration", "quota: q"),) == held_up(work(STARTS), [], events, NOW)
    assert () == held_up(work(STARTS), [pod(STARTS, n) for n in range(4)], events, NOW)


@pytest.mark.parametrize(
    ("category", "limit"), [("image", 900), ("configuration", 180), ("sidecar", 300), ("unschedulable", 900)]
)
def test_limit_of_each_category(category: str, limit: float) -> None:
    """FALCON_POD_START by category."""
    assert limit == HeldUp("p", category, "").limit(Bounds())


@pytest.mark.parametrize(
    ("seconds", "of", "reached"),
    [
        (900, container("waiting", "ImagePullBackOff"), "Pending/Dispatching"),
        (901, container("waiting", "ImagePullBackOff"), "JobFailed"),
        (720, container("waiting", "PodInitializing"), "Pending/Dispatching"),
        (180, container("waiting", "InvalidImageName"), "Pending/Dispatching"),
        (181, container("waiting", "InvalidImageName"), "JobFailed"),
        (301, ContainerState("fuse", "terminated", "StartError", exit_code=128, init=True), "JobFailed"),
    ],
)
def test_pod_that_never_starts_ends_the_job_past_its_deadline(seconds: float, of: ContainerState, reached: str) -> None:
    """The outcome is JobFailed with pod, reason and text; until then Dispatching says what is not up (P50, P51)."""
    late = job("j1", "Pending/Dispatching", job_uid="uid-j1", dispatched_at=NOW - seconds)
    made = change(world(late, work(late, ready=0), pod(late, 0, "Pending", of)))
    assert reached == made.columns.get("outcome", "Pending/Dispatching")
    words = "Pods cannot start: falcon-j1-0: " if reached == "JobFailed" else "0/1 pod(s) running; falcon-j1-0: "
    assert words in (made.message or "")


def test_job_whose_pods_are_refused_says_why_at_once() -> None:
    """No pod at all: Dispatching with the event's text, JobFailed past the deadline (P52)."""
    event = KubeEvent("falcon-j1", "FailedCreate", "exceeded quota: q")
    of = job("j1", "Pending/Dispatching", job_uid="uid-j1", dispatched_at=NOW - 10)
    waits = world(of, work(of, active=0, ready=0), events=(event,))
    text = "Node pool ready, submitting K8s Job...; 0/1 pod(s) running; falcon-j1: exceeded quota: q"
    assert ("Pending/Dispatching", text) == (state(waits), message(waits))
    late = job("j1", "Pending/Dispatching", job_uid="uid-j1", dispatched_at=NOW - 181)
    made = change(world(late, work(late, active=0, ready=0), events=(event,)))
    assert ("JobFailed", "Pods cannot start: falcon-j1: exceeded quota: q") == (made.columns["outcome"], made.message)


# --- conditions decide


@pytest.mark.parametrize(
    "of",
    [
        work(SLICE, failed=1, active=3, ready=3),
        work(SLICE, succeeded=4, active=0, ready=0),
        work(SLICE, {"FailureTarget": Condition(status=True)}, active=3, ready=3),
        work(SLICE, {"Complete": Condition(status=False)}, active=4, ready=4),
    ],
    ids=["a failed pod", "all succeeded", "an end announced", "Complete=False"],
)
def test_job_has_not_ended_before_a_condition_says_so(of: LiveWork) -> None:
    """Counters and announcements are no end (P47, P48, P49)."""
    assert "Running" == state(world(SLICE, of))
    made = step(world(SLICE, of))
    assert made is None or (isinstance(made, Change) and made.only_message)


def test_run_limit_applies_to_a_job_that_only_counts() -> None:
    """Four succeeded pods and no condition until the limit: Timeout (P47)."""
    late = job("j1", "Running", task("4x4"), timeout_seconds=39)
    assert "Timeout" == change(world(late, work(late, succeeded=4, active=0))).columns["outcome"]


def test_suspended_job_is_not_running() -> None:
    """Dispatching says so (P49)."""
    suspended = work(STARTS, active=0, ready=0, suspended=True)
    let_go = Submission("c1", suspended.name, STARTS.id, STARTS.attempt, NOW - 40, resumed_at=NOW - 39)
    told = message(evolve(world(STARTS, suspended), submissions=(let_go,)))
    assert "Node pool ready, submitting K8s Job...; K8s Job is suspended" == told


def test_job_that_was_not_let_go_yet_is_being_submitted() -> None:
    """Suspended as it was made, it says why it still is, if there is a reason."""
    made = work(STARTS, active=0, ready=0, suspended=True)
    fault = Fault(ErrorKind.UNKNOWN, "etcdserver: request timed out", NOW)
    sent = Submission("c1", made.name, STARTS.id, STARTS.attempt, NOW - 40, error=fault)
    told = message(evolve(world(STARTS, made), submissions=(sent,)))
    assert "Node pool ready, submitting K8s Job...; etcdserver: request timed out" == told


def test_failed_wins_over_success() -> None:
    """Failed=True with a succeeded pod is a failure (P49)."""
    both = work(SLICE, {**FAILED, "Complete": Condition(status=True)}, succeeded=1)
    of = world(SLICE, both, pod(SLICE, 0, "Failed", ended(3)))
    assert "JobFailed" == change(of).columns["outcome"]


# --- whose fault


def test_out_of_memory_is_named() -> None:
    """JobFailed carries reason, exit code, pod and container (P56)."""
    of = world(SLICE, work(SLICE, FAILED), pod(SLICE, 2, "Failed", ended(137, "OOMKilled")))
    text = "Pod terminated: OOMKilled (exit code 137); pod falcon-j1-2, container task"
    assert ("JobFailed", text) == (change(of).columns["outcome"], message(of))


def test_first_pod_that_failed_is_blamed() -> None:
    """Those that died of it are a count (P57)."""
    pods = [pod(SLICE, n, "Failed", ended(1, at=103) if n == 2 else ended(137, at=100)) for n in range(4)]
    text = "Pod terminated: Error (exit code 1); pod falcon-j1-2, container task, and 3 more"
    assert text == message(world(SLICE, work(SLICE, FAILED), *pods))


def test_of_two_failures_the_earlier_is_blamed() -> None:
    """The order of the list does not matter."""
    pods = [pod(SLICE, 0, "Failed", ended(2, at=105)), pod(SLICE, 1, "Failed", ended(1, at=101))]
    first = Ended("falcon-j1-1", "task", 1, "Error", "", 1)
    assert (first, first) == (first_end(pods), first_end(pods[::-1]))


@pytest.mark.parametrize(
    "containers",
    [(), (container("running"),), (ended(0, "Completed"),), (ended(1, sidecar=True),)],
    ids=["none", "running", "done", "sidecar"],
)
def test_no_end_to_blame(containers: tuple[ContainerState, ...]) -> None:
    """What did not fail is nobody's fault, nor is a sidecar's end."""
    assert None is first_end([pod(SLICE, 0, "Failed", *containers)])


NODE_LACKS = ("cpu", "memory", "pods", "google.com/tpu")


@pytest.mark.parametrize(
    ("of", "pods", "infrastructure"),
    [
        (POLICY, [], True),
        (POLICY, [pod(SLICE, 0, "Failed", ended(143), disrupted="EvictionByEvictionAPI")], True),
        (FAILED, [pod(SLICE, 0, "Failed", reason="UnexpectedAdmissionError")], True),
        *((FAILED, [pod(SLICE, 0, "Failed", reason=f"OutOf{what}")], True) for what in NODE_LACKS),
        (FAILED, [pod(SLICE, 0, "Failed", ended(143), reason="NodeShutdown")], True),
        (FAILED, [pod(SLICE, 0, "Failed", ended(143))], False),
        (FAILED, [pod(SLICE, 0, "Failed", ended(1)), pod(SLICE, 1, "Failed", reason="NodeLost")], False),
        (FAILED, [], False),
        ({}, [], False),
    ],
    ids=[
        "policy",
        "drained",
        "rejected",
        *NODE_LACKS,
        "shut down",
        "asked to stop",
        "failed first",
        "nothing known",
        "no end",
    ],
)
def test_infrastructure_is_what_kubernetes_says(of: Any, pods: list[Pod], infrastructure: bool) -> None:
    """Never the exit code (P61)."""
    assert infrastructure == is_infrastructure(work(SLICE, of), pods)


@pytest.mark.parametrize(
    ("of", "shown", "outcome"),
    [
        (FAILED, pod(SLICE, 0, "Failed", reason="UnexpectedAdmissionError"), "Lost"),
        (POLICY, pod(SLICE, 0, "Failed", ended(143), disrupted="DeletionByTaintManager"), "Lost"),
        (FAILED, pod(SLICE, 0, "Failed", ended(143)), "JobFailed"),
    ],
)
def test_loss_is_tried_again_and_a_failure_is_not(of: Any, shown: Pod, outcome: str) -> None:
    """With `max_retries` left a loss goes back to Waiting, the workload's own end never does (P61)."""
    made = change(world(SLICE, work(SLICE, of), shown))
    assert (outcome, 1 if outcome == "Lost" else None) == (made.columns["outcome"], made.columns.get("losses"))
