"""
The least-privilege role of hack/deploy: a load that meets every method runs under it, and each permission is needed.

Every other scenario on the wire runs under it too (`wire.py`). What is shown here is that nothing of it is too much.
Some passes are enough to be told: whatever is missing stands in a job's message or in the cluster's problem.
"""

from typing import Any

import pytest
from cloudsim.iam import ACT_AS, CONNECT, NEEDED, granted
from wire import StartOnWire, WireFalcon
from world import cluster, spec

pytest_plugins = ["doors"]

GRANTED = granted()
C1 = cluster("c1", "v7x", location="us-central1", default_reservation="r", endpoint="dns")
ROUNDS = 12


def started(start: StartOnWire, permissions: frozenset[str]) -> WireFalcon:
    """Start with a multi-host job in a reservation whose zone is to be found, one of flex-start, one on demand."""
    falcon = start(C1)
    falcon.sim.permissions = permissions
    falcon.sim.add_reservation("p", "us-central1-a", "r", "tpu7x-standard-4t", 4)
    falcon.submit("reserved", spec("2x2x2", "v7x", ""))
    falcon.submit("flexible", spec("2x2x1", "v7x", "flex-start"))
    falcon.submit("forgotten", spec("2x2x4", "v7x"))
    return falcon


def told(falcon: WireFalcon) -> str:
    """Return all that people are told of jobs and of the cluster."""
    problems: Any = falcon.store.others.rows("SELECT problem FROM cluster_health")
    return "\n".join([*(falcon.message(job.id) for job in falcon.rows()), *(str(problem) for (problem,) in problems)])


def test_the_role_is_enough(start_on_wire: StartOnWire) -> None:
    """Every job ends well, what a deleted row had goes, and nothing is granted that no method needs."""
    falcon = started(start_on_wire, GRANTED)
    falcon.until_state("forgotten", "Running")
    falcon.store.delete_row("forgotten")
    falcon.settle()
    assert ["Succeeded", "Succeeded"] == [falcon.state(job.id) for job in falcon.rows()]
    called = {call.name for call in falcon.sim.calls if call.name in NEEDED}
    assert {CONNECT, *(permission for name in called for permission in NEEDED[name])} == GRANTED


@pytest.mark.parametrize("missing", sorted(GRANTED))
def test_each_permission_is_needed_and_named(start_on_wire: StartOnWire, missing: str) -> None:
    """Without it something does not go on, no job fails, and who looks is told which permission it is."""
    falcon = started(start_on_wire, GRANTED - {missing})
    name = "iam.serviceAccountUser" if missing == ACT_AS else missing
    for _ in range(ROUNDS):
        if name in told(falcon):
            break
        if not falcon.step().progress:
            falcon.wait()
    assert name in told(falcon), falcon.describe()
    assert "Failed" not in {str(job.status) for job in falcon.rows()}


def test_what_is_granted_again_is_used_again(start_on_wire: StartOnWire) -> None:
    """An operator mends the role, and the jobs that waited run, with nothing used up."""
    falcon = started(start_on_wire, GRANTED - {ACT_AS})
    falcon.until(lambda: "iam.serviceAccountUser" in told(falcon))
    falcon.sim.permissions = GRANTED
    falcon.settle()
    assert {("Succeeded", 0)} == {(falcon.state(job.id), job.pool_failures) for job in falcon.rows()}
