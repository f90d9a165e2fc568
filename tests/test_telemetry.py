"""The log: its keys, its levels, its secrets."""

import io
import json
import logging
from typing import Any

import pytest

from falcon_rm.core.actions import Change, Note
from falcon_rm.telemetry import PassLog, configure, log, redact

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
        assert line.pop("timestamp").endswith("Z")
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
