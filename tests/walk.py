"""
Walks through every world that passes lead to, with every choice that the clouds have, each world proved once.

1. A pass is the product's own: observe, plan, apply. Where it asks for a pool or a Job, the walk goes on once for each
   way in which the clouds may take that (*creates*, *submits*); a way that could keep a job waiting for ever only once.
2. While a pass makes progress the next one follows; else time jumps to the next moment at which anything falls due.
3. Worlds with one key (world_key.py) are one world. To meet a world again on the way from it is a livelock.
4. Where nothing is due any more, or every job is over and nothing is left, the world must be at rest.
"""

from collections.abc import Callable, Hashable, Iterator
from itertools import product
from typing import Any

from attrs import Factory, define, evolve, frozen
from cloudsim.direct import DirectClouds
from cloudsim.direct_kube import NAMESPACE
from cloudsim.errors import KubeError
from cloudsim.faults import Fault
from cloudsim.gke_pools import Doom
from cloudsim.workload import NEVER_ENDS, NEVER_PULLS, Workload
from deadlines import bounds_ahead
from legitimate import problems
from world import Falcon, Inline
from world_key import key_of

from falcon_rm.apply import Applier, Result
from falcon_rm.core.actions import CreatePool, DeletePool, DeleteWork, ResumeWork, SubmitWork
from falcon_rm.core.model import Bounds, Pool
from falcon_rm.core.names import INSTANCE
from falcon_rm.core.plan import Plan, plan
from falcon_rm.core.words import PoolState
from falcon_rm.observe import observe

BOUNDS = Bounds(language="en", pool_timeout=300, pool_attempts=2)
CREATE, LATE = 60.0, 400.0  # seconds that the create of a pool takes: well, and longer than it may
STOCKOUT = "GCE_STOCKOUT: the zone does not have enough resources available"
DENIED = KubeError(403, "Forbidden", 'admission webhook "policy" denied the request: no')
LOSES_A_NODE = Workload(seconds=None, indexes={0: Workload(seconds=None, lose_node_after=20)})
MOST = 400
"""Passes on the way to rest, with those that only wait, after which a world counts as one that never rests."""

Prepare = Callable[[Falcon, str], object]


@frozen
class Way:
    """One way in which the clouds may take a request: what to set up before it comes."""

    name: str
    prepare: Prepare
    once: bool = False  # taken again and again it would keep the job waiting for ever


def as_it_is(falcon: Falcon, name: str) -> None:
    """Let it go as the world is."""


def doomed(**fields: Any) -> Prepare:
    """Return what lets the create of a pool go a given way."""
    return lambda falcon, name: falcon.sim.gke.doom(Doom(pool=name, **fields))


def comes_late(falcon: Falcon, name: str) -> None:
    """Let a pool come after its time."""
    falcon.sim.tempo.create_seconds = falcon.sim.tempo.create_flex_seconds = LATE


def does(workload: Workload) -> Prepare:
    """Return what lets the pods of a Job do something."""
    return lambda falcon, job_id: falcon.sim.scripts_by_job_id.update({job_id: workload})


def is_denied(falcon: Falcon, job_id: str) -> None:
    """Let Kubernetes refuse a Job for good."""
    falcon.sim.faults.add(Fault("kube.create.jobs", error=DENIED))


CREATES = (
    Way("well", as_it_is),
    Way("no capacity", doomed(message=STOCKOUT, condition="GCE_STOCKOUT")),
    Way("no quota, nothing left", doomed(message="Quota 'TPUS' exceeded", leaves="nothing")),
    Way("never possible", doomed(message="invalid target size")),
    Way("reservation full", doomed(message="Reservation does not have enough resources"), once=True),
    Way("late", comes_late),
)
SUBMITS = (
    Way("succeeds", does(Workload(seconds=20))),
    Way("fails", does(Workload(seconds=20, exit_code=3))),
    Way("never starts", does(NEVER_PULLS)),
    Way("loses a node", does(LOSES_A_NODE)),
    Way("never ends", does(NEVER_ENDS)),
    Way("denied", is_denied),
)
OF_CLOUDS = (CreatePool, DeletePool, SubmitWork, ResumeWork, DeleteWork)
"""The actions that ask the clouds for something; all others change rows alone."""
AS_IT_IS = (Way("as it is", as_it_is),)


# --- what is due


def is_anything_due(falcon: Falcon) -> bool:
    """Return whether the clouds have something to do, or a bound of Falcon's lies ahead."""
    return falcon.sim.agenda.next_at() is not None or bool(bounds_ahead(falcon.store, falcon.bounds, falcon.sim))


def is_over(falcon: Falcon) -> bool:
    """Return whether every job is over, nothing of any is left or yet to be listed, and every ledger row is closed."""
    closed = all(pool.state is PoolState.DELETED or is_anothers(falcon, pool) for pool in falcon.pool_rows())
    listed = all(pool.visible_at <= falcon.sim.now for pool in falcon.sim.gke.pools.all.values())
    return falcon.is_over() and closed and listed and not problems(falcon)


def is_anothers(falcon: Falcon, row: Pool) -> bool:
    """Return whether a pool that was ours once is listed with others' labels: nobody can tell what it is."""
    live = falcon.sim.gke.pools.all.get((falcon.clusters[row.cluster_id].path, row.name))
    labels = live.spec["config"].get("labels", {}) if live else {INSTANCE: falcon.store.instance}
    return row.seen_at is not None and labels.get(INSTANCE) != falcon.store.instance


# --- the walk


class Stuck(AssertionError):
    """A world that does not come to rest."""


@frozen
class After:
    """What a pass left: the world, whether its clouds are still others' too, the ways that are gone, how it went."""

    world: Falcon
    shared: bool
    gone: frozenset[str]
    results: set[Result]


@define
class Walk:
    """The worlds proved so far, each with the most passes that something moves in from there to its rest."""

    at_rest: Callable[[Falcon], None]
    creates: tuple[Way, ...] = CREATES
    submits: tuple[Way, ...] = SUBMITS
    proved: dict[Hashable, int] = Factory(dict)
    path: set[Hashable] = Factory(set)
    passes: int = 0

    def chain(self, falcon: Falcon, *, shared: bool = True, gone: frozenset[str] = frozenset()) -> int:
        """Return the longest chain from a world to its rest; *shared*: its clouds are not its own yet."""
        key = (key_of(falcon.store, falcon.sim), gone)
        known = self.proved.get(key)
        if known is not None:
            return known
        if key in self.path or len(self.path) > MOST:
            raise Stuck(f"no rest after {len(self.path)} passes: {falcon.describe()}")
        self.path.add(key)
        try:
            longest = max(self._go_on(after) for after in self._pass(falcon, shared, gone))
        finally:
            self.path.discard(key)
        self.proved[key] = longest
        return longest

    def _pass(self, falcon: Falcon, shared: bool, gone: frozenset[str]) -> Iterator[After]:
        """Make a pass, once for each way in which the clouds may take what it asks for."""
        self.passes += 1
        falcon.sim.calls.clear()
        wanted = plan(observe(falcon.store, DirectClouds(falcon.sim), falcon.bounds, seconds=30, readers=Inline))
        asked = [action for action in wanted.actions if isinstance(action, CreatePool | SubmitWork)]
        chosen = list(product(*(self._ways(action, falcon, gone) for action in asked)))
        for number, ways in enumerate(chosen):
            world, borrowed = falcon, shared
            if number < len(chosen) - 1 or (shared and calls(wanted)):
                world, borrowed = falcon.fork(), False
            for action, way in zip(asked, ways, strict=True):
                way.prepare(world, action.pool.name if isinstance(action, CreatePool) else action.job_id)
            applier = Applier(world.store, DirectClouds(world.sim))
            results = {applier.apply(action) for action in (*wanted.notes, *wanted.actions)}
            world.sim.faults.clear()
            if asked:
                world.sim.tempo = evolve(world.sim.tempo, create_seconds=CREATE, create_flex_seconds=CREATE)
            yield After(world, borrowed, gone | {way.name for way in ways if way.once}, results)

    def _ways(self, action: CreatePool | SubmitWork, falcon: Falcon, gone: frozenset[str]) -> tuple[Way, ...]:
        """Return the ways in which the clouds may still take a request; of a Job that is there nothing is open."""
        if isinstance(action, CreatePool):
            return tuple(way for way in self.creates if way.name not in gone)
        there = falcon.sim.kube(action.cluster.path).store.find("jobs", NAMESPACE, action.name)
        return self.submits if there is None else AS_IT_IS

    def _go_on(self, after: After) -> int:
        """Return the longest chain from what a pass left."""
        world, waits = after.world, after.results - {Result.TOLD}
        if after.results & {Result.DONE, Result.REFUSED}:
            return 1 + self.chain(world, shared=after.shared, gone=after.gone)
        if not waits and (is_over(world) or not is_anything_due(world)):
            self.at_rest(world)
            return 0
        if after.shared:
            world = world.fork()
        if waits:
            world.wait()
        else:
            world.jump()
        return self.chain(world, shared=False, gone=after.gone)


def calls(wanted: Plan) -> bool:
    """Return whether a plan asks the clouds for anything."""
    return any(isinstance(each, OF_CLOUDS) for each in wanted.actions)
