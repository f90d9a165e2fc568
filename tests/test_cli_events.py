"""The command events on a database server: how far it sees, what it may miss, how it follows and ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from falcon_rm import cli_story
from falcon_rm.cli import build, commands
from falcon_rm.cloud import history
from falcon_rm.cloud.database import Database, parse_url

pytestmark = pytest.mark.usefixtures("kept_log")

Cli = Callable[..., Result]


@pytest.fixture
def cli(controller_url: str) -> Cli:
    """The command line on a new database."""
    app = build({"FALCON_DATABASE_URL": controller_url})
    return lambda *arguments: CliRunner().invoke(commands, ["events", *arguments], obj=app)


@pytest.fixture
def rows(database: str) -> Iterator[Database]:
    """The same database, with two clusters, one with a strange id."""
    opened = Database(parse_url(database))
    for cluster_id, name in (("id-1", "c1"), ("id_%", "odd")):
        opened.rows(
            "INSERT INTO clusters (id, name, project, location, tpu_type) VALUES (%s, %s, 'p', 'l', 'v6e')",
            (cluster_id, name),
        )
    yield opened
    opened.close()


def event(rows: Database, number: int, job_id: str, pool: str | None = None, cluster_id: str = "id-1") -> None:
    """Insert a row of `job_events`."""
    rows.rows(
        "INSERT INTO job_events (id, job_id, at, from_status, to_status, why, cluster_id, pool, attempt)"
        " VALUES (%s, %s, NOW(6), 'Pending', 'Running', 'w', %s, %s, 1)",
        (number, job_id, cluster_id, pool),
    )


def audit(rows: Database, number: int, subject: str, kind: str = "k") -> None:
    """Insert a row of `audit_events`."""
    rows.rows(
        "INSERT INTO audit_events (id, at, kind, subject, text, by_user, by_process)"
        " VALUES (%s, NOW(6), %s, %s, 't', 'u', 'p')",
        (number, kind, subject),
    )


def told(result: Result) -> list[str]:
    """Return what the entries are about, in their order."""
    assert 0 == result.exit_code, result.output
    return [line.split()[1] for line in result.stdout.splitlines()]


@pytest.mark.every_server
def test_the_whole_past_is_searched(cli: Cli, rows: Database) -> None:
    """However many rows have come since, a pool's and a cluster's are found."""
    event(rows, 1, "j1", "falcon-j1")
    audit(rows, 1, "pool/id-1/falcon-j1")
    event(rows, 5_000_000, "j2", "falcon-j2", "id_%")
    audit(rows, 5_000_000, "pool/id_%/falcon-j2")
    assert ["job/j1", "pool/c1/falcon-j1"] == sorted(told(cli("--pool", "falcon-j1")))
    assert ["job/j1", "pool/c1/falcon-j1"] == sorted(told(cli("--cluster", "c1")))
    assert 4 == len(told(cli("--since", "1h")))


@pytest.mark.every_server
def test_what_belongs_to_a_cluster(cli: Cli, rows: Database) -> None:
    """A cluster's story has its pools, Kubernetes Jobs, slots and what operators did to it, and nobody else's."""
    for number, subject in enumerate(
        (
            "pool/id_%/p",
            "work/id_%/w",
            "slot/id_%/2x2",
            "cluster/id_%",
            "cluster/odd",
            "pool/id-1/p",
            "pool/idx%/p",
            "odd",
        ),
        start=1,
    ):
        audit(rows, number, subject)
    subjects = ["cluster/id_%", "cluster/odd", "pool/odd/p", "slot/odd/2x2", "work/odd/w"]
    assert subjects == sorted(told(cli("--cluster", "odd")))


@pytest.mark.every_server
def test_what_belongs_to_a_pool(cli: Cli, rows: Database) -> None:
    """A pool's story is that of its name in every cluster, registered still or not."""
    rows.rows(
        "INSERT INTO node_pools"
        " (cluster_id, name, job_id, attempt, tpu_type, topology, machine_type, hosts, chips, mode)"
        " VALUES ('id-9', 'p', 'j', 1, 'v6e', '2x2', 'm', 1, 4, 'on-demand')"
    )
    for number, subject in enumerate(
        ("pool/id-1/p", "pool/id-9/p", "work/id-1/p", "pool/id-1/pp", "p", "cluster/p"), 1
    ):
        audit(rows, number, subject)
    assert ["pool/c1/p", "pool/id-9/p", "work/c1/p"] == sorted(told(cli("--pool", "p")))


def test_what_belongs_to_a_job(cli: Cli, rows: Database) -> None:
    """A job's story has what the audit says of the job itself, by either name."""
    event(rows, 1, "j1")
    for number, subject in enumerate(("j1", "job/j1", "j11", "job/j11"), 1):
        audit(rows, number, subject)
    assert ["j1", "job/j1", "job/j1"] == sorted(told(cli("j1")))


def test_longer_ago_than_there_was_time(cli: Cli, rows: Database) -> None:
    """A span that no clock can be counted back by asks for everything."""
    event(rows, 1, "j1")
    for since in ("1h", "99999999d", "9" * 400):
        assert ["job/j1"] == told(cli("--since", since))


def test_pool_that_nobody_knows(cli: Cli, rows: Database) -> None:
    """A pool of which nothing is known is an error; one to which nothing happened lately is not."""
    rows.rows("UPDATE clusters SET name = name")
    result = cli("--pool", "nope")
    assert (1, "", "error: nothing is known of node pool 'nope'\n") == (result.exit_code, result.stdout, result.stderr)
    assert [] == told(cli("--pool", "nope", "--since", "1h"))


def test_too_much_is_said(cli: Cli, rows: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where older rows are left out the newest are told, and that there may be more is said on stderr."""
    monkeypatch.setattr(history, "SHOWN", 3)
    for number in range(1, 5):
        event(rows, number, f"j{number}")
    result = cli("--since", "1h")
    assert ["job/j2", "job/j3", "job/j4"] == told(result)
    assert "note: only the newest 3 of a kind are told; name less\n" == result.stderr


def test_rows_that_come_late(cli: Cli, rows: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that was committed after rows with higher ids is told too, and none twice."""
    event(rows, 100, "old")
    audit(rows, 100, "old")

    def turns() -> Iterator[None]:
        event(rows, 105, "first")
        audit(rows, 105, "a-first")
        yield
        event(rows, 103, "late")
        audit(rows, 102, "a-late")
        yield
        event(rows, 106, "last")
        yield
        raise KeyboardInterrupt

    comes = turns()
    monkeypatch.setattr(cli_story, "_pause", lambda: next(comes))
    result = cli("-f")
    expected = ["job/first", "a-first", "job/late", "a-late", "job/last"]
    assert (130, "", expected) == (
        result.exit_code,
        result.stderr,
        [line.split()[1] for line in result.stdout.splitlines()],
    )


def test_follow_when_the_database_goes(cli: Cli, rows: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that goes away is told once on stderr; what came meanwhile is told when it is back."""

    def turns() -> Iterator[None]:
        for number in (1, 2):
            event(rows, number, f"before-{number}")
            yield
            rows.rows("RENAME TABLE job_events TO gone")
            yield
            yield
            rows.rows("RENAME TABLE gone TO job_events")
            event(rows, 10 * number, f"after-{number}")
            yield
        raise KeyboardInterrupt

    comes = turns()
    monkeypatch.setattr(cli_story, "_pause", lambda: next(comes))
    result = cli("-f", "--since", "1h")
    expected = ["job/before-1", "job/after-1", "job/before-2", "job/after-2"]
    assert (130, expected) == (result.exit_code, [line.split()[1] for line in result.stdout.splitlines()])
    notes = result.stderr.splitlines()
    assert 2 == len(notes)
    assert all(note.startswith("note: the database does not answer, trying again: 1146: ") for note in notes)


def test_follow_of_a_database_that_never_answered(cli: Cli, rows: Database) -> None:
    """What cannot be told at all is an error, also with -f."""
    rows.rows("RENAME TABLE job_events TO gone")
    result = cli("-f")
    assert (1, "") == (result.exit_code, result.stdout)
    assert result.stderr.startswith("error: 1146: ")


def test_follow_as_a_process(rows: Database, controller_url: str) -> None:
    """A process tells each entry as it comes, whole lines through a pipe, and SIGINT ends it without a word."""
    event(rows, 1, "before")
    command = [sys.executable, "-m", "falcon_rm", "events", "-f", "--since", "1h", "-o", "json"]
    with subprocess.Popen(
        command,
        env={"PATH": os.environ["PATH"], "FALCON_DATABASE_URL": controller_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "before" == json.loads(process.stdout.readline())["job_id"]
        for number in (2, 3):
            event(rows, number, f"after-{number}")
            assert f"after-{number}" == json.loads(process.stdout.readline())["job_id"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (130, "", "") == (process.returncode, out, err)
