"""Convergence from every world of a job that waits (proof.md R2)."""

from collections.abc import Callable

import pytest
from everywhere import Rest, golden, planted, prove, worlds_of
from walk import Walk

PHASES = ("new", "waiting", "waiting, names a pool", "busy")


@pytest.mark.parametrize("phase", PHASES)
def test_every_world_comes_to_rest(phase: str, proof: Callable[[int, int], None]) -> None:
    """Whatever a phase is planted with, and however the clouds choose, in no more passes than were reviewed."""
    walk = Walk(Rest())
    assert golden()[phase] == prove(planted(worlds_of(phase)), walk)
    proof(walk.passes, len(walk.proved))
