"""
Plays seeded lives for as many ticks as asked for, on every core; then two controllers in all orders, more lives under
every pair of faults and every sequence of intents, convergence from the whole product of all words of a world, and
Hypothesis by its `soak` profile.

1. A seed that fails is printed with its shrunk script and the command that plays it again; the others go on.
2. Exit code 1 if anything failed.
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "hack")]

from everywhere import PHASES, Rest, planted, prove, whole_of  # noqa: E402 - found by the path above
from interleavings import Exploration  # noqa: E402
from lives import Violation, play  # noqa: E402
from paired import NAMES, prove_pairs  # noqa: E402
from scenarios import LIVES  # noqa: E402
from test_world_intents import MORE, every_sequence  # noqa: E402
from test_world_interleavings import SCENARIOS, SWITCHES  # noqa: E402
from walk import Walk  # noqa: E402

from falcon_rm.core.words import Mode  # noqa: E402

TICKS, JOBS = 200, 12
CROWD_TICKS, CROWD_JOBS, CROWD_EVERY = 2000, 200, 100
"""Every so manieth life is a crowd."""
MACHINE_TEST = "tests/test_world_machine.py"


def main() -> int:
    """Do what is asked; return the exit code."""
    parser = argparse.ArgumentParser(prog="hack/soak", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this life alone")
    parser.add_argument("--ticks", type=int, default=TICKS, help="of one life")
    parser.add_argument("--jobs", type=int, default=JOBS, help="of one life, at most")
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--ticks-in-all", type=int, help="play lives for so many ticks, and nothing else")
    asked = parser.parse_args()
    if asked.seed is not None:
        return 0 if told(asked.seed, asked.ticks, asked.jobs) else 1
    failed = soak(asked.first, asked.ticks_in_all or 1_000_000)
    if asked.ticks_in_all is None:
        failed += deeper()
        command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-profile=soak", MACHINE_TEST]
        failed += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return 1 if failed else 0


def told(seed: int, ticks: int, jobs: int) -> bool:
    """Play one life; print what it breaks; return whether it came to its end."""
    try:
        play(seed, ticks, jobs)
    except Violation as violation:
        print(violation, flush=True)
        return False
    return True


def soak(first: int, ticks: int) -> int:
    """Play lives until so many ticks are over; return how many failed."""
    began, failed = time.monotonic(), 0
    plans, left, seed = list[tuple[int, int, int]](), ticks, first
    while left > 0:
        crowd = seed % CROWD_EVERY == 0
        plans.append((seed, CROWD_TICKS, CROWD_JOBS) if crowd else (seed, TICKS, JOBS))
        left, seed = left - plans[-1][1], seed + 1
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for done in as_completed([pool.submit(told, *plan) for plan in plans]):
            failed += not done.result()
    seconds = time.monotonic() - began
    print(f"{ticks} ticks in {len(plans)} lives from seed {first}: {failed} failed, {seconds:.0f} s")
    return failed


# --- what takes too long for every push


def pairs(name: str) -> str:
    """Prove one life under every pair of faults; return how many were planned, and how many proved."""
    counted: list[tuple[int, int]] = []
    prove_pairs(name, {}, lambda planned, executed: counted.append((planned, executed)))
    return str(counted)


def intents(name: str, *, passes: bool) -> str:
    """Prove one life under every sequence of intents; return how many were planned, and how many proved."""
    return str(every_sequence(name, {}, passes=passes))


def orders(name: str, switches: int | None, count: int) -> str:
    """Go through every order of so many controllers, left midway so often; return how far that went."""
    return str(Exploration(SCENARIOS[name], switches).explore(count))


def worlds(phase: str, mode: Mode) -> str:
    """Walk from every world of a phase to its rest; return how many were met, and the longest chain."""
    walk = Walk(Rest())
    longest = prove(planted(whole_of(phase, mode)), walk)
    return f"{len(walk.proved)} worlds, at most {longest} passes"


def deeper() -> int:
    """Prove more of it, one task a core; return how much of it failed."""
    tasks: dict[str, partial[str]] = {
        "every order of two controllers": partial(orders, "one host", None, 2),
        "two controllers, two jobs": partial(orders, "one after the other", SWITCHES, 2),
        "three controllers": partial(orders, "one host", SWITCHES + 2, 3),
    }
    for name in MORE:
        tasks[f"intents, {name}, at once"] = partial(intents, name, passes=False)
        tasks[f"intents, {name}, a pass after each"] = partial(intents, name, passes=True)
    for name in sorted(LIVES.keys() - NAMES):
        tasks[f"every pair of faults, {name}"] = partial(pairs, name)
    for phase, mode in product(PHASES, Mode):
        tasks[f"every world, {phase}, {mode}"] = partial(worlds, phase, mode)
    failed, began = 0, time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), max_tasks_per_child=1) as pool:
        proofs = {pool.submit(task): what for what, task in tasks.items()}
        for done in as_completed(proofs):
            error = done.exception()
            failed += error is not None
            print(f"{time.monotonic() - began:.0f} s: {proofs[done]}: {error or done.result()}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
