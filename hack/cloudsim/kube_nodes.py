"""
The simulated nodes and the scheduler.

1. A pod goes to a node that is Ready, has every label of its nodeSelector, no taint it does not tolerate, and room.
2. A node whose machine is gone stops answering at once, its object goes a little later, its pods later still (pod GC).
"""

from typing import TYPE_CHECKING

from cloudsim.kube_pods import is_terminal, set_condition
from cloudsim.values import Json, kube_time, quantity

if TYPE_CHECKING:
    from cloudsim.kube import Kube

TPU = "google.com/tpu"
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
            pod
            for pod in self._pending()
            if unschedulable(pod) and misfit(pod, template) is None and shortage(requests(pod), free) is None
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
            reasons: dict[str, int] = {}
            for node in nodes:
                free = room[node["metadata"]["name"]]
                why = misfit(pod, node) or shortage(wants, free)
                if why is None:
                    for name, amount in wants.items():
                        free[name] = free.get(name, 0.0) - amount
                    self.kube.pods.bind(pod, node["metadata"]["name"])
                    break
                reasons[why] = reasons.get(why, 0) + 1
            else:
                stuck = True
                self._tell(pod, len(nodes), reasons)
        if stuck:
            self.kube.world.gke.flex.pods_pending(self.kube.cluster.path)

    def _room(self, node: Json) -> dict[str, float]:
        free = {name: quantity(node["status"]["allocatable"].get(name, "0")) for name in RESOURCES}
        for pod in self.pods_on(node["metadata"]["name"]):
            if not is_terminal(pod):
                for name, amount in requests(pod).items():
                    free[name] = free.get(name, 0.0) - amount
        return free

    def _tell(self, pod: Json, nodes: int, reasons: dict[str, int]) -> None:
        told = (
            ", ".join(f"{count} {why}" for why, count in sorted(reasons.items()))
            or "no nodes available to schedule pods"
        )
        text = f"0/{nodes} nodes are available: {told}."
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


def shortage(wants: dict[str, float], free: dict[str, float]) -> str | None:
    """Return what a node has too little of, None if nothing."""
    for name, amount in wants.items():
        if amount > free.get(name, 0.0):
            return f"Insufficient {name}"
    return None


def misfit(pod: Json, node: Json) -> str | None:
    """Return why a pod may not go to a node, None if it may."""
    labels = node["metadata"].get("labels", {})
    if node["spec"].get("unschedulable"):
        return "node(s) were unschedulable"
    if node["status"]["conditions"][0]["status"] != "True":
        return "node(s) had untolerated taint {node.kubernetes.io/unreachable: }"
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in node["spec"].get("taints", ()):
        if not any(tolerates(toleration, taint) for toleration in pod["spec"].get("tolerations") or ()):
            return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    return None


def tolerates(toleration: Json, taint: Json) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return bool(toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", ""))
