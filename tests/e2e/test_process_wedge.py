"""What never answers: a cluster, a name server, a call of the main thread; `falcon-rm` lives with it (proof.md R13)."""

import json
import signal
from collections.abc import Iterator
from typing import Any

import demonstration
import pytest
from processes import V7X, Process, Site, add_clusters, people, site, until
from test_process_probes import free_address, get

from falcon_rm.cloud.database import Database, parse_url

JOB = {"id": "one", "actor": "ann", "spec": {"image": "i", "command": "true", "device_type": "cpu"}}
PASS_SECONDS = 6.0
PATIENT = {"FALCON_CALL_TIMEOUT": "60s", "FALCON_PASS_TIMEOUT": f"{PASS_SECONDS}s"}
"""Calls that would take far longer than the pass may."""

WATCHED = {"FALCON_INTERVAL": "1s", "FALCON_PASS_TIMEOUT": "1s", "FALCON_CREATE_TIMEOUT": "0.5s"}
LIVE_LIMIT = "limit 3 s"
"""Three intervals, longer than any pass."""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that these tests share."""
    with site(tmp_path_factory.mktemp("site")) as opened:
        yield opened


@pytest.fixture
def url(controller_url: str, there: Site) -> Iterator[str]:
    """The URL of a database that knows the site's clusters; nothing hangs before and after."""
    add_clusters(controller_url)
    yield controller_url
    there.cloud.act("clear_faults")


@pytest.mark.parametrize("silent", ["gke.*", "kube.*", "the name server"])
def test_others_start_while_one_cluster_hangs(there: Site, url: str, silent: str) -> None:
    """In the very pass in which a cluster never answers another one's job starts; the pass keeps its deadline."""
    people(url, "submit", "-f", "-", text=json.dumps(JOB))
    for _ in range(2):
        assert 0 == there.falcon(url, "run-once").code
    strike: dict[str, Any] = {}
    if silent == "the name server":
        people(url, "cluster", "set", "tpuv7x", "--endpoint", "dns")
        strike = {"mute": "localhost"}
    else:
        there.cloud.act("set_fault", call=silent, when="hang", times=None, under=V7X)
    hanging = there.begin_struck(strike, url, "run-once", **PATIENT)
    assert 1 == hanging.wait(30).code
    (ended,) = (line for line in hanging.lines() if line["message"] == "Finished pass")
    assert ["tpuv7x"] == ended["unread"]
    assert ended["durationSeconds"] < PASS_SECONDS
    rows = Database(parse_url(url))
    assert {"one": "Pending/Dispatching"} == demonstration.states(rows)
    assert 1 == len(rows.rows("SELECT uid FROM workloads WHERE uid IS NOT NULL"))
    rows.close()


def test_wedged_process_is_told_dead_and_ends_when_asked(there: Site, url: str) -> None:
    """A pass that never ends makes `/livez` red after three intervals; SIGTERM ends the process all the same."""
    address = free_address()
    wedged = there.begin_struck({"block": "SELECT queue_slots"}, url, "run", FALCON_METRICS_ADDRESS=address, **WATCHED)
    until(wedged.struck, 30)
    until(lambda: get(address, "/livez")[0] == 503, 30)
    assert LIVE_LIMIT in get(address, "/livez")[1]
    terminate(wedged)


def test_name_of_the_database_is_never_answered(there: Site, url: str) -> None:
    """SIGTERM ends a process that waits for a name server, too."""
    waiting = there.begin_struck({"mute": "db.example"}, "mysql://root@db.example/falcon", "run")
    until(waiting.struck, 30)
    terminate(waiting)


def terminate(process: Process) -> None:
    """Ask a process to end, which it does within ten seconds."""
    process.kill(signal.SIGTERM)
    assert 0 == process.wait(10).code


def test_outage_restarts_nobody(there: Site, url: str, database: str) -> None:
    """While the database is away `/livez` is green and `/readyz` red, for longer than any wedge would be allowed."""
    address = free_address()
    process = there.begin(url, "run", FALCON_METRICS_ADDRESS=address, **WATCHED)
    until(lambda: get(address, "/readyz")[0] == 200, 30)
    at = parse_url(database)
    administrator = Database(at)
    administrator.rows(f"DROP DATABASE {at.database}")
    until(lambda: sum(line["severity"] == "ERROR" for line in process.lines()) > 5, 60)
    assert (200, 503) == (get(address, "/livez")[0], get(address, "/readyz")[0])
    administrator.rows(f"CREATE DATABASE {at.database}")
    administrator.close()
    terminate(process)
