"""Eight controllers race for fifty jobs and five slots on a real server, while upstream inserts and aborts (R10)."""

import multiprocessing
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import pytest
from database_roles import FALCON, UPSTREAM, Roles
from racers import INSERT, TOPOLOGIES, Race, Row, race, upstream

from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.cloud.rows import LIVE
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.cloud.transaction import GUARD
from falcon_rm.core.actions import EnsureSlot

pytestmark = pytest.mark.every_server

RACERS, JOBS, TRIES = 8, 50, 10_000
SECONDS = 240

ROWS = "SELECT id, version, status, reason, aborting_at IS NOT NULL FROM job"
EVENTS = """
    SELECT e.job_id, e.from_reason, e.to_status, e.to_reason, j.topology, e.from_status
    FROM job_events e JOIN job j ON j.id = e.job_id ORDER BY e.id
"""
OPEN_LEASES = "SELECT job_id, pool FROM pool_leases WHERE until_at IS NULL ORDER BY job_id"
HOLDING = f"SELECT id, node_pool_name FROM job WHERE {LIVE} AND node_pool_name IS NOT NULL ORDER BY id"


def holders(events: Sequence[Row]) -> list[str]:
    """Return where a slot was taken while another held it, or left by one who did not hold it."""
    held: dict[object, object] = {}
    wrong = []
    for job_id, from_reason, _, to_reason, topology, _ in events:
        if from_reason == "Provisioning" and held.pop(topology, None) != job_id:
            wrong.append(f"{job_id} left {topology} without holding it")
        if to_reason == "Provisioning":
            if topology in held:
                wrong.append(f"{job_id} took {topology} from {held[topology]}")
            held[topology] = job_id
    return wrong


def lost_updates(events: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    """Return where a step did not begin at what the one before had written, or the row is not at the last one."""
    now: dict[object, tuple[object, object]] = defaultdict(lambda: ("Pending", None))
    wrong = []
    for job_id, from_reason, to_status, to_reason, _, from_status in events:
        if (from_status, from_reason) not in (now[job_id], ("Aborting", now[job_id][1])):
            wrong.append(f"{job_id} went from {from_status}/{from_reason}, but was at {now[job_id]}")
        now[job_id] = (to_status, to_reason)
    for job_id, _, status, reason, aborting in rows:
        if aborting and status not in ("Aborting", "Aborted"):
            wrong.append(f"the abort of {job_id} was overwritten")
        if (status, reason) not in (now[job_id], ("Aborting", now[job_id][1])):
            wrong.append(f"{job_id} is {status}/{reason}, but went to {now[job_id]}")
    return wrong


def raced(roles: Roles) -> tuple[list[list[tuple[str, int]]], int, tuple[int, int]]:
    """Let the processes race; return the wins of each, the number of tries, and what upstream met."""
    context = multiprocessing.get_context("spawn")
    shared, aside = Race.of(context, TRIES), Race.of(context, TRIES)
    aside.over = shared.over
    controllers = [context.Process(target=race, args=(shared, roles.address(FALCON), n)) for n in range(RACERS)]
    producer = context.Process(target=upstream, args=(aside, roles.address(UPSTREAM)))
    processes = [producer, *controllers]
    try:
        for process in processes:
            process.start()
        wins = [shared.told.get(timeout=SECONDS) for _ in controllers]
        met = aside.told.get(timeout=SECONDS)
        for process in processes:
            process.join(SECONDS)
        assert [0] * len(processes) == [process.exitcode for process in processes]
    finally:
        for process in processes:
            process.kill()
    return wins, shared.tries.value, met  # type: ignore[return-value]


def versions_won(wins: Sequence[Sequence[tuple[str, int]]]) -> Mapping[str, list[int]]:
    """Return the versions of each job that somebody won, in order, twice if two did."""
    versions = defaultdict(list)
    for job_id, version in sorted(win for each in wins for win in each):
        versions[job_id].append(version)
    return versions


def test_the_race_on_rows(roles: Roles, proof: Callable[[int, int], None]) -> None:
    """One winner a version, versions strictly +1, one holder a slot, and nobody in upstream's way (P84, P85, P90)."""
    with MySqlStore(roles.administrator) as store:
        for topology in TOPOLOGIES:
            store.ensure_slot(EnsureSlot("c1", topology))
        for number in range(JOBS):
            assert store.database.unit(lambda run, job=f"j{number}": run.must(INSERT, (job, "ann")))  # type: ignore[misc]
        wins, tries, (done, blocked) = raced(roles)
        rows, events = store.database.rows(ROWS), store.database.rows(EVENTS)
        leases, holding = store.database.rows(OPEN_LEASES), store.database.rows(HOLDING)
        slots = store.database.rows("SELECT holder FROM queue_slots WHERE holder IS NOT NULL")
    won = sum(map(len, wins))
    assert (True, 0) == (done > 100, blocked)
    assert {row[0]: list(range(int(str(row[1])))) for row in rows if row[1]} == versions_won(wins)
    assert (won, [], []) == (len(events), holders(events), lost_updates(events, rows))
    assert holding == leases
    assert {holder for (holder,) in slots} <= {job_id for job_id, _ in holding}
    assert (True, True) == (won > TRIES // 10, all(wins))
    proof(TRIES, min(TRIES, tries))


def test_a_guard_locks_the_row_first(database: str) -> None:
    """A guarded write comes by the primary key, as upstream's statements do, so no two wait for each other (P90)."""
    base = Database(parse_url(database))
    for number in range(20):
        base.unit(lambda run, job=f"j{number}": run.must(INSERT, (job, "ann")))  # type: ignore[misc]
    sql = f"EXPLAIN FORMAT = TRADITIONAL UPDATE job SET version = version + 1 WHERE {GUARD}"
    (plan,) = base.rows(sql, ("j1", 0, "Pending"))
    base.close()
    assert ["PRIMARY", "PRIMARY"] == [value for value in plan if value in ("PRIMARY", "job_status")]
