"""What operators read: lines of actions, tables, ages, the overview."""

import json
from typing import get_args

import pytest
import yaml
from attrs import evolve

from falcon_rm.core.actions import (
    NOW,
    Action,
    Change,
    CreatePool,
    DeletePool,
    DeleteWork,
    EndLease,
    EnsureSlot,
    EnterPool,
    FreeSlot,
    GiveUp,
    MarkPool,
    Note,
    RecordHealth,
    RetirePool,
    SubmitWork,
)
from falcon_rm.core.model import Cluster, InvalidSpec, Job, Pool, Slot
from falcon_rm.core.words import Mode, PoolState
from falcon_rm.overview import render
from falcon_rm.ports import Rows
from falcon_rm.report import LINES, Line, age, describe, table
from falcon_rm.telemetry import MESSAGES

CLUSTER = Cluster(id="id-1", name="c1", project="proj-1", location="us-central1", tpu_type="v7x")
POOL = Pool(
    cluster_id="id-1",
    name="falcon-j",
    job_id="j",
    attempt=1,
    tpu_type="v7x",
    topology="2x2x4",
    machine_type="tpu7x-standard-4t",
    hosts=4,
    chips=16,
    mode=Mode.RESERVATION,
)
CHANGE = Change("j", 3, "Pending", "Waiting", "Pending", "Provisioning", "picked", "id-1", "2x2x4", makes=POOL)
CREATE = CreatePool(CLUSTER, "us-central1-a", POOL, "j", {}, {}, 600)

EXPECTED: list[tuple[Action, Line]] = [
    (CHANGE, Line("~", "job", "j", "Pending/Waiting -> Pending/Provisioning", "picked", "id-1", "j", "falcon-j")),
    (
        Change("j", 3, "Pending", "Waiting", "Pending", "Waiting", "moved up", message="#2"),
        Line("~", "job", "j", "Pending/Waiting, message", "moved up", None, "j"),
    ),
    (
        Change("j", 3, "Running", None, "Running", None, "lost", "id-1", columns={"finished_at": NOW}),
        Line("~", "job", "j", "Running", "lost", "id-1", "j"),
    ),
    (
        Change("j", 3, "Running", None, "Failed", "JobFailed", "over", gives_up=GiveUp("falcon-j", False, "released")),
        Line("~", "job", "j", "Running -> Failed/JobFailed", "over", None, "j", "falcon-j"),
    ),
    (EnsureSlot("id-1", "2x2x1"), Line("+", "slot", "2x2x1", "create", "a job queues there", "id-1")),
    (FreeSlot("id-1", "2x2x1", "j"), Line("~", "slot", "2x2x1", "free", "job j acquires nothing", "id-1", "j")),
    (
        EnterPool(POOL),
        Line("~", "pool", "falcon-j", "enter as free", "ours, and not in the ledger", "id-1", "j", "falcon-j"),
    ),
    (
        MarkPool("id-1", "falcon-j", seen=True, ready=True),
        Line("~", "pool", "falcon-j", "note seen, ready", "", "id-1", None, "falcon-j"),
    ),
    (
        RetirePool("id-1", "falcon-j", PoolState.ACTIVE, PoolState.DELETING, "idle"),
        Line("~", "pool", "falcon-j", "Active -> Deleting", "idle", "id-1", None, "falcon-j"),
    ),
    (
        EndLease("id-1", "falcon-j", "j", True, "no such job"),
        Line("~", "pool", "falcon-j", "end the lease, keep", "no such job", "id-1", "j", "falcon-j"),
    ),
    (
        CREATE,
        Line(
            "+",
            "pool",
            "falcon-j",
            "create 4 hosts, v7x 2x2x4, reservation",
            "job j holds its lease",
            "id-1",
            "j",
            "falcon-j",
        ),
    ),
    (
        DeletePool(CLUSTER, "falcon-j", "idle"),
        Line("-", "pool", "falcon-j", "delete", "idle", "id-1", None, "falcon-j"),
    ),
    (
        SubmitWork(CLUSTER, "j", 3, "Pending", 1, "falcon-j", {}, None, True),
        Line("+", "work", "falcon-j", "submit", "job j, attempt 1", "id-1", "j"),
    ),
    (
        DeleteWork(CLUSTER, "falcon-j", "uid", "j", 1, "aborting"),
        Line("-", "work", "falcon-j", "delete", "aborting", "id-1", "j"),
    ),
    (RecordHealth("id-1", "403", None), Line("~", "health", "cluster", "zone <unknown>, in trouble", "403", "id-1")),
    (Note("unknown-fields", "j", "colour"), Line("+", "audit", "j", "unknown-fields", "colour")),
]


@pytest.mark.parametrize(("action", "line"), EXPECTED, ids=lambda value: type(value).__name__)
def test_describe(action: Action, line: Line) -> None:
    """Every action reads as one line that says what, to what, and why."""
    assert line == describe(action)


def test_every_action_is_described() -> None:
    """Lines, log messages and this file's cases cover every action there is."""
    actions = set(get_args(Action))
    assert actions == set(LINES) == set(MESSAGES) == {type(action) for action, _ in EXPECTED}


def test_table() -> None:
    """Columns stand under their headers, also beside Chinese characters; what is missing reads `<none>`."""
    expected = "NAME     AGE\n任务     1s\n<none>   2s"
    assert expected == table(("NAME", "AGE"), [("任务", "1s"), (None, "2s")])


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "<none>"),
        (-3, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7199, "119m"),
        (7200, "2h"),
        (172799, "47h"),
        (172800, "2d"),
    ],
)
def test_age(seconds: float | None, expected: str) -> None:
    """An age is one number with its unit."""
    assert expected == age(seconds)


TASK = InvalidSpec("x", "y", "z")
ROWS = Rows(
    now=1000.0,
    instance="i",
    jobs=(
        Job(
            "b", "u", TASK, "Pending", 900.0, reason="Waiting", cluster_id="id-1", topology="2x2x4", message="队列位置"
        ),
        Job("a", "u", TASK, "Pending", 990.0, reason="Provisioning", cluster_id="id-1", topology="2x2x4"),
    ),
    clusters=(CLUSTER,),
    health={"id-1": ("403", "us-central1-a")},
    pools=(POOL,),
    submissions=(),
    slots=(Slot("id-1", "2x2x4", "a", 995.0),),
    turns=(),
    failures=(),
    troubles=(),
)
ENDED = (Job("z", "u", TASK, "Failed", 10.0, reason="InvalidSpec"),)

OVERVIEW = """\
CLUSTERS
NAME   STATUS   TYPE   ZONE            RESERVATION   PROBLEM
c1     active   v7x    us-central1-a   <none>        403

QUEUES
NAME       WAITING   HOLDER   PHASE          AGE
c1/2x2x4   1         a        Provisioning   5s

POOLS
NAME       CLUSTER   TOPOLOGY   HOSTS   MODE          STATE    SEEN       JOB      AGE
falcon-j   c1        2x2x4      4       reservation   Active   creating   <none>   <none>

JOBS
NAME   ACTOR   STATUS    REASON         CLUSTER   TOPOLOGY   AGE
b      u       Pending   Waiting        c1        2x2x4      100s
a      u       Pending   Provisioning   c1        2x2x4      10s
z      u       Failed    InvalidSpec    <none>    <none>     16m"""


def test_overview() -> None:
    """The overview has clusters, queues with their slots, pools and jobs, the live ones oldest first."""
    assert OVERVIEW == render(ROWS, ENDED)


def test_overview_is_narrow() -> None:
    """A long text is cut in the middle, but for the wide form."""
    rows = evolve(ROWS, health={"id-1": ("x" * 500, None)})
    assert max(map(len, render(rows).splitlines())) < 120
    assert "x" * 500 in render(rows, output="wide")


def test_control_characters_stay_out() -> None:
    """What a cloud says cannot move the cursor of a terminal."""
    assert "NAME\na [31m b" == table(("NAME",), [("a\x1b[31m\nb",)])


def test_overview_of_nothing() -> None:
    """A section without rows says so."""
    empty = evolve(ROWS, jobs=(), clusters=(), pools=(), slots=())
    assert "CLUSTERS\n<none>\n\nQUEUES\n<none>\n\nPOOLS\n<none>\n\nJOBS\n<none>" == render(empty)


def test_overview_wide() -> None:
    """The wide form adds columns and keeps AGE last."""
    jobs = render(ROWS, ENDED, "wide").splitlines()[-4]
    assert ["NAME", "ACTOR", "STATUS", "REASON", "CLUSTER", "TOPOLOGY"] == jobs.split()[:6]
    assert ["MODE", "PRIORITY", "ATTEMPT", "POOL", "MESSAGE", "AGE"] == jobs.split()[6:]


def test_overview_names() -> None:
    """Names come one a line, with their kind."""
    names = ["cluster/c1", "queue/c1/2x2x4", "pool/falcon-j", "job/b", "job/a", "job/z"]
    assert names == render(ROWS, ENDED, "name").splitlines()


def test_overview_for_machines() -> None:
    """JSON and YAML hold the same, complete but for the specs."""
    data = json.loads(render(ROWS, ENDED, "json"))
    assert data == yaml.safe_load(render(ROWS, ENDED, "yaml"))
    assert {"clusters", "queues", "pools", "jobs"} == set(data)
    assert ("b", "c1", "队列位置") == tuple(data["jobs"][0][key] for key in ("id", "cluster", "message"))
    assert "task" not in data["jobs"][0]


def test_overview_of_one_kind() -> None:
    """One kind of row can be shown alone."""
    assert OVERVIEW.split("\n\n", maxsplit=1)[0] == render(ROWS, only="cluster")
