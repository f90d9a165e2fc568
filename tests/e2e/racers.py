"""
Controllers and upstream as processes of their own that race for rows: what each of them does until it is over.

Nothing here needs pytest: a process that races imports this file and the store, and nothing else.
"""

import random
from collections.abc import Sequence
from functools import partial
from multiprocessing.context import SpawnContext
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event

from attrs import define

from falcon_rm.cloud.database import Address, Database, Run
from falcon_rm.cloud.rows import LIVE
from falcon_rm.cloud.store import MySqlStore
from falcon_rm.core.actions import NOW, Change, GiveUp
from falcon_rm.core.model import Pool
from falcon_rm.core.words import Mode

TOPOLOGIES = ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4")
AT_ONCE = 8
"""How many jobs a racer tries from one look: the later ones are decided on what is old by then."""

LOOK = f"SELECT id, version, status, reason, topology, attempt, node_pool_name FROM job WHERE {LIVE}"
INSERT = "INSERT INTO job (id, actor, spec) VALUES (%s, %s, '{}')"
ABORT = f"UPDATE job SET status = 'Aborting', aborting_at = NOW(6) WHERE id = %s AND {LIVE}"

Row = Sequence[object]
Win = tuple[str, int]


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
    """What the processes share: how many tries there were, what each has to tell, and whether it is over."""

    most: int
    tries: "Synchronized[int]"
    told: "Queue[object]"
    over: Event

    @classmethod
    def of(cls, context: SpawnContext, most: int) -> "Race":
        """Return a race of so many tries."""
        return cls(most, context.Value("q", 0), context.Queue(), context.Event())


def race(shared: Race, at: Address, number: int) -> None:
    """Try next steps of jobs until there were enough tries; tell which versions of which jobs were won."""
    chance, wins = random.Random(number), list[Win]()
    with MySqlStore(Database(at)) as store:
        while not shared.over.is_set():
            rows = store.database.rows(LOOK)
            for row in chance.sample(rows, min(AT_ONCE, len(rows))):
                change = next_change(row)
                if store.commit(change):
                    wins.append((change.job_id, change.version))
                with shared.tries.get_lock():
                    shared.tries.value += 1
            if shared.tries.value >= shared.most:
                shared.over.set()
    shared.told.put(wins)


def upstream(shared: Race, at: Address) -> None:
    """Insert and abort all the while; tell how often, and how often a lock or a deadlock was in the way."""
    database, done, blocked = Database(at), 0, 0
    while not shared.over.wait(0.01):
        for sql, arguments in ((INSERT, (f"u{done}", "bob")), (ABORT, (f"u{max(0, done - 5)}",))):
            blocked += not database.unit(partial(_written, sql=sql, arguments=arguments))
        done += 1
    database.close()
    shared.told.put((done, blocked))


def _written(run: Run, sql: str, arguments: Sequence[str]) -> None:
    """Carry out a statement that may match no row."""
    run.write(sql, arguments)
