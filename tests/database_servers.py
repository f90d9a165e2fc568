"""
The database servers of a run: MariaDB and a real MySQL for the tests that are marked `every_server`, else whichever.

1. FALCON_TEST_DATABASE_URL names the only server. Without it each process starts its own, each kind once, when needed.
2. Where no MySQL is there its tests are left out as a whole, and the run says so first and last. Where CI is set they
   stay, and fail.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import private_mysql
import pytest

GIVEN = "FALCON_TEST_DATABASE_URL"
HOW = "hack/mysql --server mysql --get gets one"
LEFT_OUT = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "every_server: runs on MariaDB and on MySQL")


def servers() -> tuple[str, ...]:
    """Return the servers on which a test that is marked runs."""
    return ("given",) if os.environ.get(GIVEN) else private_mysql.SERVERS


def mysql_missing() -> bool:
    """Return whether MySQL's tests have to be left out."""
    return "mysql" in servers() and not os.environ.get("CI") and not private_mysql.is_there("mysql")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let what is marked run once a server."""
    if "database_server" in metafunc.fixturenames and metafunc.definition.get_closest_marker("every_server"):
        metafunc.parametrize("database_server", servers(), indirect=True)


def pytest_report_header() -> list[str]:
    """Say first what is left out."""
    return [f"WITHOUT MYSQL: its tests are left out; {HOW}"] if mysql_missing() else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a server that is not there."""
    if not mysql_missing():
        return
    left = [item for item in items if isinstance(item, pytest.Function) and wants(item) == "mysql"]
    config.stash[LEFT_OUT] = len(left)
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def wants(item: pytest.Function) -> object:
    """Return the server that a test runs on; None if it does not matter."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("database_server") if callspec else None


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over how many a worker left out."""
    config, output = getattr(node, "config"), getattr(node, "workeroutput", {})  # noqa: B009 (xdist has no types)
    config.stash[LEFT_OUT] = output.get("left out", 0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell how many were left out to the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left out"] = session.config.stash.get(LEFT_OUT, 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say last what was left out."""
    if number := config.stash.get(LEFT_OUT, 0):
        terminalreporter.section("WITHOUT MYSQL")
        terminalreporter.write_line(f"{number} tests were left out for want of a MySQL server; {HOW}")


@pytest.fixture(scope="session")
def start_server() -> Iterator[Callable[[str], str]]:
    """Start servers by kind, each once; return the URL of a database on it."""
    with ExitStack() as stack:

        @cache
        def start(kind: str) -> str:
            server = private_mysql.start(kind)
            stack.callback(server.stop)
            return server.url("mysql")

        yield start


@pytest.fixture
def database_server(request: pytest.FixtureRequest) -> str:
    """The kind of server that a test runs on."""
    usual = "mariadb" if private_mysql.is_there("mariadb") or not private_mysql.is_there("mysql") else "mysql"
    return getattr(request, "param", usual)


@pytest.fixture
def database_url(start_server: Callable[[str], str], database_server: str) -> str:
    """The URL of a server's database."""
    return os.environ.get(GIVEN) or start_server(database_server)
