"""Two and three controllers at once, in every order (proof.md R6): there is no leader lock, this is the normal case."""

from collections.abc import Callable

import pytest
from cloudsim.tempo import Tempo
from cloudsim.workload import Workload
from interleavings import Exploration, Scenario
from memory_store import MemoryStore
from world import Falcon, spec

SUCCEEDED = frozenset({"Succeeded"})
SWITCHES, OF_TWO_JOBS = 4, 3  # `hack/soak` goes further


def brief(*rows: object) -> Falcon:
    """Return a world in which everything that an order can hang on falls due in a pass of its own, and soon."""
    tempo = Tempo(
        create_seconds=18, node_seconds=8, delete_seconds=18, drain_seconds=8, pull_seconds=1, pod_gc_seconds=(8, 8),
        create_flex_seconds=8, flex_seconds=8, node_gone_seconds=1, repair_seconds=8,
    )  # fmt: skip
    falcon = Falcon(*rows, tempo=tempo)  # type: ignore[arg-type]
    falcon.sim.default_workload = Workload(seconds=8)
    falcon.sim.faults.depth = 0  # no answer of old is asked for
    return falcon


def one_host() -> Falcon:
    """One job on one host."""
    falcon = brief()
    falcon.submit("j1")
    return falcon


def lost_once() -> Falcon:
    """A run that loses its node, and a second one that does not."""
    falcon = brief()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=8, attempts={1: Workload(seconds=None, lose_node_after=8)})
    falcon.submit("j1", spec(max_retries=1))
    return falcon


def one_after_the_other() -> Falcon:
    """Two jobs of one queue; the second takes the first one's pool, or makes its own."""
    falcon = brief()
    falcon.submit("j1")
    falcon.submit("j2", actor="bob")
    return falcon


def abort(falcon: Falcon) -> None:
    """Ask for the end of j1, if there is none yet."""
    if falcon.store.row("j1").status in ("Pending", "Running"):
        falcon.store.set_status("j1", "Aborting")


def delete_row(falcon: Falcon) -> None:
    """Delete the row of j1."""
    falcon.store.delete_row("j1")


SCENARIOS = {
    "one host": Scenario(one_host, {"j1": SUCCEEDED}),
    "aborted": Scenario(one_host, {"j1": SUCCEEDED | {"Aborted"}}, abort),
    "row deleted": Scenario(one_host, {"j1": SUCCEEDED}, delete_row),
    "lost once": Scenario(lost_once, {"j1": SUCCEEDED}),
    "one after the other": Scenario(one_after_the_other, {"j1": SUCCEEDED, "j2": SUCCEEDED}),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_two_controllers_in_every_order(name: str, proof: Callable[[int, int], None]) -> None:
    """Left in the middle of a pass so many times: no false verdict, no live deletion, and every world has its end."""
    found = Exploration(SCENARIOS[name], OF_TWO_JOBS if name == "one after the other" else SWITCHES).explore(2)
    assert found.states > found.worlds > 0
    proof(found.changes, found.changes)


def test_three_controllers_that_change_places_often(proof: Callable[[int, int], None]) -> None:
    """The same of three."""
    found = Exploration(SCENARIOS["one host"], SWITCHES).explore(3)
    assert found.states > found.worlds > 0
    proof(found.changes, found.changes)


def test_what_must_not_happen_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the guard on the version two controllers come to a false verdict, or break a law."""
    monkeypatch.setattr(MemoryStore, "_guarded", lambda store, job_id, version, status: store.jobs.get(job_id))
    with pytest.raises(AssertionError):
        Exploration(SCENARIOS["aborted"], SWITCHES).explore(2)
