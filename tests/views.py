"""
R5: each read of each pass answered from every earlier state of that run, without any one item, cut anywhere; the same
for the rows and for the second reading of ids.

1. Earlier answers are what the world as it was before each earlier pass answers to the same question.
2. What a read that fails does is test_world_faults.py's.
3. That nothing happened wrongly is held by the laws after each pass, by the ends, and by the attempts made: a stale
   answer may cost passes, it costs no attempt, no pool and no run.
"""

from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Call
from passes import Aim, Key, State, begin, rare_collections
from proving import Grounds, Proof, may_end
from scenarios import SCENARIOS
from strikes import DELAYS, Site, Strike, items_of, with_items
from striking import Seam
from world import Falcon


@frozen
class Instead:
    """Another answer in the place of the one there is."""

    old: Any

    def __call__(self, answer: Any) -> Any:
        return self.old


def views(seam: Seam, site: Site, past: list[State]) -> Iterator[Strike]:
    """Yield every old, short or partial answer to one read of a pass."""
    call, now = seam.calls[site.number], seam.forks[seam.fork_before[site.number]]
    if site.of_store:
        for number, state in enumerate(past):
            old = getattr(state.falcon.store, site.name)(*seam.written[site.number][1])
            yield Strike(f"as before pass {number}", "replayed", change=Instead(old))
        return
    assert call is not None
    answer = ask(now, call)
    items = items_of(answer)
    seen = [answer]
    for number, state in enumerate(past):
        old = ask(state.falcon, call)
        if old is not None and old not in seen:
            seen.append(old)
            yield Strike(f"as before pass {number}", "changed", change=Instead(old))
    for index in range(len(items or ())):
        assert items is not None
        without = with_items(answer, [*items[:index], *items[index + 1 :]])
        yield Strike(f"without item {index}", "changed", change=Instead(without))
        yield Strike(f"cut at item {index}", "changed", change=Instead(with_items(answer, items[:index])))


def ask(falcon: Falcon, call: Call) -> Any:
    """Return what a world answers to a read, past the seam; None if it refuses."""
    service, method, *_ = call.name.split(".")
    try:
        if service == "kube":
            kube = falcon.sim.kube("/".join(call.target.split("/")[:6]))
            return getattr(kube, f"_{method}")(*call.arguments)
        owner = falcon.sim.gke if service == "gke" else falcon.sim.compute
        return getattr(owner, PRIVATE.get(method, f"_{method}"))(*call.arguments)
    except (SimError, KubeError):
        return None


PRIVATE = {"get_resource_policy": "_get_policy", "aggregated_reservations": "_aggregated"}
"""Method of the simulated Google Cloud -> what answers it, where the name is another one."""


def prove_views(name: str, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """Prove one life under every old, short or partial answer to each of its reads."""
    found, past = Proof(SCENARIOS[name], grounds), list[State]()
    planned = executed = 0
    with rare_collections():
        for key, state in found.quiet(begin(found.scenario)):
            aim = Aim(state, {})
            for site in aim.seam.sites:
                for strike in () if site.mutating else views(aim.seam, site, past):
                    planned += 1
                    look(found, key, aim, site, strike)
                    executed += 1
            past.append(state)
    assert planned > 0
    proof(planned, executed)


def look(found: Proof, key: Key, aim: Aim, site: Site, strike: Strike) -> None:
    """Make one pass on such an answer, and hold what comes of it against the life without it."""
    where = f"{site.name} {strike.name}, {aim.state.falcon.describe()}"
    try:
        after, quiet = found.prove(*aim.struck(site, strike)), found.proved[key]
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from error
    assert may_end(after.ends, found.scenario, DELAYS), f"{where}: it ends as {after.ends}"
    assert after.attempts <= quiet.attempts, f"{where}: it takes another attempt"
