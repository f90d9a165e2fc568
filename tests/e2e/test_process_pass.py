"""One pass as a process: what `plan --dry-run` leaves alone, and what the exit codes of `run-once` and `plan` say."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import demonstration
import pytest
from processes import COMMAND, V6E, V7X, Site, add_clusters, environment, people, site, told, until

from falcon_rm.cloud.database import Database, parse_url

FOREVER = {"seconds": None}
GONE = {"code": "NOT_FOUND", "message": "Not found"}
CPU = [
    {"id": f"cpu-{number}", "actor": "ann", "spec": {"image": "i", "command": "true", "device_type": "cpu"}}
    for number in range(5)
]
Rows = dict[str, tuple[tuple[object, ...], ...]]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site that these tests share."""
    with site(tmp_path_factory.mktemp("site")) as opened:
        yield opened


@pytest.fixture
def url(controller_url: str, there: Site) -> Iterator[str]:
    """The URL of a database that knows the site's clusters, nothing amiss in the cloud before and after."""
    add_clusters(controller_url)
    yield controller_url
    there.cloud.act("clear_faults")


@pytest.fixture
def rows(database: str) -> Iterator[Database]:
    """The same database, to look at and to break."""
    opened = Database(parse_url(database))
    yield opened
    opened.close()


def everything(rows: Database) -> Rows:
    """Return all rows of all tables."""
    tables = [str(name) for (name,) in rows.rows("SHOW TABLES")]
    return {name: tuple(sorted(rows.rows(f"SELECT * FROM {name}"), key=repr)) for name in tables}


def writing_calls(there: Site) -> dict[str, int]:
    """Return how often each call came that is to change something, refused ones too."""
    calls = there.cloud.state()["calls"]
    return {name: sum(targets.values()) for name, targets in calls.items() if "create" in name or "delete" in name}


def test_plan_writes_nothing(there: Site, url: str, rows: Database) -> None:
    """
    A plan changes no row and makes no writing call; its JSON has the same bytes whatever the hash seed.

    The world is one in which much is to be done: new jobs, jobs to be claimed, a pool that is not ours, a cluster that
    cannot be read.
    """
    first, *others = (path for path in demonstration.submissions() if path.name < "07" or path.name > "10")
    people(url, "submit", "-f", str(first))
    for path in others:
        people(url, "submit", "-f", str(path))
    assert 0 == there.falcon(url, "run-once").code
    people(url, "submit", "-f", "-", text=json.dumps(CPU))
    stranger = {"name": "falcon-stranger", "initialNodeCount": 1, "config": {"machineType": "e2-standard-4"}}
    there.cloud.act("create_pool", path=V6E, node_pool=stranger)
    there.cloud.act("set_fault", call="gke.get_cluster", times=None, under=V7X, error=GONE)
    before, writes = everything(rows), writing_calls(there)

    texts = [there.falcon(url, "plan", "--dry-run", *more) for more in ((), ("--detailed-exitcode",))]
    plans = [
        subprocess.Popen(
            [*COMMAND, "plan", "--dry-run", "-o", "json", "--detailed-exitcode"],
            env=environment(there.cloud, url, PYTHONHASHSEED=seed),
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    answers = [plan.communicate(timeout=60)[0] for plan in plans]

    assert [2, 2] == [plan.returncode for plan in plans]
    assert answers[0] == answers[1]
    summary = json.loads(answers[0])["summary"]
    assert summary["change"] > 5
    assert summary["unknown"] > 0
    assert [0, 2] == [text.code for text in texts]
    assert texts[0].out.splitlines()[-1].startswith("Plan: ")
    assert "Left alone in tpuv6e: 1 falcon-* node pools that are not ours." in texts[0].out
    assert before == everything(rows)
    assert writes == writing_calls(there)


def test_plan_says_by_its_exit_code_what_there_is_to_do(there: Site, url: str, tmp_path: Path) -> None:
    """Plan ends with 0 at rest, 1 if a cluster cannot be read or the database is away, 64 if it is asked wrongly."""
    assert 0 == there.falcon(url, "run-once").code
    assert 0 == there.falcon(url, "plan", "--dry-run", "--detailed-exitcode").code
    there.cloud.act("set_fault", call="gke.get_cluster", times=None, under=V7X, error=GONE)
    there.falcon(url, "run-once")
    assert 1 == there.falcon(url, "plan", "--dry-run", "--detailed-exitcode").code
    away = there.falcon(f"mysql://root@localhost/x?unix_socket={tmp_path}/none", "plan", "--detailed-exitcode")
    assert (1, "", 1) == (away.code, away.out, away.err.count("\n"))
    assert 64 == there.falcon(url, "plan", "--detailed").code


def test_run_once_says_what_could_not_be_read(there: Site, url: str, rows: Database, tmp_path: Path) -> None:
    """Run-once ends with 0 at rest, 1 if a cluster or the database cannot be read; other clusters' jobs go on."""
    assert 0 == there.falcon(url, "run-once").code
    there.cloud.act(
        "set_fault", call="kube.list.jobs", times=None, under=V7X, error={"status": 503, "reason": "", "message": "no"}
    )
    people(url, "submit", "-f", "-", text=json.dumps(CPU[:1]))
    ends = [there.falcon(url, "run-once").code for _ in range(2)]
    assert [1, 1] == ends
    assert {"cpu-0": "Pending/Dispatching"} == demonstration.states(rows)
    away = there.falcon(f"mysql://root@localhost/x?unix_socket={tmp_path}/none", "run-once")
    assert (1, "", 1) == (away.code, away.out, away.err.count("\n"))


def test_run_once_holds_the_brake(there: Site, url: str, rows: Database) -> None:
    """With every row of `job` gone run-once deletes nothing and ends with 3, until it is told to go on (P26)."""
    for job in CPU:
        there.cloud.act("set_script", job_id=job["id"], does=FOREVER)
    people(url, "submit", "-f", "-", text=json.dumps(CPU))

    def run() -> bool:
        assert 0 == there.falcon(url, "run-once").code
        return {"Running"} == set(demonstration.states(rows).values())

    until(run, 60)
    rows.rows("DELETE FROM job")
    deletes = told(there.cloud.state(), "calls", "kube.delete.")
    held = there.falcon(url, "run-once")
    assert 3 == held.code
    assert "5 orphaned Jobs (limit 3)" in json.loads(held.err.splitlines()[-1])["err"]
    assert deletes == told(there.cloud.state(), "calls", "kube.delete.")
    assert 0 == there.falcon(url, "run-once", "--allow-mass-delete").code
    assert deletes + 5 == told(there.cloud.state(), "effects", "kube.delete.")


def test_run_once_does_what_was_reviewed_or_nothing(there: Site, url: str, rows: Database) -> None:
    """A checksum holds from one process to the next, until something else is to be done: then nothing is, and 4."""
    people(url, "submit", "-f", "-", text=json.dumps(CPU[:2]))
    seen = [json.loads(there.falcon(url, "plan", "-o", "json", PYTHONHASHSEED=seed).out) for seed in ("1", "2")]
    assert seen[0] == seen[1]
    checksum = seen[0]["checksum"]
    people(url, "submit", "-f", "-", text=json.dumps(CPU[2:3]))
    before, writes = everything(rows), writing_calls(there)
    refused = there.falcon(url, "run-once", "--plan", checksum)
    assert (4, "", 1) == (refused.code, refused.out, refused.err.count("\n"))
    assert refused.err.startswith("error: nothing was done: the plan is now ")
    assert (before, writes) == (everything(rows), writing_calls(there))
    now = refused.err.partition("the plan is now ")[2].partition(",")[0]
    assert 0 == there.falcon(url, "run-once", "--plan", now).code
    assert {"Pending/Waiting"} == set(demonstration.states(rows).values())
