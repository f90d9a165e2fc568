"""
Every interleaving of controllers, clouds and upstream (proof.md R6).

1. A state is a world and controllers, each somewhere in a pass. From each, every change is made: the next write or call
   of each controller, what falls due next in the clouds, an act of upstream. A state seen before is not left again.
2. A read commutes with a change that leaves its answer as it is. So nothing is lost when reads are made at the last
   moment: before a change, each other controller has made its reads up to any of those that the change would answer
   differently, or none of them; before its own next write it makes all that are left.
3. Chance is drawn anew for every change, from what makes it and when: equal changes give equal names in every order.
4. One frozen anywhere and thawed after the others are done is among them: nobody has to move.
5. What must hold holds after every change, and every world met comes to its end once one controller is left alone. That
   a frozen controller makes a Job object once more is let pass: none of its pods may ever run (S2, S3).
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product

from attrs import define, field, frozen
from laws import check
from legitimate import problems
from stepping import Answers, Controller, Mind
from walk import OF_CLOUDS
from world import Falcon

from falcon_rm.core.words import PoolState

LIMIT_SECONDS = 4 * 3600
READS: Mapping[str, frozenset[str]] = {
    "read": frozenset({"rows", "time"}),
    "pools_named": frozenset({"rows"}),
    "statuses": frozenset({"rows"}),
    "list_pools": frozenset({"pools"}),
    "list_operations": frozenset({"operations"}),
    "get_reservation": frozenset({"reservations"}),
    "find_reservation": frozenset({"reservations"}),
    "list_works": frozenset({"jobs"}),
    "list_pods": frozenset({"pods"}),
    "list_events": frozenset({"events"}),
    "list_ready_nodes": frozenset({"nodes"}),
}
"""A read -> what its answer is made of."""
LAST_READ = "statuses"  # of every look
BY_CHANCE = ("jobs", "pods", "nodes")  # objects with a UID, and some with a name, that chance has drawn


@frozen
class Scenario:
    """A world to begin with, what upstream may do once at any moment, and how its jobs may end."""

    build: Callable[[], Falcon]
    ends: Mapping[str, frozenset[str]]
    act: Callable[[Falcon], None] | None = None


class World:
    """A world as it stands, never changed again, with all that was found out about it."""

    def __init__(self, falcon: Falcon, *, acted: bool) -> None:
        self.falcon, self.acted = falcon, acted
        self.mark = falcon.fingerprint()
        self.answers: Answers = {}
        self.differ: dict[World, frozenset[str]] = {}  # another world -> the parts in which it differs
        self.moves: dict[Controller, Move | None] = {}
        self.looks: dict[Controller, tuple[Controller, ...]] = {}
        self.readings: dict[tuple[Controller, World], tuple[Controller, ...]] = {}
        self.others: list[World] | None = None  # after what the clouds or upstream do

    def key(self) -> object:
        """
        Return what tells it from others for one who is in the middle of a pass.

        Clock, versions and names by chance too, and which Jobs of deleted rows are known: the laws look at them.
        """
        store, sim = self.falcon.store, self.falcon.sim
        versions = [(job.id, job.version) for job in store.jobs.values()]
        objects = [sim.kube(row.path).store.objects for row in store.clusters.values()]
        uids = [item["metadata"]["uid"] for each in objects for kind in BY_CHANCE for item in each[kind].values()]
        return self.mark, self.acted, store.now, tuple(versions), tuple(uids), tuple(store.works), *store.uids.items()

    def differs(self, other: "World") -> frozenset[str]:
        """Return the parts in which another world differs from this one."""
        if other not in self.differ:
            mine, others = parts(self.falcon), parts(other.falcon)
            self.differ[other] = frozenset(name for name, part in mine.items() if part != others[name])
        return self.differ[other]


@frozen
class Move:
    """What one controller's next change makes of a world, and the controller after it."""

    world: World
    controller: Controller


State = tuple[World, tuple[Controller, ...], int]
"""A world, the controllers in it, and how often one was left in the middle of a pass."""


@frozen
class Explored:
    """How far an exploration went."""

    states: int
    changes: int
    worlds: int


@define
class Exploration:
    """Goes through every state; equal worlds and equal controllers are one object, and looked at once."""

    scenario: Scenario
    switches: int | None = None  # controllers are left in the middle of a pass at most so often
    worlds: dict[object, World] = field(factory=dict)
    by_mark: dict[object, World] = field(factory=dict)
    controllers: dict[str, Controller] = field(factory=dict)
    order: dict[Controller, int] = field(factory=dict)  # in which they were met: equal in every run
    ended: set[str] = field(factory=set)
    mind: Mind = field(factory=Mind)
    idle: Controller = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.idle = self._same(Controller())

    def explore(self, count: int) -> Explored:
        """Go through every state of so many controllers."""
        first: State = (self._world(self.scenario.build(), acted=False), (self.idle,) * count, 0)
        seen, left, changes = {first}, [first], 0
        while left:
            for after in self._followers(left.pop()):
                changes += 1
                if after not in seen:
                    seen.add(after)
                    left.append(after)
        return Explored(len(seen), changes, len(self.worlds))

    def _followers(self, state: State) -> Iterator[State]:
        """Yield every state that one change leads to."""
        world, controllers, switches = state
        count = len(controllers)
        for index, after, mover in self._changes(world, controllers):
            places = [
                (mover or each,) if place == index else self._readings(world, each, after)
                for place, each in enumerate(controllers)
            ]
            for chosen in product(*places):
                midway = count - chosen.count(self.idle)
                left = midway - (mover is not None and mover is not self.idle)
                so_far = 0 if self.switches is None else switches + left
                if self.switches is None or so_far <= self.switches:
                    found = after if midway else self.by_mark[after.mark, after.acted]
                    yield found, tuple(sorted(chosen, key=self.order.__getitem__)), so_far

    def _changes(
        self, world: World, controllers: tuple[Controller, ...]
    ) -> Iterator[tuple[int, World, Controller | None]]:
        """Yield who makes a change (-1: no controller), the world after it, and that controller then."""
        for index, each in enumerate(controllers):
            if each not in controllers[:index] and (move := self._move(world, each)):
                yield index, move.world, move.controller
        if world.others is None:
            world.others = list(self._others(world))
        resting = controllers.count(self.idle) == len(controllers) and self._move(world, self.idle) is None
        for after in world.others:
            if after.acted is not world.acted or resting or world.falcon.sim.agenda.next_at() is not None:
                yield -1, after, None

    def _others(self, world: World) -> Iterator[World]:
        """Yield the world when something falls due, and after the act of upstream."""
        falcon = world.falcon.fork()
        falcon.sim.random.seed(f"{falcon.store.now}")
        falcon.jump()
        yield self._world(falcon, acted=world.acted)
        if self.scenario.act and not world.acted:
            falcon = world.falcon.fork()
            self.scenario.act(falcon)
            yield self._world(falcon, acted=True)

    def _move(self, world: World, controller: Controller) -> Move | None:
        """Return the next change of a controller, its reads made first; None for an idle one that has nothing to do."""
        if controller not in world.moves:
            *_, ready = (controller, *self._looks(world, controller))
            if ready.actions is not None:
                world.moves[controller] = self._called(world, ready)
            elif not controller.idle:  # what it has heard asks for nothing: its pass is over
                world.moves[controller] = Move(world, self.idle)
            else:
                world.moves[controller] = None
        return world.moves[controller]

    def _called(self, world: World, ready: Controller) -> Move:
        """Let a controller make its next call; hold what it did against what may be done."""
        of_clouds = any(isinstance(each, OF_CLOUDS) for each in (ready.actions or ())[:1])
        falcon = world.falcon.fork() if of_clouds else world.falcon.fork_rows()
        if of_clouds:
            falcon.sim.random.seed(f"{falcon.store.now} {about(ready)}")
        effects = len(falcon.sim.effects)
        after = ready.step(falcon)
        asked = falcon.sim.effects[effects:]
        assert of_clouds or not asked, f"{asked} by what changes rows alone"
        for call in asked:
            if call.name == "gke.delete_node_pool":
                row = falcon.ledger(call.target.rsplit("/", 1)[-1])
                assert row.lease is None and row.state is not PoolState.ACTIVE, f"a live pool was deleted: {row}"
        unchanged = not of_clouds and falcon.store == world.falcon.store
        return Move(world if unchanged else self._world(falcon, acted=world.acted), self._same(after))

    def _looks(self, world: World, controller: Controller) -> tuple[Controller, ...]:
        if controller not in world.looks:
            looks = controller.looks(world.falcon, world.answers, self.mind)
            world.looks[controller] = tuple(self._same(each) for each in looks)
        return world.looks[controller]

    def _readings(self, world: World, controller: Controller, after: World) -> tuple[Controller, ...]:
        """Return where a controller may be when a change comes: before, or just after a read that it would turn."""
        known = world.readings.get((controller, after))
        if known is None:
            differ = world.differs(after)
            later = (
                each
                for each in self._looks(world, controller)
                if READS[each.heard[-1].call if each.heard else LAST_READ] & differ
            )
            known = world.readings[controller, after] = (controller, *later)
        return known

    def _same(self, controller: Controller) -> Controller:
        known = self.controllers.setdefault(controller.key(), controller)
        self.order.setdefault(known, len(self.order))
        return known

    def _world(self, falcon: Falcon, *, acted: bool) -> World:
        """Return the one world like this; a new one is held against the laws, and must come to its end."""
        world = World(falcon, acted=acted)
        known = self.worlds.setdefault(world.key(), world)
        if known is world:
            self.by_mark.setdefault((world.mark, acted), world)
            check(falcon)
            hold_ends(falcon, self.scenario)
            come_to_an_end(world, self.scenario, self.ended)
        return known


def about(controller: Controller) -> tuple[object, ...]:
    """Return what a controller's next call is about: its kind and its names."""
    action = controller.actions[0] if controller.actions else None
    named = (getattr(action, name, None) for name in ("cluster_id", "job_id", "name"))
    return (type(action).__name__, *named, len(controller.heard))


def parts(falcon: Falcon) -> dict[str, object]:
    """Return what reads are answered from, part by part."""
    sim, store = falcon.sim, falcon.store
    objects = [sim.kube(row.path).store.objects for row in store.clusters.values()]
    found = {kind: [each[kind] for each in objects] for kind in ("jobs", "pods", "events", "nodes")}
    return found | {
        "rows": store,
        "time": store.now,
        "pools": [(key, pool.status, pool.waiting, pool.spec) for key, pool in sim.gke.pools.all.items()],
        "operations": [(name, vars(record)) for name, record in sim.gke.operations.items()],
        "reservations": [(name, record.shown) for name, record in sim.compute.reservations.items()],
    }


def hold_ends(falcon: Falcon, scenario: Scenario) -> None:
    """A job that could not fail did not."""
    for job in falcon.rows():
        if job.status in ("Succeeded", "Failed", "Aborted"):
            assert falcon.state(job.id) in scenario.ends[job.id], falcon.describe()


def come_to_an_end(world: World, scenario: Scenario, ended: set[str]) -> None:
    """Leave a world to one new controller until every job is over and nothing is left, unless one like it was."""
    if world.mark in ended:
        return
    falcon, mark = world.falcon.fork(), world.mark
    limit = falcon.store.now + LIMIT_SECONDS
    while mark not in ended:
        ended.add(mark)
        if falcon.is_over() and not falcon.leftovers():
            hold_ends(falcon, scenario)
            assert not problems(falcon), problems(falcon)
            return
        assert falcon.store.now < limit, falcon.describe()
        falcon.go_on(falcon.step())
        check(falcon)
        mark = falcon.fingerprint()
