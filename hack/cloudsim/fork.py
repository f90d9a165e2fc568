"""
An independent copy of a world, made fast: thousands of runs begin where another one stands.

1. JSON, and sets and tables of words and numbers, are copied all at once by marshal; it keeps what is one object one.
2. What never changes is shared: workloads, calls, what a test set as a script. A history is a list of such values.
3. Everything else is an object of the simulator, copied once, its dict of fields at once and then what of it is not
   shared; TABLES names the fields that hold such.
4. Whatever none of this knows (a test's own object, a field that holds such) is copied by deepcopy, which is slow.
"""

import copy
import marshal
import threading
from types import FunctionType, MethodType
from typing import Any

from cloudsim.chance import Chance
from cloudsim.clock import Agenda
from cloudsim.compute import Compute, ReservationRecord
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Call, Fault, Faults, Under
from cloudsim.gke import Gke, OperationRecord
from cloudsim.gke_flex import Flex
from cloudsim.gke_pools import Doom, Pool, Pools
from cloudsim.gke_supply import Quota, Supply
from cloudsim.kube import Kube
from cloudsim.kube_jobs import Jobs
from cloudsim.kube_nodes import Nodes
from cloudsim.kube_pods import Pods, Run
from cloudsim.kube_store import Events, Store
from cloudsim.machines import Machine
from cloudsim.tempo import Tempo
from cloudsim.workload import Workload
from cloudsim.world import SimCluster, World

LOCK = type(threading.RLock())
ATOMS = frozenset({
    str, int, float, bool, type(None), Call, Doom, FunctionType, KubeError, Machine, Quota, SimError, Under, Workload,
})  # fmt: skip
PLAIN = frozenset({dict, list, set, tuple})
PARTS = frozenset({
    World, SimCluster, Agenda, Faults, Fault, Gke, OperationRecord, Pools, Pool, Supply, Flex, Compute,
    ReservationRecord, Kube, Store, Events, Pods, Run, Nodes, Jobs, Tempo,
})  # fmt: skip
TABLES = {
    World: {"clusters", "_kubes"},
    Gke: {"operations"},
    Pools: {"all"},
    Supply: {"pools"},
    Compute: {"reservations"},
    Pods: {"runs"},
    Faults: {"set_up"},
    Agenda: {"due"},
}
"""Class -> its fields that are dicts or lists of the simulator's own objects."""
SHALLOW = {
    World: {"calls", "effects", "scripts_by_job_id", "scripts"},
    Gke: {"dooms"},
    Supply: {"capacities", "quotas"},
}
"""Class -> its fields that are dicts or lists of what never changes."""


UNKNOWN: set[tuple[type, Any]] = set()
"""Fields, by class, that turned out to hold what marshal does not know."""


class _Copier:
    """Copies one world: its objects first, then, all at once, the plain values that they hold."""

    def __init__(self) -> None:
        self.copies: dict[int, Any] = {}
        self.plain: list[Any] = []
        self.places: list[tuple[Any, Any]] = []  # an object or a list, and the field or index of a plain value

    def copy(self, world: World) -> World:
        made: World = self.object(world)
        try:
            values = marshal.dumps(self.plain)
        except ValueError:
            UNKNOWN.update(
                (type(holder), place)
                for (holder, place), value in zip(self.places, self.plain, strict=True)
                if not _is_plain(value)
            )
            return _Copier().copy(world)
        for (holder, place), value in zip(self.places, marshal.loads(values), strict=True):
            if type(holder) is list:
                holder[place] = value
            else:
                setattr(holder, place, value)
        made.agenda.due = [(at, number, act, tuple(given)) for at, number, act, given in made.agenda.due]
        return made

    def value(self, value: Any, holder: Any, place: Any) -> Any:
        """Return the copy of a value, or None for a plain one, which comes later to its place."""
        kind = type(value)
        if kind in ATOMS:
            return value
        if kind in PLAIN and (type(holder), place) in UNKNOWN:
            return copy.deepcopy(value, self.copies)
        if kind in PLAIN:
            self.plain.append(value)
            self.places.append((holder, place))
            return None
        return self.object(value)

    def object(self, value: Any) -> Any:
        """Return the one copy of an object."""
        known = self.copies.get(id(value))
        if known is not None:
            return known
        kind = type(value)
        if kind is MethodType:
            return MethodType(value.__func__, self.object(value.__self__))
        if kind not in PARTS:
            made = self.copies[id(value)] = self._other(value, kind)
            return made
        made = self.copies[id(value)] = object.__new__(kind)
        fields = made.__dict__
        fields.update(value.__dict__)
        tables, shallow = TABLES.get(kind, ()), SHALLOW.get(kind, ())
        for name, held in value.__dict__.items():
            if type(held) in ATOMS:
                continue
            if name in shallow:
                fields[name] = held.copy()
            elif name == "answers":
                fields[name] = {key: answers.copy() for key, answers in held.items()}
            elif name in tables:
                fields[name] = self._table(held, kind)
            else:
                fields[name] = self.value(held, made, name)
        return made

    def _table(self, held: Any, kind: type) -> Any:
        known = self.copies.get(id(held))
        if known is not None:
            return known
        made: Any
        if kind is Agenda:
            made = [(at, number, self.value(act, None, None), self._given(given)) for at, number, act, given in held]
        elif type(held) is dict:
            made = {key: self.object(item) for key, item in held.items()}
        else:
            made = [self.object(item) for item in held]
        self.copies[id(held)] = made
        return made

    def _given(self, arguments: tuple[Any, ...]) -> list[Any]:
        """Return the arguments of something due, as a list whose plain ones come later."""
        made: list[Any] = []
        for index, argument in enumerate(arguments):
            made.append(self.value(argument, made, index))
        return made

    def _other(self, value: Any, kind: type) -> Any:
        if kind is LOCK:
            return threading.RLock()
        if kind is Chance:
            return value.copy()
        return copy.deepcopy(value)


def _is_plain(value: Any) -> bool:
    try:
        marshal.dumps(value)
    except ValueError:
        return False
    return True


def fork(world: World) -> World:
    """Return an independent copy: what is done to one is not seen by the other."""
    with world.lock:
        return _Copier().copy(world)
