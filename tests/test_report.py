"""What operators read: lines of actions, tables, ages."""

from typing import get_args

import pytest

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
    ResumeWork,
    RetirePool,
    SubmitWork,
)
from falcon_rm.core.model import Cluster, Pool
from falcon_rm.core.words import Mode, PoolState
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
        ResumeWork(CLUSTER, "j", 1, "falcon-j", "uid"),
        Line("~", "work", "falcon-j", "let go", "job j, attempt 1", "id-1", "j"),
    ),
    (
        DeleteWork(CLUSTER, "falcon-j", "uid", "j", 1, "aborting"),
        Line("-", "work", "falcon-j", "delete", "aborting", "id-1", "j"),
    ),
    (RecordHealth("id-1", "403", None), Line("~", "health", "cluster", "zone <unknown>, in trouble", "403", "id-1")),
    (Note("unknown fields", "job/j", "colour"), Line("+", "audit", "job/j", "unknown fields", "colour")),
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


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (None, "NAME          WHAT\nlong-name-1   任务任务\nb             x"),
        (22, "NAME          WHAT\nlong-name-1   任务任务\nb             x"),
        (21, "NAME        WHAT\nlong-name-1 任务任务\nb           x"),
        (15, "NAME    WHAT\nlong-n… 任务任…\nb       x"),
    ],
)
def test_table_in_a_width(width: int | None, expected: str) -> None:
    """A table that is too wide closes up, then its widest columns are cut, by cells and not by letters."""
    rows = [("long-name-1", "任务任务"), ("b", "x")]
    assert expected == table(("NAME", "WHAT"), rows, width=width)


def test_control_characters_stay_out() -> None:
    """What a cloud says cannot move the cursor of a terminal."""
    assert "NAME\na [31m b" == table(("NAME",), [("a\x1b[31m\nb",)])
