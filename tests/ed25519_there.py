"""
MariaDB's plugin for the tests that are marked `ed25519`: where it is not there they are left out as a whole, and the
run says so first and last. Where CI is set they stay, and fail.
"""

import os

import pytest
import unpacked_plugin

HOW = "hack/unpacked_plugin.py gets it"


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "ed25519: runs a MariaDB with its plugin for ed25519")


def missing() -> bool:
    """Return whether its tests have to be left out."""
    return not os.environ.get("CI") and unpacked_plugin.there() is None


def pytest_report_header() -> list[str]:
    """Say first what is left out."""
    return [f"WITHOUT ED25519: its tests are left out; {HOW}"] if missing() else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs it if it is not there."""
    if missing():
        left = [item for item in items if item.get_closest_marker("ed25519")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say last that something was left out."""
    if missing():
        terminalreporter.section("WITHOUT ED25519")
        terminalreporter.write_line(f"the tests of passwords by ed25519 were left out; {HOW}")
