"""
R4, both faults: the lives for which every pair of faults is proved, dealt out so that test files may run side by side.
"""

from collections.abc import Callable

from passes import rare_collections
from proving import Grounds, Proof
from scenarios import SCENARIOS

PAIRED = (
    ("one host", "a slice"),
    ("cpu", "reservation full for ever", "out of memory", "strangers"),
    ("quota for ever", "row deleted: j1 Running"),
    (
        "aborted: j1 Pending/Waiting", "aborted: j1 Pending/Provisioning", "aborted: j1 Pending/WaitingForNode",
        "aborted: j1 Pending/Dispatching", "row deleted: j1 Pending/Provisioning",
        "row deleted: j1 Pending/WaitingForNode", "row deleted: j1 Pending/Dispatching", "aborted: j1 Running",
    ),
    ("fails", "never configured", "sidecar stuck"),
    ("a v7x slice", "flex-start", "too late"),
)  # fmt: skip
"""File by file, the lives whose pairs of faults it proves: those on one ground stand together."""
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
