"""
The proof as one table: for each property the cases planned, executed and violated, and the seconds that took.

1. A test file shows the properties that its first docstring names, as R9; FURTHER has what shows one beside.
2. A test says how many cases its matrix planned and executed (the fixture `proof`); one that does not is one case.
3. A violation is a test that failed. Tests are those of hack/test, run as there; or they have run, and the report that
   `hack/test --junit-xml=FILE` wrote says how. Its seconds are the tests' own, added up: workers run side by side.
"""

import argparse
import ast
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from attrs import evolve, frozen

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
USAGE = 64

PROPERTIES = {
    "R1": "the table is total, alive and as reviewed",
    "R2": "convergence from every world",
    "R3": "a crash before and after every effect and read",
    "R4": "every fault at every call, and every pair",
    "R5": "stale, short and partial views",
    "R6": "two and three controllers, interleaved",
    "R7": "seeded lives under all faults and people",
    "R8": "every sequence of intents",
    "R9": "real servers: every fault of the store, kill -9",
    "R10": "the race on rows",
    "R11": "the same world gives the same plan",
    "R12": "simulators held to the truth",
    "R13": "the process stays alive, and ends when asked",
    "R14": "the brake on sweeping",
    "R15": "every mutant is killed",
    "R16": "size: calls, statements, memory",
    "R17": "coverage: branches of the core, every except",
}

FURTHER: Mapping[str, tuple[str, ...]] = {
    "R1": ("core/test_machine.py",),
    "R9": ("e2e/test_store_loss.py", "e2e/test_process_life.py", "cloud/test_store_mysql.py"),
    "R10": ("e2e/test_store_race.py",),
    "R11": ("core/test_plan_properties.py", "e2e/test_process_pass.py::test_plan_writes_nothing"),
    "R12": ("kube_contract", "test_store_contract.py", "cloudsim", "cloud/test_gke.py", "cloud/test_compute.py"),
    "R13": ("e2e/test_process_life.py", "e2e/test_process_probes.py", "test_probes.py", "test_stop.py"),
    "R14": ("core/test_sweep.py", "e2e/test_process_pass.py::test_run_once_holds_the_brake"),
    "R15": ("test_mutants.py",),
}
"""Property -> tests of more than one thing that show it too, below tests/."""

NAMED = re.compile(r"\bR(?:1[0-7]|[1-9])\b")
PYTEST = (
    sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder",
    "-p", "no:cacheprovider",
)  # fmt: skip


@frozen
class Shown:
    """What the tests of one property came to."""

    planned: int
    executed: int
    violations: int
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether every case was there and held."""
        return 0 < self.planned == self.executed and not self.violations

    def __add__(self, other: "Shown") -> "Shown":
        return Shown(
            self.planned + other.planned,
            self.executed + other.executed,
            self.violations + other.violations,
            self.seconds + other.seconds,
        )


def main() -> int:
    """Show what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="hack/proof", description="Show the properties that Falcon promises.")
    parser.add_argument("--only", action="append", choices=PROPERTIES, metavar="R", help="a property: R1 to R17")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="of a run of hack/test --junit-xml=FILE: run nothing"
    )
    given = parser.parse_args()
    asked, report = given.only or list(PROPERTIES), given.report
    tests, total, all_hold = tests_of_properties(), Shown(0, 0, 0, 0), True
    tell("property", "", "planned", "executed", "violations", "seconds")
    for name in asked:
        shown = run(tests[name]) if report is None else told(report, tests[name])
        row(name, PROPERTIES[name], shown)
        total, all_hold = total + shown, all_hold and shown.holds
    row("all", "", total)
    return 0 if all_hold else 1


def tests_of_properties() -> dict[str, list[str]]:
    """Return property -> its tests, below tests/."""
    found = {name: {*FURTHER.get(name, ())} for name in PROPERTIES}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name in named(path):
            found[name].add(str(path.relative_to(TESTS)))
    return {name: sorted(tests) for name, tests in found.items()}


def named(path: Path) -> set[str]:
    """Return the properties that a file's docstring names."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return set(NAMED.findall(text))


def run(tests: Sequence[str]) -> Shown:
    """Run tests; what goes wrong is shown as pytest shows it, on stderr."""
    if not tests:
        return Shown(0, 0, 0, 0)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="falcon-proof-") as folder:
        report = Path(folder) / "report.xml"
        command = [*PYTEST, f"--junit-xml={report}", *(str(TESTS / test) for test in tests)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode:
            sys.stderr.write(ended.stdout + ended.stderr)
        cases = [case for _, case in counted(report)] if report.exists() else []
    counts = sum(cases, Shown(0, 0, 0, 0))
    shown = evolve(counts, seconds=time.monotonic() - began)
    broken = ended.returncode != 0 and not shown.violations
    return shown + Shown(0, 0, int(broken), 0)


def told(report: Path, tests: Sequence[str]) -> Shown:
    """Return what a report says of tests."""
    of_these = [case for place, case in counted(report) if any(is_part(place, test) for test in tests)]
    return sum(of_these, Shown(0, 0, 0, 0))


def is_part(place: str, test: str) -> bool:
    """Return whether a test that ran, named below tests/, is one of a folder, of a file, or this one."""
    return place == test or place.startswith((f"{test}/", f"{test}::", f"{test}["))


def place_of(case: ElementTree.Element) -> str:
    """Return a test of a report as pytest names it, below tests/."""
    parts = (case.get("classname") or "").split(".")[1:]
    module = next((index for index, part in enumerate(parts) if part.startswith("test_")), len(parts) - 1)
    return "::".join(("/".join(parts[: module + 1]) + ".py", *parts[module + 1 :], case.get("name") or ""))


def counted(report: Path) -> Iterator[tuple[str, Shown]]:
    """Yield each test of a report, and what it came to."""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        counts = [(each.get("name"), int(each.get("value") or 0)) for each in case.iter("property") if is_count(each)]
        failed = any(case.find(kind) is not None for kind in ("failure", "error"))
        left_out = case.find("skipped") is not None
        if counts:
            planned, executed = (
                sum(value for name, value in counts if name == kind) for kind in ("planned", "executed")
            )
        else:
            planned, executed = 1, int(not left_out)
        yield place_of(case), Shown(planned, executed, int(failed), float(case.get("time") or 0))


def is_count(found: ElementTree.Element) -> bool:
    """Return whether a property of a report is one of ours."""
    return found.get("name") in ("planned", "executed")


def row(name: str, text: str, shown: Shown) -> None:
    """Print a row of the table."""
    counts = (f"{each:,}" for each in (shown.planned, shown.executed, shown.violations))
    tell(name, text, *counts, f"{shown.seconds:.0f}")


def tell(name: str, text: str, *figures: str) -> None:
    """Print a line in columns, at once."""
    print(f"{name:8} {text:52}", *(f"{each:>10}" for each in figures), flush=True)


if __name__ == "__main__":
    sys.exit(main())
