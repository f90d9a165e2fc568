"""Cloud SQL without a password, by a stand-in for Google's connector; and that nothing of it is loaded unasked."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest

from falcon_rm.cloud import cloudsql
from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.ports import StoreDown

INSTANCE = "tpu-service-473302:us-central1:falcon"
URL = f"mysql://cluster-controller@localhost/falcon?cloud_sql={INSTANCE}"
STAND_IN = """
from google.cloud.sql.connector import exceptions

made, asked, answer = [], [], None


class Connector:
    def __init__(self, **options):
        made.append(options)

    def connect(self, instance, driver, **options):
        asked.append((instance, driver, options))
        return answer(options)
"""
EXCEPTIONS = '''
class CloudSQLIPTypeError(Exception):
    """As Google's: of no family."""
'''
HIDDEN = f"""
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.endswith("sql.connector") else find(name, package)
from falcon_rm.cli import build, commands
code = commands.main(["status"], standalone_mode=False, obj=build({{"FALCON_DATABASE_URL": "{URL}"}}))
print(code, "falcon_rm.cloud.cloudsql" not in sys.modules)
"""
PLAIN = """
import sys, falcon_rm.cloud.store
print([name for name in sys.modules if "cloudsql" in name or "cloud.sql" in name])
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module that the extra would install; its `answer` says what a connection is."""
    package = tmp_path / "google" / "cloud" / "sql" / "connector"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN, encoding="utf-8")
    (package / "exceptions.py").write_text(EXCEPTIONS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    cloudsql._connector.cache_clear()
    from google.cloud.sql import connector

    yield connector
    cloudsql._connector.cache_clear()
    for name in [name for name in sys.modules if name.startswith("google.cloud.sql")]:
        del sys.modules[name]


def answering(url: str) -> Callable[[dict[str, Any]], object]:
    """Return a connector's answer: a connection to this server, whoever asks."""
    at = parse_url(url)

    def answer(options: dict[str, Any]) -> object:
        own = {key: value for key, value in options.items() if key not in ("enable_iam_auth", "ip_type", "timeout")}
        where = {"host": at.host, "port": at.port, "unix_socket": at.unix_socket, "password": at.password}
        return pymysql.connect(**{**own, **where, "user": at.user, "database": at.database})

    return answer


def test_each_database_connects_anew_by_one_connector(stand_in: Any, database: str) -> None:
    """No password is handed on; the session is set up as on any other connection."""
    stand_in.answer = answering(database)
    for _ in range(2):
        opened = Database(parse_url(URL, "not this"))
        assert (("+00:00", 5),) == opened.rows("SELECT @@session.time_zone, @@session.innodb_lock_wait_timeout")
        opened.close()
    assert [{"refresh_strategy": "lazy"}] == stand_in.made
    (instance, driver, options), again = stand_in.asked
    assert (INSTANCE, "pymysql", options) == (instance, driver, again[2])
    assert ("cluster-controller", "falcon") == (options["user"], options["database"])
    assert (True, "private", 8) == (options["enable_iam_auth"], options["ip_type"], options["timeout"])
    assert "password" not in options


def raises(error: Exception) -> Callable[[object], object]:
    """Return an answer that is an error."""

    def answer(_: object) -> object:
        raise error

    return answer


def test_what_goes_wrong_is_the_databases_trouble(stand_in: Any) -> None:
    """The connector's own errors, the network's and the server's all say which instance, or what the server said."""
    own = stand_in.exceptions.CloudSQLIPTypeError("no private address")
    refused = pymysql.err.OperationalError(1045, "Access denied for user 'cluster-controller'")
    told = []
    for error in (own, ConnectionRefusedError("refused"), TimeoutError(), refused):
        stand_in.answer = raises(error)
        with pytest.raises(StoreDown) as caught:
            Database(parse_url(URL)).rows("SELECT 1")
        told.append(str(caught.value))
    expected = ["no private address", "refused", "TimeoutError"]
    assert [*(f"2003: Cloud SQL {INSTANCE}: {text}" for text in expected), f"1045: {refused.args[1]}"] == told


def test_a_connector_that_never_answers(stand_in: Any) -> None:
    """It is given up after the time that every call has."""
    released = SimpleNamespace(at=time.monotonic() + 5)

    def hang(_: object) -> object:
        while time.monotonic() < released.at:
            time.sleep(0.01)
        raise ConnectionError

    stand_in.answer = hang
    began = time.monotonic()
    with pytest.raises(StoreDown, match=r"no answer within 0\.2 s"):
        Database(parse_url(URL), timeout=0.2).rows("SELECT 1")
    assert time.monotonic() - began < 4
    released.at = 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("cloud_sql=falcon", "cloud_sql must be PROJECT:REGION:NAME"),
        (f"cloud_sql={INSTANCE}&cloud_sql_ip=any", "cloud_sql_ip must be private, public, psc"),
        ("cloudsql=x", "unknown option cloudsql; allowed: unix_socket, ssl_ca, ssl_cert, ssl_key, cloud_sql"),
    ],
)
def test_options_that_are_none(options: str, told: str) -> None:
    """The message names what is allowed."""
    with pytest.raises(ValueError, match=told):
        parse_url(f"mysql://falcon@localhost/falcon?{options}")


def test_the_socket_of_the_auth_proxy() -> None:
    """A path with an instance's name is a socket like any other."""
    at = parse_url(f"mysql://falcon@localhost/falcon?unix_socket=/cloudsql/{INSTANCE}")
    assert (f"/cloudsql/{INSTANCE}", None) == (at.unix_socket, at.cloud_sql)


def test_without_the_extra() -> None:
    """A URL that asks for it stops the command at once with what to install; one that does not loads nothing of it."""
    ended = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True, timeout=60)
    assert ("1 False\n", f"error: FALCON_DATABASE_URL: {cloudsql.MISSING}\n") == (ended.stdout, ended.stderr)
    ended = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True, timeout=60)
    assert "[]\n" == ended.stdout
