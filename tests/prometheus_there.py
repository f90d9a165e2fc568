"""
Prometheus for the tests that are marked `prometheus`: where it is not there they are left out as a whole, and the run
says so first and last. Where CI is set they stay, and fail.
"""

import os

import private_prometheus
import pytest

HOW = "hack/telemetry --get gets one"


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "prometheus: runs promtool or a Prometheus")


def missing() -> bool:
    """Return whether its tests have to be left out."""
    return not os.environ.get("CI") and not private_prometheus.is_there()


def pytest_report_header() -> list[str]:
    """Say first what is left out."""
    return [f"WITHOUT PROMETHEUS: its tests are left out; {HOW}"] if missing() else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs it if it is not there."""
    if missing():
        left = [item for item in items if item.get_closest_marker("prometheus")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say last that something was left out."""
    if missing():
        terminalreporter.section("WITHOUT PROMETHEUS")
        terminalreporter.write_line(f"the tests of rules, board and scrape were left out; {HOW}")
