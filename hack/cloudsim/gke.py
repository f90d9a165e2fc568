"""
The simulated google.container.v1.ClusterManager. Arguments and answers are proto3 JSON of its messages: camelCase,
enums by name, Durations as "600s", zeros left out.

cluster   {name, location, locations[], status, endpoint, masterAuth{clusterCaCertificate}, currentMasterVersion,
           controlPlaneEndpointsConfig{dnsEndpointConfig{endpoint, allowExternalTraffic}, ipEndpointsConfig{enabled}},
           addonsConfig{gcsFuseCsiDriverConfig{enabled}}, workloadIdentityConfig{workloadPool}}
node pool {name, status, config{machineType, labels{}, ...}, initialNodeCount, locations[], placementPolicy{},
           autoscaling{}, management{}, statusMessage, conditions[{code, message}], selfLink}
operation {name, operationType, status, targetLink, selfLink, location, startTime, endTime, error{code, message}}

1. A call is refused at once for what is wrong in itself, for what is busy, and for a full reservation or quota.
2. What goes wrong later stands in the operation, which is DONE all the same, and in the pool that it leaves behind.
"""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, cast

from attrs import define

from cloudsim.errors import SimError
from cloudsim.faults import Answer
from cloudsim.gke_check import check
from cloudsim.gke_flex import Flex
from cloudsim.gke_pools import Doom, Pool, Pools
from cloudsim.values import Json, clone, rfc3339

if TYPE_CHECKING:
    from cloudsim.world import SimCluster, World

API = "https://container.googleapis.com/v1/"
REMEMBERED_SECONDS = 12 * 3600
DOING = {
    "CREATE_NODE_POOL": "creating a node pool for",
    "DELETE_NODE_POOL": "deleting a node pool of",
    "UPGRADE_NODES": "upgrading nodes of",
    "UPGRADE_MASTER": "upgrading",
    "AUTO_REPAIR_NODES": "repairing",
}


@define(slots=False, eq=False)
class OperationRecord:
    """An operation of one cluster."""

    name: str
    kind: str
    cluster: str
    target: str
    started: float
    ended: float | None = None
    error: tuple[int, str] | None = None


class Gke:
    """Google Kubernetes Engine. *path* is projects/P/locations/L/clusters/C."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.pools = Pools(world)
        self.flex = Flex(world, self.pools)
        self.operations: dict[str, OperationRecord] = {}
        self.dooms: list[tuple[Doom, int | None]] = []

    # what clients may call

    def get_cluster(self, path: str) -> Json:
        """Return a cluster."""
        return cast(Json, self.world.call("gke.get_cluster", path, self._get_cluster, path))

    def list_node_pools(self, path: str) -> list[Json]:
        """Return the node pools of a cluster."""
        return cast(list[Json], self.world.call("gke.list_node_pools", path, self._list_node_pools, path))

    def get_node_pool(self, path: str, name: str) -> Json:
        """Return one node pool."""
        target = f"{path}/nodePools/{name}"
        return cast(Json, self.world.call("gke.get_node_pool", target, self._get_node_pool, path, name))

    def create_node_pool(self, path: str, node_pool: Json) -> Json:
        """Begin to make a node pool; returns the operation."""
        target = f"{path}/nodePools/{node_pool.get('name', '')}"
        call = self.world.call
        return cast(Json, call("gke.create_node_pool", target, self._create, path, node_pool, mutating=True))

    def delete_node_pool(self, path: str, name: str) -> Json:
        """Begin to delete a node pool; returns the operation."""
        target = f"{path}/nodePools/{name}"
        return cast(Json, self.world.call("gke.delete_node_pool", target, self._delete, path, name, mutating=True))

    def list_operations(self, parent: str) -> Answer:
        """Return the operations of projects/P/locations/L, the newest first; `missing_zones` says what lacks."""
        return cast(Answer, self.world.call("gke.list_operations", parent, self._list_operations, parent))

    def get_operation(self, name: str) -> Json:
        """Return the operation projects/P/locations/L/operations/OP."""
        return cast(Json, self.world.call("gke.get_operation", name, self._get_operation, name))

    # what tests and people do beside it

    def doom(self, doom: Doom, times: int | None = 1) -> None:
        """Let the next creates that fit go this way; *times* None: all of them."""
        self.dooms.append((doom, times))

    def delete_by_hand(self, path: str, name: str) -> None:
        """Let a person delete a pool: as an ordinary call, but logged nowhere and struck by no fault."""
        with self.world.lock:
            self._delete(path, name)

    def create_by_hand(self, path: str, node_pool: Json) -> None:
        """Let a person make a pool."""
        with self.world.lock:
            self._create(path, node_pool)

    def resize_by_hand(self, path: str, name: str, nodes: int) -> None:
        """Let a person take nodes away from a fixed pool; what runs on them is evicted first."""
        with self.world.lock:
            self.pools.shrink(self.pools.find(path, name), nodes)

    def upgrade_cluster(self, path: str, seconds: float) -> None:
        """Let GKE upgrade the control plane: no operation on any pool meanwhile."""
        with self.world.lock:
            operation = self._begin("UPGRADE_MASTER", path, path)
            self.world.after(seconds, self.finish, operation.name, None)

    def upgrade_pool(self, path: str, name: str, seconds: float) -> None:
        """Let GKE upgrade or repair the nodes of a pool: RECONCILING, and no other operation on it meanwhile."""
        with self.world.lock:
            pool = self.pools.find(path, name)
            before, pool.status = pool.status, "RECONCILING"
            operation = self._begin("UPGRADE_NODES", path, f"{path}/nodePools/{name}")
            self.world.after(seconds, self._upgraded, operation.name, pool, before)

    def _upgraded(self, operation: str, pool: Pool, status: str) -> None:
        pool.status = status
        self.finish(operation, None)

    # the answers

    def _cluster(self, path: str) -> "SimCluster":
        cluster = self.world.clusters.get(path)
        if cluster is None or cluster.gone:
            raise SimError("NOT_FOUND", f"Not found: {path}.", reason="notFound")
        return cluster

    def _get_cluster(self, path: str) -> Json:
        cluster = self._cluster(path)
        answer: Json = {
            "name": cluster.name,
            "location": cluster.location,
            "locations": list(cluster.zones),
            "status": "RUNNING",
            "currentMasterVersion": cluster.version,
            "selfLink": API + path,
            "controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": cluster.ip_endpoint is not None}},
        }
        if cluster.ip_endpoint is not None:
            answer["endpoint"] = cluster.ip_endpoint
            answer["masterAuth"] = {"clusterCaCertificate": cluster.ca_certificate or ""}
        if cluster.gcs_fuse:
            answer["addonsConfig"] = {"gcsFuseCsiDriverConfig": {"enabled": True}}
        if cluster.workload_pool is not None:
            answer["workloadIdentityConfig"] = {"workloadPool": cluster.workload_pool}
        if cluster.dns_endpoint is not None:
            dns = {"endpoint": cluster.dns_endpoint, "allowExternalTraffic": True}
            answer["controlPlaneEndpointsConfig"]["dnsEndpointConfig"] = dns
        return answer

    def _list_node_pools(self, path: str) -> list[Json]:
        self._cluster(path)
        return [self.pools.shown(pool) for pool in self.pools.listed(path)]

    def _get_node_pool(self, path: str, name: str) -> Json:
        self._cluster(path)
        pool = self.pools.find(path, name)
        if pool.visible_at > self.world.now:
            raise SimError("NOT_FOUND", f"Not found: {path}/nodePools/{name}.", reason="notFound")
        return self.pools.shown(pool)

    def _create(self, path: str, node_pool: Json) -> Json:
        cluster, spec = self._cluster(path), clone(node_pool)
        name = str(spec.get("name", ""))
        target = f"{path}/nodePools/{name}"
        check(spec)
        zones = spec.get("locations") or list(cluster.zones)
        machine = spec.get("config", {}).get("machineType", "e2-medium")
        if cluster.machines is not None and machine not in cluster.machines:
            raise SimError("INVALID_ARGUMENT", f'Machine type "{machine}" is not available in zone(s) {zones}.')
        if (path, name) in self.pools.all:
            raise SimError("ALREADY_EXISTS", f"Already exists: {target}.", reason="alreadyExists")
        self._refuse_busy(path, target)
        self.pools.supply.refuse(path, spec, str(zones[0]))
        operation = self._begin("CREATE_NODE_POOL", path, target)
        pool = self.pools.begin(path, spec, str(zones[0]), operation.name)
        self.pools.decide(pool, self._doom_of(name))
        return self._shown(operation)

    def _doom_of(self, name: str) -> Doom | None:
        for position, (doom, times) in enumerate(self.dooms):
            if fnmatchcase(name, doom.pool):
                if times == 1:
                    del self.dooms[position]
                elif times is not None:
                    self.dooms[position] = (doom, times - 1)
                return doom
        return None

    def _delete(self, path: str, name: str) -> Json:
        self._cluster(path)
        target = f"{path}/nodePools/{name}"
        pool = self.pools.find(path, name)
        self._refuse_busy(path, target)
        operation = self._begin("DELETE_NODE_POOL", path, target)
        self.pools.remove(pool, operation.name)
        return self._shown(operation)

    def _list_operations(self, parent: str) -> Answer:
        listed = [item for item in self.operations.values() if item.cluster.startswith(parent + "/clusters/")]
        return Answer(self._shown(item) for item in reversed(listed))

    def _get_operation(self, name: str) -> Json:
        operation = self.operations.get(name.rsplit("/", 1)[-1])
        if operation is None or not operation.cluster.startswith(name.rsplit("/operations/", 1)[0] + "/"):
            raise SimError("NOT_FOUND", f"Not found: {name}.", reason="notFound")
        return self._shown(operation)

    # operations

    def _refuse_busy(self, path: str, target: str) -> None:
        running = [item for item in self.operations.values() if item.cluster == path and item.ended is None]
        cluster = path.rsplit("/", 1)[-1]
        for item in running:
            if item.target == path:
                raise SimError(
                    "FAILED_PRECONDITION",
                    f"Operation {item.name} is currently {DOING[item.kind]} cluster {cluster}. "
                    "Please wait and try again once it is done.",
                    reason="failedPrecondition",
                )
            if item.target == target:
                raise SimError(
                    "FAILED_PRECONDITION",
                    f"Cluster is running incompatible operation {item.name}.",
                    reason="failedPrecondition",
                )
        if len(running) >= self.world.tempo.concurrent_operations:
            raise SimError(
                "RESOURCE_EXHAUSTED",
                f'Too many operations: cluster "{cluster}" hits the concurrent operations quota '
                f"{self.world.tempo.concurrent_operations}, please try again later.",
                reason="rateLimitExceeded",
            )

    def _begin(self, kind: str, path: str, target: str) -> OperationRecord:
        name = f"operation-{int(self.world.now * 1000)}-{self.world.random.getrandbits(32):08x}"
        oldest = next(iter(self.operations.values()), None)
        if oldest is not None and oldest.ended is not None and self.world.now - oldest.ended > REMEMBERED_SECONDS:
            del self.operations[oldest.name]
        operation = OperationRecord(name, kind, path, target, self.world.now)
        self.operations[name] = operation
        return operation

    def finish(self, name: str, error: tuple[int, str] | None) -> None:
        """End an operation, with what went wrong."""
        operation = self.operations[name]
        operation.ended, operation.error = self.world.now, error

    def _shown(self, operation: OperationRecord) -> Json:
        parent = operation.cluster.rsplit("/clusters/", 1)[0]
        target = operation.target
        if self.world.tempo.numeric_targets:
            target = target.replace(f"projects/{target.split('/')[1]}/", "projects/123456789012/", 1)
        answer: Json = {
            "name": operation.name,
            "operationType": operation.kind,
            "status": "RUNNING" if operation.ended is None else "DONE",
            "location": parent.rsplit("/", 1)[-1],
            "selfLink": f"{API}{parent}/operations/{operation.name}",
            "targetLink": API + target,
            "startTime": rfc3339(operation.started),
        }
        if operation.ended is not None:
            answer["endTime"] = rfc3339(operation.ended)
        if operation.error is not None:
            answer["error"] = {"code": operation.error[0], "message": operation.error[1]}
            answer["statusMessage"] = operation.error[1]
        return answer
