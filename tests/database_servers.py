"""
The database servers of a run: MariaDB and a real MySQL for the tests that are marked `every_server`, else whichever.

1. FALCON_TEST_DATABASE_URL names the only server. Without it each process starts its own, each kind once, when needed.
2. Where no MySQL is there left_out.py has its say.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import private_mysql
import pytest

GIVEN = "FALCON_TEST_DATABASE_URL"


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", "every_server: runs on MariaDB and on MySQL")


def servers() -> tuple[str, ...]:
    """Return the servers on which a test that is marked runs."""
    return ("given",) if os.environ.get(GIVEN) else private_mysql.SERVERS


def has_mysql() -> bool:
    """Return whether tests may ask for a MySQL."""
    return "mysql" not in servers() or private_mysql.is_there("mysql")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let what is marked run once a server."""
    if "database_server" in metafunc.fixturenames and metafunc.definition.get_closest_marker("every_server"):
        metafunc.parametrize("database_server", servers(), indirect=True)


def wants(item: pytest.Item) -> object:
    """Return the server that a test runs on; None if it does not matter."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("database_server") if callspec else None


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
