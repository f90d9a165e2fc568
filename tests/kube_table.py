"""
The table of the Kubernetes contract: methods, cases, doors; and what is left out where there is no real control plane.

1. FALCON_KUBE_DOORS names the doors. Without it they are all three; but where the real programs are not built and CI is
   not set, what needs them is left out as a whole, and the run says so first and last.
2. A run in which a door ran fewer cases of a method than another fails. Workers hand their counts to who reports.
"""

import os
from collections import Counter

import pytest
from control_plane import build

DOORS = ("world", "cloudsim", "real")
CHOSEN = "FALCON_KUBE_DOORS"
REAL_ONLY = "test_real_"
ALL = "all"
HOW = "hack/kube build builds one"
RAN: dict[str, Counter[str]] = {}
"""Door -> how many cases used a method of it."""

LEFT_OUT = pytest.StashKey[int]()
OUTPUT, LEFT_OUTPUT = "kube contract", "kube left out"


def chosen() -> tuple[str, ...]:
    """Return the doors of this run."""
    if named := os.environ.get(CHOSEN):
        return tuple(named.split(","))
    return DOORS[:2] if real_missing() else DOORS


def real_missing() -> bool:
    """Whether what needs the real control plane has to be left out."""
    return not (os.environ.get(CHOSEN) or os.environ.get("CI") or build.are_there())


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


def pytest_report_header() -> list[str]:
    """Say first what is left out."""
    return [f"WITHOUT A KUBERNETES CONTROL PLANE: its tests are left out; {HOW}"] if real_missing() else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a door that is not open."""
    doors = chosen()
    left = [item for item in items if wants(item) not in (None, *doors)]
    if real_missing():
        config.stash[LEFT_OUT] = len(left)
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
    config, output = getattr(node, "config"), getattr(node, "workeroutput", {})  # noqa: B009 (xdist has no types)
    config.stash[LEFT_OUT] = output.get(LEFT_OUTPUT, 0)
    for door, counts in output.get(OUTPUT, {}).items():
        RAN.setdefault(door, Counter()).update(counts)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts to who reports; there, fail a run in which a door ran fewer cases."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[OUTPUT] = {door: dict(counts) for door, counts in RAN.items()}
        output[LEFT_OUTPUT] = session.config.stash.get(LEFT_OUT, 0)
    elif short(RAN) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, and say last what was left out."""
    doors = [name for name in DOORS if name in RAN]
    if doors:
        terminalreporter.section("Kubernetes contract: cases by method and door")
        for method in [*sorted({method for counts in RAN.values() for method in counts} - {ALL}), ALL]:
            terminalreporter.write_line(f"{method:<28}" + "".join(f"{RAN[name][method]:>10}" for name in doors))
        terminalreporter.write_line(f"{'':<28}" + "".join(f"{name:>10}" for name in doors))
        for line in short(RAN):
            terminalreporter.write_line(f"FAILED: {line}")
    if number := config.stash.get(LEFT_OUT, 0):
        terminalreporter.section("WITHOUT A KUBERNETES CONTROL PLANE")
        terminalreporter.write_line(f"{number} tests were left out for want of a real control plane; {HOW}")
