"""The log: its keys, its levels, its secrets."""

import io
import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from falcon_rm.core.actions import Change, Note
from falcon_rm.redaction import redact
from falcon_rm.telemetry import PassLog, configure, log, take_crashes

CHANGE = Change("j", 3, "Pending", "Waiting", "Pending", "Provisioning", "picked", "id-1", "2x2x4")


@pytest.fixture
def stream(kept_log: None) -> io.StringIO:
    """A stream that the log goes to, until the test is over."""
    stream = io.StringIO()
    configure("json", secrets=["hunter2"], stream=stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    """Return the lines that were written, without the time."""
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    for line in found:
        assert line.pop("time").endswith("Z")
    return found


def test_action(stream: io.StringIO) -> None:
    """An action is one line with one spelling a key, the names of actor and cluster looked up."""
    PassLog("p1", {"j": "user-a"}, {"id-1": "c1"}).acted(CHANGE, result="done", seconds=0.01234)
    expected = {
        "severity": "INFO",
        "message": "Changed job",
        "pass": "p1",
        "job": "j",
        "actor": "user-a",
        "cluster": "c1",
        "action": "Change",
        "from": "Pending/Waiting",
        "to": "Pending/Provisioning",
        "reason": "picked",
        "durationSeconds": 0.012,
    }
    assert [expected] == lines(stream)


def test_refused_action(stream: io.StringIO) -> None:
    """What was not done says so, with the other side's words, at the level of what is expected."""
    PassLog("p1").acted(Note("k", "s", "text"), result="busy", seconds=0, err="429 slow down")
    (line,) = lines(stream)
    assert ("Did not act", "busy", "429 slow down", "INFO") == (
        line["message"],
        line["result"],
        line["err"],
        line["severity"],
    )


@pytest.mark.parametrize(
    ("unread", "brake", "severity"), [((), None, "INFO"), (("c2",), None, "WARNING"), (("c2",), "held", "ERROR")]
)
def test_pass(stream: io.StringIO, unread: tuple[str, ...], brake: str | None, severity: str) -> None:
    """A pass is one line: a warning if something was not read, an error if the brake holds."""
    PassLog("p1").ended(actions=2, unread=unread, brake=brake, seconds=1)
    (line,) = lines(stream)
    assert ("Finished pass", severity, brake) == (line["message"], line["severity"], line.get("err"))


def test_secrets_are_blotted_out(stream: io.StringIO) -> None:
    """A secret shows nowhere, neither in our lines nor in those of libraries nor in a traceback."""
    log().info("Told hunter2", err="Authorization: Bearer ya29.abc-def")
    logging.getLogger("library").warning("url mysql://u:%s@h/d", "hunter3")
    try:
        int("hunter2")
    except ValueError:
        log().exception("Failed")
    text = stream.getvalue()
    assert "hunter" not in text
    assert "ya29" not in text
    assert ["INFO", "WARNING", "ERROR"] == [line["severity"] for line in lines(stream)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain: text@host", "plain: text@host"),
        ("mysql://u:p%40w@h:1/d", "mysql://u:***@h:1/d"),
        ("https://h:8443/path", "https://h:8443/path"),
        ("authorization: bearer abc.def-1", "authorization: bearer ***"),
        ("token ya29.A0_b", "token ***"),
        ("mysql://u:p/w@x@h/d?a=b", "mysql://u:***@h/d?a=b"),
        ("mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE", "mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE"),
        ("mysql://u:PASSWORD@2@h/d", "mysql://u:***@h/d"),
        ("Basic dXNlcjpwdw==", "Basic ***"),
        ('{"access_token": "abc.def", "expires_in": 3}', '{"access_token": ***, "expires_in": 3}'),
        ("eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrIn0.c2ln and on", "*** and on"),
        ("password='hunter 2', user='u'", "password=***, user='u'"),
        (
            "Access denied for user 'u'@'h' (using password: YES)",
            "Access denied for user 'u'@'h' (using password: YES)",
        ),
        ("the token of the page", "the token of the page"),
    ],
)
def test_redact(text: str, expected: str) -> None:
    """What looks like a secret is blotted out, what only looks like a colon is not."""
    assert expected == redact(text)


def test_console(stream: io.StringIO) -> None:
    """For people a line starts with its time and message, without JSON."""
    configure("console", stream=stream)
    PassLog("p1").acted(CHANGE, result="done", seconds=0)
    assert "Changed job" in stream.getvalue()
    assert "{" not in stream.getvalue()


def fail() -> None:
    """Raise an error that has another one as its cause, each with a secret."""
    raise RuntimeError("Authorization: Bearer ya29.hunter4") from OSError("mysql://falcon:hunter3@db/falcon")


class Client:
    """Something whose repr gives its secret away."""

    def __repr__(self) -> str:
        return "<Client hunter2>"


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_secrets_in_every_place(log_format: str, kept_log: None) -> None:
    """Nor in lists, objects, their reprs, keys, chained exceptions, and those of libraries, in either form."""
    stream = io.StringIO()
    configure(log_format, secrets=["hunter2"], stream=stream)
    log().info("Told", unread=["hunter2"], more={"hunter2": {"deep": ("hunter2",)}}, client=Client(), token="t=hunter2")
    try:
        fail()
    except RuntimeError:
        log().exception("Failed", client=Client())
        logging.getLogger("library").exception("failed with %s", Client())
    text = stream.getvalue()
    assert "hunter" not in text
    assert 2 == text.count("RuntimeError: Authorization: Bearer ***")


def test_what_nobody_caught(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that ends the process is one line, as bad as can be, without its secrets."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    take_crashes()
    try:
        int("hunter2")
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)
    (line,) = lines(stream)
    assert ("CRITICAL", "Crashed") == (line["severity"], line["message"])
    assert "ValueError: invalid literal" in line["exception"]
    assert "hunter" not in stream.getvalue()


def test_first_keys(stream: io.StringIO) -> None:
    """A line begins with what Cloud Logging lifts: severity, time as RFC 3339, message."""
    log().warning("Two\nlines", err="中文\n")
    (line,) = stream.getvalue().splitlines()
    read = json.loads(line)
    assert ["severity", "time", "message", "err"] == list(read)
    assert datetime.fromisoformat(read["time"]).tzinfo is UTC
    assert "中文" in line
