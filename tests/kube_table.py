"""
The table of the Kubernetes contract: methods, cases, doors.

1. FALCON_TEST_KUBE_DOORS names the doors. Without it they are all three; where the real programs are not built,
   left_out.py has its say.
2. A run in which a door ran fewer cases of a method than another fails. Workers hand their counts to who reports.
"""

import os
from collections import Counter

import pytest
from control_plane import build

DOORS = ("world", "cloudsim", "real")
CHOSEN = "FALCON_TEST_KUBE_DOORS"
REAL_ONLY = "test_real_"
ALL = "all"
RAN: dict[str, Counter[str]] = {}
"""Door -> how many cases used a method of it."""

OUTPUT = "kube contract"


def chosen() -> tuple[str, ...]:
    """Return the doors of this run."""
    named = os.environ.get(CHOSEN)
    return tuple(named.split(",")) if named else DOORS


def has_real() -> bool:
    """Return whether tests may ask for the real control plane: it is built, or whoever names the doors says so."""
    return bool(os.environ.get(CHOSEN)) or build.are_there()


def count(door: str, methods: set[str]) -> None:
    """Count a case, once in all and once for each method it used."""
    RAN.setdefault(door, Counter()).update({*methods, ALL})


def short(ran: dict[str, Counter[str]]) -> list[str]:
    """Return what is wrong with the counts: where a door ran fewer cases than another."""
    methods = sorted({method for counts in ran.values() for method in counts})
    most = {method: max(counts[method] for counts in ran.values()) for method in methods}
    return [
        f"door {door} ran {counts[method]} of {most[method]} cases: {method}"
        for door, counts in ran.items()
        for method in methods
        if counts[method] < most[method]
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a door that was not chosen."""
    doors = chosen()
    left = [item for item in items if wants(item) not in (None, *doors)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def wants(item: pytest.Item) -> str | None:
    """Return the door that a test needs; None if it needs none."""
    if item.path.name.startswith(REAL_ONLY):
        return "real"
    callspec = getattr(item, "callspec", None)
    door = callspec.params.get("door") if callspec else None
    return door if door in DOORS else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over what a worker counted."""
    output = getattr(node, "workeroutput", {})
    for door, counts in output.get(OUTPUT, {}).items():
        RAN.setdefault(door, Counter()).update(counts)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts to who reports; there, fail a run in which a door ran fewer cases."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[OUTPUT] = {door: dict(counts) for door, counts in RAN.items()}
    elif short(RAN) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    doors = [name for name in DOORS if name in RAN]
    if doors:
        terminalreporter.section("Kubernetes contract: cases by method and door")
        for method in [*sorted({method for counts in RAN.values() for method in counts} - {ALL}), ALL]:
            terminalreporter.write_line(f"{method:<28}" + "".join(f"{RAN[name][method]:>10}" for name in doors))
        terminalreporter.write_line(f"{'':<28}" + "".join(f"{name:>10}" for name in doors))
        for line in short(RAN):
            terminalreporter.write_line(f"FAILED: {line}")
