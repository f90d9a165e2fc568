"""
What the pods of a Job say: whether they all run, what holds them up, and whose fault an end was.

1. The Job's conditions decide whether it has ended; pods only explain (reference/gke.md 6.2).
2. Infrastructure is recognised by what Kubernetes says about a pod, never by an exit code.
3. Each thing that holds a pod up has a deadline of its own, by category, from when Kubernetes says that it began.
4. A warning is history: it counts while the pod does not show that it is over, and while it is told again and again.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from attrs import frozen

from falcon_rm.core.live import ContainerState, KubeEvent, LiveWork, Pod
from falcon_rm.core.model import Bounds

REJECTED = ("UnexpectedAdmissionError", "NodeAffinity", "NodeLost", "NodeShutdown", "Shutdown", "OutOf")
"""How `pod.status.reason` begins if its node refused the pod or took it down; OutOf is followed by the resource."""

WAITING_CATEGORY = {
    "ErrImagePull": "image",
    "ImagePullBackOff": "image",
    "ImageInspectError": "image",
    "RegistryUnavailable": "image",
    "ContainerCreating": "image",
    "PodInitializing": "image",
    "InvalidImageName": "configuration",
    "ErrImageNeverPull": "configuration",
    "CreateContainerConfigError": "configuration",
    "CreateContainerError": "configuration",
    "RunContainerError": "configuration",
    "StartError": "configuration",
    "CrashLoopBackOff": "configuration",
}
EVENT_CATEGORY = {"FailedMount": "sidecar", "FailedCreatePodSandBox": "sidecar", "FailedCreate": "configuration"}
ORDINARY = frozenset({"ContainerCreating", "PodInitializing"})
WARNING_LASTS = 180.0  # seconds; what goes on is told again within about 2 minutes


@frozen
class HeldUp:
    """What keeps a pod from running: *category* names its deadline, *text* is for people."""

    pod: str
    category: str  # image, configuration, sidecar, unschedulable
    text: str
    since: float | None = None  # None: nobody says, so from dispatch on

    def limit(self, bounds: Bounds) -> float:
        """Return the seconds that this may last."""
        return limits(bounds)[self.category]


def limits(bounds: Bounds) -> Mapping[str, float]:
    """Return the seconds that each category may last."""
    return {
        "image": bounds.pod_start_image,
        "configuration": bounds.pod_start_configuration,
        "sidecar": bounds.pod_start_sidecar,
        "unschedulable": bounds.pod_start_unschedulable,
    }


@frozen
class Ended:
    """The container that ended first by its own fault, and how many others ended badly."""

    pod: str
    container: str
    exit_code: int | None
    reason: str
    message: str
    others: int


def count_running(pods: Iterable[Pod]) -> int:
    """Return how many pods run or have run to their end."""
    return sum(1 for pod in pods if pod.phase in ("Running", "Succeeded") and not pod.deleting)


def held_up(work: LiveWork, pods: Sequence[Pod], events: Sequence[KubeEvent], now: float) -> tuple[HeldUp, ...]:
    """Return what holds up each pod that does not run, and the Job itself if it has too few pods."""
    lasting = [event for event in events if _lasts(event, now)]
    found = [reason for pod in pods if pod.phase == "Pending" for reason in [_held_up(pod, events, lasting)]]
    if len(pods) < work.parallelism:
        refusals = [event for event in lasting if event.about == work.name and event.reason == "FailedCreate"]
        found += [HeldUp(work.name, "configuration", event.message, _began(refusals)) for event in refusals[-1:]]
    return tuple(found)


def _held_up(pod: Pod, events: Sequence[KubeEvent], lasting: Sequence[KubeEvent]) -> HeldUp:
    scheduled, own = _moment(pod.scheduled_at), [event for event in events if event.about == pod.name]
    if pod.unschedulable is not None:
        return HeldUp(pod.name, "unschedulable", f"Unschedulable: {pod.unschedulable}", scheduled)
    bad = [c for c in pod.containers if c.init and (_waits(c) or _crashed(c))]
    for container in bad:
        return HeldUp(
            pod.name, "sidecar", f"{container.name}: {_words(container)}", _since(container, own) or scheduled
        )
    prepared = pod.has_sandbox or any(container.state != "waiting" for container in pod.containers)
    for event in () if prepared else lasting:
        if event.about == pod.name and event.reason in EVENT_CATEGORY:
            began = _began(other for other in own if other.reason == event.reason)
            return HeldUp(pod.name, EVENT_CATEGORY[event.reason], f"{event.reason}: {event.message}", began)
    for container in pod.containers:
        if not container.init and container.state == "waiting":
            category = WAITING_CATEGORY.get(container.reason, "configuration")
            began = _since(container, own) if category == "configuration" else None
            return HeldUp(pod.name, category, _words(container), began or scheduled)
    return HeldUp(pod.name, "image" if pod.node else "unschedulable", "Pending", scheduled)


def _lasts(event: KubeEvent, now: float) -> bool:
    """Return whether a warning is about what goes on still."""
    told = _moment(event.last_seen)
    return told is None or now - told <= WARNING_LASTS


def _began(events: Iterable[KubeEvent]) -> float | None:
    """Return when the first of these was told first; None if none has a time."""
    return min((at for event in events for at in [_moment(event.first_seen)] if at is not None), default=None)


def _since(container: ContainerState, events: Sequence[KubeEvent]) -> float | None:
    """Return since when a container is as it is: its end, or the first warning that says the same."""
    if container.state == "terminated":
        return _moment(container.finished)
    said = [word for word in (container.reason, container.message) if word]
    return _began(event for event in events if any(word in event.message for word in said))


def _moment(text: str) -> float | None:
    """Return a time of Kubernetes, which always names its zone; None for what is none."""
    try:
        return datetime.fromisoformat(text).timestamp() if text.endswith("Z") else None
    except ValueError:
        return None


def _waits(container: ContainerState) -> bool:
    return container.state == "waiting" and container.reason not in ORDINARY


def _crashed(container: ContainerState) -> bool:
    return container.state == "terminated" and container.exit_code != 0


def _words(container: ContainerState) -> str:
    return f"{container.reason}: {container.message}" if container.message else container.reason or "Waiting"


def is_infrastructure(work: LiveWork, pods: Sequence[Pod]) -> bool:
    """
    Return whether a failed Job was lost with its node or rejected by it, rather than failed by itself.

    The manifest's podFailurePolicy fails the Job on DisruptionTarget, so the Job's own condition says it even when the
    pods are collected already.
    """
    condition = work.conditions.get("Failed")
    if condition is not None and condition.reason == "PodFailurePolicy":
        return True
    first = first_end(pods)
    rejected = [pod for pod in pods if pod.reason.startswith(REJECTED)]
    return bool(rejected) and (first is None or first.pod in {pod.name for pod in rejected})


def first_end(pods: Sequence[Pod]) -> Ended | None:
    """
    Return the container that ended first by its own fault; None if none is known.

    In a slice one pod fails and the others die of it: a container killed by a signal counts only if no other failed.
    """
    ends = [
        (container.exit_code in (137, 143) and container.reason != "OOMKilled", container.finished, pod.name, container)
        for pod in pods
        for container in pod.containers
        if container.state == "terminated" and container.exit_code and not container.sidecar
    ]
    if not ends:
        return None
    ends.sort(key=lambda end: end[:3])
    _, _, pod_name, container = ends[0]
    return Ended(
        pod=pod_name,
        container=container.name,
        exit_code=container.exit_code,
        reason=container.reason,
        message=container.message,
        others=len({end[2] for end in ends} - {pod_name}),
    )
