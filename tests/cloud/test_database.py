"""The URL of a database: what it may hold, and that it keeps its password; what the client library lacks."""

import socket
import sys
import threading
from pathlib import Path

import pytest

from falcon_rm.cloud.database import Address, Database, parse_url
from falcon_rm.ports import StoreDown


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("mysql://u@h/d", Address("u", "d", "h")),
        ("mysql://u:p%40ss%2F@h:3307/d", Address("u", "d", "h", 3307, "p@ss/")),
        ("mysql://u:p@[::1]:3307/d", Address("u", "d", "::1", 3307, "p")),
        ("mysql://u@localhost/d?unix_socket=/run/my%20sock", Address("u", "d", unix_socket="/run/my sock")),
        (
            "mysql://u@h/d?ssl_ca=/a&ssl_cert=/b&ssl_key=/c",
            Address("u", "d", "h", ssl_ca="/a", ssl_cert="/b", ssl_key="/c"),
        ),
    ],
)
def test_url(url: str, address: Address) -> None:
    """Each part of a URL has its place."""
    assert address == parse_url(url)


def test_password_beside_the_url() -> None:
    """A password that is given apart stands above the URL's."""
    assert Address("u", "d", "h", password="other") == parse_url("mysql://u:p@h/d", "other")


@pytest.mark.parametrize(
    "url",
    [
        "", "mysql://", "mysql://h/d", "mysql://u:hunter2@h", "postgres://u:hunter2@h/d", "mysql://u:hunter2@h:x/d",
        "mysql://u:hunter2@h:99999/d", "mysql://u:hunter2@h/d?colour=red", "mysql://u:hunter2@[h/d",
    ],
)  # fmt: skip
def test_no_url(url: str) -> None:
    """What is no URL of a database is refused without repeating its password."""
    with pytest.raises(ValueError) as caught:
        parse_url(url)
    assert "hunter2" not in str(caught.value)


def test_password_is_never_shown() -> None:
    """An address may be printed."""
    assert "hunter2" not in repr(parse_url("mysql://u:hunter2@h/d"))


GREETING = b"\x0a5.5.5-10.11-MariaDB\0" + bytes(4) + b"12345678\0" + b"\x00\x82\x21\x02\x00\x08\x00\x15" + bytes(10) + (
    b"123456789012\0mysql_native_password\0"
)  # fmt: skip
"""A MariaDB's first packet."""

SWITCH = b"\xfeclient_ed25519\0" + b"s" * 32
"""Its wish for a password by ed25519."""


def asking_for_ed25519(listener: socket.socket) -> None:
    """Be a MariaDB server to one client whose user's password goes by ed25519."""
    client, _ = listener.accept()
    with client:
        client.sendall(len(GREETING).to_bytes(3, "little") + b"\0" + GREETING)
        client.recv(4096)
        client.sendall(len(SWITCH).to_bytes(3, "little") + b"\x02" + SWITCH)
        client.recv(4096)


def test_a_way_with_passwords_that_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PyNaCl a user by ed25519 is told what to install: the database counts as down, nothing else is raised."""
    monkeypatch.setitem(sys.modules, "nacl", None)
    monkeypatch.setattr("pymysql._auth._nacl_bindings", False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=asking_for_ed25519, args=(listener,))
        server.start()
        database = Database(Address("u", "d", "127.0.0.1", listener.getsockname()[1], "hunter2"), timeout=5)
        with pytest.raises(StoreDown, match=r"falcon-rm\[ed25519\]") as caught:
            database.rows("SELECT 1")
        server.join(10)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("text", "why"), [(None, "No such file"), ("no certificate", "no certificate")])
def test_a_certificate_that_cannot_be_used(tmp_path: Path, text: str | None, why: str) -> None:
    """A file for TLS that is not there, or holds none, is named: the database counts as down."""
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    database = Database(Address("u", "d", "127.0.0.1", 1, "hunter2", ssl_ca=str(file)), timeout=1)
    with pytest.raises(StoreDown, match=f"^a file cannot be used, ssl_ca {file}: .*{why}"):
        database.rows("SELECT 1")
