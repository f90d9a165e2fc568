"""Convergence from every world of a job that waits no more, and from worlds of two jobs (proof.md R2)."""

from collections.abc import Callable

import pytest
from everywhere import OTHERS, Rest, golden, of_two_jobs, planted, prove, two_jobs, worlds_of
from walk import Walk

PHASES = (
    "provisioning", "waiting for node", "dispatching", "dispatched",
    "running", "ending well", "ending badly", "ending unsent", "ending late", "ending lost", "yielding", "aborting",
    "aborting, holds nothing", "succeeded", "failed", "no row",
)  # fmt: skip


@pytest.mark.parametrize("phase", PHASES)
def test_every_world_comes_to_rest(phase: str, proof: Callable[[int, int], None]) -> None:
    """Whatever a phase is planted with, and however the clouds choose, in no more passes than were reviewed."""
    walk = Walk(Rest())
    assert golden()[phase] == prove(planted(worlds_of(phase)), walk)
    proof(walk.passes, len(walk.proved))


@pytest.mark.parametrize("other", OTHERS)
def test_every_world_of_two_jobs_comes_to_rest(other: str, proof: Callable[[int, int], None]) -> None:
    """Two in one slot, one behind the other, and two topologies that contest a cluster."""
    walk = two_jobs()
    assert golden()[other] == prove(of_two_jobs(other), walk)
    proof(walk.passes, len(walk.proved))
