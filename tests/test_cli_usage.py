"""The command usage: what it takes, and how chip-hours read."""

import csv
import io
import json
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result

from falcon_rm.cli import build, commands
from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.core.usage import KEYS

POOLS = """
    INSERT INTO node_pools (cluster_id, name, job_id, attempt, tpu_type, topology, machine_type, hosts, chips, mode,
      reservation, state, requested_at, seen_at, deleting_at, deleted_at)
    VALUES ('c1', 'falcon-a', 'a', 1, 'v6e', '2x2', 'm', 1, 4, 'reservation', 'r', 'Deleted', '2026-11-01 23:00:00',
      '2026-11-01 23:00:01', '2026-11-02 02:00:00', '2026-11-02 02:30:00'),
     ('c9', 'falcon-b', 'b', 1, 'v6e', '2x2', 'm', 1, 4, 'on-demand', NULL, 'Active', '2026-11-03', '2026-11-03', NULL,
      NULL)
"""
LEASES = """
    INSERT INTO pool_leases (cluster_id, pool, job_id, attempt, actor, exp_id, mode, reservation, from_at, running_at,
      until_at)
    VALUES ('c1', 'falcon-a', 'a', 1, 'ann', 'e1', 'reservation', 'r', '2026-11-01 23:00:00', '2026-11-01 23:30:00',
      '2026-11-02 01:00:00')
"""
CLUSTER = "INSERT INTO clusters (id, name, project, location, tpu_type) VALUES ('c1', 'tpu-1', 'p', 'us-a1-a', 'v6e')"


def usage(url: str, *arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(commands, ["usage", *arguments], obj=build({"FALCON_DATABASE_URL": url}))


@pytest.fixture
def kept(database: str, controller_url: str) -> str:
    """A database whose jobs are deleted: a pool of an hour's waiting and the like, and one that nobody holds."""
    rows = Database(parse_url(database))
    for statement in (POOLS, LEASES, CLUSTER):
        rows.rows(statement)
    rows.close()
    return controller_url


def test_table(kept: str) -> None:
    """The table has a row an actor, its uses in chip-hours, and the sum."""
    answer = usage(kept, "--until", "2026-11-03T01:00").stdout.splitlines()
    assert [
        ["ACTOR", "WAITING", "BUSY", "IDLE", "RELEASING", "CHIP-HOURS"],
        ["ann", "2.00", "6.00", "4.00", "2.00", "14.00"],
        ["<none>", "0.00", "0.00", "4.00", "0.00", "4.00"],
        ["total", "2.00", "6.00", "8.00", "2.00", "18.00"],
    ] == [line.split() for line in answer]


def test_csv(kept: str) -> None:
    """CSV has the unit in its header, and each pair of keys a row."""
    answer = usage(kept, "--by", "cluster", "--by", "day", "--until", "2026-11-03", "-o", "csv").stdout
    assert [
        ("tpu-1", "2026-11-01", "2.000000", "2.000000", "4.000000"),
        ("tpu-1", "2026-11-02", "0.000000", "4.000000", "10.000000"),
    ] == [
        (row["cluster"], row["day"], row["waiting_chip_hours"], row["busy_chip_hours"], row["total_chip_hours"])
        for row in csv.DictReader(io.StringIO(answer))
    ]


def test_json(kept: str) -> None:
    """JSON has rows, their sum, the unit and the window; a cluster that is registered no more goes by its id."""
    answer = json.loads(
        usage(kept, "--by", "cluster", "--since", "2026-11-03", "--until", "2026-11-03T02:00", "-o", "json").stdout
    )
    assert ("chip-hours", "2026-11-03T00:00:00Z", "2026-11-03T02:00:00Z") == (
        answer["unit"],
        answer["since"],
        answer["until"],
    )
    uses = {"waiting": 0, "busy": 0, "idle": 8, "releasing": 0, "total": 8}
    assert ([{"cluster": "c9", **uses}], uses) == (answer["rows"], answer["total"])


def test_span_ago(kept: str) -> None:
    """A span counts back from now, by the database's clock."""
    answer = json.loads(usage(kept, "--since", "1d", "-o", "json").stdout)
    assert 96.0 == round(answer["total"]["total"], 6)


def test_longest_ago(kept: str) -> None:
    """A span longer than there has been time, and a time before all time, ask for everything."""
    every = usage(kept, "--until", "2026-11-03T01:00").stdout
    for since in ("99999999999d", "9" * 400, "0001-01-01"):
        assert every == usage(kept, "--since", since, "--until", "2026-11-03T01:00").stdout


def test_time_with_an_offset(kept: str) -> None:
    """A time that names its offset from UTC means what it says."""
    for until in ("2026-11-03T09:00+08:00", "2026-11-02T20:00-05:00", "2026-11-03T01:00Z"):
        assert usage(kept, "--until", "2026-11-03T01:00").stdout == usage(kept, "--until", until).stdout


def test_key_given_twice(kept: str) -> None:
    """A key that is given twice counts once."""
    until = ("--until", "2026-11-03T01:00")
    once = usage(kept, *until, "--by", "mode", "--by", "day").stdout
    assert once == usage(kept, *until, "--by", "mode", "--by", "day", "--by", "mode").stdout


def test_every_key_is_offered() -> None:
    """What can be counted by is what --by takes."""
    by = next(each for each in commands.commands["usage"].params if each.name == "by")
    assert list(KEYS) == list(cast("list[str]", getattr(by.type, "choices", ())))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--since", "yesterday"), "Invalid value for '--since': 'yesterday'; allowed: so long ago, like 7d"),
        (("--since", "0001-01-01T00:00+08:00"), "Invalid value for '--since': '0001-01-01T00:00+08:00'"),
        (("--by", "colour"), "Invalid value for '--by': 'colour' is not one of"),
        (("--since", "2026-11-02", "--until", "2026-11-01"), "--since is not before --until, or lies ahead."),
        (("-o", "yaml"), "Invalid value for '-o' / '--output': 'yaml' is not one of"),
    ],
)
def test_wrong_usage(kept: str, arguments: tuple[str, ...], expected: str) -> None:
    """What cannot be meant is one line and exit code 64."""
    result = usage(kept, *arguments)
    assert (64, "", 1) == (result.exit_code, result.stdout, result.stderr.count("\n"))
    assert result.stderr.startswith(f"error: {expected}")


def test_picture(kept: str, tmp_path: Path) -> None:
    """The picture is written, and where it cannot be the file and the cause are named."""
    file = tmp_path / "pools.svg"
    assert f"picture/{file} drawn\n" == usage(kept, "--picture", str(file)).stdout
    text = file.read_text(encoding="utf-8")
    assert (True, True) == (text.startswith("<svg "), "falcon-b" in text)
    refused = usage(kept, "--picture", str(tmp_path / "none" / "pools.svg"))
    assert (1, "") == (refused.exit_code, refused.stdout)
    assert "No such file or directory" in refused.stderr
