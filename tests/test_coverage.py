"""
What the tests of the core and of the adapters reach (proof.md R17): every branch that decides, every error handled.

1. Each question is asked of the fast tests that stand beside the code, in a process of its own; none that draws its
   examples is among them.
2. An `except` counts as entered when the first line of its body was carried out.
"""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from coverage import Coverage, CoverageData

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "falcon_rm"

DECIDES = ("core", "cloud/test_errors.py", "test_explain.py")
"""Tests, below tests/, that meet every branch of the core."""

SHELLS = "core/test_wrapper.py"
"""Tests of the core that meet no branch but by way of shells."""

TOUCHES = (
    "cloud/test_cloud_sql.py", "cloud/test_compute.py", "cloud/test_database.py", "cloud/test_errors.py",
    "cloud/test_gke.py", "cloud/test_kube.py", "cloud/test_kube_values.py", "cloud/test_people.py",
    "cloud/test_retry.py", "test_coverage_errors.py",
)  # fmt: skip
"""Tests that inject an error at every `except` of what touches clouds and database."""

HANDLES = (
    *sorted((PACKAGE / "cloud").glob("*.py")),
    *(PACKAGE / f"{name}.py" for name in ("observe", "apply", "loop")),
)


def measured(folder: Path, tests: tuple[str, ...], *options: str) -> Path:
    """Run tests, which must pass; return the file that says which lines they reached."""
    data = folder / "coverage"
    left_out = ("-m", "not hypothesis", f"--deselect=tests/{SHELLS}")
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "coverage", "run", f"--data-file={data}", *options),
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'tests'}", *left_out),
            *(f"tests/{test}" for test in tests),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == ran.returncode, ran.stdout + ran.stderr
    return data


def handlers(path: Path) -> Iterator[ast.ExceptHandler]:
    """Yield every `except` of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            yield node


def test_every_branch_of_the_core_is_taken(tmp_path: Path, proof: Callable[[int, int], None]) -> None:
    """Each condition that decides was true once and false once."""
    data = measured(tmp_path, DECIDES, "--branch", "--source=falcon_rm.core")
    found = Coverage(data_file=str(data), branch=True)
    found.load()
    branches, missed = 0, []
    for path in sorted((PACKAGE / "core").glob("*.py")):
        result = found._analyze(str(path))
        branches += result.numbers.n_branches
        arcs = {line: sorted(targets) for line, targets in result.missing_branch_arcs().items()}
        missed += [f"{path.name}: {lines}" for lines in (sorted(result.missing), arcs) if lines]
    assert [] == missed
    proof(branches, branches)


def test_every_except_is_entered(tmp_path: Path, proof: Callable[[int, int], None]) -> None:
    """Each error that is caught by clouds, observe, apply and loop was raised there by a test."""
    data = CoverageData(str(measured(tmp_path, TOUCHES, "--source=falcon_rm")))
    data.read()
    clauses, missed = 0, []
    for path in HANDLES:
        reached = data.lines(str(path)) or ()
        for handler in handlers(path):
            clauses += 1
            if handler.body[0].lineno not in reached:
                missed.append(f"{path.relative_to(ROOT)}:{handler.lineno} {ast.unparse(handler).splitlines()[0]}")
    assert [] == missed
    proof(clauses, clauses - len(missed))
