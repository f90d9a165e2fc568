"""
Three doors to a Kubernetes API: the world itself, the simulated cloud's server, a real API server.

1. A test asks every door the same by path and JSON, and gets status and JSON; it does not know which door it has.
2. Behind each door a world is the cloud and the kubelets: pods do what their annotation says.
3. Time is awaited, never counted: `until` moves the world's clock, or lets the real one go on.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from attrs import define, evolve, field
from cloudsim.doors_http import Request
from cloudsim.doors_kube import error_answer, limit_of, options_of, resource_of, shown, verb_of
from cloudsim.errors import KubeError
from cloudsim.kube_select import check_version
from cloudsim.premises import Premises
from cloudsim.real_kube import path_of
from cloudsim.real_planes import RealKubernetes
from cloudsim.server import CloudSim
from cloudsim.tempo import Tempo, brisk
from cloudsim.workload import ANNOTATION
from cloudsim.world import World
from control_plane.client import MERGE_PATCH, Answer, Client, Json, read

T = TypeVar("T")

ZONE = "us-central1-a"
PATH = f"projects/p/locations/{ZONE}/clusters/contract"
POOL_LABEL = "cloud.google.com/gke-nodepool"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PATIENCE = 150.0  # seconds: pod GC alone takes up to 60
TEMPO = evolve(brisk(), create_seconds=0.1, node_seconds=0.1)
"""Pools come at once: the suite is about what goes on in a cluster that has them."""


class Door(Protocol):
    """A way to one cluster's Kubernetes API."""

    name: str
    world: World

    def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: Mapping[str, object] | None = None,
        *,
        accept: str | None = None,
    ) -> Answer:
        """Send one request."""

    def pause(self) -> None:
        """Let a little time pass."""


@define(eq=False)
class WorldDoor:
    """The world's own Kubernetes, called in this process; its clock moves when somebody waits."""

    world: World
    name: str = "world"

    def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: Mapping[str, object] | None = None,
        *,
        accept: str | None = None,
    ) -> Answer:
        """Call the method that the path names."""
        asked = Request(
            method,
            tuple(part for part in path.split("/") if part),
            {key: str(value) for key, value in (query or {}).items()},
            {} if accept is None else {"accept": accept},
            b"" if body is None else json.dumps(body).encode(),
        )
        try:
            return Answer(*self._answer(asked))
        except KubeError as error:
            refusal = error_answer(error)
            return Answer(refusal.status, read(refusal.body), refusal.headers)

    def _answer(self, asked: Request) -> tuple[int, Json]:
        kube, what = self.world.kube(PATH), resource_of(asked.path)
        verb = verb_of(asked, what)
        if verb == "create":
            return 201, kube.create(what.kind, what.namespace, asked.json())
        if verb == "get":
            return 200, kube.get(what.kind, what.namespace, what.name or "")
        if verb == "patch":
            return 200, kube.patch(what.kind, what.namespace, what.name or "", asked.json())
        if verb == "delete":
            return 200, kube.delete(what.kind, what.namespace, what.name or "", {**options_of(asked), **asked.json()})
        check_version(asked.query.get("resourceVersion", ""), kube.store.version)
        labels, fields = asked.query.get("labelSelector", ""), asked.query.get("fieldSelector", "")
        found = kube.list(
            what.kind, what.namespace, labels, fields, limit_of(asked), asked.query.get("continue") or None
        )
        return 200, shown(asked, what.kind, found, self.world.now)

    def pause(self) -> None:
        """Move the clock."""
        self.world.advance(0.05)


@define(eq=False)
class WireDoor:
    """A server on a socket: the simulated cloud's, or a real API server."""

    name: str
    world: World
    client: Client
    real: RealKubernetes | None = None

    def call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: Mapping[str, object] | None = None,
        *,
        accept: str | None = None,
    ) -> Answer:
        """Send the request."""
        content = MERGE_PATCH if method == "PATCH" else "application/json"
        return self.client.call(method, path, body, query, content=content, accept=accept)

    def pause(self) -> None:
        """Let the clock go on."""
        time.sleep(0.03)


def a_world(tempo: Tempo) -> World:
    """Return a world with the cluster of the suite."""
    world = World(start=time.time(), tempo=tempo)
    world.add_cluster(PATH, [ZONE])
    return world


def delete_pools(world: World, begin: str = "") -> None:
    """Delete the pools that are there and whose names begin so."""
    with world.lock:
        for pool in world.gke.pools.of(PATH):
            if pool.name.startswith(begin) and pool.status == "RUNNING":
                world.gke.delete_by_hand(PATH, pool.name)


@contextmanager
def opened(name: str, premises: Premises, directory: Path) -> Iterator[Door]:
    """Open a door by its name, and close it again."""
    if name == "world":
        yield WorldDoor(a_world(TEMPO))
        return
    world = a_world(TEMPO)
    real = RealKubernetes(world, premises) if name == "real" else None
    try:
        with CloudSim(world, directory, premises=premises, speed=1.0 if real else 4.0, real=real):
            if real is not None:
                yield WireDoor(name, world, real.planes[PATH].client(), real)
                return
            cluster = world.clusters[PATH]
            host = f"https://{cluster.dns_endpoint}"
            yield WireDoor(name, world, FreshClient(host, premises))
    finally:
        if real is not None:
            real.stop()


class FreshClient(Client):
    """A client with a good token."""

    def __init__(self, url: str, premises: Premises) -> None:
        super().__init__(url, premises.authority.path)
        self._premises = premises

    def call(self, method: str, path: str, *more: Any, **options: Any) -> Answer:
        """Send one request with a token that is good now."""
        self.headers["Authorization"] = f"Bearer {self._premises.tokens.hand_out()[0]}"
        return super().call(method, path, *more, **options)


@define(eq=False)
class Cluster:
    """What a test gets: a namespace of its own behind a door."""

    door: Door
    namespace: str
    methods: set[str] = field(factory=set)
    _numbers: Iterator[int] = field(factory=itertools.count)

    def call(self, verb: str, kind: str, name: str | None = None, body: Json | None = None, **query: Any) -> Answer:
        """Send one request; *verb* as RBAC says it."""
        self.methods.add(f"{verb} {kind}")
        method = {"create": "POST", "get": "GET", "list": "GET", "patch": "PATCH", "delete": "DELETE"}[verb]
        return self.door.call(method, path_of(kind, self.namespace, name), body, query)

    def table(self, kind: str) -> Json:
        """Return a list as a Table."""
        self.methods.add(f"list {kind} as Table")
        answer = self.door.call("GET", path_of(kind, self.namespace), accept=TABLE)
        assert 200 == answer.status, answer.body
        return answer.body

    def create(self, kind: str, body: Json) -> Json:
        """Create an object that has to be accepted."""
        answer = self.call("create", kind, body=body)
        assert 201 == answer.status, answer.body
        return answer.body

    def get(self, kind: str, name: str) -> Json:
        """Return an object that has to be there."""
        answer = self.call("get", kind, name)
        assert 200 == answer.status, answer.body
        return answer.body

    def items(self, kind: str, selector: str = "", **query: Any) -> list[Json]:
        """Return a list."""
        asked: dict[str, Any] = {"labelSelector": selector, **query} if selector else query
        answer = self.call("list", kind, **asked)
        assert 200 == answer.status, answer.body
        found: list[Json] = answer.body["items"]
        return found

    def pods(self, job: str) -> list[Json]:
        """Return the pods of a Job by index, then name."""
        return self.items("pods", f"job-name={job}")

    def until(self, look: Callable[[], T | None]) -> T:
        """Wait until *look* returns something; returns it."""
        end, turns = time.monotonic() + PATIENCE, 0
        while not (seen := look()):
            turns += 1
            assert time.monotonic() < end, f"not within {PATIENCE} s"
            assert turns < 20_000, "not within 1000 simulated seconds"
            self.door.pause()
        return seen

    def nodes(self, hosts: int) -> str:
        """Make a node pool; returns its name when its nodes are Ready."""
        name = f"{self.namespace}-p{next(self._numbers)}"
        pool: Json = {
            "name": name,
            "initialNodeCount": hosts,
            "config": {
                "machineType": "ct6e-standard-4t",
                "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
            },
        }
        if hosts > 1:
            pool["placementPolicy"] = {"type": "COMPACT", "tpuTopology": "4x4" if hosts == 4 else "2x4"}
        with self.door.world.lock:
            self.door.world.gke.create_by_hand(PATH, pool)
        self.until(lambda: len(self.ready_nodes(name)) == hosts)
        return name

    def ready_nodes(self, pool: str) -> list[str]:
        """Return the names of the nodes of a pool on which pods may be put."""
        return [
            node["metadata"]["name"]
            for node in self.items("nodes", f"{POOL_LABEL}={pool}")
            if all(taint["key"] == "google.com/tpu" for taint in node["spec"].get("taints", ()))
            and any(item["type"] == "Ready" and item["status"] == "True" for item in node["status"]["conditions"])
        ]


def job(name: str, pool: str, pods: int = 1, *, policy: bool = False, **does: object) -> Json:
    """Return a Job pinned to a pool, Indexed if it has several pods, whose pods do what *does* says."""
    chips = {"google.com/tpu": "4"}
    spec: Json = {
        "backoffLimit": 0,
        "template": {
            "metadata": {"annotations": {ANNOTATION: json.dumps(does)}},
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {POOL_LABEL: pool},
                "tolerations": [{"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"}],
                "containers": [{"name": "task", "image": "busy", "resources": {"requests": chips, "limits": chips}}],
            },
        },
    }
    if pods > 1:
        spec |= {"completionMode": "Indexed", "completions": pods, "parallelism": pods}
        spec["template"]["spec"]["subdomain"] = name
    if policy:
        lost = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        spec |= {"podFailurePolicy": {"rules": [lost]}, "podReplacementPolicy": "Failed"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def conditions(obj: Json) -> list[str]:
    """Return the types of the conditions that are True, in their order."""
    return [item["type"] for item in obj["status"].get("conditions", ()) if item["status"] == "True"]


def condition(obj: Json, kind: str) -> tuple[str, str]:
    """Return reason and message of a condition."""
    (found,) = (item for item in obj["status"]["conditions"] if item["type"] == kind)
    return found.get("reason", ""), found.get("message", "")
