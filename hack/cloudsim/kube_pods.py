"""
The life of the simulated pods: admission, the kubelet's steps, graceful deletion, and what becomes of them on a node
that is gone.

1. What a container does is its Workload (workload.py); the kubelet's steps are those of a real one, seen from the API.
2. A step that was planned before something else happened to the pod does nothing: each change of plan raises `plan`.
3. A pod's object goes when it is deleted, ended, and counted by its Job.
"""

from typing import TYPE_CHECKING

from attrs import define

from cloudsim.values import Json, kube_time
from cloudsim.workload import Workload

if TYPE_CHECKING:
    from cloudsim.kube import Kube

FUSE = "gke-gcsfuse/volumes"
SIDECAR = "gke-gcsfuse-sidecar"
TOLD_AGAIN = 120.0  # seconds between two attempts of the kubelet at a mount, at most
INDEX = "batch.kubernetes.io/job-completion-index"
NODE_LOST = ("DeletionByPodGC", "PodGC: node no longer exists")
EVICTED = ("EvictionByEvictionAPI", "Eviction API: evicting")
TAINTED = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")

STUCK = {
    "image-pull": ("ImagePullBackOff", 'Back-off pulling image "{image}": ErrImagePull: {image}: not found'),
    "invalid-image": ("InvalidImageName", 'Failed to apply default image tag "{image}": couldn\'t parse image name'),
    "config-error": ("CreateContainerConfigError", 'secret "missing" not found'),
    "run-error": ("RunContainerError", "failed to create containerd task: failed to start shim"),
}
"""Workload kind -> reason and message of a main container that waits for ever."""


@define(slots=False, eq=False)
class Run:
    """What the kubelet knows of a pod."""

    workload: Workload
    plan: int = 0
    started: bool = False
    cut_off: bool = False  # its node does not answer: nothing more happens to it


class Pods:
    """The kubelets of one cluster."""

    def __init__(self, kube: "Kube") -> None:
        self.kube = kube
        self.runs: dict[str, Run] = {}

    # admission

    def admit(self, pod: Json) -> None:
        """Store a new pod as the webhooks and defaults make it, and let it be scheduled."""
        spec = pod["spec"]
        spec.setdefault("restartPolicy", "Always")
        spec.setdefault("terminationGracePeriodSeconds", 30)
        spec.setdefault("serviceAccountName", "default")
        if (containers := with_sidecar(pod)) is not None:
            spec["initContainers"] = containers
        pod["metadata"].setdefault("ownerReferences", [])
        pod["metadata"].setdefault("finalizers", [])
        pod["status"] = {"phase": "Pending", "conditions": []}
        self.kube.store.add("pods", pod)
        self.runs[pod["metadata"]["uid"]] = Run(self.kube.world.workload_of(pod))
        self.kube.nodes.poke()

    # the kubelet

    def bind(self, pod: Json, node: str) -> None:
        """Start a pod on the node that the scheduler chose."""
        now, run = kube_time(self.kube.world.now), self._run(pod)
        pod["spec"]["nodeName"] = node
        pod["status"]["startTime"] = now
        set_condition(pod, "PodScheduled", "True", now)
        waiting = "PodInitializing" if pod["spec"].get("initContainers") else "ContainerCreating"
        set_states(pod, {"waiting": {"reason": waiting}}, {"waiting": {"reason": "PodInitializing"}})
        seconds = run.workload.pull_seconds
        tempo = self.kube.world.tempo
        self.kube.world.after(tempo.pull_seconds / 2, self._initialize, pod, run.plan)
        self.kube.world.after(tempo.pull_seconds if seconds is None else seconds, self._start, pod, run.plan)
        self._changed(pod)

    def _initialize(self, pod: Json, plan: int) -> None:
        """Let sidecars run and init containers end."""
        run, now = self._run(pod), kube_time(self.kube.world.now)
        if not self._goes_on(pod, plan):
            return
        if run.workload.kind == "mount-stuck":
            text = 'MountVolume.SetUp failed for volume "gcs": rpc error: code = Unauthenticated'
            self.kube.events.add(pod, "Warning", "FailedMount", text, "kubelet")
            self.kube.world.after(TOLD_AGAIN, self._initialize, pod, plan)
            return
        set_condition(pod, "PodReadyToStartContainers", "True", now)
        stuck = run.workload.kind == "sidecar-stuck"
        for container, status in zip(pod["spec"].get("initContainers", ()), init_statuses(pod), strict=True):
            if container.get("restartPolicy") != "Always":
                if not stuck:
                    end = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
                    status |= {"state": {"terminated": end}, "ready": True}
            elif stuck:
                text = "failed to create containerd task: context deadline exceeded"
                end = {"exitCode": 128, "reason": "StartError", "message": text, "startedAt": now, "finishedAt": now}
                status["state"] = {"terminated": end}
            else:
                status |= {"state": {"running": {"startedAt": now}}, "ready": True, "started": True}
        if not stuck:
            set_condition(pod, "Initialized", "True", now)
        self._changed(pod)

    def _start(self, pod: Json, plan: int) -> None:
        """Let the main containers run, or wait for ever for what they lack."""
        if not self._goes_on(pod, plan):
            return
        run, now = self._run(pod), kube_time(self.kube.world.now)
        work = run.workload
        if work.kind in STUCK:
            reason, text = STUCK[work.kind]
            text = text.format(image=pod["spec"]["containers"][0]["image"])
            set_states(pod, {"waiting": {"reason": reason, "message": text}})
            self.kube.events.add(pod, "Warning", "Failed", f"Error: {reason}: {text}", "kubelet")
        elif work.kind == "run":
            run.started = True
            pod["status"]["phase"] = "Running"
            set_states(pod, {"running": {"startedAt": now}}, ready=True)
            for kind in ("Initialized", "ContainersReady", "Ready"):
                set_condition(pod, kind, "True", now)
            if work.seconds is not None:
                code = 137 if work.out_of_memory else work.exit_code
                self.kube.world.after(work.seconds, self._exit, pod, run.plan, code)
            if work.lose_node_after is not None:
                self.kube.world.after(work.lose_node_after, self._lose_node, pod, run.plan)
        self._changed(pod)

    def _lose_node(self, pod: Json, plan: int) -> None:
        if self._goes_on(pod, plan):
            self.kube.world.gke.pools.lose_node(self.kube.cluster.path, pod["spec"]["nodeName"])

    def _exit(self, pod: Json, plan: int, code: int) -> None:
        """Let the main container end with an exit code."""
        if not self._goes_on(pod, plan):
            return
        run, now = self._run(pod), kube_time(self.kube.world.now)
        run.plan += 1
        oom = run.workload.out_of_memory and "deletionTimestamp" not in pod["metadata"]
        reason = "OOMKilled" if oom else "Completed" if code == 0 else "Error"
        end: Json = {"exitCode": code, "reason": reason, "finishedAt": now}
        if run.started:
            end["startedAt"] = pod["status"]["startTime"]
        if run.workload.message:
            end["message"] = run.workload.message
        set_states(pod, {"terminated": end})
        for status in init_statuses(pod):
            if "running" in status["state"]:
                status["state"] = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
        pod["status"]["phase"] = "Succeeded" if code == 0 else "Failed"
        for kind in ("ContainersReady", "Ready"):
            set_condition(pod, kind, "False", now, "PodCompleted" if code == 0 else "PodFailed")
        self._changed(pod)
        self._vanish(pod)

    # deletion

    def delete(self, pod: Json, grace: float | None) -> None:
        """Delete a pod: SIGTERM now, SIGKILL after its grace; a *grace* of 0 does not wait for the kubelet."""
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata and grace != 0:
            return
        seconds = float(pod["spec"]["terminationGracePeriodSeconds"] if grace is None else grace)
        metadata["deletionTimestamp"] = kube_time(self.kube.world.now + seconds)
        metadata["deletionGracePeriodSeconds"] = int(seconds)
        self.stop(pod, seconds)

    def stop(self, pod: Json, seconds: float) -> None:
        """Let the kubelet end a pod that is being deleted, within so many seconds."""
        run = self._run(pod)
        run.plan += 1
        if is_terminal(pod):
            self._vanish(pod)
        elif "nodeName" not in pod["spec"] or seconds == 0:
            self._fail(pod)
        elif not run.cut_off:
            work, tempo = run.workload, self.kube.world.tempo
            wanted = tempo.stop_seconds if work.stop_seconds is None else work.stop_seconds
            if not run.started:
                self.kube.world.after(tempo.reaction_seconds, self._exit, pod, run.plan, 137)
            elif work.ignores_term or wanted >= seconds:
                self.kube.world.after(seconds, self._exit, pod, run.plan, 137)
            else:
                self.kube.world.after(wanted, self._exit, pod, run.plan, work.stop_exit_code)
        self._changed(pod)

    def evict(self, pod: Json) -> None:
        """Drain a pod from its node."""
        if not is_terminal(pod):
            set_condition(pod, "DisruptionTarget", "True", kube_time(self.kube.world.now), *EVICTED)
        self.delete(pod, None)

    def cut_off(self, pod: Json) -> None:
        """Let nothing more happen to a pod: its node does not answer."""
        self._run(pod).cut_off = True
        set_condition(pod, "Ready", "False", kube_time(self.kube.world.now))
        self._changed(pod)

    def collect(self, pod: Json) -> None:
        """Collect a pod whose node is gone: pod GC."""
        if not self.kube.store.has("pods", pod):
            return
        pod["metadata"].setdefault("deletionTimestamp", kube_time(self.kube.world.now))
        if is_terminal(pod):
            self._vanish(pod)
        else:
            set_condition(pod, "DisruptionTarget", "True", kube_time(self.kube.world.now), *NODE_LOST)
            self._fail(pod)

    def tainted(self, pod: Json) -> None:
        """Delete a pod whose node has not answered for five minutes; it stays Terminating until the node is gone."""
        if self.kube.store.has("pods", pod) and self._run(pod).cut_off:
            set_condition(pod, "DisruptionTarget", "True", kube_time(self.kube.world.now), *TAINTED)
            self.delete(pod, None)

    def release(self, pod: Json) -> None:
        """Take the Job's finalizer off a pod that was counted, or whose Job is gone."""
        if pod["metadata"]["finalizers"]:
            pod["metadata"]["finalizers"] = []
            self.kube.store.touch(pod)
            self._vanish(pod)

    def _fail(self, pod: Json) -> None:
        pod["status"]["phase"] = "Failed"
        self._run(pod).plan += 1
        self._changed(pod)
        self._vanish(pod)

    def _vanish(self, pod: Json) -> None:
        """Let the object of a deleted pod go, once nothing holds it."""
        metadata = pod["metadata"]
        if "deletionTimestamp" in metadata and not metadata["finalizers"] and is_terminal(pod):
            self.kube.store.drop("pods", pod)
            self.runs.pop(metadata["uid"], None)
            self.kube.gone(metadata)

    def _run(self, pod: Json) -> Run:
        return self.runs.setdefault(pod["metadata"]["uid"], Run(self.kube.world.default_workload))

    def _goes_on(self, pod: Json, plan: int) -> bool:
        """Whether the pod is there, lives, and nothing has changed the plan since."""
        run = self.runs.get(pod["metadata"]["uid"])
        return run is not None and run.plan == plan and not run.cut_off and not is_terminal(pod)

    def _changed(self, pod: Json) -> None:
        self.kube.store.touch(pod)
        for owner in pod["metadata"]["ownerReferences"]:
            if owner.get("controller"):
                self.kube.jobs.poke(owner["uid"])
        if is_terminal(pod):
            self.kube.nodes.poke()


# what the API shows of a pod


def with_sidecar(pod: Json) -> list[Json] | None:
    """Return the init containers of a pod with those that GKE adds to it, None if it adds none."""
    if (pod["metadata"].get("annotations") or {}).get(FUSE) != "true":
        return None
    sidecar = {
        "name": SIDECAR,
        "image": "gke.gcr.io/gcs-fuse-csi-driver-sidecar-mounter",
        "restartPolicy": "Always",
    }
    return [sidecar, *pod["spec"].get("initContainers", [])]


def is_terminal(pod: Json) -> bool:
    """Whether a pod has ended."""
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def is_ready(pod: Json) -> bool:
    """Whether a pod is Ready."""
    return any(item["type"] == "Ready" and item["status"] == "True" for item in pod["status"]["conditions"])


def index_of(pod: Json) -> int | None:
    """Return the completion index of a pod of an Indexed Job."""
    word = pod["metadata"].get("annotations", {}).get(INDEX)
    return None if word is None else int(word)


def init_statuses(pod: Json) -> list[Json]:
    """Return the states of the init containers."""
    statuses: list[Json] = pod["status"].get("initContainerStatuses", [])
    return statuses


def set_condition(pod: Json, kind: str, status: str, now: str, reason: str = "", message: str = "") -> None:
    """Write a condition of a pod."""
    entry = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": now}
    if reason:
        entry |= {"reason": reason, "message": message}
    conditions = pod["status"]["conditions"]
    conditions[:] = [item for item in conditions if item["type"] != kind]
    conditions.append(entry)


def set_states(pod: Json, state: Json, init_state: Json | None = None, *, ready: bool = False) -> None:
    """Write the state of all main containers, and of the init containers if one is given for them."""
    spec, status = pod["spec"], pod["status"]
    status["containerStatuses"] = [shown(item, state, ready) for item in spec["containers"]]
    if init_state is not None and spec.get("initContainers"):
        status["initContainerStatuses"] = [shown(item, init_state, False) for item in spec["initContainers"]]


def shown(container: Json, state: Json, ready: bool) -> Json:
    """Return the status of one container."""
    return {
        "name": container["name"],
        "image": container["image"],
        "state": {key: dict(value) for key, value in state.items()},
        "lastState": {},
        "ready": ready,
        "started": ready,
        "restartCount": 0,
    }
