"""
What may come between two steps of a pass: a lost connection, somebody's write, another controller.

1. What listens to the writes of a pass may raise StoreDown, or let somebody else write first.
2. A controller is one process taken apart: it stops after its look at the world and after every action, so that two of
   them can be dealt out in any order.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from random import Random
from typing import Any

from cloudsim.direct import DirectClouds
from world import Falcon

from falcon_rm.apply import Applier
from falcon_rm.loop import Pass, one_pass
from falcon_rm.ports import Clouds, StoreDown

READS = frozenset({"read", "statuses", "pools_named", "close"})
LEAST_SECONDS, MOST_SECONDS = 0.0, 12.0


class TappedStore:
    """A store that lets *tap* know of every write, before (False) and after (True) it."""

    def __init__(self, store: Any, tap: Callable[[str, bool], None]) -> None:
        self._store = store
        self._tap = tap

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name in READS:
            return found

        def write(*arguments: Any) -> Any:
            self._tap(name, False)
            answer = found(*arguments)
            self._tap(name, True)
            return answer

        return write


def tapped_pass(falcon: Falcon, tap: Callable[[str, bool], None], clouds: Clouds | None = None, **more: Any) -> Pass:
    """Make one pass whose writes to the database a test listens to."""
    asked: dict[str, Any] = {"pass_seconds": 60, **more}
    return one_pass(
        store=lambda: nullcontext(TappedStore(falcon.store, tap)),
        clouds=lambda: clouds or DirectClouds(falcon.sim),
        bounds=falcon.bounds,
        **asked,
    )


def lose_connection(falcon: Falcon, write: str, *, effect: bool) -> None:
    """Make one pass in which the database goes away at the first write of a kind, with or without its effect."""

    def tap(name: str, done: bool) -> None:
        if name == write and done is effect:
            raise StoreDown("lost connection")

    try:
        tapped_pass(falcon, tap)
    except StoreDown:
        return
    raise AssertionError(f"no {write} in this pass: {falcon.describe()}")


def overtaken(falcon: Falcon, meanwhile: Callable[[], object]) -> None:
    """Carry out a plan after something else happened to the world it was made for."""
    wanted = falcon.step(dry=True).plan
    meanwhile()
    applier = Applier(falcon.store, DirectClouds(falcon.sim))
    for action in wanted.actions:
        applier.apply(action)


def controller(falcon: Falcon) -> Iterator[None]:
    """Make passes for ever, stopping after each look at the world and each action."""
    while True:
        wanted = falcon.step(dry=True).plan
        yield
        applier = Applier(falcon.store, DirectClouds(falcon.sim))
        for action in wanted.actions:
            applier.apply(action)
            yield


def deal(
    falcon: Falcon, seed: int, *, copies: int, kills: float, watch: Callable[[], None], steps: int = 20_000
) -> None:
    """Let several controllers take turns by chance, some killed on the way, until every job is over."""
    chance = Random(seed)
    running = [controller(falcon) for _ in range(copies)]
    for _ in range(steps):
        if falcon.is_over() and not falcon.leftovers():
            return
        index = chance.randrange(copies)
        if chance.random() < kills:
            running[index] = controller(falcon)
        next(running[index])
        watch()
        falcon.advance(chance.uniform(LEAST_SECONDS, MOST_SECONDS) if chance.random() < 0.3 else 0.0)
    raise AssertionError(falcon.describe())
