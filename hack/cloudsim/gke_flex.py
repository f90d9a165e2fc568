"""
The simulated autoscaler of flex-start pools.

1. A flex-start pool is RUNNING with no nodes until as many pods as it has hosts are pending for it: then all its nodes
   come, or none.
2. Its nodes go when nothing has run on them for the consolidation delay, and at the end of their allowed life whatever
   runs on them. The pool stays.
"""

from typing import TYPE_CHECKING

from cloudsim.gke_nodes import node_object
from cloudsim.values import seconds_of

if TYPE_CHECKING:
    from cloudsim.gke_pools import Pool, Pools
    from cloudsim.world import World

CONSOLIDATION = "600s"
LONGEST_RUN = "604800s"


class Flex:
    """The autoscaler."""

    def __init__(self, world: "World", pools: "Pools") -> None:
        self.world = world
        self.pools = pools

    def pods_pending(self, path: str) -> None:
        """Look at the pods of a cluster that no node took."""
        kube = self.world.kube(path)
        for pool in self.pools.of(path):
            if not pool.flex or pool.status != "RUNNING" or pool.nodes or pool.scaling:
                continue
            pods = kube.nodes.waiting_for(node_object(pool, "template", self.world.now))
            if not pods or len(pods) < pool.hosts:
                continue
            if self.pools.supply.grant(pool):
                text = f"pod triggered scale-up: [{{{pool.name} 0->{pool.hosts} (max: {pool.hosts})}}]"
                event = ("Normal", "TriggeredScaleUp", text)
                self._scale_up(pool)
            else:
                text = "Node scale up in zones associated with this pod failed: GCE out of resources."
                event = ("Warning", "FailedScaleUp", text)
                self.world.after(self.world.tempo.flex_retry_seconds, self.pods_pending, path)
            for pod in pods:
                kube.events.add(pod, *event, "cluster-autoscaler")

    def _scale_up(self, pool: "Pool") -> None:
        seconds = self.world.tempo.flex_seconds
        pool.scaling, pool.scaled_at, pool.idle_since = True, self.world.now, None
        self.pools.register(pool, pool.hosts, seconds)
        self.world.after(seconds, self._look_idle, pool, pool.scaled_at)
        life = seconds_of(pool.spec["config"].get("maxRunDuration", LONGEST_RUN))
        self.world.after(seconds + life, self._expire, pool, pool.scaled_at)

    def _same(self, pool: "Pool", scaled_at: float) -> bool:
        return not pool.gone and pool.status != "STOPPING" and pool.scaled_at == scaled_at and bool(pool.nodes)

    def _expire(self, pool: "Pool", scaled_at: float) -> None:
        if self._same(pool, scaled_at):
            self.pools.take_nodes(pool)

    def _look_idle(self, pool: "Pool", scaled_at: float) -> None:
        if not self._same(pool, scaled_at):
            return
        delay = seconds_of(pool.spec["config"].get("consolidationDelay", CONSOLIDATION))
        if self.world.kube(pool.path).nodes.in_use(pool.nodes):
            pool.idle_since = None
        elif pool.idle_since is None:
            pool.idle_since = self.world.now
        elif self.world.now - pool.idle_since >= delay:
            self.pools.take_nodes(pool)
            return
        self.world.after(min(60.0, delay / 4), self._look_idle, pool, scaled_at)
