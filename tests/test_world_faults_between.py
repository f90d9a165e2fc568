"""R4, the first fault, while people abort, delete, take clusters away and give them back in each phase (proof.md 6)."""

from collections.abc import Callable

import pytest
from paired import NAMES, prove_singles
from proving import Grounds
from scenarios import in_each_phase


@pytest.mark.parametrize("name", sorted(in_each_phase().keys() - NAMES))
def test_every_fault_while_people_act(name: str, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """From every single fault at every call the world comes to its ends, whatever people did meanwhile."""
    prove_singles(name, grounds, proof)
