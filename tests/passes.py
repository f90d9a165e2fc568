"""
A pass of a life between two of its states, through the seam, and what faults make of it.

1. A crash leaves what it finds, and so does a database that goes away: the pass ends there. Such a fault needs no pass
   of its own, the pass without it is kept between its calls. test_world_crashes.py shows at each site that this is so.
2. A read changes nothing: passes that come to equal plans from one state do the same, and one of them is carried out.
   Plans are equal if they differ but in texts for people, which a fingerprint leaves out.
3. Every other fault is struck in a pass of its own, made anew from a fork.
"""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress

from attrs import define, evolve, field, frozen
from laws import check, check_step, mark
from recall import Answers
from scenarios import Act, Moment, Scenario
from seam import Crash
from strikes import Site, Strike
from striking import Seam
from world import Falcon, Inline

from falcon_rm.apply import Result
from falcon_rm.core.actions import Action, Change, RecordHealth
from falcon_rm.core.model import Snapshot
from falcon_rm.core.plan import Plan, plan
from falcon_rm.loop import Pass, carry_out, one_pass
from falcon_rm.observe import observe
from falcon_rm.ports import StoreDown
from falcon_rm.telemetry import PassLog

Acts = tuple[tuple[Moment, Act], ...]
Key = tuple[str, Acts, float]
PASS_SECONDS = 60.0


@frozen
class State:
    """A run between two passes: the world, what is still to be done to it, and since when it is awaited."""

    falcon: Falcon
    acts: Acts
    since: float
    answers: Answers = field(factory=Answers, eq=False, repr=False)  # to whoever looks at it, in a fork of it too

    def key(self) -> Key:
        """Return what two states with one future have in common."""
        timed = bool(self.acts) and isinstance(self.acts[0][0], float)
        return self.falcon.fingerprint(), self.acts, round(self.falcon.sim.now - self.since, 3) if timed else 0.0

    def fork(self) -> "State":
        """Return a copy that goes its own way."""
        return evolve(self, falcon=self.falcon.fork())


@contextmanager
def rare_collections() -> Iterator[None]:
    """
    Collect no garbage in a run that makes ten thousands of worlds, which end without it, but once behind it.

    What is left then is what was proved, and stays: no collection looks through it again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def begin(scenario: Scenario) -> State:
    """Return the state in which a scenario begins."""
    falcon = scenario.build()
    falcon.sim.faults.depth = 0  # no answer of old is asked for
    return State(falcon, scenario.acts, falcon.sim.now)


def make_pass(falcon: Falcon, seam: Seam) -> Pass | None:
    """Make one pass through the seam, checking what must hold; return it, None if a fault ended it."""
    before, made = mark(falcon), None

    def has_looked(_: Plan) -> bool:
        seam.looked = len(seam.sites)
        return True

    seam.begin()
    with suppress(Crash, StoreDown):
        made = one_pass(
            store=lambda: nullcontext(seam.store()),
            clouds=seam.clouds,
            bounds=falcon.bounds,
            pass_seconds=PASS_SECONDS,
            approves=has_looked,
            readers=Inline,
        )
    seam.end()
    check(falcon)
    check_step(before, falcon, made)
    return made


def look(falcon: Falcon, seam: Seam) -> Snapshot | None:
    """Make the first part of a pass; return what it saw, None if a fault ended it."""
    snapshot = None
    seam.begin()
    with suppress(Crash, StoreDown):
        snapshot = observe(seam.store(), seam.clouds(), falcon.bounds, seconds=PASS_SECONDS / 2, readers=Inline)
    seam.end()
    seam.looked = len(seam.sites)
    return snapshot


def carry(falcon: Falcon, seam: Seam, snapshot: Snapshot, wanted: Plan) -> Pass | None:
    """Make the rest of a pass that saw and wanted this, checking what must hold; return it as `make_pass` does."""
    before, made = mark(falcon), None
    seam.begin()
    with suppress(Crash, StoreDown):
        acted = carry_out(wanted, seam.store(), seam.clouds(), PassLog("1"))
        made = Pass(snapshot, wanted, acted=acted)
    seam.end()
    check(falcon)
    check_step(before, falcon, made)
    return made


def go_on(state: State, made: Pass | None, *, struck: bool = False) -> State:
    """Do what is to be done after a pass, then let time pass as the loop does: what a struck one saw is no rest."""
    falcon, acts, since = state.falcon, state.acts, state.since
    changed = bool(acts) and _is_due(acts[0][0], falcon, since)
    while acts and _is_due(acts[0][0], falcon, since):
        acts[0][1](falcon)
        acts, since = acts[1:], falcon.sim.now
    timed = [since + acts[0][0]] if acts and isinstance(acts[0][0], float) else []
    if made is None or ((struck or changed) and not made.progress):
        falcon.wait()
    else:
        falcon.go_on(made, *timed)
    return State(falcon, acts, since)


def _is_due(moment: Moment, falcon: Falcon, since: float) -> bool:
    if isinstance(moment, float):
        return falcon.sim.now - since >= moment
    job, _, state = moment.partition(" ")
    return job in falcon.store.jobs and falcon.state(job) == state


def moved(made: Pass | None) -> bool:
    """Return whether a pass counts: one that finds nothing to do, or is told to ask again, only waits for time."""
    return made is None or any(acted.result not in (Result.TOLD, Result.BUSY) for acted in made.acted)


# --- what faults make of it


@define
class Otherwise:
    """What becomes of one state if reads of its pass are answered otherwise: equal plans are carried out once."""

    state: State
    seen: list[tuple[Snapshot, Key]] = field(factory=list)  # what a pass saw, and the state after it
    known: list[tuple[object, Key]] = field(factory=list)  # what each plan does, and the state after it
    unused: State | None = None  # a fork that was only looked at

    def after(self, planned: Mapping[int, Strike]) -> tuple[Key, State | None]:
        """Return the state after a pass with such answers by its key, and itself if it is a new one."""
        made_in = self.unused or self.state.fork()
        seam = Seam(made_in.falcon, planned, answers=self.state.answers)
        snapshot = look(made_in.falcon, seam)
        if snapshot is None:
            self.unused, after = None, go_on(made_in, None)
            return after.key(), after
        key = next((key for seen, key in self.seen if seen == snapshot), None)
        if key is None:
            wanted = plan(snapshot)
            does = deeds(wanted)
            key = next((key for done, key in self.known if done == does), None)
            if key is None:
                self.unused, after = None, go_on(made_in, carry(made_in.falcon, seam, snapshot, wanted), struck=True)
                key = after.key()
                self.note(snapshot, wanted, key)
                return key, after
            self.seen.append((snapshot, key))
        self.unused = made_in
        return key, None

    def note(self, snapshot: Snapshot, wanted: Plan, key: Key) -> None:
        """Take note of what a pass saw and wanted, and of what it led to."""
        self.seen.append((snapshot, key))
        self.known.append((deeds(wanted), key))


def deeds(plan: Plan) -> object:
    """Return what a plan does, without the texts for people that go along with it."""
    return plan.notes, tuple(_deed(action) for action in plan.actions)


def _deed(action: Action) -> object:
    if isinstance(action, RecordHealth):
        return action.cluster_id, action.zone
    if isinstance(action, Change) and action.only_message:
        return action.job_id, action.version
    return action


@define
class Aim:
    """One pass from a state, kept between its calls, with what each fault makes of it."""

    state: State
    first: Mapping[int, Strike]  # faults that strike it all the same
    seam: Seam = field(init=False)
    _otherwise: Otherwise = field(init=False)
    _made: Pass | None = field(init=False)
    _left: dict[int, Key] = field(factory=dict)  # index of a fork -> the state after a pass that ended there

    def __attrs_post_init__(self) -> None:
        self._otherwise = Otherwise(self.state)
        made_in = self.state.fork()
        self.seam = Seam(made_in.falcon, self.first, keeps=True, answers=self.state.answers)
        self._made = make_pass(made_in.falcon, self.seam)
        if self._made is not None and self._made.progress:
            self._otherwise.note(self._made.snapshot, self._made.plan, go_on(made_in, self._made).key())

    def struck(self, site: Site, strike: Strike) -> tuple[Key, State | None]:
        """Return the state after the pass by its key, and itself if an equal one was not returned before."""
        planned = {**self.first, site.number: strike}
        if strike.ends_the_pass:
            return self._ended(site, strike)
        if self.seam.looked is None or site.number < self.seam.looked:
            return self._otherwise.after(planned)
        made_in, seen = self.state.fork(), self.seam.sites[: self.seam.looked]
        seam = Seam(made_in.falcon, planned, sites=seen, looked=len(seen))
        assert self._made is not None
        after = go_on(made_in, carry(made_in.falcon, seam, self._made.snapshot, self._made.plan), struck=True)
        return after.key(), after

    def _ended(self, site: Site, strike: Strike) -> tuple[Key, State | None]:
        index = self.seam.fork_before[site.number] + strike.after
        if strike.later is None and index in self._left:
            return self._left[index], None
        falcon = self.seam.forks[index].fork()
        if strike.later is not None:
            falcon.late.append((falcon.store.now + strike.later, *self.seam.written[site.number]))
        after = go_on(evolve(self.state, falcon=falcon), None)
        key = after.key()
        if strike.later is None:
            self._left[index] = key
        return key, after
