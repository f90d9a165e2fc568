"""A process of `falcon-rm run` may end at any moment, asked or not: nothing is lost and nothing is done twice."""

import random
import signal
import time
from collections.abc import Iterator

import demonstration
import history_check
import pytest
from processes import V6E, V7X, Site, add_clusters, people, site, told, until

from falcon_rm.cloud.database import Database, parse_url

KILLS = 12
SLOW = {"FALCON_CALL_TIMEOUT": "60s", "FALCON_CREATE_TIMEOUT": "60s"}
"""Calls that would keep a process far longer than it may take to end."""

ONE_JOB = (
    "{id: one, actor: ann, spec: {image: i, command: 'true', device_type: v6e, topology: 2x2, supply_mode: on-demand}}"
)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that these tests share."""
    with site(tmp_path_factory.mktemp("site")) as opened:
        yield opened


@pytest.fixture
def url(controller_url: str) -> str:
    """The URL of a database that knows the site's clusters."""
    add_clusters(controller_url)
    return controller_url


def is_quiet(rows: Database, there: Site) -> bool:
    """Return whether every job has ended and nothing of ours is left in the cloud."""
    return demonstration.is_over(demonstration.states(rows)) and not there.cloud.leftovers()


def finish(there: Site, url: str) -> dict[str, str]:
    """Run one more process until all is quiet; return how the jobs ended, if all the books agree."""
    rows = Database(parse_url(url))
    last = there.begin(url, "run")
    until(lambda: is_quiet(rows, there), 240)
    last.kill(signal.SIGTERM)
    assert 0 == last.wait(10).code
    assert [] == [line for line in last.lines() if line["severity"] == "ERROR"]
    assert [] == history_check.faults(rows, history_of(there, rows))
    states = demonstration.states(rows)
    rows.close()
    return states


def history_of(there: Site, rows: Database) -> dict[str, object]:
    """Return what was made in the cloud by the names of this database: the site's log has those of other tests too."""
    mine = {name for table in ("node_pools", "workloads") for (name,) in rows.rows(f"SELECT name FROM {table}")}
    effects = there.cloud.state()["effects"]
    return {
        "effects": {
            call: {target: times for target, times in targets.items() if target.rpartition("/")[2] in mine}
            for call, targets in effects.items()
        }
    }


def test_idle_process_ends_when_asked(there: Site, url: str) -> None:
    """SIGTERM between two passes ends the process with 0."""
    process = there.begin(url, "run", FALCON_INTERVAL="60s")
    until(process.made_a_pass, 30)
    process.kill(signal.SIGTERM)
    assert 0 == process.wait(10).code
    assert "Stopped" == process.lines()[-1]["message"]


def test_process_ends_within_ten_seconds_whatever_hangs(there: Site, url: str) -> None:
    """SIGTERM in a create or a read that never answers ends the process with 0; the job still runs, once."""
    cloud = there.cloud
    people(url, "submit", "-f", "-", text=ONE_JOB)
    cloud.act("set_fault", call="gke.create_node_pool", when="hang", effect=True, under=V6E)
    creates = there.begin(url, "run", **SLOW)
    until(lambda: told(cloud.state(), "effects", "gke.create_node_pool"), 30)
    cloud.act("set_fault", call="kube.*", when="hang", times=None, under=V7X)
    before = told(cloud.state(), "calls", "kube.")
    reads = there.begin(url, "run", **SLOW)
    until(lambda: told(cloud.state(), "calls", "kube.") >= before + 2, 30)
    asked = time.monotonic()
    for process in (creates, reads):
        process.kill(signal.SIGTERM)
    assert [0, 0] == [process.wait(12).code for process in (creates, reads)]
    assert time.monotonic() - asked < 10
    cloud.act("clear_faults")
    assert {"one": "Succeeded"} == finish(there, url)


def strike(there: Site, url: str, chance: random.Random) -> None:
    """Start a process and kill it: after one to three side effects, or after up to thirty calls; at last when idle."""
    log, most = chance.choice((("effects", 3), ("calls", 30)))
    enough = told(there.cloud.state(), log, "") + chance.randint(1, most)
    process = there.begin(url, "run")
    late = time.monotonic() + 1.5
    until(lambda: told(there.cloud.state(), log, "") >= enough or time.monotonic() > late, 10)
    process.kill()
    assert -signal.SIGKILL == process.wait(5).code


def test_killed_again_and_again(there: Site, url: str) -> None:
    """Kill -9 a dozen times while jobs arrive: each ends well, ran once, and its events are its path (P84, P99)."""
    chance = random.Random(12)
    waiting = [path for path in demonstration.submissions() if path.name < "07" or path.name.startswith("10")]
    for _ in range(KILLS):
        if waiting:
            people(url, "submit", "-f", str(waiting.pop(0)))
        strike(there, url, chance)
    assert {"Succeeded"} == set(finish(there, url).values())
