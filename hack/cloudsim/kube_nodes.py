"""
The simulated nodes and the scheduler.

1. A pod goes to a node that has every label of its nodeSelector, no taint it does not tolerate, and room.
2. A node whose machine is gone stops answering at once, its object goes a little later, its pods later still (pod GC).
"""

from collections import Counter
from typing import TYPE_CHECKING

from attrs import frozen

from cloudsim.kube_pods import is_terminal, set_condition
from cloudsim.values import Json, kube_time, quantity

if TYPE_CHECKING:
    from cloudsim.kube import Kube

TPU = "google.com/tpu"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"
UNREACHABLE = "node.kubernetes.io/unreachable"
RESOURCES = ("cpu", "memory", TPU)
UNREACHABLE_SECONDS = 300.0


class Nodes:
    """The nodes of one cluster, and who is put on them."""

    def __init__(self, kube: "Kube") -> None:
        self.kube = kube
        self.due = False

    # nodes come and go

    def join(self, node: Json) -> None:
        """Let a node register."""
        self.kube.store.add("nodes", node)
        self.poke()

    def lose(self, name: str) -> None:
        """Let the machine of a node vanish: its pods freeze, its object goes, then its pods."""
        self._silence(name)
        self.kube.world.after(self.kube.world.tempo.node_gone_seconds, self._gone, name)

    def unreachable(self, name: str) -> None:
        """Let a node stop answering for good though its object stays: its pods will hang in Terminating."""
        self._silence(name)
        for pod in self.pods_on(name):
            self.kube.world.after(UNREACHABLE_SECONDS, self.kube.pods.tainted, pod)

    def _silence(self, name: str) -> None:
        node = self.kube.store.find("nodes", None, name)
        if node is not None:
            ready = node["status"]["conditions"][0]
            ready |= {
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
            }
            gone = [{"key": UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
            node["spec"]["taints"] = [*node["spec"].get("taints", ()), *gone]
            self.kube.store.touch(node)
        for pod in self.pods_on(name):
            self.kube.pods.cut_off(pod)

    def _gone(self, name: str) -> None:
        node = self.kube.store.find("nodes", None, name)
        if node is not None:
            self.kube.store.drop("nodes", node)
        for pod in self.pods_on(name):
            self.kube.world.after(
                self.kube.world.random.uniform(*self.kube.world.tempo.pod_gc_seconds), self.kube.pods.collect, pod
            )

    def drain(self, names: list[str]) -> None:
        """Evict what runs on these nodes and let nothing new come to them."""
        for name in names:
            node = self.kube.store.find("nodes", None, name)
            if node is not None:
                node["spec"]["unschedulable"] = True
                self.kube.store.touch(node)
            for pod in self.pods_on(name):
                if not is_terminal(pod):
                    self.kube.pods.evict(pod)

    # questions

    def pods_on(self, name: str) -> list[Json]:
        """Return the pods of a node."""
        return [pod for pod in self.kube.store.objects["pods"].values() if pod["spec"].get("nodeName") == name]

    def in_use(self, names: list[str]) -> bool:
        """Whether any pod lives on these nodes."""
        return any(not is_terminal(pod) for name in names for pod in self.pods_on(name))

    def waiting_for(self, template: Json) -> list[Json]:
        """Return the pods that no node took and a node like this one would."""
        free = {name: quantity(template["status"]["allocatable"].get(name, "0")) for name in RESOURCES}
        return [
            pod for pod in self._pending() if unschedulable(pod) and refused(pod, requests(pod), template, free) is None
        ]

    # scheduling

    def poke(self) -> None:
        """Let the scheduler look at the pending pods soon."""
        if not self.due:
            self.due = True
            self.kube.world.after(self.kube.world.tempo.reaction_seconds, self._schedule)

    def _pending(self) -> list[Json]:
        return [
            pod
            for pod in self.kube.store.objects["pods"].values()
            if "nodeName" not in pod["spec"] and not is_terminal(pod) and "deletionTimestamp" not in pod["metadata"]
        ]

    def _schedule(self) -> None:
        self.due = False
        nodes = list(self.kube.store.objects["nodes"].values())
        room = {node["metadata"]["name"]: self._room(node) for node in nodes}
        stuck = False
        for pod in self._pending():
            wants = requests(pod)
            refusals = []
            for node in nodes:
                free = room[node["metadata"]["name"]]
                refusal = refused(pod, wants, node, free)
                if refusal is None:
                    for name, amount in wants.items():
                        free[name] = free.get(name, 0.0) - amount
                    self.kube.pods.bind(pod, node["metadata"]["name"])
                    break
                refusals.append(refusal)
            else:
                stuck = True
                self._tell(pod, refusals)
        if stuck:
            self.kube.world.gke.flex.pods_pending(self.kube.cluster.path)

    def _room(self, node: Json) -> dict[str, float]:
        free = {name: quantity(node["status"]["allocatable"].get(name, "0")) for name in RESOURCES}
        for pod in self.pods_on(node["metadata"]["name"]):
            if not is_terminal(pod):
                for name, amount in requests(pod).items():
                    free[name] = free.get(name, 0.0) - amount
        return free

    def _tell(self, pod: Json, refusals: list["Refusal"]) -> None:
        text = words(refusals)
        if text != unschedulable(pod):
            set_condition(pod, "PodScheduled", "False", kube_time(self.kube.world.now), "Unschedulable", text)
            self.kube.store.touch(pod)
            self.kube.events.add(pod, "Warning", "FailedScheduling", text, "default-scheduler")


def unschedulable(pod: Json) -> str | None:
    """Return why no node took a pod, None if the scheduler has not said so."""
    for item in pod["status"]["conditions"]:
        if item["type"] == "PodScheduled" and item["status"] == "False":
            return str(item["message"])
    return None


def requests(pod: Json) -> dict[str, float]:
    """Return what a pod asks for in all."""
    total: dict[str, float] = {}
    for container in pod["spec"]["containers"]:
        resources = container.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name in RESOURCES:
            if name in asked:
                total[name] = total.get(name, 0.0) + quantity(asked[name])
    return total


@frozen
class Refusal:
    """Why a node does not take a pod, and whether it would if others left it."""

    reasons: tuple[str, ...]
    others_in_the_way: bool = False


def refused(pod: Json, wants: dict[str, float], node: Json, free: dict[str, float]) -> Refusal | None:
    """Return why a node with so much free does not take a pod, None if it does."""
    if (why := misfit(pod, node)) is not None:
        return Refusal((why,))
    short = [name for name, amount in wants.items() if amount > free.get(name, 0.0)]
    if not short:
        return None
    whole = node["status"]["allocatable"]
    fits_alone = all(wants[name] <= quantity(whole.get(name, "0")) for name in short)
    return Refusal(tuple(f"Insufficient {name}" for name in short), fits_alone)


def words(refusals: list[Refusal]) -> str:
    """Return the refusals of all nodes in the scheduler's words."""
    if not refusals:
        return "no nodes available to schedule pods"
    begin = f"0/{len(refusals)} nodes are available: "
    why = Counter(reason for refusal in refusals for reason in refusal.reasons)
    help_ = Counter(NO_VICTIMS if refusal.others_in_the_way else NO_HELP for refusal in refusals)
    told, preemption = (", ".join(sorted(f"{count} {text}" for text, count in each.items())) for each in (why, help_))
    return f"{begin}{told}. preemption: {begin}{preemption}."


def misfit(pod: Json, node: Json) -> str | None:
    """Return why a pod may not go to a node, None if it may; in the order in which the scheduler asks."""
    labels, spec = node["metadata"].get("labels", {}), pod["spec"]
    if node["spec"].get("unschedulable"):
        return "node(s) were unschedulable"
    tolerations = spec.get("tolerations") or ()
    for taint in node["spec"].get("taints", ()):
        if not any(tolerates(toleration, taint) for toleration in tolerations):
            return "node(s) had untolerated taint(s)"
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    return None


def tolerates(toleration: Json, taint: Json) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return bool(toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", ""))
