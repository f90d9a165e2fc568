"""The table of the Kubernetes contract: a door that ran fewer cases fails the run, and what is left out is said."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import kube_table
import pytest
from control_plane import build

HERE = Path(__file__).resolve().parent
SUITE = """
import kube_table
import pytest

@pytest.mark.parametrize("door", kube_table.DOORS)
@pytest.mark.parametrize("case", range(3))
def test_case(door, case):
    if door != {lame!r} or case:
        kube_table.count(door, {{"list pods"}})
"""
SECONDS = 120
FIRST = "WITHOUT A REAL KUBERNETES CONTROL PLANE: its tests"
LAST = "3 tests were left out for want of a real Kubernetes control plane"
HOW = "hack/kube build builds one"


def run(place: Path, lame: str, workers: int, **environment: str) -> tuple[int, list[str]]:
    """Run a suite in which one door misses a case; return exit code and output."""
    (place / "conftest.py").write_text('pytest_plugins = ["kube_table", "left_out"]\n', encoding="utf-8")
    (place / "test_suite.py").write_text(SUITE.format(lame=lame), encoding="utf-8")
    (place / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    settings = {name: value for name, value in os.environ.items() if name not in (kube_table.CHOSEN, "CI")}
    settings |= {"PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parent / "hack"))), **environment}
    command = [sys.executable, "-m", "pytest", "-n", str(workers), "-p", "no:cacheprovider", str(place)]
    done = subprocess.run(
        command, cwd=place, env=settings, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_door_that_ran_fewer_cases_fails_the_run(tmp_path: Path, workers: int) -> None:
    """Every test passed, and the run fails with the door, the method and both numbers."""
    code, told = run(tmp_path, "real", workers, **{kube_table.CHOSEN: ",".join(kube_table.DOORS)})
    assert (1, True) == (code, "FAILED: door real ran 2 of 3 cases: list pods" in told), told
    assert f"{'list pods':<28}{3:>10}{3:>10}{2:>10}" in told


@pytest.mark.parametrize("workers", [0, 2])
def test_doors_that_ran_the_same_do_not(tmp_path: Path, workers: int) -> None:
    """The table is printed, and that is all."""
    code, told = run(tmp_path, "none", workers, **{kube_table.CHOSEN: ",".join(kube_table.DOORS)})
    assert (0, True) == (code, f"{'all':<28}{3:>10}{3:>10}{3:>10}" in told), told


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_left_out_is_said_first_and_last(tmp_path: Path, workers: int) -> None:
    """Programs that are not built: the number of tests, and how to get them."""
    code, told = run(tmp_path, "none", workers, **{build.GIVEN: "", build.MINOR: "1.0"})
    assert 0 == code, told
    assert [True, True] == [any(line.startswith(text) and HOW in line for line in told) for text in (FIRST, LAST)]


def test_nothing_is_left_out_where_ci_is_set(tmp_path: Path) -> None:
    """What cannot be built fails there."""
    code, told = run(tmp_path, "none", 0, **{build.GIVEN: "", build.MINOR: "1.0", "CI": "true"})
    assert (0, f"{'all':<28}{3:>10}{3:>10}{3:>10}", True) == (code, told[-3], "9 passed" in told[-1])


def test_a_method_that_one_door_never_met() -> None:
    """It counts as none, whatever the sum is."""
    ran = {"world": Counter({"a": 2, "all": 2}), "real": Counter({"b": 2, "all": 2})}
    assert ["door world ran 0 of 2 cases: b", "door real ran 0 of 2 cases: a"] == kube_table.short(ran)
