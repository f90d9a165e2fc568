"""
Proof by fork and fingerprint: every fault at every call, then every second one, each proved state visited once.

1. A run is a walk over states; the same fingerprint with the same acts still to come is the same state. What was proved
   of a state (its whole quiet run: laws, headline, ends, passes left) is proved for ever, for all lives on one ground.
2. What a fault makes of a pass is told in passes.py.
3. Second faults strike later in the same pass, and in each state of the run that the first fault made: one of each
   class that the product can tell apart, since the first ones have shown which class each error is.
4. What was struck in an equal state of another life, on terms as strict, is not struck again, nor counted again.
5. Passes are counted with idleness skipped; one more attempt is allowed what proof.md 3 allows it, and so is one that
   makes a pool where it could have found one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen
from legitimate import FURTHER_PASSES, problems, stays_at_rest
from passes import Aim, Key, State, begin, go_on, make_pass, moved
from scenarios import Scenario
from strikes import Site, Strike, of_each_class, strikes
from striking import Seam
from world import Falcon

MOST_PASSES = 600
EXTRA_PASSES = 10
"""
For each cluster: jobs side by side may fall out of step, and take passes of their own. What is still to be done to the
job may come in another phase then, and cost another attempt.
"""
PASSES_OF_AN_ATTEMPT = 12


@frozen
class Proved:
    """What a quiet run from a state comes to."""

    passes: int
    ends: Mapping[str, str]
    attempts: int  # of all jobs together
    pools: int  # that the ledger came to hold


@frozen
class Reached:
    """A state that one fault led to: passes and attempts it took so far, and ends that the fault may bring about."""

    state: State
    key: Key
    extra: int = 0
    more: int = 0
    verdicts: frozenset[str] = frozenset()


@frozen
class Terms:
    """What a state was struck on: ends that its jobs may have, and passes that were used up before."""

    ends: tuple[tuple[str, str], ...]
    verdicts: frozenset[str]
    used: int

    def covers(self, other: "Terms") -> bool:
        """Return whether these are as strict as others."""
        return self.ends == other.ends and self.verdicts <= other.verdicts and self.used >= other.used


@define
class Known:
    """What was proved on one ground: of states, of worlds at rest, and of faults in a state."""

    proved: dict[Key, Proved] = field(factory=dict)
    rested: set[str] = field(factory=set)
    watched: set[str] = field(factory=set)  # kinds of rest
    struck: dict[tuple[Key, object], Terms] = field(factory=dict)


Grounds = dict[str, Known]


def ground_of(falcon: Falcon) -> str:
    """Return what a fingerprint leaves out since it never changes in a life: how the clouds are, and what will come."""
    sim = falcon.sim
    coming = [(at - sim.now, act.__qualname__, [str(each) for each in given]) for at, _, act, given in sim.agenda.due]
    return repr((sim.tempo, sim.default_workload, sim.scripts_by_job_id, sim.scripts, sim.permissions, coming))


@define
class Proof:
    """What was proved of one scenario, and of those before it on its ground."""

    scenario: Scenario
    grounds: Grounds = field(factory=dict)
    known: Known = field(init=False)
    root: list[tuple[Key, State]] = field(factory=list)  # the states of the run without faults
    met: set[Key] = field(factory=set)  # in this life, or struck in another one
    planned: int = 0
    executed: int = 0
    most_extra: int = 0

    def __attrs_post_init__(self) -> None:
        self.known = self.grounds.setdefault(ground_of(self.scenario.build()), Known())

    @property
    def proved(self) -> Mapping[Key, Proved]:
        """What each state comes to."""
        return self.known.proved

    def every_fault(self) -> list[Reached]:
        """Prove the scenario with each fault at each call; return the states that this has led to."""
        reached: dict[Key, Reached] = {}
        self.root = self.quiet(begin(self.scenario))
        for key, state in self.root:
            self._strike_all(Reached(state, key), {}, 0, strikes, reached)
        return list(reached.values())

    def every_pair(self, reached: Sequence[Reached]) -> None:
        """Prove it with each second fault: in the same pass as the first, and in each state that the first led to."""
        for key, state in self.root:
            for first, number in self._going_on(state):
                self._strike_all(
                    Reached(state, key, verdicts=first.verdicts), {number: first}, number + 1, of_each_class, None
                )
        for each in reached:
            self._strike_all(each, {}, 0, of_each_class, None)

    def _strike_all(
        self,
        start: Reached,
        first: Mapping[int, Strike],
        begins: int,
        faults: Callable[[Site], tuple[Strike, ...]],
        reached: dict[Key, Reached] | None,
    ) -> None:
        """Let each fault strike each call of a pass, from a number on, and prove what comes of it."""
        what = start.key, (faults, *((number, strike.name) for number, strike in first.items()))
        terms = self._terms(start)
        before = self.known.struck.get(what)
        if before is not None and before.covers(terms):
            return
        aim = Aim(start.state, first)
        for site in aim.seam.sites[begins:]:
            for strike in faults(site):
                self.planned += before is None
                try:
                    key, target = aim.struck(site, strike)
                    self._follow(key, target, start, strike, reached)
                except AssertionError as error:
                    earlier = [f"{each.name} at {aim.seam.sites[number].name}, then " for number, each in first.items()]
                    where = f"{''.join(earlier)}{strike.name} at {site.name} in {ends_of(start.state.falcon)}"
                    raise AssertionError(f"{where}: {error}") from error
                self.executed += before is None
        self.known.struck[what] = terms

    def _terms(self, start: Reached) -> Terms:
        ends = tuple(sorted(self.scenario.ends.items()))
        return Terms(ends, start.verdicts, start.extra - PASSES_OF_AN_ATTEMPT * start.more)

    def _going_on(self, state: State) -> Iterator[tuple[Strike, int]]:
        """Yield the faults of a pass that do not end it, with the number of their call."""
        for site in Aim(state, {}).seam.sites:
            yield from ((strike, site.number) for strike in of_each_class(site) if not strike.ends_the_pass)

    def _follow(
        self, key: Key, target: State | None, start: Reached, strike: Strike, reached: dict[Key, Reached] | None
    ) -> None:
        """Prove the state that a fault led to, note the new ones on its way, and hold the run against the quiet one."""
        verdicts, way = strike.verdicts | start.verdicts, list[tuple[Key, State]]()
        if reached is not None and key not in self.met:
            assert target is not None
            way = self._walk(target, key, self.met)
        found, before = self.prove(key, target), self.proved[start.key]
        assert may_end(found.ends, self.scenario, verdicts), f"it ends as {found.ends}"
        extra = start.extra + 1 + found.passes - before.passes
        again = max(0, found.attempts - before.attempts, found.pools - before.pools)
        more = start.more + again + bool(start.state.acts)
        if not more:
            self.most_extra = max(self.most_extra, extra)
        allowed = EXTRA_PASSES * len(start.state.falcon.clusters)
        assert extra <= allowed + PASSES_OF_AN_ATTEMPT * more, f"{extra} more passes"
        if reached is not None:
            reached.update((other, Reached(state, other, extra, more, verdicts)) for other, state in way)

    # --- quiet

    def quiet(self, state: State) -> list[tuple[Key, State]]:
        """Prove a state by its quiet run; return the states on the way, as they were, that this life had not met."""
        return self._walk(state, state.key(), self.met)

    def prove(self, key: Key, state: State | None) -> Proved:
        """Return what a state comes to; the state itself is asked for only if no equal one was proved."""
        if key not in self.proved:
            assert state is not None
            self._walk(state, key)
        return self.proved[key]

    def _walk(self, state: State, key: Key, met: set[Key] | None = None) -> list[tuple[Key, State]]:
        """Make the passes of a quiet run until one that is known: *met*, with forks kept on the way, or proved."""
        way, kept = list[tuple[Key, bool]](), list[tuple[Key, State]]()
        while key not in (self.proved if met is None else met):
            assert len(way) < MOST_PASSES, f"it never ends:\n{state.falcon.describe()}"
            if met is not None:
                kept.append((key, state.fork()))
            made = make_pass(state.falcon, Seam(state.falcon))
            state = go_on(state, made)
            before, key = key, state.key()
            if key != before:
                way.append((before, moved(made)))
            elif state.acts:  # the moment never came: it is done now
                state.acts[0][1](state.falcon)
                way.append((before, False))
                state = State(state.falcon, state.acts[1:], state.falcon.sim.now)
                key = state.key()
            else:
                self._rests(state.falcon, key)
                self.known.proved[key] = _what_it_came_to(state.falcon)
                kept[-1:] = []
                break
        known = self.proved[key]
        for before, did in reversed(way):
            known = self.known.proved[before] = evolve(known, passes=known.passes + did)
        if met is not None:
            met.update((key, *(before for before, _ in way)))
        return kept

    def _rests(self, falcon: Falcon, key: Key) -> None:
        """Judge a world that a pass left as it was; of those that stand alike one is watched on for long."""
        if key[0] in self.known.rested:
            return
        self.known.rested.add(key[0])
        assert not problems(falcon), f"{problems(falcon)}\n{falcon.describe()}"
        kind = repr((ends_of(falcon), falcon.leftovers(), [row.status for row in falcon.store.clusters.values()]))
        stays_at_rest(falcon.fork(), passes=1 if kind in self.known.watched else FURTHER_PASSES)
        self.known.watched.add(kind)


def _what_it_came_to(falcon: Falcon) -> Proved:
    return Proved(0, ends_of(falcon), attempts_of(falcon), len(falcon.store.pools))


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
