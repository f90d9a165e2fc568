"""What status shows: tables, forms for machines, what fits a terminal."""

import json

import pytest
import yaml
from attrs import evolve

from falcon_rm.overview import SECTIONS, ClusterRow, JobRow, Overview, PoolRow, QueueRow, Wanted, render
from falcon_rm.watch import screen, share

C1 = ClusterRow(
    "id-1", "c1", "active", "v7x", "p", "us-central1", True, None, None, "us-central1-a", default_reservation="r",
    room={"2x2x1": 0},
)  # fmt: skip
C2 = ClusterRow("id-2", "c2", "active", "v6e", "p", "us-east1-d", False, "403", "us-east1-d", "us-east1-d")
C3 = ClusterRow("id-3", "c3", "offline", "v6e", "p", "us-east1-d")
SEEN = Overview(
    now=1_700_000_000.0,
    clusters=(C1, C2, C3),
    queues=(
        QueueRow("c1", "2x2x4", 1, 2, "a", "u", "Provisioning", 1_699_999_995.0, reserved=True),
        QueueRow("c1", "2x2x1", 1, 0, reserved=True, room=0),
        QueueRow("c2", "2x2"),
    ),
    pools=(
        PoolRow("falcon-a", "c1", "2x2x4", "tpu7x-standard-4t", 4, 16, "reservation", "Active", lease="a", actor="u"),
        PoolRow(
            "falcon-x", "c1", "2x2x1", "tpu7x-standard-4t", 1, 4, "reservation", "Active", up_at=1.0, ready_at=1.0,
            idle_at=1_699_999_700.0, requested_at=1_699_990_000.0,
        ),
    ),
    jobs=(
        JobRow("b", "u", "Pending", 1_699_999_900.0, "Waiting", "c1", "id-1", "2x2x4", message="队列位置"),
        JobRow("a", "u", "Pending", 1_699_999_990.0, "Provisioning", "c1", "id-1", "2x2x4"),
        JobRow("z", "u", "Failed", 1_699_999_000.0, "InvalidSpec"),
    ),
)  # fmt: skip

TABLES = """\
CLUSTERS
NAME   STATUS    REACHABLE   TYPE   ZONE            RESERVATION   ROOM      PROBLEM
c1     active    yes         v7x    us-central1-a   r             2x2x1=0   <none>
c2     active    no          v6e    us-east1-d      <none>        <none>    403
c3     offline   <unknown>   v6e    <unknown>       <none>        <none>    <none>

QUEUES
NAME       WAITING   RUNNING   ROOM        HOLDER   PHASE          SINCE
c1/2x2x4   1         2         <unknown>   a        Provisioning   5s
c1/2x2x1   1         0         0           <none>   <none>         <none>
c2/2x2     0         0         <none>      <none>   <none>         <none>

POOLS
NAME       CLUSTER   TOPOLOGY   HOSTS   MODE          STATE    SEEN       HOLDER   IDLE     AGE
falcon-a   c1        2x2x4      4       reservation   Active   creating   a        <none>   <none>
falcon-x   c1        2x2x1      1       reservation   Active   ready      <none>   5m       2h

JOBS
NAME   ACTOR   STATUS    REASON         CLUSTER   TOPOLOGY   AGE
b      u       Pending   Waiting        c1        2x2x4      100s
a      u       Pending   Provisioning   c1        2x2x4      10s
z      u       Failed    InvalidSpec    <none>    <none>     16m"""

SCREEN = """\
2023-11-14T22:13:20Z  jobs: 2 Pending
CLUSTERS STATUS  REACHABLE TYPE ZONE          RESERVATION ROOM    PROBLEM
c1       active  yes       v7x  us-central1-a r           2x2x1=0 <none>
c2       active  no        v6e  us-east1-d    <none>      <none>  403
c3       offline <unknown> v6e  <unknown>     <none>      <none>  <none>

QUEUES     WAITING   RUNNING   ROOM        HOLDER   PHASE          SINCE
c1/2x2x4   1         2         <unknown>   a        Provisioning   5s
c1/2x2x1   1         0         0           <none>   <none>         <none>
c2/2x2     0         0         <none>      <none>   <none>         <none>

POOLS    CLUSTER TOPOLOGY HOSTS MODE        STATE  SEEN     HOLDER IDLE   AGE
falcon-a c1      2x2x4    4     reservation Active creating a      <none> <none>
falcon-x c1      2x2x1    1     reservation Active ready    <none> 5m     2h

JOBS   ACTOR   STATUS    REASON         CLUSTER   TOPOLOGY   AGE
a      u       Pending   Provisioning   c1        2x2x4      10s
b      u       Pending   Waiting        c1        2x2x4      100s
z      u       Failed    InvalidSpec    <none>    <none>     16m"""


def test_tables() -> None:
    """Tables show clusters, queues with their slots, pools and jobs; what is unknown is never shown as 0."""
    assert TABLES == render(SEEN)


def test_tables_of_a_terminal() -> None:
    """Tables fit a terminal, and are as wide as need be where there is none."""
    long = evolve(SEEN, jobs=tuple(evolve(job, id="j" * 50 + job.id, actor="user" * 9) for job in SEEN.jobs))
    assert max(map(len, render(long, width=80).splitlines())) <= 80
    assert "j" * 50 + "b" in render(long)
    assert "j" * 50 + "b" in render(long, "wide", width=80)


def test_room_of_a_cluster() -> None:
    """A cluster shows the slices its reservation has left, by topology; while nobody was told, nobody knows."""
    rooms = [{"2x2x1": 2, "2x2x4": 0}, {}]
    seen = Overview(0, clusters=(*(evolve(C1, room=room) for room in rooms), C2))
    lines = render(seen, sections=SECTIONS[:1]).splitlines()
    start = lines[1].index("ROOM")
    assert ["2x2x1=2 2x2x4=0", "<unknown>", "<none>"] == [line[start:].split("  ")[0].strip() for line in lines[2:]]
    assert rooms[0] == json.loads(render(seen, "json"))["clusters"][0]["room"]


def test_long_texts() -> None:
    """A long text is cut in the middle, but for the wide form."""
    seen = evolve(SEEN, clusters=(evolve(C1, problem="x" * 500),))
    assert max(map(len, render(seen).splitlines())) < 140
    assert "x" * 500 in render(seen, "wide")


def test_nothing() -> None:
    """A section without rows says so."""
    assert "CLUSTERS\n<none>\n\nQUEUES\n<none>\n\nPOOLS\n<none>\n\nJOBS\n<none>" == render(Overview(0))


def test_wide() -> None:
    """The wide form adds columns and keeps AGE last."""
    jobs = render(SEEN, "wide").splitlines()[-4]
    assert ["NAME", "ACTOR", "STATUS", "REASON", "CLUSTER", "TOPOLOGY"] == jobs.split()[:6]
    assert ["MODE", "PRIORITY", "ATTEMPT", "POOL", "MESSAGE", "AGE"] == jobs.split()[6:]


def test_names() -> None:
    """Names come one a line, with their kind."""
    names = ["cluster/c1", "cluster/c2", "cluster/c3", "queue/c1/2x2x4", "queue/c1/2x2x1", "queue/c2/2x2"]
    assert [*names, "pool/falcon-a", "pool/falcon-x", "job/b", "job/a", "job/z"] == render(SEEN, "name").splitlines()


@pytest.mark.parametrize("seen", [SEEN, Overview(0)], ids=["some", "none"])
def test_for_machines(seen: Overview) -> None:
    """JSON and YAML hold the same, a row for each, complete but for the specs."""
    known = json.loads(render(seen, "json"))
    assert known == yaml.safe_load(render(seen, "yaml"))
    assert {"clusters", "queues", "pools", "jobs"} == set(known)
    assert [len(seen.clusters), len(seen.jobs)] == [len(known["clusters"]), len(known["jobs"])]
    for row, job in zip(known["jobs"], seen.jobs, strict=True):
        assert (job.id, job.cluster, job.message) == (row["id"], row["cluster"], row["message"])
        assert "spec" not in row
        assert "task" not in row


@pytest.mark.parametrize(
    "word", ["yes", "null", "1e3", " a: #b ", '"', "\\n", "a\nb\t\x1b\x7f\x85\u2028", "任务 😀", "- x", "~"]
)
def test_any_text_for_machines(word: str) -> None:
    """Whatever a text holds, JSON and YAML give it back as it was."""
    seen = Overview(0, jobs=(JobRow("j", word, "Pending", None),))
    assert word == json.loads(render(seen, "json"))["jobs"][0]["actor"]
    assert word == yaml.safe_load(render(seen, "yaml"))["jobs"][0]["actor"]


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        (Wanted(), ["cluster", "queue", "pool", "job"]),
        (Wanted(cluster="c1"), ["cluster", "queue", "pool", "job"]),
        (Wanted(actor="ann"), ["pool", "job"]),
        (Wanted(statuses=("Running",)), ["job"]),
        (Wanted("c1", "ann", ("Running",)), ["job"]),
    ],
)
def test_sections_of_a_filter(wanted: Wanted, kinds: list[str]) -> None:
    """Sections that have nothing to choose by are left out."""
    assert kinds == [section.kind for section in wanted.sections()]
    assert len(kinds) == render(SEEN, sections=wanted.sections()).count("NAME")


def test_screen() -> None:
    """The live view has a heading a section and the busy jobs first."""
    assert SCREEN == screen(SEEN, 80, 24)


def many(count: int, name: str = "a") -> Overview:
    """Return an overview with so many rows of each kind, all of them with long names."""
    word = name * 60
    return Overview(
        SEEN.now,
        tuple(evolve(C1, name=f"{word}{number}", problem=word) for number in range(count)),
        tuple(evolve(SEEN.queues[0], cluster=f"{word}{number}", holder=word) for number in range(count)),
        tuple(evolve(SEEN.pools[0], name=f"{word}{number}", lease=word) for number in range(count)),
        tuple(evolve(SEEN.jobs[0], id=f"{word}{number}", actor=word) for number in range(count)),
    )


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 100])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 12), (200, 60)])
def test_screen_fits(width: int, height: int, count: int) -> None:
    """Whatever there is fits the terminal, and what is left out is counted."""
    shown = screen(many(count), width, height).splitlines()
    assert len(shown) <= height
    assert max(map(len, shown)) <= width
    counted = sum(int(line.split()[2]) for line in shown if line.startswith("... and "))
    rows = sum(line.startswith("a") for line in shown)
    assert 4 * count == rows + counted


@pytest.mark.parametrize(
    ("wanted", "lines", "expected"),
    [
        ([3, 3, 2, 3], 15, [3, 3, 2, 3]),
        ([3, 0, 100, 9], 15, [3, 0, 6, 6]),
        ([100, 100, 100, 1], 15, [4, 5, 5, 1]),
        ([1, 1], 0, [0, 0]),
        ([1, 1], -3, [0, 0]),
    ],
)
def test_share(wanted: list[int], lines: int, expected: list[int]) -> None:
    """Lines go where they are needed, as many to each as to the others."""
    assert expected == share(wanted, lines)


def test_section_names() -> None:
    """Each section shows the rows of that name."""
    assert {section.plural for section in SECTIONS} == {"clusters", "queues", "pools", "jobs"}
