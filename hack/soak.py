"""
The long proof, on every core.

By night: seeded lives for a million ticks, controllers in more orders than at every push, the properties of Hypothesis
by its profile `soak`, and its state machine, of which an example is a whole life. With `--all`: every life under every
pair of faults and every sequence of intents, and convergence from the whole product of all words of a world.

1. What fails is printed, and the rest goes on: a life with its shrunk script and the command that plays it again.
2. Exit code 1 if anything failed.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import product
from pathlib import Path
from traceback import format_exception_only

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "hack")]

from everywhere import PHASES, Rest, planted, prove, whole_of  # noqa: E402 - found by the path above
from hypothesis import settings  # noqa: E402
from hypothesis.stateful import run_state_machine_as_test  # noqa: E402
from lives import Violation, play  # noqa: E402
from paired import NAMES, prove_pairs  # noqa: E402
from scenarios import SCENARIOS  # noqa: E402
from test_world_intents import AT_EVERY_PUSH, every_sequence  # noqa: E402
from test_world_interleavings import in_every_order  # noqa: E402
from test_world_machine import Machine, TestMachine  # noqa: E402
from walk import Walk  # noqa: E402

from falcon_rm.core.words import Mode  # noqa: E402

Tasks = Mapping[str, partial[str]]

PROPERTIES = "tests/core"

TICKS, JOBS = 200, 12
CROWD_TICKS, CROWD_JOBS, CROWD_EVERY = 4000, 200, 100
"""Every so manieth life is a crowd."""
ORDERS: tuple[tuple[str, int | None, int], ...] = (
    ("one host", 8, 3), ("aborted", 6, 3), ("row deleted", 6, 3), ("lost once", 6, 3),
    ("aborted", 10, 2), ("row deleted", 10, 2), ("lost once", 10, 2), ("one after the other", 4, 2),
)  # fmt: skip
"""A scenario, how often controllers are left in the middle of a pass, and how many there are."""


def main() -> int:
    """Do what is asked; return the exit code."""
    parser = argparse.ArgumentParser(prog="hack/soak", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this life alone")
    parser.add_argument("--ticks", type=int, default=TICKS, help="of one life")
    parser.add_argument("--jobs", type=int, default=JOBS, help="of one life, at most")
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--ticks-in-all", type=int, default=1_000_000, help="of all lives together")
    parser.add_argument("--examples", type=int, default=10_000, help="of the state machine")
    parser.add_argument("--all", action="store_true", help="prove on what takes hours, too")
    asked = parser.parse_args()
    if asked.seed is not None:
        return 0 if told(asked.seed, asked.ticks, asked.jobs) else 1
    failed = soak(asked.first, asked.ticks_in_all)
    failed += carry_out(by_night(asked.examples))
    failed += carry_out(on_demand()) if asked.all else 0
    return 1 if failed else 0


# --- lives


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
    print(f"{ticks} ticks in {len(plans)} lives from seed {first}: {failed} failed, {seconds:.0f} s", flush=True)
    return failed


# --- what takes too long for every push


def by_night(examples: int) -> Tasks:
    """Return what each is called, and what does it and says how far that went."""
    cores = os.cpu_count() or 1
    tasks: dict[str, partial[str]] = {}
    for number in range(cores):
        tasks[f"state machine, {number + 1} of {cores}"] = partial(machine, examples // cores)
    for name, switches, count in ORDERS:
        tasks[f"{count} controllers, {name}"] = partial(in_order, name, switches, count)
    listed = pytest("--collect-only", "-m", "hypothesis", PROPERTIES)
    assert listed.returncode == 0, listed.stdout
    return tasks | {test: partial(holds, test) for test in listed.stdout.splitlines() if "::" in test}


def on_demand() -> Tasks:
    """Return the same of what takes hours."""
    tasks: dict[str, partial[str]] = {}
    for name in sorted(SCENARIOS.keys() - AT_EVERY_PUSH):
        tasks[f"intents, {name}, at once"] = partial(intents, name, passes=False)
        tasks[f"intents, {name}, a pass after each"] = partial(intents, name, passes=True)
    for name in sorted(SCENARIOS.keys() - NAMES):
        tasks[f"every pair of faults, {name}"] = partial(pairs, name)
    for phase, mode in product(PHASES, Mode):
        tasks[f"every world, {phase}, {mode}"] = partial(worlds, phase, mode)
    return tasks


def machine(examples: int) -> str:
    """Let Hypothesis search with a chance of its own; return how many examples it tried."""
    chance = settings(TestMachine.settings, max_examples=examples, deadline=None, derandomize=False, print_blob=True)
    run_state_machine_as_test(Machine, settings=chance)
    return f"{examples} examples"


def holds(test: str) -> str:
    """Test a property with the examples of the profile; return what pytest said last."""
    tested = pytest("--hypothesis-profile=soak", test)
    assert tested.returncode == 0, tested.stdout
    return tested.stdout.splitlines()[-1]


def pytest(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run it to its end."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)


def in_order(name: str, switches: int | None, count: int) -> str:
    """Go through every order of so many controllers, left midway so often; return how many changes that were."""
    return f"{in_every_order(name, switches, count)[1]} changes"


def intents(name: str, *, passes: bool) -> str:
    """Prove one life under every sequence of intents; return how many were planned, and how many proved."""
    return str(every_sequence(name, {}, passes=passes))


def pairs(name: str) -> str:
    """Prove one life under every pair of faults; return how many were planned, and how many proved."""
    counted: list[tuple[int, int]] = []
    prove_pairs(name, {}, lambda planned, executed: counted.append((planned, executed)))
    return str(counted)


def worlds(phase: str, mode: Mode) -> str:
    """Walk from every world of a phase to its rest; return how many were met, and the longest chain."""
    walk = Walk(Rest())
    longest = prove(planted(whole_of(phase, mode)), walk)
    return f"{len(walk.proved)} worlds, at most {longest} passes"


def carry_out(tasks: Tasks) -> int:
    """Carry out one task a core; return how many failed."""
    failed, began = 0, time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), max_tasks_per_child=1) as pool:
        proofs = {pool.submit(task): what for what, task in tasks.items()}
        for done in as_completed(proofs):
            error = done.exception()
            failed += error is not None
            how = "".join(format_exception_only(error)) if error else done.result()
            print(f"{time.monotonic() - began:.0f} s: {proofs[done]}: {how}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
