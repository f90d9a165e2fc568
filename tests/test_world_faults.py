"""
R4, the first fault: every fault of proof.md 5 at every call of the lives told one by one; each comes to its ends.

What people do on the way stands in test_world_faults_between.py, the second faults in test_world_pairs_*.py, for the
lives named there with the first ones.
"""

from collections.abc import Callable

import pytest
from paired import NAMES, prove_singles
from proving import Grounds
from scenarios import LIVES
from seam import Strike as Side


@pytest.mark.parametrize("name", sorted(LIVES.keys() - NAMES))
def test_every_fault_at_every_call(name: str, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """From every single fault at every call the world comes to its ends, nothing is left, and few passes are lost."""
    prove_singles(name, grounds, proof)


def test_strikes_cover_both_sides_of_an_effect() -> None:
    """A write can be struck before and after its effect, by an error and by a crash."""
    assert {Side.CRASH_BEFORE, Side.CRASH_AFTER, Side.FAIL_BEFORE, Side.FAIL_AFTER} == set(Side)
