"""Passwords by MariaDB's `ed25519`: the server never gets one, and keeps nothing that would let anybody in."""

from collections.abc import Iterator

import private_mysql
import pytest
import unpacked_plugin
from attrs import evolve
from click.testing import CliRunner

from falcon_rm.cli import build, commands
from falcon_rm.cloud.database import Address, Database, parse_url
from falcon_rm.ports import StoreDown

pytestmark = pytest.mark.ed25519

PASSWORD = "hunter2-ed25519"


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """A user of a private MariaDB who is known by ed25519."""
    plugin = unpacked_plugin.get()
    server = private_mysql.start("mariadb", f"--plugin-dir={plugin}", f"--plugin-load-add={unpacked_plugin.PLUGIN}")
    try:
        root = parse_url(server.url("d"))
        administrator = Database(evolve(root, database="mysql"))
        administrator.rows("CREATE DATABASE d")
        administrator.rows(f"CREATE USER falcon@localhost IDENTIFIED VIA ed25519 USING PASSWORD('{PASSWORD}')")
        administrator.rows("GRANT ALL ON d.* TO falcon@localhost")
        administrator.close()
        yield evolve(root, user="falcon", password=PASSWORD)
    finally:
        server.stop()


def who(address: Address) -> object:
    """Return who the server says we are."""
    database = Database(address, timeout=5)
    try:
        return database.rows("SELECT CURRENT_USER()")[0][0]
    finally:
        database.close()


def test_the_password(address: Address) -> None:
    """The user is let in, the first time and again."""
    assert ["falcon@localhost"] * 2 == [who(address) for _ in range(2)]


@pytest.mark.parametrize("password", ["hunter3", ""])
def test_another_password(address: Address, password: str) -> None:
    """It is refused as what it is, and not told."""
    with pytest.raises(StoreDown, match="1045") as caught:
        who(evolve(address, password=password))
    assert "hunter" not in str(caught.value)


def test_the_tables_are_made_under_it(address: Address) -> None:
    """A command comes in by it, over the unix socket that the URL names."""
    url = f"mysql://{address.user}:{PASSWORD}@localhost/d?unix_socket={address.unix_socket}"
    done = CliRunner().invoke(commands, ["db", "migrate"], obj=build({"FALCON_DATABASE_URL": url}))
    assert (0, False) == (done.exit_code, PASSWORD in done.output), done.output
