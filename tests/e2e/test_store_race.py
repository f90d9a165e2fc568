"""Eight controllers race for fifty jobs and five slots on a real server, while upstream inserts and aborts."""

import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from attrs import define, field

from falcon_rm.cloud.database import Database, Run, parse_url
from falcon_rm.cloud.rows import LIVE
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.cloud.transaction import GUARD
from falcon_rm.core.actions import NOW, Change, EnsureSlot, GiveUp
from falcon_rm.core.model import Pool
from falcon_rm.core.words import Mode

pytestmark = pytest.mark.every_server

RACERS, JOBS, TRIES = 8, 50, 10_000
TOPOLOGIES = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4")
AT_ONCE = 8
"""How many jobs a racer tries from one look: the later ones are decided on what is old by then."""

LOOK = f"SELECT id, version, status, reason, topology, attempt, node_pool_name FROM job WHERE {LIVE}"
INSERT = "INSERT INTO job (id, actor, spec) VALUES (%s, %s, '{}')"
ABORT = f"UPDATE job SET status = 'Aborting', aborting_at = NOW(6) WHERE id = %s AND {LIVE}"
EVENTS = """
    SELECT e.job_id, e.from_reason, e.to_status, e.to_reason, j.topology
    FROM job_events e JOIN job j ON j.id = e.job_id ORDER BY e.id
"""

Row = Sequence[object]


def next_change(row: Row) -> Change:
    """Return the next step in the life of a job: it goes round until it is aborted."""
    job_id, version, status, reason, topology, attempt, pool = row
    name, queue = str(job_id), None if topology is None else str(topology)
    own = GiveUp(str(pool), False, "yield") if pool else None
    step = partial(
        Change,
        name,
        int(str(version)),
        str(status),
        None if reason is None else str(reason),
        cluster_id=queue and "c1",
        topology=queue,
    )
    if status == "Aborting":
        return step("Aborted", None, "asked", gives_up=own, frees_slot=queue is not None)
    if status == "Running":
        return step("Pending", "Waiting", "again", gives_up=own, columns={"node_pool_name": None})
    if reason == "Provisioning":
        return step("Running", None, "runs", frees_slot=True)
    if reason == "Waiting":
        return claim(name, int(str(version)), str(topology), int(str(attempt)) + 1)
    first = TOPOLOGIES[sum(name.encode()) % len(TOPOLOGIES)]
    return step("Pending", "Waiting", "queued", columns={"cluster_id": "c1", "topology": first})


def claim(job_id: str, version: int, topology: str, attempt: int) -> Change:
    """Return the claim of a slot, with a pool to be made."""
    name = f"falcon-{job_id}-{attempt}"
    pool = Pool("c1", name, job_id, attempt, "v7x", topology, "tpu7x-standard-4t", 1, 4, Mode.ON_DEMAND)
    return Change(
        job_id, version, "Pending", "Waiting", "Pending", "Provisioning", "picked", cluster_id="c1",
        topology=topology, takes_slot="ann", makes=pool, attempt=attempt,
        columns={"attempt": attempt, "node_pool_name": name, "provisioning_at": NOW},
    )  # fmt: skip


@define
class Race:
    """What the racers share: how often they tried, and who won which version of which job."""

    url: str
    tries: int = 0
    wins: list[tuple[str, int]] = field(factory=list)
    lock: threading.Lock = field(factory=threading.Lock)
    over: threading.Event = field(factory=threading.Event)

    def run(self, number: int) -> None:
        """Race until there were enough tries."""
        chance = random.Random(number)
        with MySqlStore.at(self.url) as store:
            while not self.over.is_set():
                rows = store.database.rows(LOOK)
                for row in chance.sample(rows, min(AT_ONCE, len(rows))):
                    change = next_change(row)
                    won = store.commit(change)
                    with self.lock:
                        self.tries += 1
                        if won:
                            self.wins.append((change.job_id, change.version))
                        if self.tries >= TRIES:
                            self.over.set()

    def upstream(self) -> tuple[int, int]:
        """Insert and abort all the while; return how often, and how often a lock was in the way."""
        database, done, blocked = Database(parse_url(self.url)), 0, 0
        while not self.over.wait(0.01):
            for sql, arguments in ((INSERT, (f"u{done}", "bob")), (ABORT, (f"u{max(0, done - 5)}",))):
                blocked += not database.unit(lambda run, ask=(sql, arguments): written(run, *ask))  # type: ignore[misc]
            done += 1
        database.close()
        return done, blocked


def written(run: Run, sql: str, arguments: Sequence[str]) -> None:
    """Carry out a statement that may match no row."""
    run.write(sql, arguments)


def holders(events: Sequence[Row]) -> list[str]:
    """Return where a slot was taken while another held it, or left by one who did not hold it."""
    held: dict[object, object] = {}
    wrong = []
    for job_id, from_reason, _, to_reason, topology in events:
        if from_reason == "Provisioning" and held.pop(topology, None) != job_id:
            wrong.append(f"{job_id} left {topology} without holding it")
        if to_reason == "Provisioning":
            if topology in held:
                wrong.append(f"{job_id} took {topology} from {held[topology]}")
            held[topology] = job_id
    return wrong


def test_the_race_on_rows(database: str) -> None:
    """One winner a version, versions strictly +1, one holder a slot, and nobody in upstream's way (P84, P85, P90)."""
    race = Race(database)
    with MySqlStore.at(database) as store:
        for topology in TOPOLOGIES:
            store.ensure_slot(EnsureSlot("c1", topology))
        for number in range(JOBS):
            assert store.database.unit(lambda run, job=f"j{number}": run.must(INSERT, (job, "ann")))  # type: ignore[misc]
        with ThreadPoolExecutor(RACERS + 1) as pool:
            racers = [pool.submit(race.run, number) for number in range(RACERS)]
            producer = pool.submit(race.upstream)
            for racer in racers:
                try:
                    racer.result(120)
                finally:
                    race.over.set()
        done, blocked = producer.result(30)
        versions: dict[str, list[int]] = {}
        for job_id, version in race.wins:
            versions.setdefault(job_id, []).append(version)
        final = {
            str(job_id): int(str(version)) for job_id, version in store.database.rows("SELECT id, version FROM job")
        }
        events = store.database.rows(EVENTS)
        leases = store.database.rows("SELECT job_id, pool FROM pool_leases WHERE until_at IS NULL ORDER BY job_id")
        holding = store.database.rows(
            f"SELECT id, node_pool_name FROM job WHERE {LIVE} AND node_pool_name IS NOT NULL ORDER BY id"
        )
        slots = store.database.rows("SELECT holder FROM queue_slots WHERE holder IS NOT NULL")
    assert (True, 0) == (done > 100, blocked)
    assert {job_id: list(range(last)) for job_id, last in final.items() if last} == {
        job_id: sorted(won) for job_id, won in versions.items()
    }
    assert (len(race.wins), []) == (len(events), holders(events))
    assert holding == leases
    assert {holder for (holder,) in slots} <= {job_id for job_id, _ in holding}
    assert race.tries >= TRIES
    assert len(race.wins) > TRIES // 10


def test_a_guard_locks_the_row_first(database: str) -> None:
    """A guarded write comes by the primary key, as upstream's statements do, so no two wait for each other (P90)."""
    base = Database(parse_url(database))
    for number in range(20):
        base.unit(lambda run, job=f"j{number}": run.must(INSERT, (job, "ann")))  # type: ignore[misc]
    sql = f"EXPLAIN FORMAT = TRADITIONAL UPDATE job SET version = version + 1 WHERE {GUARD}"
    (plan,) = base.rows(sql, ("j1", 0, "Pending"))
    base.close()
    assert ["PRIMARY", "PRIMARY"] == [value for value in plan if value in ("PRIMARY", "job_status")]
