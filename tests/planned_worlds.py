"""
The plans of many worlds, by a process of its own too: `python tests/planned_worlds.py NUMBER` prints the digest of one
share of them, as they are printed by `plan -o json`.

1. The worlds are all of R2's (everywhere.py), and as many drawn from all words of all tables (planted.py).
2. A share is of worlds whose clouds are alike, so that a process makes few of them.
"""

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from random import Random

from cloudsim.direct import DirectClouds
from everywhere import TABLES, worlds_of
from planted import PHASES, Plant, plant
from world import Falcon, Inline

from falcon_rm import report, review
from falcon_rm.core.model import Snapshot
from falcon_rm.core.plan import Plan, plan
from falcon_rm.observe import observe

DRAWN = 10_000


@cache
def worlds_of_everywhere() -> tuple[Plant, ...]:
    """Return the worlds of R2."""
    return tuple(world for phase in PHASES for world in worlds_of(phase))


@cache
def worlds() -> tuple[Plant, ...]:
    """Return all worlds, those whose clouds are alike side by side."""
    chance = Random(11)
    drawn = [Plant(*(chance.choice(table) for table in TABLES)) for _ in range(DRAWN)]
    return tuple(sorted((*worlds_of_everywhere(), *drawn), key=lambda world: (world.mode, world.pool, world.work)))


def share(number: int, shares: int) -> slice:
    """Return which worlds fall to one of so many processes."""
    size = -(-len(worlds()) // shares)
    return slice(number * size, (number + 1) * size)


def look(falcon: Falcon) -> Snapshot:
    """Return what a pass sees of a world."""
    return observe(falcon.store, DirectClouds(falcon.sim), falcon.bounds, seconds=30, readers=Inline)


def shown(wanted: Plan) -> str:
    """Return what `plan -o json` prints."""
    return report.as_json(review.data(wanted, {"c1": "c1"}))


def digest(plans: Iterable[Plan]) -> str:
    """Return a digest of plans, as they are printed."""
    told = sha256()
    for each in plans:
        told.update(shown(each).encode())
    return told.hexdigest()


def main(arguments: Sequence[str]) -> None:
    """Print the digest of the share that is asked for: its number, and of how many."""
    number, shares = map(int, arguments)
    plans = (plan(look(plant(world))) for world in worlds()[share(number, shares)])
    sys.stdout.write(f"{digest(plans)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
