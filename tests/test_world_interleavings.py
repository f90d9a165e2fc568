"""Two and three controllers at once, in every order (proof.md R6): there is no leader lock, this is the normal case."""

from collections.abc import Callable

import pytest
from cloudsim.tempo import Tempo
from cloudsim.workload import Workload
from interleavings import Exploration, Scenario
from memory_store import MemoryStore
from passes import rare_collections
from stepping import Mind
from world import Falcon, spec

SUCCEEDED = frozenset({"Succeeded"})


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


OF_TWO: dict[str, int | None] = {
    "one host": None, "aborted": 4, "row deleted": 4, "lost once": 4, "one after the other": 3,
}  # fmt: skip
OF_THREE: dict[str, int | None] = {"one host": 6, "row deleted": 4, "lost once": 4}
"""How often controllers are left in the middle of a pass, at most; None: no bound. `hack/soak` goes further."""


@pytest.mark.parametrize(("name", "switches"), OF_TWO.items(), ids=OF_TWO)
def test_two_controllers(name: str, switches: int | None, proof: Callable[[int, int], None]) -> None:
    """In every order: no false verdict, no live deletion, and every world has its end."""
    proof(*in_every_order(name, switches, 2))


@pytest.mark.parametrize(("name", "switches"), OF_THREE.items(), ids=OF_THREE)
def test_three_controllers(name: str, switches: int | None, proof: Callable[[int, int], None]) -> None:
    """The same of three."""
    proof(*in_every_order(name, switches, 3))


def in_every_order(name: str, switches: int | None, count: int) -> tuple[int, int]:
    """Prove one scenario; return how many changes were planned, and how many made."""
    with rare_collections():
        exploration = Exploration(SCENARIOS[name], switches)
        found = exploration.explore(count)
    assert found.states > found.worlds > 0
    assert any(world.falcon.is_over() for world in exploration.worlds.values())
    return found.changes, found.changes


def test_a_look_that_is_recalled_leads_where_a_real_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exploration that runs the product's code for each look goes through the same states, worlds and changes."""
    recalled = Exploration(SCENARIOS["one host"], 4).explore(2)
    monkeypatch.setattr(Mind, "recall", lambda mind, heard, known: None)
    assert Exploration(SCENARIOS["one host"], 4).explore(2) == recalled


def test_what_must_not_happen_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the guard on the version two controllers come to a false verdict, or break a law."""
    monkeypatch.setattr(MemoryStore, "_guarded", lambda store, job_id, version, status: store.jobs.get(job_id))
    with pytest.raises(AssertionError):
        Exploration(SCENARIOS["aborted"], 4).explore(2)
