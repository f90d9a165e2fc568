"""Seeded lives, many of them: each ends as it must, and one integer says all of it (proof.md R7)."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from lives import play

SEEDS, GROUPS, TICKS = 500, 25, 200


@pytest.mark.parametrize("group", range(GROUPS))
def test_lives_come_to_their_end(group: int, proof: Callable[[int, int], None]) -> None:
    """Whatever happened, once faults and people rest every job ends and nothing of ours is left."""
    seeds = range(group, SEEDS, GROUPS)
    proof(len(seeds), len([play(seed, TICKS) for seed in seeds]))


def test_one_integer_says_it_all() -> None:
    """Two processes with different hash seeds leave one trace of one seed; another seed leaves another."""
    traces = [trace_in_a_process(seed, hash_seed) for seed, hash_seed in ((1, "1"), (1, "2"), (2, "1"))]
    assert traces[0] == traces[1] != traces[2]


def trace_in_a_process(seed: int, hash_seed: str) -> str:
    """Return the trace that a life leaves in a process of its own."""
    program = f"from lives import Life, script; life = Life({seed}); life.play(script({seed}, 60)); print(life.trace())"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout
