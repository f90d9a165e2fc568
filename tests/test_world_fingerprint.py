"""What the proof by fork and fingerprint rests on: forks are independent, and equal fingerprints have equal futures."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from cloudsim.faults import Fault
from cloudsim.tempo import Tempo
from world import Falcon, cluster, spec

from falcon_rm.core.actions import Change, RecordHealth

Act = Callable[[Falcon], None]


def slice_of_v7x() -> Falcon:
    """Return a world with a job on two hosts; only names are drawn by chance."""
    falcon = Falcon(cluster("c1", "v7x"), tempo=Tempo(pod_gc_seconds=(50, 50)))
    falcon.submit("j1", spec("2x2x2", "v7x", max_retries=1))
    return falcon


def walk(falcon: Falcon) -> list[tuple[str, tuple[str, ...]]]:
    """Return the fingerprint before each pass to the end, and what the pass planned."""
    steps = []
    while not (falcon.is_over() and not falcon.leftovers()):
        before = falcon.fingerprint()
        made = falcon.step()
        steps.append((before, tuple(planned(action) for action in made.plan.actions if not is_text(action))))
        falcon.go_on(made)
    return steps


def is_text(action: Any) -> bool:
    """Return whether an action only writes a text for people, which a fingerprint leaves out."""
    return isinstance(action, RecordHealth) or (isinstance(action, Change) and action.only_message)


def planned(action: Any) -> str:
    """Return an action without texts, versions and names that are drawn by chance."""
    if isinstance(action, Change):
        given = action.gives_up and (action.gives_up.pool, action.gives_up.keep, action.gives_up.ended)
        return f"{action.job_id} {action.to_status} {action.to_reason} {sorted(action.columns)} {given}"
    return f"{type(action).__name__} {getattr(action, 'name', '')}"


def test_fork_goes_its_own_way() -> None:
    """What is done to a fork, at any moment of its life, is not seen by the world it was made from."""
    falcon = slice_of_v7x()
    while not falcon.is_over():
        mark = falcon.fingerprint()
        walk(falcon.fork())
        assert mark == falcon.fingerprint()
        falcon.go_on(falcon.step())


def test_fork_has_the_same_future() -> None:
    """A fork, taken at any moment, goes through the same states by the same plans as its origin."""
    falcon = slice_of_v7x()
    steps = walk(falcon.fork())
    for index in range(len(steps)):
        assert steps[index:] == walk(falcon.fork())
        falcon.go_on(falcon.step())


def lost_answer(falcon: Falcon) -> None:
    """Make the pool, and lose the answer."""
    falcon.until_state("j1", "Pending/Provisioning")
    falcon.sim.faults.add(Fault("gke.create_node_pool", "hang", effect=True))


def unread(falcon: Falcon) -> None:
    """Let a list fail while the job runs."""
    falcon.until_state("j1", "Running")
    falcon.sim.faults.add(Fault("kube.list.jobs", "hang", times=3))


def late(falcon: Falcon) -> None:
    """Let an hour go by before anything happens."""
    falcon.advance(3600)


def other_names(falcon: Falcon) -> None:
    """Draw other names."""
    falcon.sim.random.seed(7)


@pytest.mark.parametrize("act", [lost_answer, unread, late, other_names])
def test_equal_fingerprints_have_equal_futures(act: Act) -> None:
    """Two lives that came by different ways to equal fingerprints make the same plans from there on, to the end."""
    falcon, other = slice_of_v7x(), slice_of_v7x()
    act(other)
    steps, others = walk(falcon), walk(other)
    known = {mark: index for index, (mark, _) in enumerate(steps)}
    met = [(index, known[mark]) for index, (mark, _) in enumerate(others) if mark in known]
    assert met
    index, same = met[0]
    assert steps[same:] == others[index:]


CHANGES: dict[str, Act] = {
    "a row": lambda falcon: falcon.store.edit_job("j1", losses=1),
    "the ledger": lambda falcon: falcon.store.pools.update(
        {key: evolve(pool, lease=None) for key, pool in falcon.store.pools.items()}
    ),
    "a slot": lambda falcon: falcon.store.slots.clear(),
    "a cluster": lambda falcon: falcon.sim.clusters[falcon.clusters["c1"].path].__setattr__("gone", True),
    "a pool": lambda falcon: falcon.sim.gke.delete_by_hand(falcon.clusters["c1"].path, "falcon-j1"),
    "a pod": lambda falcon: falcon.sim.kube(falcon.clusters["c1"].path).delete_by_hand(
        "pods", "falcon-jobs", falcon.names("pods")[0]
    ),
    "a fault": lambda falcon: falcon.sim.faults.set_up.append(Fault("kube.*", "hang")),
    "the clock": lambda falcon: falcon.advance(1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_matters_is_in_the_fingerprint(change: str) -> None:
    """Whatever can influence the future changes the fingerprint."""
    falcon = slice_of_v7x()
    falcon.until_state("j1", "Running")
    changed = falcon.fork()
    CHANGES[change](changed)
    assert falcon.fingerprint() != changed.fingerprint()
