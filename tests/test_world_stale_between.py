"""R5 while people abort, delete, take clusters away and give them back in each phase (views.py, proof.md 6)."""

from collections.abc import Callable

import pytest
from proving import Grounds
from scenarios import in_each_phase
from views import prove_views


@pytest.mark.parametrize("name", sorted(in_each_phase()))
def test_every_old_view_while_people_act(name: str, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """Whatever old or short answer one read gets, the life ends as it should, whatever people did meanwhile."""
    prove_views(name, grounds, proof)
