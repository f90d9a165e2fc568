"""
What may be done to a running world from outside, and what may be seen: plain HTTP on loopback, for the demonstration
and for tests whose cloud is another process.

1. GET /state shows what there is, which calls came and which of them changed something, name -> target -> how often;
   without a trace in the log of calls and untouched by faults.
2. POST /act {"do": NAME, "args": {...}} does one thing of ACTS, with JSON arguments; nothing else can be done.
3. A request that cannot be done is answered 400 with what is wrong with it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cloudsim.doors_faults import Wire, WireFault
from cloudsim.doors_http import Answer, HttpDoor, Request, json_answer
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Call, Fault, Under
from cloudsim.gke_pools import Doom
from cloudsim.server import CloudSim
from cloudsim.values import Json
from cloudsim.workload import workload
from cloudsim.world import World

WRONG = (TypeError, ValueError, KeyError, SimError, KubeError)


def set_fault(world: World, *, error: Json | None = None, under: str | None = None, **fields: Any) -> None:
    """Set a fault of the world; *error* has `code` for GKE and Compute, `status` for Kubernetes."""
    made: SimError | KubeError | None = None
    if error is not None:
        made = KubeError(**error) if "status" in error else SimError(**error)
    world.faults.add(Fault(**fields, error=made, where=None if under is None else Under(under)))


def set_script(world: World, job_id: str, does: Json) -> None:
    """Say what the pods of a job do."""
    world.scripts_by_job_id[job_id] = workload(does)


def set_permissions(world: World, permissions: Iterable[str] | None = None) -> None:
    """Say what IAM grants the caller; None: everything."""
    world.permissions = None if permissions is None else frozenset(permissions)


WORLD_ACTS: Mapping[str, Callable[..., object]] = {
    "add_cluster": World.add_cluster,
    "add_reservation": World.add_reservation,
    "set_reservation": lambda world, **fields: world.compute.set_reservation(**fields),
    "set_capacity": World.set_capacity,
    "set_quota": World.set_quota,
    "set_permissions": set_permissions,
    "set_script": set_script,
    "set_fault": set_fault,
    "clear_faults": lambda world: world.faults.clear(),
    "doom": lambda world, times=1, **doom: world.gke.doom(Doom(**doom), times),
    "delete_pool": lambda world, path, name: world.gke.delete_by_hand(path, name),
    "create_pool": lambda world, path, node_pool: world.gke.create_by_hand(path, node_pool),
    "upgrade_cluster": lambda world, path, seconds: world.gke.upgrade_cluster(path, seconds),
    "upgrade_pool": lambda world, path, name, seconds: world.gke.upgrade_pool(path, name, seconds),
    "lose_node": lambda world, path, name: world.kube(path).nodes.lose(name),
    "unreachable_node": lambda world, path, name: world.kube(path).nodes.unreachable(name),
    "create_object": lambda world, path, **fields: world.kube(path).create_by_hand(**fields),
    "delete_object": lambda world, path, **fields: world.kube(path).delete_by_hand(**fields),
    "suspend_job": lambda world, path, **fields: world.kube(path).suspend_by_hand(**fields),
    "advance": World.advance,
}
DOOR_ACTS: Mapping[str, Callable[..., object]] = {
    "set_wire_fault": lambda sim, wire, **fields: sim.wires.add(WireFault(Wire(wire), **fields)),
    "clear_wire_faults": lambda sim: sim.wires.clear(),
    "close_cluster": CloudSim.close_cluster,
    "open_cluster": CloudSim.open_cluster,
    "expire_tokens": lambda sim: sim.premises.tokens.expire(),
}


def act(sim: CloudSim, name: str, arguments: Mapping[str, Any]) -> None:
    """Do one thing; raises one of WRONG if it cannot be done."""
    if name in DOOR_ACTS:
        DOOR_ACTS[name](sim, **arguments)
        return
    if name not in WORLD_ACTS:
        raise ValueError(f"nothing is called {name!r}; known are {', '.join(sorted({*WORLD_ACTS, *DOOR_ACTS}))}")
    with sim.world.lock:
        WORLD_ACTS[name](sim.world, **arguments)


def state(world: World) -> Json:
    """Return what there is in a world, and what was asked of it."""
    with world.lock:
        return {
            "now": world.now,
            "clusters": {path: cluster_state(world, path) for path in world.clusters},
            "calls": counted(world.calls),
            "effects": counted(world.effects),
        }


def counted(calls: Iterable[Call]) -> dict[str, Counter[str]]:
    """Return name -> target -> how often."""
    counts: dict[str, Counter[str]] = {}
    for call in calls:
        counts.setdefault(call.name, Counter())[call.target] += 1
    return counts


def cluster_state(world: World, path: str) -> Json:
    """Return the pools of a cluster and what its Kubernetes holds."""
    objects = world.kube(path).store.objects
    return {
        "pools": [world.gke.pools.shown(pool) for pool in world.gke.pools.of(path)],
        **{kind: list(objects[kind].values()) for kind in ("jobs", "services", "pods", "nodes")},
    }


class Admin:
    """The running server; the system chooses its `port`."""

    def __init__(self, sim: CloudSim) -> None:
        """Listen at once."""
        self._sim = sim
        self._door = HttpDoor(self._handle)
        self.port = self._door.port

    def stop(self) -> None:
        """Close the port."""
        self._door.stop()

    def _handle(self, request: Request) -> Answer:
        match (request.method, *request.path):
            case ("GET", "state"):
                return json_answer(200, state(self._sim.world))
            case ("POST", "act"):
                return self._act(request)
        return json_answer(404, {"error": "GET /state or POST /act"})

    def _act(self, request: Request) -> Answer:
        try:
            wanted = request.json()
            act(self._sim, str(wanted["do"]), wanted.get("args", {}))
        except WRONG as error:
            return json_answer(400, {"error": f"{type(error).__name__}: {error}"})
        return json_answer(200, {})
