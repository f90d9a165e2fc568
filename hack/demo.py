"""
The demonstration: submit hack/demo.d to a real `falcon-rm run` against the simulated cloud, and watch.

1. Everything goes through the commands a person would use, and through the cloud's own protocols.
2. What happens is shown from `job_events`, and the end of pools from `audit_events`, as it happens.
3. It ends when all is quiet: every job terminal, no pool, Job or Service of ours in the simulated cloud.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from demonstration import ABORTS, CLUSTERS, SETTINGS, Cloud, is_over, served, states, submissions, wrongs
from private_mysql import SERVERS, NoServer, serving

from falcon_rm.cloud.database import Database, parse_url
from falcon_rm.report import table

ROOT = Path(__file__).resolve().parent.parent
LIMIT_SECONDS, REAL_LIMIT_SECONDS = 110, 240
"""Until all is to be quiet: a real control plane takes a minute and more to clear the pods of a node that is gone."""
LOOK_SECONDS = 0.3
LONGEST = 110
"""Characters shown of a message while it runs; the table at the end has all of it."""

EVENTS = """
    SELECT id, job_id, CONCAT_WS('/', to_status, to_reason), COALESCE(NULLIF(message, ''), CONCAT('(', why, ')'))
    FROM job_events WHERE id > %s ORDER BY id
"""
POOLS_GONE = """
    SELECT id, SUBSTRING_INDEX(subject, '/', -1), 'node pool gone', text
    FROM audit_events WHERE id > %s AND kind IN ('pool deleted', 'pool lost') ORDER BY id
"""
ENDED = """
    SELECT id, name, CONCAT_WS('/', status, reason), supply_mode, attempt,
           CONCAT(TIMESTAMPDIFF(SECOND, created_at, COALESCE(aborted_at, finished_at)), 's'), message
    FROM job ORDER BY created_at, id
"""


def main() -> int:
    """Run the demonstration; return its exit code."""
    parser = argparse.ArgumentParser(prog="hack/demo", description="Show Falcon at work on a simulated Google Cloud.")
    parser.add_argument("--kubernetes", choices=("simulated", "real"), default="simulated", help="real: hack/kube's")
    parser.add_argument("--database", choices=SERVERS, help="the server to run on; without it the one that is there")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with serving(asked.database, "falcon") as url:
            return demonstrated(url, real_kubernetes=asked.kubernetes == "real")
    except NoServer as error:
        print(f"hack/demo: {error}", file=sys.stderr)
        return 1


def demonstrated(url: str, *, real_kubernetes: bool) -> int:
    """Run it on a database; return the exit code."""
    ((version,),) = Database(parse_url(url)).rows("SELECT VERSION()")
    server = "MariaDB" if "MariaDB" in str(version) else "MySQL"
    tell(f"A private database server, {server} {str(version).partition('-')[0]}, runs until the end.")
    tell(
        "A simulated Google Cloud starts: GKE, Compute and three Kubernetes clusters, four times as fast as real ones."
    )
    with (
        served(real_kubernetes=real_kubernetes) as cloud,
        tempfile.TemporaryDirectory(prefix="falcon-demo-") as directory,
    ):
        os.environ.update(cloud.environment, **SETTINGS, FALCON_DATABASE_URL=url)
        seconds = REAL_LIMIT_SECONDS if real_kubernetes else LIMIT_SECONDS
        return demonstrate(cloud, Path(directory) / "falcon-rm.log", seconds)


def demonstrate(cloud: Cloud, log_path: Path, seconds: int) -> int:
    """Prepare, submit, run until all is quiet, and judge."""
    database = prepare()
    tell(
        "falcon-rm run starts; from here on each line is a change of a job's status or reason, or a pool that is gone."
    )
    with log_path.open("w", encoding="utf-8") as log:
        controller = subprocess.Popen(["falcon-rm", "run"], stderr=log)
        try:
            quiet = watch(database, cloud, controller, seconds)
        finally:
            controller.terminate()
            stopped = controller.wait(timeout=15)
    tell("What is there now, and how each job ended:")
    falcon("status")
    print("\n" + table(("JOB", "NAME", "END", "SUPPLY", "ATTEMPTS", "AFTER", "MESSAGE"), database.rows(ENDED)))
    faults = wrongs(states(database)) + cloud.leftovers()
    if not quiet:
        faults.append(f"not quiet after {seconds} s")
    if stopped:
        faults.append(f"falcon-rm run ended with {stopped}")
    if faults:
        print(*(f"WRONG: {fault}" for fault in faults), sep="\n")
        print(log_path.read_text(encoding="utf-8")[-4000:], file=sys.stderr)
        return 1
    print("\nEvery job ended as it should; no pool, Job or Service of ours is left in the simulated cloud.")
    return 0


def prepare() -> Database:
    """Make the tables, register the clusters, submit the jobs."""
    tell("Falcon's tables; the table `job` is upstream's, made here from its reference form.")
    falcon("db", "migrate")
    database = Database(parse_url(os.environ["FALCON_DATABASE_URL"]))
    database.rows((ROOT / "sql" / "job.sql").read_text(encoding="utf-8"))
    falcon("db", "check")
    tell("Three clusters: two offer v7x, one of them with a reservation of four hosts; one offers v6e.")
    for words in CLUSTERS:
        falcon("cluster", "add", *words)
    tell("Twenty-one jobs of three users.")
    falcon("submit", *(word for path in submissions() for word in ("-f", os.path.relpath(path))))
    return database


def tell(text: str) -> None:
    """Say what comes next."""
    print(f"\n# {text}", flush=True)


def falcon(*arguments: str) -> None:
    """Run a command and show it."""
    print(f"$ falcon-rm {' '.join(arguments)}", flush=True)
    subprocess.run(["falcon-rm", *arguments], check=True)


def watch(database: Database, cloud: Cloud, controller: "subprocess.Popen[bytes]", seconds: int) -> bool:
    """Show each event as it comes, abort what is to be aborted; return whether all became quiet in time."""
    began, aborted = time.monotonic(), set[str]()
    shown = dict.fromkeys((EVENTS, POOLS_GONE), 0)
    while time.monotonic() - began < seconds and controller.poll() is None:
        now = time.monotonic() - began
        for query, last in shown.items():
            for number, subject, what, text in database.rows(query, (last,)):
                shown[query] = int(str(number))
                print(f"{now:6.1f}s  {subject!s:<40}  {what!s:<24}  {shortened(str(text))}", flush=True)
        jobs = states(database)
        for job_id, state in ABORTS.items():
            if jobs[job_id] == state and job_id not in aborted:
                aborted.add(job_id)
                falcon("abort", job_id)
        if is_over(jobs) and not cloud.leftovers():
            return True
        time.sleep(LOOK_SECONDS)
    return False


def shortened(text: str) -> str:
    """Return a message as far as it fits beside the rest."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


if __name__ == "__main__":
    sys.exit(main())
