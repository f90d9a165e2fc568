"""
What some tests need and not every machine has: where it is missing they are left out as a whole.

1. The run says so first and last, with their number and how to get it. Where CI is set they stay, and fail.
2. Under workers each leaves out the same; whoever reports takes the numbers over.
"""

import os
from collections.abc import Callable

import database_servers
import kube_table
import private_prometheus
import pytest
import unpacked_plugin
from attrs import frozen

NUMBERS = pytest.StashKey[dict[str, int]]()
OUTPUT = "left out"


@frozen
class Piece:
    """Something that may be missing, how to get it, and which tests need it."""

    what: str
    how: str
    is_there: Callable[[], bool]
    is_wanted: Callable[[pytest.Item], bool]

    @property
    def missing(self) -> bool:
        """Whether its tests have to be left out."""
        return not os.environ.get("CI") and not self.is_there()


def marked(mark: str) -> Callable[[pytest.Item], bool]:
    """Return what tells whether a test has a mark."""
    return lambda item: item.get_closest_marker(mark) is not None


PIECES = (
    Piece(
        "a MySQL server",
        "hack/mysql --server mysql --get gets one",
        database_servers.has_mysql,
        lambda item: database_servers.wants(item) == "mysql",
    ),
    Piece(
        "a real Kubernetes control plane",
        "hack/kube build builds one",
        kube_table.has_real,
        lambda item: kube_table.wants(item) == "real",
    ),
    Piece("a Prometheus", "hack/telemetry --get gets one", private_prometheus.is_there, marked("prometheus")),
    Piece(
        "MariaDB's plugin for ed25519",
        "hack/unpacked_plugin.py gets it",
        lambda: unpacked_plugin.there() is not None,
        marked("ed25519"),
    ),
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marks known."""
    config.stash[NUMBERS] = {}
    config.addinivalue_line("markers", "prometheus: runs promtool or a Prometheus")
    config.addinivalue_line("markers", "ed25519: runs a MariaDB with its plugin for ed25519")


def pytest_report_header() -> list[str]:
    """Say first what is left out."""
    return [f"WITHOUT {piece.what.upper()}: its tests are left out; {piece.how}" for piece in PIECES if piece.missing]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a piece that is not there."""
    for piece in PIECES:
        if piece.missing:
            left = [item for item in items if piece.is_wanted(item)]
            config.stash[NUMBERS][piece.what] = len(left)
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if item not in left]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over how many a worker left out."""
    config, output = getattr(node, "config"), getattr(node, "workeroutput", {})  # noqa: B009 (xdist has no types)
    config.stash[NUMBERS].update(output.get(OUTPUT, {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell how many were left out to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[OUTPUT] = session.config.stash[NUMBERS]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say last what was left out."""
    for piece in PIECES:
        if number := config.stash[NUMBERS].get(piece.what, 0):
            terminalreporter.section(f"WITHOUT {piece.what.upper()}")
            terminalreporter.write_line(f"{number} tests were left out for want of {piece.what}; {piece.how}")
