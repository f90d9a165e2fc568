"""
R4, both faults: the lives for which every pair of faults is proved, dealt out so that test files may run side by side.
"""

from collections.abc import Callable

from passes import rare_collections
from proving import Grounds, Proof
from scenarios import SCENARIOS

PAIRED = (
    ("one host",),
    ("cpu", "reservation full for ever", "aborted: j1 Pending/Waiting", "aborted: j1 Pending/WaitingForNode"),
    ("quota for ever",),
    ("row deleted: j1 Pending/Dispatching", "aborted: j1 Pending/Provisioning"),
)
"""File by file, the lives whose pairs of faults it proves."""
NAMES = frozenset(name for names in PAIRED for name in names)


def prove_singles(name: str, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """Prove one life under every fault, where those before it were not struck in equal states."""
    found = Proof(SCENARIOS[name], grounds)
    with rare_collections():
        found.every_fault()
    assert found.executed > 0
    proof(found.planned, found.executed)


def prove_pairs(name: str, grounds: Grounds, proof: Callable[[int, int], None]) -> None:
    """Prove one life under every fault, then under every second one, where those before it were not struck."""
    found = Proof(SCENARIOS[name], grounds)
    with rare_collections():
        found.every_pair(found.every_fault())
    assert found.executed > 0
    proof(found.planned, found.executed)
