"""
What size costs, as one table: what was measured, how large it was, the figure, the target, and the machine.

1. A figure is the best of several: what else runs on the machine only makes it worse. Beside it stands the time of the
   processor that it took, a server's excepted: what else runs hardly touches that.
2. The world is the tests' large one, made by Falcon's own passes; the tables are filled by the server itself.
3. plan() is also measured on crowds that are written down: what costs it most, at sizes past the declared one.
"""

import gc
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import demonstration
import private_mysql
from attrs import evolve, frozen
from crowds import jobs_that_lack_room, new_cpu_jobs
from large_world import large_world
from world import Falcon

from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.cloud.rows import read_rows
from falcon_rm.cloud.schema import migrate, sql_files
from falcon_rm.core.model import Snapshot
from falcon_rm.core.plan import plan
from falcon_rm.observe import observe

ROOT = Path(__file__).resolve().parent.parent
TIMES = 3
PASSES, WARM = 10_000, 500
LIVE, OVER = 10_000, 200_000
POOLS, LEASES, EVENTS = 5_000, 10_000, 9_000
COMMANDS = {
    "--help": 0.3,
    "--version": 0.3,
    "status": 1,
    "status -o wide": 1,
    "plan": 1,
    "explain live-5000": 1,
    "events over-5000": 1,
    "events --since 1d": 1,
    "usage": 1,
    "usage --by job": 1,
    "usage --by actor --by day": 1,
    f"usage --picture {os.devnull}": 1,
}
"""What is started, and in how many seconds it should answer."""

APART = """
import sys, time
began = time.perf_counter()
from contextlib import redirect_stdout, suppress
from io import StringIO
from falcon_rm import observe
from falcon_rm.cli import main
read, clouds = observe._read_clusters, []
def timed(*given):
    asked = time.perf_counter()
    try:
        return read(*given)
    finally:
        clouds.append(time.perf_counter() - asked)
observe._read_clusters = timed
sys.argv = ["falcon-rm", *sys.argv[1:]]
with redirect_stdout(StringIO()), suppress(SystemExit):
    main()
print(time.perf_counter() - began - sum(clouds), sum(clouds))
"""
"""A command that tells how long it took without reading the clusters, and how long that took; seconds."""

NUMBERS = """
    WITH digits AS (SELECT 0 n UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION
                    SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9),
         numbers AS (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 100000 * f.n AS n
                     FROM digits a, digits b, digits c, digits d, digits e, digits f WHERE f.n < 2)
"""
FILL_JOBS = f"""
    INSERT INTO job (id, actor, spec, status, reason, message, created_at) {NUMBERS}
    SELECT CONCAT(%s, n), CONCAT('user-', MOD(n, 50)),
           '{{"image": "busybox", "command": "true", "device_type": "v6e", "device_topo": "2x2"}}',
           %s, %s, 'no cluster of type v6e is registered', NOW(6)
    FROM numbers WHERE n < %s
"""
FILL_POOLS = f"""
    INSERT INTO node_pools (cluster_id, name, job_id, attempt, tpu_type, topology, machine_type, hosts, chips, mode,
                            state, requested_at, seen_at, deleted_at) {NUMBERS}
    SELECT 'c', CONCAT('falcon-over-', n), CONCAT('over-', n), 1, 'v6e', '2x2', 'ct6e-standard-4t', 1, 4, 'on-demand',
           'Deleted', NOW(6) - INTERVAL n + 300 MINUTE, NOW(6) - INTERVAL n + 299 MINUTE, NOW(6) - INTERVAL n MINUTE
    FROM numbers WHERE n < %s
"""
FILL_LEASES = f"""
    INSERT INTO pool_leases (cluster_id, pool, job_id, attempt, actor, mode, from_at, running_at, until_at, ended)
    {NUMBERS}
    SELECT 'c', CONCAT('falcon-over-', n DIV 2), CONCAT('over-', n), 1, CONCAT('user-', MOD(n, 50)), 'on-demand',
           NOW(6) - INTERVAL n DIV 2 + 300 - 150 * MOD(n, 2) MINUTE,
           NOW(6) - INTERVAL n DIV 2 + 290 - 150 * MOD(n, 2) MINUTE,
           NOW(6) - INTERVAL n DIV 2 + 160 - 150 * MOD(n, 2) MINUTE, 'released'
    FROM numbers WHERE n < %s
"""
FILL_EVENTS = f"""
    INSERT INTO job_events (job_id, at, from_status, to_status, why, message, attempt) {NUMBERS}
    SELECT CONCAT('over-', n), NOW(6), 'Running', 'Succeeded', 'succeeded', '', 1 FROM numbers WHERE n < %s
"""


CROWDS = {
    "10,000 lack room, 300 pools, 5 clusters": jobs_that_lack_room(10_000, 5, pools=300),
    "10,000 lack room, 1,000 pools, 50 clusters": jobs_that_lack_room(10_000, 50, pools=1000),
    "10,000 can never fit, 50 clusters": jobs_that_lack_room(10_000, 50, machines=0),
    "1,000 new jobs without a TPU, 50 clusters": new_cpu_jobs(1000, 50),
}


@frozen
class Figure:
    """One row of the table."""

    what: str
    size: str
    figure: str
    target: str = ""
    processor: str = ""


@frozen
class Took:
    """How long something took, and how long of that the processor worked for it; seconds."""

    whole: float
    processor: float

    def __sub__(self, other: "Took") -> "Took":
        return Took(self.whole - other.whole, self.processor - other.processor)


def main() -> int:
    """Print the table, a row as soon as it is known."""
    python, cores = platform.python_version(), os.cpu_count()
    servers = [kind for kind in private_mysql.SERVERS if private_mysql.is_there(kind)]
    print(f"{cores} cores, Python {python}, {platform.machine()}, servers: {', '.join(servers)}")
    tell(Figure("what", "size", "figure", "target", "processor"))
    for figure in chain(in_memory(), *map(on_server, servers), memory()):
        tell(figure)
    return 0


def in_memory() -> Iterator[Figure]:
    """Yield what plan() and a pass take in a world at rest."""
    falcon = large_world(jobs=1000, pools=300, clusters=20)
    seen = snapshot_of(falcon)
    size = "1,000 jobs, 300 pools, 20 clusters"
    yield timed("plan()", size, best(lambda: plan(seen)), 0.05)
    waiting = [job for job in seen.jobs if job.reason]
    more = [evolve(job, id=f"{job.id}-{copy}") for copy in range(1, 13) for job in waiting]
    larger = evolve(seen, jobs=tuple(sorted([*seen.jobs, *more][:LIVE], key=lambda job: (job.created_at, job.id))))
    yield timed("plan()", "10,000 jobs, 9,700 of one topology wait", best(lambda: plan(larger)))
    for what, crowd in CROWDS.items():
        yield timed("plan()", what, best(partial(plan, crowd)))
    yield timed("idle pass", size, best(falcon.step))


def snapshot_of(falcon: Falcon) -> Snapshot:
    """Return what a pass sees."""
    return observe(falcon.store, falcon.clouds(), falcon.bounds, seconds=60)


def on_server(kind: str) -> Iterator[Figure]:
    """Yield what reading and commands take on a large table of one server."""
    size = f"{LIVE:,} live rows among {OVER:,}, {kind}"
    with private_mysql.serving(kind, "falcon") as url:
        database = Database(parse_url(url), timeout=300)
        fill(database)
        yield timed("reading the rows", size, best(lambda: read_rows(database)), 0.5)
        for command, target in COMMANDS.items():
            took = best(partial(start, url, "-m", "falcon_rm", *command.split()))
            yield timed(f"falcon-rm {command}", size, took, target)
        yield from with_clusters(url, size)
        database.close()


def with_clusters(url: str, size: str) -> Iterator[Figure]:
    """Yield what plan and explain take where the demonstration's clusters are registered, the clouds' part apart."""
    with demonstration.served() as cloud:
        for words in demonstration.CLUSTERS:
            start(url, "-m", "falcon_rm", "cluster", "add", *words)
        for command in ("plan", "explain live-5000"):
            told = [start(url, "-c", APART, *command.split(), **cloud.environment).split() for _ in range(TIMES)]
            own, clouds = (min(float(column) for column in columns) for columns in zip(*told, strict=True))
            yield Figure(f"falcon-rm {command}, 3 clusters", f"{size}, own part", span(own), span(1))
            yield Figure("clients and calls of the clouds", "the rest of it", span(clouds))


def fill(database: Database) -> None:
    """Make the tables, and fill them: live jobs, those that are over, and the history of as many."""
    migrate(database)
    if not database.has("job"):
        database.rows(sql_files()["job.sql"])
    for name, status, reason, count in (("over-", "Succeeded", None, OVER), ("live-", "Pending", "Waiting", LIVE)):
        database.unit(lambda run, row=(name, status, reason, count): run.must(FILL_JOBS, row))
    for fill_in, count in ((FILL_POOLS, POOLS), (FILL_LEASES, LEASES), (FILL_EVENTS, EVENTS)):
        database.unit(lambda run, sql=fill_in, rows=count: run.must(sql, (rows,)))
    for table in ("job", "node_pools", "pool_leases", "job_events"):
        database.rows(f"ANALYZE TABLE {table}")


def start(url: str, *words: str, **settings: str) -> str:
    """Run Python as a process of its own; return what it prints."""
    there = {"PATH": os.environ["PATH"], "FALCON_DATABASE_URL": url, **settings}
    command = (sys.executable, *words)
    return subprocess.run(command, cwd=ROOT, env=there, stdout=subprocess.PIPE, check=True, text=True).stdout


def memory() -> Iterator[Figure]:
    """Yield what this process holds after large worlds, and what ten thousand passes add."""
    yield Figure("memory", "after all of the above", f"{resident():.0f} MB", "300 MB")
    falcon = large_world(jobs=6, pools=2, clusters=2)
    passes(falcon, WARM)
    before = resident()
    passes(falcon, PASSES)
    yield Figure("growth of memory", f"{PASSES:,} passes", f"{resident() / before - 1:.1%}", "5 %")


def passes(falcon: Falcon, count: int) -> None:
    """Make passes; the simulated cloud's log of calls is no part of what is measured."""
    for _ in range(count):
        falcon.step()
        falcon.sim.calls.clear()
    gc.collect()


def resident() -> float:
    """Return how many MB of this process are in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def best(act: Callable[[], object]) -> Took:
    """Return the least that something took."""
    found = []
    for _ in range(TIMES):
        began = now()
        act()
        found.append(now() - began)
    return Took(min(each.whole for each in found), min(each.processor for each in found))


def now() -> Took:
    """Return what time it is, and how long the processor has worked for this process and those that it awaited."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime)


def timed(what: str, size: str, took: Took, target: float | None = None) -> Figure:
    """Return the row of something that took time."""
    return Figure(what, size, span(took.whole), "" if target is None else span(target), span(took.processor))


def span(seconds: float) -> str:
    """Return seconds for the table."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def tell(row: Figure) -> None:
    """Print a row."""
    print(f"{row.what:37} {row.size:48} {row.figure:>10} {row.processor:>10}  {row.target}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
