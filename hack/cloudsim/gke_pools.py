"""
The life of the simulated node pools: how machines are found, register as nodes, are repaired and given back.

1. Machines are granted whole pools at a time, when there is capacity and, for a reservation, room.
2. A pool without machines waits: first PROVISIONING, then in ERROR, where it may still gain them.
3. A flex-start pool is RUNNING with no nodes until as many pods as it has hosts are pending for it.
"""

from typing import TYPE_CHECKING

from attrs import define, field, frozen

from cloudsim.errors import SimError
from cloudsim.gke_check import affinity_of, machine_of, mode_of, topology_of
from cloudsim.gke_nodes import node_object
from cloudsim.gke_supply import Supply
from cloudsim.machines import Machine, hosts_of
from cloudsim.values import Json, clone

if TYPE_CHECKING:
    from cloudsim.world import World

API = "https://container.googleapis.com/v1/"


@frozen
class Doom:
    """How creates that fit *pool* (a pattern) go, whatever else would have happened."""

    pool: str = "*"
    message: str = ""  # of operation.error and of the pool; "": the operation is well
    code: int = 8  # google.rpc.Code of operation.error
    condition: str = ""  # code of the pool's condition, e.g. GCE_STOCKOUT
    leaves: str = "ERROR"  # the pool's status afterwards; "nothing": no pool is left; "PROVISIONING": it never ends
    nodes: int = 0  # that came up all the same
    seconds: float | None = None  # None: tempo.failure_seconds


@define(slots=False, eq=False)
class Pool:
    """A node pool. *spec* is what the create asked for."""

    path: str
    name: str
    spec: Json
    zone: str
    machine_type: str
    machine: Machine | None
    topology: str  # "" for a pool of single hosts
    hosts: int
    mode: str
    operation: str  # of its creation
    visible_at: float
    reservation: tuple[str, str] | None = None  # owner project, name
    status: str = "PROVISIONING"
    message: str = ""
    conditions: list[Json] = field(factory=list)
    nodes: list[str] = field(factory=list)
    granted: bool = False  # it holds machines
    waiting: bool = False  # it wants machines and has none
    scaling: bool = False  # flex-start: nodes are on their way
    scaled_at: float | None = None  # flex-start: when they were last asked for
    idle_since: float | None = None
    gone: bool = False

    @property
    def project(self) -> str:
        """The project it belongs to."""
        return self.path.split("/")[1]

    @property
    def chips(self) -> int:
        """Chips of the whole pool."""
        return self.hosts * (self.machine.chips if self.machine else 0)

    @property
    def flex(self) -> bool:
        """Whether its nodes come for pending pods only."""
        return self.mode == "flex-start"


class Pools:
    """
    All node pools of all clusters.

    *records* has one of each pool ever made, {path, name, chips, began, gone, missed}: from when to when it was there,
    and when a list of its cluster's pools first lacked it.
    """

    def __init__(self, world: "World") -> None:
        self.world = world
        self.all: dict[tuple[str, str], Pool] = {}
        self.supply = Supply(world, self.all)
        self.records: list[Json] = []

    def of(self, path: str) -> list[Pool]:
        """Return the pools of a cluster, the oldest first."""
        return [pool for pool in self.all.values() if pool.path == path]

    def find(self, path: str, name: str) -> Pool:
        """Return a pool, or answer as GKE does if there is none."""
        pool = self.all.get((path, name))
        if pool is None:
            raise SimError("NOT_FOUND", f"Not found: {path}/nodePools/{name}.", reason="notFound")
        return pool

    def shown(self, pool: Pool) -> Json:
        """Return a pool as the API shows it."""
        answer: Json = dict(pool.spec)
        link = f"{API}{pool.path}/nodePools/{pool.name}"
        answer |= {"status": pool.status, "locations": [pool.zone], "selfLink": link}
        if pool.message:
            answer["statusMessage"] = pool.message
        if pool.conditions:
            answer["conditions"] = clone(pool.conditions)
        return answer

    # how a create goes

    def begin(self, path: str, spec: Json, zone: str, operation: str) -> Pool:
        """Enter a pool whose create was accepted."""
        machine, policy, mode = machine_of(spec), self.supply.policy(path, spec), mode_of(spec)
        topology = topology_of(spec) or str((policy or {}).get("workloadPolicy", {}).get("acceleratorTopology", ""))
        scaling = spec.get("autoscaling", {})
        hosts = scaling.get("maxNodeCount", 0) if mode == "flex-start" else spec.get("initialNodeCount", 0)
        pool = Pool(
            path=path,
            name=spec["name"],
            spec=spec,
            zone=zone,
            machine_type=spec.get("config", {}).get("machineType", "e2-medium"),
            machine=machine,
            topology=topology,
            hosts=hosts_of(machine, topology) if machine and topology else hosts,
            mode=mode,
            operation=operation,
            visible_at=self.world.now + self.world.tempo.visibility_seconds,
        )
        if affinity_of(spec) == "SPECIFIC_RESERVATION":
            record = self.supply.reservation(path, spec, zone)
            pool.reservation = (record.project, record.name)
        self.all[(path, pool.name)] = pool
        times = {"began": self.world.now, "gone": None, "missed": None}
        self.records.append({"path": path, "name": pool.name, "chips": pool.chips, **times})
        return pool

    def add_ready(self, path: str, spec: Json, zone: str) -> None:
        """Make a pool that has been there since the cluster was made."""
        pool = self.begin(path, spec, zone, "")
        pool.visible_at, pool.status = self.world.now, "RUNNING"
        self.supply.grant(pool)
        for _ in range(pool.hosts):
            self._register_one(pool)

    def decide(self, pool: Pool, doom: Doom | None) -> None:
        """Say how the create will go."""
        tempo, after = self.world.tempo, self.world.after
        refusal = self.supply.late_refusal(pool)
        if doom is not None:
            if doom.leaves != "PROVISIONING":
                after(tempo.failure_seconds if doom.seconds is None else doom.seconds, self._doomed, pool, doom)
        elif refusal is not None:
            after(tempo.failure_seconds, self._fail, pool, *refusal)
        elif pool.flex:
            after(tempo.create_flex_seconds, self._running, pool)
        elif self.supply.grant(pool):
            after(tempo.create_seconds, self._running, pool)
        else:
            pool.waiting = True
            after(tempo.stockout_seconds, self._stockout, pool)

    def retry(self) -> None:
        """Give machines to pools that wait for them, the oldest first."""
        for pool in list(self.all.values()):
            comes = pool.status == "PROVISIONING" or self.world.tempo.failed_pools_recover
            if pool.waiting and comes and self.supply.grant(pool):
                self.world.after(self.world.tempo.create_seconds, self._running, pool)
            elif pool.flex and not pool.nodes and pool.status == "RUNNING":
                self.world.gke.flex.pods_pending(pool.path)

    def _running(self, pool: Pool) -> None:
        if pool.gone or pool.status == "STOPPING":
            return
        if pool.status == "PROVISIONING":
            self.world.gke.finish(pool.operation, None)
        pool.status, pool.message = "RUNNING", ""
        if pool.flex:
            self.world.gke.flex.pods_pending(pool.path)
        elif pool.granted and not self._without_nodes(pool):
            self.register(pool, pool.hosts, self.world.tempo.node_seconds)

    def _without_nodes(self, pool: Pool) -> bool:
        """Whether this is a tpu7x slice that was asked for without a workload policy: it never gets a node."""
        placed = pool.spec.get("placementPolicy", {})
        return bool(pool.machine and pool.machine.family == "v7x" and pool.topology and not placed.get("policyName"))

    def _fail(self, pool: Pool, code: int, text: str, condition: str) -> None:
        if pool.gone or pool.status != "PROVISIONING":
            return
        pool.status, pool.message = "ERROR", text
        pool.conditions.append({"code": condition, "message": text} if condition else {"message": text})
        self.world.gke.finish(pool.operation, (code, text))

    def _stockout(self, pool: Pool) -> None:
        if pool.waiting:
            self._fail(pool, *self.supply.stockout(pool))

    def _doomed(self, pool: Pool, doom: Doom) -> None:
        if pool.gone or pool.status != "PROVISIONING":
            return
        self.world.gke.finish(pool.operation, (doom.code, doom.message) if doom.message else None)
        if doom.leaves == "nothing":
            self._forget(pool)
            return
        pool.status, pool.message = doom.leaves, doom.message
        if doom.condition:
            pool.conditions.append({"code": doom.condition, "message": doom.message})
        if doom.nodes:
            pool.granted = True
            self.world.compute.counted(pool)
            self.register(pool, doom.nodes, self.world.tempo.node_seconds)

    # nodes

    def register(self, pool: Pool, count: int, seconds: float) -> None:
        """Let so many nodes of a pool register, one after the other."""
        for number in range(count):
            self.world.after(seconds + number * self.world.tempo.node_spread_seconds, self._register_one, pool)

    def _register_one(self, pool: Pool) -> None:
        if pool.gone or pool.status == "STOPPING" or len(pool.nodes) >= pool.hosts:
            return
        bits = self.world.random.getrandbits
        name = f"gke-{pool.path.split('/')[5][:16]}-{pool.name[:16].rstrip('-')}-{bits(32):08x}-{bits(16):04x}"
        pool.nodes.append(name)
        pool.scaling = False
        self.world.kube(pool.path).nodes.join(node_object(pool, name, self.world.now))

    def lose_node(self, path: str, node: str) -> None:
        """Let a machine vanish; a fixed pool gets another in time."""
        self.world.kube(path).nodes.lose(node)
        for pool in self.of(path):
            if node in pool.nodes:
                pool.nodes.remove(node)
                if pool.flex and not pool.nodes:
                    self.supply.give_back(pool)
                elif pool.status != "STOPPING" and not pool.flex:
                    pool.status = "RECONCILING"
                    self.world.after(self.world.tempo.repair_seconds, self._repaired, pool)

    def _repaired(self, pool: Pool) -> None:
        if not pool.gone and pool.status == "RECONCILING":
            self.register(pool, pool.hosts - len(pool.nodes), 0)
            pool.status = "RUNNING"

    def shrink(self, pool: Pool, nodes: int) -> None:
        """Take nodes away, the youngest first; their machines stay counted until the pool is gone."""
        leaving, pool.nodes = pool.nodes[nodes:], pool.nodes[:nodes]
        pool.spec["initialNodeCount"] = nodes
        kube = self.world.kube(pool.path)
        kube.nodes.drain(leaving)
        for name in leaving:
            self.world.after(self.world.tempo.drain_seconds, kube.nodes.lose, name)

    def remove(self, pool: Pool, operation: str) -> None:
        """Begin to take a pool away: drain, then machines, then the pool."""
        pool.status, pool.waiting = "STOPPING", False
        self.world.after(self.world.tempo.drain_seconds, self._drain, pool)
        self.world.after(self.world.tempo.delete_seconds, self._removed, pool, operation)

    def _drain(self, pool: Pool) -> None:
        self.world.kube(pool.path).nodes.drain(pool.nodes)

    def _removed(self, pool: Pool, operation: str) -> None:
        self.world.gke.finish(operation, None)
        self._forget(pool)

    def _forget(self, pool: Pool) -> None:
        pool.gone = True
        self.take_nodes(pool)
        del self.all[(pool.path, pool.name)]
        for record in self.records:
            if (record["path"], record["name"], record["gone"]) == (pool.path, pool.name, None):
                record["gone"] = self.world.now
        self.retry()

    def listed(self, path: str) -> list[Pool]:
        """Return the pools that a list of a cluster's has now."""
        for record in self.records:
            if record["path"] == path and record["gone"] is not None and record["missed"] is None:
                record["missed"] = self.world.now
        return [pool for pool in self.of(path) if pool.visible_at <= self.world.now]

    def take_nodes(self, pool: Pool) -> None:
        """Take every machine of a pool away."""
        for name in pool.nodes:
            self.world.kube(pool.path).nodes.lose(name)
        pool.nodes.clear()
        self.supply.give_back(pool)
