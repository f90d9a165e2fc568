"""A process of `falcon-rm run` at its start: it waits for what comes later, and ends at once for what never will."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from cloudsim.doors_http import HttpDoor, json_answer
from cloudsim.metadata import MetadataServer
from processes import Process, Site, people, site, until


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site without clusters: nothing is asked of its cloud."""
    with site(tmp_path_factory.mktemp("site"), {"clusters": []}) as opened:
        yield opened


def waits_for(process: Process, what: str) -> bool:
    """Return whether it has said that it waits for something."""
    return any(line.get("waitsFor") == what for line in process.lines())


def end(process: Process) -> None:
    """Stop it; it must end well."""
    process.kill(signal.SIGTERM)
    assert 0 == process.wait(10).code


def test_waits_for_the_database(there: Site, controller_url: str, tmp_path: Path) -> None:
    """A database that comes up later is waited for, each try with a warning; then passes begin."""
    parts, late = urlsplit(controller_url), tmp_path / "late.sock"
    socket = parse_qs(parts.query)["unix_socket"][0]
    url = f"mysql://{parts.netloc}{parts.path}?unix_socket={quote(str(late), safe='/')}"
    process = there.begin(url, "run")
    until(lambda: waits_for(process, "the database"), 30)
    late.symlink_to(socket)
    until(process.made_a_pass, 30)
    assert {"WARNING"} == {line["severity"] for line in process.lines() if "waitsFor" in line}
    end(process)


def test_waits_for_the_metadata_server(there: Site, controller_url: str) -> None:
    """So is the metadata server, which a pod may be without for its first seconds; but only for clusters."""
    where = ("--project", "my-project", "--location", "us-central1-a", "--tpu-type", "v6e")
    people(controller_url, "cluster", "add", "c1", *where)
    people(controller_url, "cluster", "set", "c1", "--status", "offline")
    real, is_up = MetadataServer(), threading.Event()
    door = HttpDoor(lambda request: real._handle(request) if is_up.is_set() else json_answer(503, {}))
    address = f"127.0.0.1:{door.port}"
    nowhere = {"GCE_METADATA_HOST": address, "GCE_METADATA_IP": address}
    idle = there.begin(controller_url, "run", **nowhere)
    until(idle.made_a_pass, 30)
    end(idle)
    people(controller_url, "cluster", "set", "c1", "--status", "active")
    process = there.begin(controller_url, "run", **nowhere)
    until(lambda: waits_for(process, "a credential of Google"), 30)
    assert not process.made_a_pass()
    is_up.set()
    until(process.made_a_pass, 30)
    end(process)
    door.stop()
    real.stop()


def test_wait_ends_when_asked(there: Site, tmp_path: Path) -> None:
    """SIGTERM ends a process that waits, with 0."""
    process = there.begin(f"mysql://u@h/d?unix_socket={tmp_path}/none", "run")
    until(lambda: waits_for(process, "the database"), 30)
    end(process)


@pytest.mark.parametrize("command", ["run", "run-once", "plan"])
def test_broken_settings_end_it_at_once(there: Site, command: str) -> None:
    """Every fault stands in the one line, those of the database's URL too, and not one word of the password."""
    wrong = {
        "FALCON_INTERVAL": "soon",
        "FALCON_BACKOFF_BASE": "2h",
        "FALCON_BACKOFF_MAX": "1h",
        "FALCON_LANGUAGE": "en",
    }
    ended = there.falcon("mysql://u:hunter2@h/d?ssl=on", command, **wrong)
    assert (1, "", 1) == (ended.code, ended.out, ended.err.count("\n"))
    told = (
        "FALCON_INTERVAL holds 'soon'",
        "FALCON_BACKOFF_BASE is longer",
        "FALCON_LANGUAGE is no setting",
        "option ssl;",
    )
    assert [] == [text for text in told if text not in ended.err]
    assert "hunter2" not in ended.err


def test_missing_url_is_told_with_the_rest(there: Site) -> None:
    """No URL is a fault like any other."""
    ended = there.falcon("", "run", FALCON_LANG="fr")
    assert (1, 1) == (ended.code, ended.err.count("\n"))
    assert "FALCON_LANG holds 'fr'" in ended.err
    assert "FALCON_DATABASE_URL is not set" in ended.err
