"""
The seam that numbers the calls of a pass, watches them, and lets faults strike.

1. Calls to the database are the port's methods, calls to the clouds the simulator's own: each page, each object of a
   submit is a call of its own.
2. A crash is a BaseException: no fence holds it, the pass ends there as a killed process does.
3. What is written is watched while it is under way (laws.check_call).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Call, Fault
from laws import check_call
from recall import Answers, Recalling, Told, is_steady, recalled
from seam import Crash
from strikes import OF_STORE, READS, Site, Strike
from world import Falcon

from falcon_rm.ports import StoreDown


@define
class Seam:
    """Numbers the calls of one pass, watches them, lets faults strike, and *keeps* forks of the world between them."""

    falcon: Falcon
    planned: Mapping[int, Strike] = field(factory=dict)
    keeps: bool = False
    answers: Answers = field(factory=Answers)  # of a state that does not move while somebody looks
    sites: list[Site] = field(factory=list)
    forks: list[Falcon] = field(factory=list)  # the world before the first call, and after each that may change it
    fork_before: list[int] = field(factory=list)  # site -> index of the fork that shows the world before it
    written: list[tuple[str, tuple[Any, ...]]] = field(factory=list)  # site -> method and arguments, of the database
    calls: list[Call | None] = field(factory=list)  # site -> the call, of a cloud
    looked: int | None = None  # calls that were made before there was a plan; None: there is none
    _moved: bool = True
    _clouds_moved: bool = True
    _steady: bool = False  # a read does not use up a fault
    _faults: list[Fault] = field(factory=list)

    def begin(self) -> None:
        """Stand in every call to the clouds."""
        self._steady = is_steady(self.falcon.sim)
        if not self._steady:
            self.answers = Answers()
        counter = Fault("*", times=None, where=self._meets)
        self._faults = [counter, *(_fault_of(strike, number, self) for number, strike in self.planned.items())]
        self.falcon.sim.faults.set_up[:0] = self._faults

    def end(self) -> None:
        """Stand aside again; the last fork shows the world after the last call."""
        set_up = self.falcon.sim.faults.set_up
        set_up[:] = [fault for fault in set_up if not any(fault is mine for mine in self._faults)]
        self._keep()
        self._faults = []

    def store(self) -> "StoreSeam":
        """Return the database behind the seam."""
        return StoreSeam(self.falcon.store, self)

    def clouds(self) -> Recalling:
        """Return the clouds behind the seam."""
        return Recalling(self.falcon.sim, self)

    def strikes_in(self, begins: int, ends: int) -> bool:
        """Return whether a fault is planned for one of these calls."""
        return any(begins <= number < ends for number in self.planned)

    def pass_again(self, calls: Sequence[Told]) -> None:
        """Count the calls of a question whose answer is known."""
        self._keep()
        for site, written, call in calls:
            number = len(self.sites)
            assert number not in self.planned, f"a fault at {site.name} that would not have struck"
            self.fork_before.append(len(self.forks) - 1)
            self.sites.append(site if site.number == number else evolve(site, number=number))
            self.written.append(written)
            self.calls.append(call)

    def through(self, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Make one call to the database, or what the fault makes of it."""
        strike = self._pass(name, "", mutating=name not in READS)
        self.written[-1] = (name, arguments)
        if strike is None:
            return function(*arguments)
        if strike.change is not None:
            return strike.change(function(*arguments))
        if strike.after:
            function(*arguments)
        if strike.kind == "crash":
            raise Crash
        if strike.kind == "lost":
            return False
        if strike.kind == "late":
            self.falcon.late.append((self.falcon.store.now + (strike.later or 0), name, arguments))
        raise StoreDown("gone away")

    def _meets(self, call: Call) -> bool:
        check_call(self.falcon, call)
        items = len(self._answer(call)) if self.keeps and ".list" in call.name else 0
        self._pass(call.name, call.target, mutating=call.mutating, items=items)
        self.calls[-1] = call
        return False

    def _answer(self, call: Call) -> list[Any]:
        """Return the items that a list will have; none if it is refused."""
        sim = self.falcon.sim
        try:
            if call.name == "gke.list_node_pools":
                return sim.gke._list_node_pools(*call.arguments)
            if call.name.startswith("kube.list."):
                path = "/".join(call.target.split("/")[:6])
                return sim.kube(path)._list(*call.arguments)["items"]  # type: ignore[no-any-return]
        except (SimError, KubeError):
            return []
        return []

    def _pass(self, name: str, target: str, *, mutating: bool, items: int = 0) -> Strike | None:
        number = len(self.sites)
        self._keep()
        self.fork_before.append(len(self.forks) - 1)
        self.sites.append(Site(number, name, target, mutating, items))
        self.written.append(("", ()))
        self.calls.append(None)
        self._moved = self._moved or mutating
        self._clouds_moved = self._clouds_moved or not self._steady or (mutating and name not in OF_STORE)
        return self.planned.get(number)

    def _keep(self) -> None:
        if self.keeps and self._moved:
            self.forks.append(self._clean_fork() if self._clouds_moved else self.falcon.fork_rows(of=self.forks[-1]))
            self._clouds_moved = False
        self._moved = False

    def _clean_fork(self) -> Falcon:
        """Return a fork in which no seam stands."""
        set_up = self.falcon.sim.faults.set_up
        self.falcon.sim.faults.set_up = [fault for fault in set_up if not any(fault is mine for mine in self._faults)]
        made = self.falcon.fork()
        self.falcon.sim.faults.set_up = set_up
        return made


class StoreSeam:
    """The database, with its methods passing the seam."""

    def __init__(self, store: Any, seam: Seam) -> None:
        self._store = store
        self._seam = seam

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in OF_STORE:
            return found
        if name in READS and self._seam.looked is None:
            return lambda *arguments: recalled(
                self._seam, ("store", name), lambda *given: self._seam.through(name, found, given), arguments
            )
        return lambda *arguments: self._seam.through(name, found, arguments)


def _fault_of(strike: Strike, number: int, seam: Seam) -> Fault:
    """Return a fault of the simulator that strikes the call of this number."""
    here = Here(number, seam)
    if strike.kind == "crash":
        return Fault("*", "after" if strike.after else "before", error=Crash(), where=here)  # type: ignore[arg-type]
    if strike.kind == "error":
        return Fault("*", "after" if strike.after else "before", error=strike.error, where=here)
    if strike.kind == "hang":
        return Fault("*", "hang", effect=strike.after, later=strike.later, where=here)
    return Fault("*", "changed", change=strike.change, where=here)


@frozen
class Here:
    """Holds for one call of a pass, by its number; the counter before it has just counted the call."""

    number: int
    seam: Seam

    def __call__(self, call: Call) -> bool:
        return len(self.seam.sites) - 1 == self.number
