"""
Proof by fork and fingerprint: every fault at every call, then every second one, each proved state visited once.

1. A run is a walk over states; the same fingerprint with the same acts still to come is the same state. What was proved
   of a state (its whole quiet run: laws, headline, ends, passes left) is proved for ever.
2. A crash leaves what it finds, and so does a database that goes away: the pass ends there. Such a fault needs no pass
   of its own, the pass without it is kept between its calls. test_world_crashes.py shows at each site that this is so.
3. Every other fault is struck in a pass of its own, made anew from a fork.
4. Second faults strike later in the same pass, and in each state of the run that the first fault made: one of each
   class that the product can tell apart, since the first ones have shown which class each error is.
5. Passes are counted with idleness skipped; one more attempt is allowed what proof.md 3 allows it.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress

from attrs import define, evolve, field, frozen
from cloudsim.direct import DirectClouds
from laws import check, check_step, mark
from legitimate import problems, stays_at_rest
from scenarios import Act, Moment, Scenario
from seam import Crash
from strikes import Site, Strike, of_each_class, strikes
from striking import Seam
from world import Falcon, Inline

from falcon_rm.apply import Result
from falcon_rm.loop import Pass, one_pass
from falcon_rm.ports import StoreDown

MOST_PASSES = 600
EXTRA_PASSES = 10
"""
For each cluster: jobs side by side may fall out of step, and take passes of their own. What is still to be done to the
job may come in another phase then, and cost another attempt.
"""
PASSES_OF_AN_ATTEMPT = 12
Key = tuple[str, int, float]


@frozen
class State:
    """A run between two passes: the world, what is still to be done to it, and since when it is awaited."""

    falcon: Falcon
    acts: tuple[tuple[Moment, Act], ...]
    since: float

    def key(self) -> Key:
        """Return what two states with one future have in common."""
        timed = bool(self.acts) and isinstance(self.acts[0][0], float)
        return self.falcon.fingerprint(), len(self.acts), round(self.falcon.sim.now - self.since, 3) if timed else 0.0

    def fork(self) -> "State":
        """Return a copy that goes its own way."""
        return evolve(self, falcon=self.falcon.fork())


@frozen
class Proved:
    """What a quiet run from a state comes to."""

    passes: int
    ends: Mapping[str, str]
    attempts: int  # of all jobs together


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage a few times in a run that makes ten thousands of worlds, not every moment."""
    threshold = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.collect()


def begin(scenario: Scenario) -> State:
    """Return the state in which a scenario begins."""
    falcon = scenario.build()
    falcon.sim.faults.depth = 0  # no answer of old is asked for
    return State(falcon, scenario.acts, falcon.sim.now)


def make_pass(falcon: Falcon, seam: Seam) -> Pass | None:
    """Make one pass through the seam, checking what must hold; return it, None if a fault ended it."""
    before, made = mark(falcon), None
    seam.begin()
    with suppress(Crash, StoreDown):
        made = one_pass(
            store=lambda: nullcontext(seam.store()),
            clouds=lambda: DirectClouds(falcon.sim),
            bounds=falcon.bounds,
            pass_seconds=60,
            readers=Inline,
        )
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


@frozen
class Reached:
    """A state that one fault led to: passes and attempts it took so far, and ends that the fault may bring about."""

    state: State
    key: Key
    extra: int = 0
    more: int = 0
    verdicts: frozenset[str] = frozenset()


@define
class Proof:
    """What was proved of one scenario."""

    scenario: Scenario
    proved: dict[Key, Proved] = field(factory=dict)
    rested: set[str] = field(factory=set)
    root: list[tuple[Key, State]] = field(factory=list)  # the states of the run without faults
    planned: int = 0
    executed: int = 0
    most_extra: int = 0

    def every_fault(self) -> list[Reached]:
        """Prove the scenario with each fault at each call; return the states that this has led to."""
        reached: dict[Key, Reached] = {}
        self.root = list(self.quiet(begin(self.scenario)))
        for key, state in self.root:
            root = Reached(state, key)
            self._strike_all(root, {}, 0, strikes, reached)
        return list(reached.values())

    def every_pair(self, reached: Sequence[Reached]) -> None:
        """Prove it with each second fault: in the same pass as the first, and in each state that the first led to."""
        for key, state in self.root:
            for first, number in self._going_on(state):
                self._strike_all(
                    Reached(state, key, verdicts=first.verdicts), {number: first}, number + 1, of_each_class, {}
                )
        for each in reached:
            self._strike_all(each, {}, 0, of_each_class, {})

    def _strike_all(
        self,
        start: Reached,
        first: Mapping[int, Strike],
        begins: int,
        faults: Callable[[Site], tuple[Strike, ...]],
        reached: dict[Key, Reached],
    ) -> None:
        """Let each fault strike each call of a pass, from a number on, and prove what comes of it."""
        seam, _ = self._pass(start.state, first, keeps=True)
        for site in seam.sites[begins:]:
            for strike in faults(site):
                self.planned += 1
                try:
                    self._follow(self._struck(start.state, first, seam, site, strike), start, strike, reached)
                except AssertionError as error:
                    earlier = [f"{each.name} at {seam.sites[number].name}, then " for number, each in first.items()]
                    where = f"{''.join(earlier)}{strike.name} at {site.name} in {ends_of(start.state.falcon)}"
                    raise AssertionError(f"{where}: {error}") from error
                self.executed += 1

    def _struck(self, state: State, first: Mapping[int, Strike], seam: Seam, site: Site, strike: Strike) -> State:
        if not strike.ends_the_pass:
            return self._pass(state, {**first, site.number: strike}, keeps=False)[1]
        index = seam.fork_before[site.number] + strike.after
        falcon = seam.forks[index].fork()
        if strike.later is not None:
            falcon.late.append((falcon.store.now + strike.later, *seam.written[site.number]))
        return go_on(evolve(state, falcon=falcon), None)

    def _going_on(self, state: State) -> Iterator[tuple[Strike, int]]:
        """Yield the faults of a pass that do not end it, with the number of their call."""
        seam, _ = self._pass(state, {}, keeps=True)
        for site in seam.sites:
            yield from ((strike, site.number) for strike in of_each_class(site) if not strike.ends_the_pass)

    def _pass(self, state: State, planned: Mapping[int, Strike], *, keeps: bool) -> tuple[Seam, State]:
        made = state.fork()
        seam = Seam(made.falcon, planned, keeps)
        return seam, go_on(made, make_pass(made.falcon, seam), struck=bool(planned))

    def _follow(self, target: State, start: Reached, strike: Strike, reached: dict[Key, Reached]) -> None:
        """Prove the state that a fault led to, note the new ones on its way, and hold the run against the quiet one."""
        verdicts, key = strike.verdicts | start.verdicts, target.key()
        way = list(self.quiet(target)) if key not in self.proved else []
        found, before = self.proved[key], self.proved[start.key]
        assert may_end(found.ends, self.scenario, verdicts), f"it ends as {found.ends}"
        extra = start.extra + 1 + found.passes - before.passes
        more = start.more + max(0, found.attempts - before.attempts) + bool(start.state.acts)
        if not more:
            self.most_extra = max(self.most_extra, extra)
        allowed = EXTRA_PASSES * len(target.falcon.clusters)
        assert extra <= allowed + PASSES_OF_AN_ATTEMPT * more, f"{extra} more passes"
        for other, state in way:
            reached.setdefault(other, Reached(state, other, extra, more, verdicts))

    # --- quiet

    def quiet(self, state: State) -> Iterator[tuple[Key, State]]:
        """Prove a state by its quiet run; yield the states on the way, as they were, that no run had come by."""
        way: list[tuple[Key, State, bool]] = []
        known: Proved | None = None
        while known is None:
            key = state.key()
            known = self.proved.get(key)
            if known is not None:
                break
            assert len(way) < MOST_PASSES, f"it never ends:\n{state.falcon.describe()}"
            before = state.fork()
            made = make_pass(state.falcon, Seam(state.falcon))
            state = go_on(state, made)
            if state.key() == key and state.acts:  # the moment never came: it is done now
                state.acts[0][1](state.falcon)
                way.append((key, before, False))
                state = State(state.falcon, state.acts[1:], state.falcon.sim.now)
            elif state.key() == key:
                self._rests(state.falcon)
                known = self.proved[key] = Proved(0, ends_of(state.falcon), attempts_of(state.falcon))
            else:
                way.append((key, before, moved(made)))
        for key, _, did in reversed(way):
            known = self.proved[key] = evolve(known, passes=known.passes + did)
        yield from ((key, before) for key, before, _ in way)

    def prove(self, state: State) -> Proved:
        """Return what a state comes to."""
        key = state.key()
        if key not in self.proved:
            list(self.quiet(state))
        return self.proved[key]

    def _rests(self, falcon: Falcon) -> None:
        mark = falcon.fingerprint()
        if mark not in self.rested:
            self.rested.add(mark)
            assert not problems(falcon), f"{problems(falcon)}\n{falcon.describe()}"
            stays_at_rest(falcon.fork())


def moved(made: Pass | None) -> bool:
    """Return whether a pass counts: one that finds nothing to do only waits for time."""
    return made is None or any(acted.result is not Result.TOLD for acted in made.acted)


def ends_of(falcon: Falcon) -> dict[str, str]:
    """Return how each job stands."""
    return {job: falcon.state(job) for job in falcon.store.jobs}


def attempts_of(falcon: Falcon) -> int:
    """Return how many attempts were made in all."""
    return sum(job.attempt for job in falcon.store.jobs.values())


def may_end(ends: Mapping[str, str], scenario: Scenario, others: frozenset[str]) -> bool:
    """Return whether jobs ended as they may: as the scenario says, or as a fault has told."""
    return all(
        end in scenario.ends.get(job, "gone").split(" or ") or end in others or _never_acted(end, scenario)
        for job, end in ends.items()
    )


def _never_acted(end: str, scenario: Scenario) -> bool:
    """Return whether a job ended well before an act that was to come."""
    return bool(scenario.acts) and end == "Succeeded"
