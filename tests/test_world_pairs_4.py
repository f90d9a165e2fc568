"""R4, part 4 of 6: every pair of faults, the second anywhere in the run that the first made (proof.md 4)."""

from collections.abc import Callable

import pytest
from paired import PAIRED, prove_pairs
from proving import Grounds


@pytest.mark.parametrize("name", PAIRED[3])
def test_every_pair_of_faults(name: str, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """From every two faults at any two calls the world comes to its ends, nothing is left, and few passes are lost."""
    prove_pairs(name, grounds, proof)
