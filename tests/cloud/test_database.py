"""The URL of a database: what it may hold, and that it keeps its password."""

import pytest

from falcon_rm.cloud.database import Address, parse_url


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
