"""Every call of a run, struck by every fault: nothing leaks, nothing runs twice, every job comes to its end."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress

import pytest
from attrs import frozen
from cloudsim.direct import DirectClouds
from cloudsim.workload import NEVER_ENDS, Workload
from laws import check
from seam import WRITES, Crash, Seam, SeamClouds, Site, Strike, Through
from world import INTERVAL, ZONE, Falcon, cluster, spec

from falcon_rm.loop import one_pass
from falcon_rm.ports import StoreDown

LIMIT_SECONDS = 4 * 3600


@frozen
class Scenario:
    """A world to begin with, what is done to it on the way, and how its jobs must end."""

    build: Callable[[], Falcon]
    ends: Mapping[str, str]
    when: Mapping[str, Callable[[Falcon], None]] = {}  # by the state of j1: done once, when it is first seen


def one_host() -> Falcon:
    """One job on one host."""
    falcon = Falcon()
    falcon.submit("j1")
    return falcon


def slice_of_v7x() -> Falcon:
    """A slice that needs a workload policy."""
    falcon = Falcon(cluster("c1", "v7x"))
    falcon.submit("j1", spec("2x2x2", "v7x"))
    return falcon


def flex_start() -> Falcon:
    """A slice whose nodes come for pending pods."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4", mode="flex-start"))
    return falcon


def reservation_for_one() -> Falcon:
    """Two jobs and room for one."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 4)
    falcon.submit("j1", spec("4x4", mode="reservation"))
    falcon.submit("j2", spec("4x4", mode="reservation"), actor="bob")
    return falcon


def stockout_once() -> Falcon:
    """No machines for a while."""
    falcon = Falcon()
    falcon.sim.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", 0)
    falcon.sim.after(3000, falcon.sim.set_capacity, ZONE, "on-demand", "ct6e-standard-4t", None)
    falcon.submit("j1", spec("4x4"))
    return falcon


def fails_by_itself() -> Falcon:
    """A workload that exits 3."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=5, exit_code=3)
    falcon.submit("j1", spec("4x4"))
    return falcon


def lost_once() -> Falcon:
    """A run that loses a node, and a second one that does not."""
    falcon = Falcon()
    lost = Workload(seconds=None, indexes={1: Workload(seconds=None, lose_node_after=30)})
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=20, attempts={1: lost})
    falcon.submit("j1", spec("4x4", max_retries=1))
    return falcon


def loses_its_pool() -> Falcon:
    """A run whose pool a person will delete."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=20, attempts={1: NEVER_ENDS})
    falcon.submit("j1", spec("4x4", max_retries=1))
    return falcon


def never_ends() -> Falcon:
    """A run that only its limit ends."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec("4x4"), timeout_seconds=600)
    return falcon


def cpu() -> Falcon:
    """A job without a pool."""
    falcon = Falcon()
    falcon.submit("j1", {"image": "i", "device_type": "cpu", "command": "true"})
    return falcon


def abort(falcon: Falcon) -> None:
    """Ask for the end, as upstream does."""
    falcon.store.set_status("j1", "Aborting")


def delete_row(falcon: Falcon) -> None:
    """Delete the row, as upstream may."""
    falcon.store.delete_row("j1")


def delete_pool(falcon: Falcon) -> None:
    """Delete the pool, as people do."""
    falcon.sim.gke.delete_by_hand(cluster("c1").path, "falcon-j1")


SCENARIOS = {
    "one host": Scenario(one_host, {"j1": "Succeeded"}),
    "a v7x slice": Scenario(slice_of_v7x, {"j1": "Succeeded"}),
    "flex-start": Scenario(flex_start, {"j1": "Succeeded"}),
    "reservation for one": Scenario(reservation_for_one, {"j1": "Succeeded", "j2": "Succeeded"}),
    "stockout once": Scenario(stockout_once, {"j1": "Succeeded"}),
    "fails": Scenario(fails_by_itself, {"j1": "Failed/JobFailed"}),
    "lost once": Scenario(lost_once, {"j1": "Succeeded"}),
    "too late": Scenario(never_ends, {"j1": "Failed/Timeout"}),
    "cpu": Scenario(cpu, {"j1": "Succeeded"}),
    "aborted provisioning": Scenario(never_ends, {"j1": "Aborted"}, {"Pending/Provisioning": abort}),
    "aborted dispatching": Scenario(never_ends, {"j1": "Aborted"}, {"Pending/Dispatching": abort}),
    "aborted running": Scenario(never_ends, {"j1": "Aborted"}, {"Running": abort}),
    "row deleted running": Scenario(never_ends, {}, {"Running": delete_row}),
    "pool deleted running": Scenario(loses_its_pool, {"j1": "Succeeded"}, {"Running": delete_pool}),
}


@frozen
class Moment:
    """A run before one of its passes: the world as it was, and what was still to be done to it."""

    falcon: Falcon
    pending: Mapping[str, Callable[[Falcon], None]]

    def fork(self) -> "Moment":
        """Return a copy that goes its own way."""
        return Moment(self.falcon.fork(), self.pending)


def a_pass(moment: Moment, seam: Seam) -> Moment:
    """Make one pass through the seam, check what must hold, let time pass if nothing moved; return what came of it."""
    falcon, pending, progress = moment.falcon, dict(moment.pending), False
    with suppress(Crash, StoreDown):
        progress = one_pass(
            store=lambda: nullcontext(Through(falcon.store, seam)),
            clouds=lambda: SeamClouds(DirectClouds(falcon.sim), seam),
            bounds=falcon.bounds,
            pass_seconds=60,
        ).progress
    check(falcon)
    if "j1" in falcon.store.jobs and falcon.state("j1") in pending:
        pending.pop(falcon.state("j1"))(falcon)
    if not progress:
        falcon.advance(INTERVAL)
    return Moment(falcon, pending)


def settle(moment: Moment, scenario: Scenario) -> None:
    """Make passes without faults until nothing is left to do, and hold the ends against what they should be."""
    limit = moment.falcon.store.now + LIMIT_SECONDS
    while not is_settled(moment):
        assert moment.falcon.store.now < limit, moment.falcon.describe()
        moment = a_pass(moment, Seam())
    falcon = moment.falcon
    assert scenario.ends == {job: falcon.state(job) for job in falcon.store.jobs}
    assert not [slot for slot in falcon.store.slots.values() if slot.holder]


def is_settled(moment: Moment) -> bool:
    """Return whether every job is over and the clouds hold nothing of ours."""
    return moment.falcon.is_over() and not moment.falcon.leftovers() and not moment.pending


def moments(scenario: Scenario) -> Iterator[tuple[Moment, tuple[Site, ...]]]:
    """Yield the passes of a run without faults, with their calls; of passes in a row that only read, the first."""
    moment, idle = Moment(scenario.build(), scenario.when), False
    while not is_settled(moment):
        before, seam = moment.fork(), Seam()
        moment = a_pass(moment, seam)
        writes = any(site.name in WRITES for site in seam.sites)
        if writes or not idle:
            yield before, tuple(seam.sites)
        idle = not writes
    settle(moment, scenario)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_fault_at_every_call(name: str) -> None:
    """From every single fault at every call the world comes to the same ends, and nothing is left."""
    scenario, planned, executed = SCENARIOS[name], 0, 0
    for number, (before, sites) in enumerate(moments(scenario)):
        faults = [(site, strike) for site in sites for strike in site.strikes()]
        planned += len(faults)
        for site, strike in faults:
            try:
                settle(a_pass(before.fork(), Seam(site.number, strike)), scenario)
            except AssertionError as error:
                where = f"{name}, pass {number}: {strike.value} at call {site.number}, {site.name}"
                raise AssertionError(f"{where}: {error}") from error
            executed += 1
    assert planned == executed > 0


def test_strikes_cover_both_sides_of_an_effect() -> None:
    """A write can be struck before and after its effect, by an error and by a crash."""
    assert {Strike.CRASH_BEFORE, Strike.CRASH_AFTER, Strike.FAIL_BEFORE, Strike.FAIL_AFTER} == set(Strike)
