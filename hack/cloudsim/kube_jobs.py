"""
The simulated Job controller.

1. A Job is looked at a moment after it or one of its pods changed, never in the same step.
2. A terminated pod is counted once; only then may its object go (the finalizer batch.kubernetes.io/job-tracking).
3. The end comes in two steps: SuccessCriteriaMet or FailureTarget when it is decided, Complete or Failed when no pod of
   the Job is left running. A pod that never starts fails nothing.
"""

from typing import TYPE_CHECKING

from cloudsim.kube_pods import index_of, is_ready, is_terminal
from cloudsim.values import Json, clone, kube_time
from cloudsim.workload import ANNOTATION

if TYPE_CHECKING:
    from cloudsim.kube import Kube

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
SUCCESS = ("CompletionsReached", "Reached expected number of succeeded pods")
GENERATED = 58  # characters of a pod's name before the five random ones
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Jobs:
    """The controller of one cluster's Jobs."""

    def __init__(self, kube: "Kube") -> None:
        self.kube = kube
        self.due: set[str] = set()  # UIDs of Jobs that will be looked at
        self.counted: dict[str, set[str]] = {}  # Job UID -> UIDs of pods
        self.indexes: dict[str, set[int]] = {}  # Job UID -> completed indexes
        self.started: dict[str, float] = {}  # Job UID -> when it began

    def poke(self, uid: str) -> None:
        """Let the controller look at a Job soon."""
        if uid not in self.due:
            self.due.add(uid)
            self.kube.world.after(self.kube.world.tempo.reaction_seconds, self._look, uid)

    def _look(self, uid: str) -> None:
        self.due.discard(uid)
        job = next((job for job in self.kube.store.objects["jobs"].values() if job["metadata"]["uid"] == uid), None)
        pods = self.pods_of(uid)
        if job is None:
            for pod in pods:
                self.kube.pods.release(pod)
            for known in (self.counted, self.indexes, self.started):
                known.pop(uid, None)
            return
        before = clone(job["status"])
        self.sync(job, pods)
        if job["status"] != before:
            self.kube.store.touch(job)
            self.poke(uid)

    def pods_of(self, uid: str) -> list[Json]:
        """Return the pods a Job made that are still there."""
        return [
            pod
            for pod in self.kube.store.objects["pods"].values()
            if any(owner["uid"] == uid and owner.get("controller") for owner in pod["metadata"]["ownerReferences"])
        ]

    # one look

    def sync(self, job: Json, pods: list[Json]) -> None:
        """Bring a Job and its pods one step on."""
        status, spec = job["status"], job["spec"]
        newly_failed = self._count(job, pods)
        running = [pod for pod in pods if not is_terminal(pod) and "deletionTimestamp" not in pod["metadata"]]
        ending = [pod for pod in pods if not is_terminal(pod) and "deletionTimestamp" in pod["metadata"]]
        if condition(job, "Complete") or condition(job, "Failed"):
            return
        if not spec.get("suspend") and ("startTime" not in status or condition(job, "Suspended")):
            self._start(job)
        decided = condition(job, "FailureTarget") or condition(job, "SuccessCriteriaMet")
        if "deletionTimestamp" not in job["metadata"]:
            self._judge(job, newly_failed)
            if condition(job, "FailureTarget") or condition(job, "SuccessCriteriaMet"):
                self._stop(running)
                ending, running = ending + running, []
            elif spec.get("suspend"):
                self._suspend(job, running)
                running = []
            else:
                running += self._fill(job, running, ending)
        status["active"] = len(running)
        status["ready"] = sum(is_ready(pod) for pod in running)
        status["terminating"] = len(ending)
        status["uncountedTerminatedPods"] = {}
        if not status["active"]:
            del status["active"]
        if decided is not None and not ending:
            self._finish(job, decided)

    def _count(self, job: Json, pods: list[Json]) -> list[Json]:
        """Count pods that have ended since the last look; return those that failed."""
        uid, status = job["metadata"]["uid"], job["status"]
        counted, failed = self.counted.setdefault(uid, set()), []
        only_failed = job["spec"].get("podReplacementPolicy") == "Failed"
        for pod in pods:
            gone = "deletionTimestamp" in pod["metadata"] and not only_failed
            if not is_terminal(pod) and not gone:
                continue
            if pod["metadata"]["uid"] not in counted:
                counted.add(pod["metadata"]["uid"])
                if pod["status"]["phase"] == "Succeeded":
                    self._count_success(job, pod)
                elif not condition(job, "Complete") and rule_for(job, pod)[0] != "Ignore":
                    status["failed"] = status.get("failed", 0) + 1
                    failed.append(pod)
            if is_terminal(pod):
                self.kube.pods.release(pod)
        return failed

    def _count_success(self, job: Json, pod: Json) -> None:
        status = job["status"]
        status["succeeded"] = status.get("succeeded", 0) + 1
        if (index := index_of(pod)) is not None:
            done = self.indexes.setdefault(job["metadata"]["uid"], set())
            done.add(index)
            status["completedIndexes"], status["succeeded"] = ranges(done), len(done)

    def _judge(self, job: Json, newly_failed: list[Json]) -> None:
        """Decide whether the Job is to end, and write the first of the two conditions."""
        status, spec = job["status"], job["spec"]
        if condition(job, "FailureTarget") or condition(job, "SuccessCriteriaMet"):
            return
        for pod in newly_failed:
            action, why = rule_for(job, pod)
            if action == "FailJob":
                self._condition(job, "FailureTarget", "PodFailurePolicy", why)
                return
        started = self.started.get(job["metadata"]["uid"], self.kube.world.now)
        limit = spec.get("activeDeadlineSeconds")
        if status.get("failed", 0) > spec["backoffLimit"]:
            text = "Job has reached the specified backoff limit"
            self._condition(job, "FailureTarget", "BackoffLimitExceeded", text)
        elif limit is not None and self.kube.world.now - started >= limit:
            text = "Job was active longer than specified deadline"
            self._condition(job, "FailureTarget", "DeadlineExceeded", text)
        elif status.get("succeeded", 0) >= spec["completions"]:
            self._condition(job, "SuccessCriteriaMet", *SUCCESS)

    def _finish(self, job: Json, decided: Json) -> None:
        """Write the second condition, one look after the first."""
        complete = decided["type"] == "SuccessCriteriaMet"
        self._condition(job, "Complete" if complete else "Failed", decided["reason"], decided["message"])
        if complete:
            job["status"]["completionTime"] = kube_time(self.kube.world.now)
            self.kube.events.add(job, "Normal", "Completed", "Job completed", "job-controller")
        else:
            self.kube.events.add(job, "Warning", decided["reason"], decided["message"], "job-controller")

    def _condition(self, job: Json, kind: str, reason: str, message: str, status: str = "True") -> None:
        now = kube_time(self.kube.world.now)
        entry = {"type": kind, "status": status, "reason": reason, "message": message}
        conditions = job["status"].setdefault("conditions", [])
        conditions[:] = [item for item in conditions if item["type"] != kind]
        conditions.append({**entry, "lastProbeTime": now, "lastTransitionTime": now})

    def _stop(self, pods: list[Json]) -> None:
        for pod in pods:
            self.kube.pods.delete(pod, None)

    def _start(self, job: Json) -> None:
        """Let the time of a Job begin: when it is made, and anew when it is resumed."""
        uid, now = job["metadata"]["uid"], self.kube.world.now
        job["status"]["startTime"] = kube_time(now)
        self.started[uid] = now
        if "activeDeadlineSeconds" in job["spec"]:
            self.kube.world.after(job["spec"]["activeDeadlineSeconds"], self.poke, uid)
        if condition(job, "Suspended"):
            self._condition(job, "Suspended", "JobResumed", "Job resumed", status="False")

    def _suspend(self, job: Json, running: list[Json]) -> None:
        """Delete the pods; ended this way they count as nothing."""
        for pod in running:
            self.counted[job["metadata"]["uid"]].add(pod["metadata"]["uid"])
            self.kube.pods.release(pod)
        self._stop(running)
        job["status"].pop("startTime", None)
        if condition(job, "Suspended") is None:
            self._condition(job, "Suspended", "JobSuspended", "Job suspended")

    # pods

    def _fill(self, job: Json, running: list[Json], ending: list[Json]) -> list[Json]:
        """Make the pods that are missing; return them."""
        status, spec = job["status"], job["spec"]
        blocked = len(ending) if spec.get("podReplacementPolicy") == "Failed" else 0
        left = spec["completions"] - status.get("succeeded", 0)
        lacking = min(spec["parallelism"], left) - len(running) - blocked
        if lacking <= 0:
            return []
        if (refusal := self.kube.pod_refusal(job)) is not None:
            self.kube.events.add(job, "Warning", "FailedCreate", f"Error creating: {refusal}", "job-controller")
            self.kube.world.after(10.0, self.poke, job["metadata"]["uid"])
            return []
        return [self._make(job, index) for index in self._free_indexes(job, running + ending)[:lacking]]

    def _free_indexes(self, job: Json, pods: list[Json]) -> list[int | None]:
        if job["spec"]["completionMode"] != "Indexed":
            return [None] * int(job["spec"]["completions"])
        taken = {index_of(pod) for pod in pods} | self.indexes.get(job["metadata"]["uid"], set())
        return [index for index in range(job["spec"]["completions"]) if index not in taken]

    def _make(self, job: Json, index: int | None) -> Json:
        name = job["metadata"]["name"]
        template = clone(job["spec"]["template"])
        metadata = template.get("metadata", {})
        metadata.setdefault("labels", {})
        metadata.setdefault("annotations", {})
        if ANNOTATION in (job["metadata"].get("annotations") or {}):
            metadata["annotations"].setdefault(ANNOTATION, job["metadata"]["annotations"][ANNOTATION])
        prefix = name if index is None else f"{name}-{index}"
        beginning = f"{name}-" if index is None else f"{name[: GENERATED - len(f'-{index}-')]}-{index}-"
        suffix = "".join(self.kube.world.random.choice(ALPHABET) for _ in range(5))
        spec = template["spec"]
        if index is not None:
            metadata["labels"][INDEX] = metadata["annotations"][INDEX] = str(index)
            spec.setdefault("hostname", prefix)
            for container in spec["containers"]:
                source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
                container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": name,
            "uid": job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **metadata,
                "name": f"{beginning[:GENERATED]}{suffix}",
                "generateName": beginning,
                "namespace": job["metadata"]["namespace"],
                "ownerReferences": [owner],
                "finalizers": [TRACKING],
            },
            "spec": spec,
        }
        self.kube.pods.admit(pod)
        text = f"Created pod: {pod['metadata']['name']}"
        self.kube.events.add(job, "Normal", "SuccessfulCreate", text, "job-controller")
        return pod


def condition(job: Json, kind: str) -> Json | None:
    """Return a condition that is True."""
    for item in job["status"].get("conditions", ()):
        if item["type"] == kind and item["status"] == "True":
            return item  # type: ignore[no-any-return]
    return None


def ranges(indexes: set[int]) -> str:
    """Return indexes as Kubernetes writes them, such as 1,3-5,7."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" if b > a + 1 else f"{a},{b}" for a, b in parts)


def rule_for(job: Json, pod: Json) -> tuple[str, str]:
    """Return action and text of the first rule of the podFailurePolicy that fits a failed pod; Count if none does."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    if pod["status"]["phase"] != "Failed":
        return "Count", ""
    for number, rule in enumerate(job["spec"].get("podFailurePolicy", {}).get("rules", ())):
        matching = f"matching {rule['action']} rule at index {number}"
        for pattern in rule.get("onPodConditions") or ():
            for item in pod["status"].get("conditions", ()):
                if item["type"] == pattern["type"] and item["status"] == pattern.get("status", "True"):
                    return rule["action"], f"Pod {namespace}/{name} has condition {item['type']} {matching}"
        codes = rule.get("onExitCodes")
        for status in pod["status"].get("containerStatuses", ()) if codes else ():
            code = status["state"].get("terminated", {}).get("exitCode", 0)
            named = codes.get("containerName") in (None, status["name"])
            if code and named and (code in codes["values"]) == (codes["operator"] == "In"):
                return rule["action"], (
                    f"Container {status['name']} for pod {namespace}/{name} failed with exit code {code} {matching}"
                )
    return "Count", ""
