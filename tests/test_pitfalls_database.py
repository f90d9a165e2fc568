"""The database: away, jumping in time, or holding rows that make no sense (P92, P93, P94, P98)."""

import ast
import json
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from cloudsim.direct import DirectClouds
from cloudsim.faults import Fault
from cloudsim.workload import NEVER_ENDS, Workload
from interruptions import tapped_pass
from legitimate import problems
from world import Falcon, cluster, spec

from falcon_rm.core.model import Bounds
from falcon_rm.loop import one_pass
from falcon_rm.ports import Store, StoreDown

PACKAGE = Path(__file__).parent.parent / "falcon_rm"
WALL_CLOCKS = {("time", "time"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today"), ("time", "localtime")}
NOISE = "boom \N{FIRE} \x00 \ud800 one\ntwo\r\nthree"


def deep(levels: int) -> str:
    """Return a spec that is nested so deep."""
    return '{"image": ' + '{"a": ' * levels + "1" + "}" * levels + "}"


BAD = {
    "bad1": "not json",
    "bad2": "[]",
    "bad3": "{}",
    "bad4": '{"image": 3}',
    "bad5": deep(90),
    "bad6": json.dumps({f"field{number}": "x" * 1000 for number in range(5000)}),
    "bad7": deep(100_000),
}


def refuse() -> AbstractContextManager[Store]:
    """Open a database that is not there."""
    raise StoreDown("connection refused")


def test_no_rows_no_decisions() -> None:
    """While the database is away no cloud is even asked, and the job runs on afterwards (P92)."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    calls = len(falcon.sim.calls)
    for _ in range(60):
        with pytest.raises(StoreDown):
            one_pass(store=refuse, clouds=lambda: DirectClouds(falcon.sim), bounds=falcon.bounds, pass_seconds=60)
        falcon.advance(10)
    assert calls == len(falcon.sim.calls)
    falcon.passes(3)
    assert ("Running", 1) == (falcon.state("j1"), falcon.job("j1").attempt)


def test_database_lost_in_every_write_in_turn() -> None:
    """Whichever write the connection is lost at, before or after its effect, one run comes of it (P92)."""
    struck = 0
    for lost in range(200):
        falcon, seen = Falcon(), 0

        def tap(name: str, done: bool, number: int = lost) -> None:
            nonlocal seen
            seen += 1
            if seen - 1 == number:
                raise StoreDown(f"{name} {done}")

        falcon.submit("j1", spec("4x4"))
        for _ in range(60):
            try:
                progress = tapped_pass(falcon, tap).progress
            except StoreDown:
                struck, progress = struck + 1, False
            if not progress:
                falcon.advance(10)
        assert ("Succeeded", 1, []) == (falcon.state("j1"), falcon.job("j1").attempt, falcon.leftovers()), lost
        if seen <= lost:
            break
    assert struck > 30


def test_text_that_cannot_be_stored_stops_nobody() -> None:
    """A termination message of strange characters ends its job, and the next job gets on in the same pass (P93)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=5, exit_code=3, message=NOISE)
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("2x2"))
    falcon.settle()
    assert ("Failed/JobFailed", "Succeeded") == (falcon.state("j1"), falcon.state("j2"))
    message = falcon.job("j1").message or ""
    assert ("boom" in message, "three" in message) == (True, True)
    assert message.isprintable()
    assert message.encode()


@pytest.mark.parametrize("hours", [-1, 1])
def test_wall_clock_that_jumps_changes_nothing(hours: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the process leaps an hour between passes: the same life as without (P94)."""
    stories, real = [], time.time
    for leap in (0, hours):
        falcon = Falcon()
        falcon.submit("j1", spec("4x4"), timeout_seconds=120)
        for number in range(40):
            monkeypatch.setattr(time, "time", lambda number=number, leap=leap: real() + number % 2 * leap * 3600)
            if not falcon.step().progress:
                falcon.advance(10)
        stories.append([(event.at, event.to_status, event.to_reason) for event in falcon.store.event_rows()])
    assert "Succeeded" == stories[0][-1][1]
    assert stories[0] == stories[1]


def test_row_from_the_future_is_an_ordinary_row() -> None:
    """A job submitted 90 s ahead of the database's clock waits for nothing and is late with nothing (P94)."""
    falcon = Falcon(bounds=Bounds(language="en"))
    falcon.submit("j1", spec("4x4"), created_at=falcon.store.now + 90, timeout_seconds=3600)
    for _ in range(3):
        falcon.step()
    assert "Pending/Provisioning" == falcon.state("j1")
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_database_clock_that_steps_back_makes_nothing_late() -> None:
    """Times of rows that lie ahead of the database's clock are of age zero (P94)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"), timeout_seconds=3600)
    falcon.until_state("j1", "Pending/Provisioning")
    falcon.store.now -= 3600
    for _ in range(30):
        falcon.step()
        falcon.sim.advance(10)
        falcon.store.now += 10
    assert falcon.story("j1")[-1] in ("Running", "Succeeded")


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nobody_reads_the_wall_clock(path: Path) -> None:
    """Ages come from the database, waiting from the monotonic clock (P94)."""
    used = {
        (node.value.id, node.attr)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    assert set() == used & WALL_CLOCKS


def test_malformed_rows_stop_nobody() -> None:
    """Rows that can never run fail one by one in the pass in which the others advance (P98)."""
    falcon = Falcon()
    falcon.submit("j3", spec("2x2"))
    falcon.until_state("j3", "Running")
    falcon.advance(60)
    for job_id, text in BAD.items():
        falcon.submit(job_id, text)
    falcon.submit("j2", spec("4x4"))
    falcon.step()
    assert dict.fromkeys(BAD, "Failed/InvalidSpec") == {job_id: falcon.state(job_id) for job_id in BAD}
    assert all(len((falcon.job(job_id).message or "").encode()) <= 4096 for job_id in BAD)
    assert ("Pending/Waiting", "Succeeded") == (falcon.state("j2"), falcon.job("j3").outcome)
    falcon.settle()
    assert ("Succeeded", "Succeeded") == (falcon.state("j2"), falcon.state("j3"))


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "Strange"},
        {"status": "Pending", "reason": "Strange"},
        {"status": "Running", "outcome": "Strange"},
        {"status": "Running"},
        {"status": "Running", "cluster_id": "nowhere", "attempt": 1},
        {"status": "Pending", "reason": "Provisioning"},
        {"status": "Pending", "reason": "Dispatching", "cluster_id": "c1", "topology": "4x4", "attempt": 3},
        {"status": "Pending", "reason": "WaitingForNode", "cluster_id": "c1", "node_pool_name": "falcon-nothing"},
        {"status": "Pending", "reason": "Waiting", "cluster_id": "nowhere"},
        {"status": "Pending", "attempt": -5},
        {"status": "Pending", "priority": 2**31 - 1, "timeout_seconds": -1},
        {"status": "Aborting", "cluster_id": "c1", "attempt": 7, "node_pool_name": "default-pool"},
    ],
    ids=str,
)
def test_impossible_row_stops_nobody(columns: dict[str, object]) -> None:
    """A row whose columns contradict each other costs nobody else a pass, and touches nothing of others (P98)."""
    falcon = Falcon()
    falcon.submit("odd", spec("4x4"), **columns)
    falcon.submit("j2", spec("2x2"))
    falcon.until_state("j2", "Succeeded")
    for _ in range(200):
        if not falcon.step().progress:
            falcon.advance(10)
    assert None is falcon.store.slots["c1", "2x2"].holder
    assert ["default-pool"] == [pool["name"] for pool in falcon.sim.gke.list_node_pools(falcon.clusters["c1"].path)][:1]


def test_ids_that_differ_in_case_are_two_jobs() -> None:
    """Jobs j1 and J1, and two clusters so named, share no pool, no Job and no slot (P97)."""
    falcon = Falcon(cluster("c1"), cluster("C1", name="c1-upper"))
    falcon.sim.default_workload = NEVER_ENDS
    for job_id in ("j1", "J1"):
        falcon.submit(job_id, spec("4x4"))
    falcon.until(lambda: [falcon.state(job_id) for job_id in ("j1", "J1")] == ["Running"] * 2)
    assert {("c1", "4x4"), ("C1", "4x4")} == set(falcon.store.slots)
    assert 2 == len({falcon.job(job_id).node_pool_name for job_id in ("j1", "J1")})
    assert 2 == len({falcon.job(job_id).job_uid for job_id in ("j1", "J1")})


def test_row_that_makes_no_sense_keeps_what_it_has() -> None:
    """
    A status that nobody knows, written before the job's pool was made: the lease stands, the slot is another's.

    Put right, the job takes up where it was. The long proof met it as a ledger row without a pool (seed 1000).
    """
    falcon = Falcon()
    falcon.submit("j1")
    falcon.sim.faults.add(Fault("gke.create_node_pool", "hang"))
    falcon.until_state("j1", "Pending/Provisioning")
    falcon.store.edit_job("j1", status="Paused")
    falcon.passes(20)
    assert ("j1", [], None, []) == (
        falcon.ledger("falcon-j1").lease,
        falcon.pools(),
        falcon.holder("2x2"),
        problems(falcon),
    )
    falcon.store.edit_job("j1", status="Pending")
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")
