"""
A real API server in the place of the simulated one: the world is its cloud and its kubelets, everything else is real.

1. Nodes are made and removed as pools come and go; scheduling, Jobs, garbage collection and eviction are not done here.
2. The kubelet is the simulated one (kube_pods.py): what it writes on a pod goes to the server as the pod's status.
3. A look takes what the server holds for the truth. It is the only place where the world learns of the server's doings.
"""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import urllib3
from control_plane.client import MERGE_PATCH, STRATEGIC_PATCH, Client

from cloudsim.gke_nodes import PREFIX
from cloudsim.kube_nodes import Nodes, unschedulable
from cloudsim.kube_pods import Pods, Run, is_terminal
from cloudsim.kube_store import CLUSTER_WIDE, Key, key_of
from cloudsim.values import Json, kube_time

if TYPE_CHECKING:
    from cloudsim.kube import Kube
    from cloudsim.world import SimCluster, World

LOOK_SECONDS = 0.1
POOL_LABEL = PREFIX + "gke-nodepool"
FORCED = {"gracePeriodSeconds": 0}


def path_of(kind: str, namespace: str | None, name: str | None = None) -> str:
    """Return the path of a collection, or of one object."""
    group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
    where = "" if namespace is None or kind in CLUSTER_WIDE else f"/namespaces/{namespace}"
    return f"{group}{where}/{kind}" + (f"/{name}" if name else "")


class RealKube:
    """One cluster whose API server is a real one; it stands where a `Kube` stands in a world."""

    def __init__(self, world: "World", cluster: "SimCluster", client: Client) -> None:
        self.world = world
        self.cluster = cluster
        self.client = client
        self.store = RealStore(client)
        self.events = RealEvents(self)
        me: Any = self
        self.pods = RealPods(me, client)
        self.nodes = RealNodes(me)
        self.jobs = Elsewhere()
        self._bound: set[str] = set()
        self._stopping: set[str] = set()
        self._stuck: set[str] = set()

    def gone(self, metadata: Json) -> None:
        """Take note that a pod's object is gone: the server knows."""

    def look(self) -> None:
        """Let the kubelets and the autoscaler see what has become of the pods."""
        with self.world.lock:
            pods = self.store.refresh()
            for pod in pods:
                self._see(pod)
            stuck = {pod["metadata"]["uid"] for pod in pods if "nodeName" not in pod["spec"] and unschedulable(pod)}
            if stuck - self._stuck:
                self.world.gke.flex.pods_pending(self.cluster.path)
            self._stuck = stuck

    def _see(self, pod: Json) -> None:
        metadata = pod["metadata"]
        uid = metadata["uid"]
        if "nodeName" not in pod["spec"]:
            return
        if uid not in self._bound:
            self._bound.add(uid)
            self.pods.runs[uid] = Run(self.world.workload_of(pod))
            if "deletionTimestamp" not in metadata:
                self.pods.bind(pod, pod["spec"]["nodeName"])
        if "deletionTimestamp" in metadata and uid not in self._stopping:
            self._stopping.add(uid)
            self.pods.stop(pod, float(metadata.get("deletionGracePeriodSeconds", 0)))
        if uid in self._stopping and is_terminal(pod) and metadata.get("deletionGracePeriodSeconds"):
            self.store.drop("pods", pod)

    # what people do beside it

    def create_by_hand(self, kind: str, namespace: str | None, obj: Json) -> Json:
        """Let a person create an object."""
        return self.client.must("POST", path_of(kind, namespace), obj)

    def delete_by_hand(self, kind: str, namespace: str | None, name: str, options: Json | None = None) -> None:
        """Let a person delete an object, a Job with its pods. A Node: its machine is gone."""
        if kind == "nodes":
            with self.world.lock:
                self.world.gke.pools.lose_node(self.cluster.path, name)
            return
        body = options or {"propagationPolicy": "Background"}
        self.client.must("DELETE", path_of(kind, namespace, name), body)

    def suspend_by_hand(self, namespace: str, name: str, *, suspend: bool = True) -> None:
        """Let a person suspend or resume a Job."""
        body = {"spec": {"suspend": suspend}}
        self.client.must("PATCH", path_of("jobs", namespace, name), body, content=MERGE_PATCH)


class RealStore:
    """The server's objects; those of pods are kept, since the kubelet's plans hold them, and brought up to date."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pods: dict[Key, Json] = {}

    @property
    def objects(self) -> Mapping[str, Mapping[Key, Json]]:
        """Everything of a kind by namespace and name, as `Store` has it."""
        return _Objects(self._client, self._pods)

    def refresh(self) -> list[Json]:
        """Bring the pods up to date; returns them."""
        found = self._client.must("GET", path_of("pods", None))["items"]
        before, self._pods = self._pods, {}
        for item in found:
            completed(item)
            pod = before.get(key_of("pods", item), {})
            if pod.get("metadata", {}).get("uid") not in (None, item["metadata"]["uid"]):
                pod = {}  # another one of that name
            pod.clear()
            pod.update(item)
            self._pods[key_of("pods", item)] = pod
        return list(self._pods.values())

    def find(self, kind: str, namespace: str | None, name: str) -> Json | None:
        """Return an object, None if there is none."""
        answer = self._client.call("GET", path_of(kind, namespace, name))
        return answer.body if answer.ok else None

    def has(self, kind: str, obj: Json) -> bool:
        """Whether this very object, not another of its name, is there."""
        found = self.find(kind, obj["metadata"].get("namespace"), obj["metadata"]["name"])
        return found is not None and found["metadata"]["uid"] == obj["metadata"]["uid"]

    def add(self, kind: str, obj: Json) -> Json:
        """Create an object."""
        return self._client.must("POST", path_of(kind, obj["metadata"].get("namespace")), obj)

    def touch(self, obj: Json) -> None:
        """Write what the kubelet or the cloud changed: the status, and whether a node takes pods."""
        metadata = obj["metadata"]
        kind = "nodes" if obj.get("kind") == "Node" else "pods"
        path = path_of(kind, metadata.get("namespace"), metadata["name"])
        of_this = {"metadata": {"uid": metadata["uid"]}}
        self._write("PATCH", f"{path}/status", {**of_this, "status": obj["status"]})
        if kind == "nodes" and obj["spec"].get("unschedulable"):
            self._write("PATCH", path, {**of_this, "spec": {"unschedulable": True}})

    def drop(self, kind: str, obj: Json) -> None:
        """Let an object be gone."""
        metadata = obj["metadata"]
        body = {**FORCED, "preconditions": {"uid": metadata["uid"]}}
        self._write("DELETE", path_of(kind, metadata.get("namespace"), metadata["name"]), body)

    def _write(self, method: str, path: str, body: Json) -> None:
        """Write to an object that may be gone, or another by now."""
        answer = self._client.call(
            method, path, body, content=STRATEGIC_PATCH if method == "PATCH" else "application/json"
        )
        if not answer.ok and answer.status not in (404, 409):
            raise AssertionError(f"{method} {path}: {answer.status} {answer.body.get('message')}")


class _Objects(dict[str, Mapping[Key, Json]]):
    def __init__(self, client: Client, pods: dict[Key, Json]) -> None:
        super().__init__()
        self._client = client
        self["pods"] = pods

    def __missing__(self, kind: str) -> Mapping[Key, Json]:
        items = self._client.must("GET", path_of(kind, None))["items"]
        return {key_of(kind, item): item for item in items}


class RealPods(Pods):
    """The kubelets of a real cluster."""

    def __init__(self, kube: "Kube", client: Client) -> None:
        super().__init__(kube)
        self._client = client

    def evict(self, pod: Json) -> None:
        """Ask the server to evict a pod."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        self._client.call("POST", f"{path_of('pods', namespace, name)}/eviction", body)

    def collect(self, pod: Json) -> None:
        """Leave it to pod GC."""

    def tainted(self, pod: Json) -> None:
        """Leave it to the taint manager."""

    def release(self, pod: Json) -> None:
        """Leave it to the Job controller."""


class RealNodes(Nodes):
    """The nodes of a real cluster; who is put on them is the scheduler's."""

    def poke(self) -> None:
        """Leave it to the scheduler."""


class RealEvents:
    """Events written to the server."""

    def __init__(self, kube: RealKube) -> None:
        self._kube = kube
        self._count = 0

    def add(self, obj: Json, kind: str, reason: str, message: str, component: str = "cloudsim") -> None:
        """Write an event of type *kind*, Normal or Warning, about an object."""
        metadata, now = obj["metadata"], kube_time(self._kube.world.now)
        namespace = metadata.get("namespace", "default")
        self._count += 1
        about = {key: metadata.get(key) for key in ("name", "namespace", "uid")}
        event = {
            "metadata": {"name": f"{metadata['name']}.{self._count:x}{metadata['uid'][:8]}", "namespace": namespace},
            "involvedObject": {"kind": obj.get("kind", "Pod"), "apiVersion": "v1", **about},
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": component},
        }
        self._kube.client.call("POST", path_of("events", namespace), event)


class Elsewhere:
    """The Job controller: it needs no hint from the kubelet."""

    def poke(self, uid: str) -> None:
        """Do nothing."""


def completed(pod: Json) -> None:
    """Give a pod the fields that the kubelet's code counts on, and its kind, which lists leave out."""
    pod.setdefault("kind", "Pod")
    pod.setdefault("apiVersion", "v1")
    pod["metadata"].setdefault("ownerReferences", [])
    pod["metadata"].setdefault("finalizers", [])
    pod["status"].setdefault("conditions", [])


class Kubelets:
    """A thread that looks at one cluster again and again."""

    def __init__(self, kube: RealKube) -> None:
        self._kube = kube
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"kubelets-{kube.cluster.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            try:
                self._kube.look()
            except urllib3.exceptions.HTTPError:
                continue  # the server is away for a while


def replace(world: "World", path: str, client: Client) -> RealKube:
    """Put a real API server in the place of a cluster's simulated one; the nodes that are there move over."""
    with world.lock:
        cluster, before = world.clusters[path], world.kube(path)
        kube: Any = RealKube(world, cluster, client)
        for node in before.store.objects["nodes"].values():
            metadata = {key: node["metadata"][key] for key in ("name", "labels")}
            kube.nodes.join({**node, "metadata": metadata})
        world.use_kube(path, kube)
        return kube  # type: ignore[no-any-return]
