"""
The demonstration: submit hack/demo.d to a real `falcon-rm run` against the simulated cloud, and watch.

1. Everything goes through the commands a person would use, and through the cloud's own protocols.
2. What happens is shown from `job_events`, as it happens.
3. It ends when all is quiet: every job terminal, no pool, Job or Service of ours in the simulated cloud.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from falcon_rm.cloud.database import Database, parse_url

HERE = Path(__file__).resolve().parent
SUBMISSIONS = HERE / "demo.d"
LIMIT_SECONDS = 110
LOOK_SECONDS = 0.3
TERMINAL = {"Succeeded", "Failed", "Aborted"}
SETTINGS = {"FALCON_INTERVAL": "1", "FALCON_POD_START_IMAGE": "8s", "FALCON_LOG_FORMAT": "json"}
CLUSTERS = (
    ("tpuv7x-64-node", "us-central1", "v7x", ("--default-reservation", "demo-reservation")),
    ("tpuv7x-spill", "us-east5-b", "v7x", ("--endpoint", "dns")),
    ("tpuv6e-16-node", "us-east1-d", "v6e", ()),
)
ABORTS = {"job-ab0rt00001": ("Pending", "Provisioning"), "job-ab0rt00002": ("Running", None)}
"""When a person aborts a job: as soon as it stands there."""


def main() -> int:
    """Run the demonstration; return its exit code."""
    with tempfile.TemporaryDirectory(prefix="falcon-demo-") as directory:
        log_path = Path(directory) / "falcon-rm.log"
        cloud = subprocess.Popen(
            [sys.executable, HERE / "cloudsim" / "serve", SUBMISSIONS / "scenario.yaml"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert cloud.stdout is not None
        said = json.loads(cloud.stdout.readline())
        os.environ.update(said["environment"], **SETTINGS)
        try:
            return demonstrate(said["admin"], log_path)
        finally:
            cloud.terminate()
            cloud.wait(timeout=10)


def demonstrate(admin: str, log_path: Path) -> int:
    """Prepare, submit, run until all is quiet, and judge."""
    falcon("db", "migrate")
    database = Database(parse_url(os.environ["FALCON_DATABASE_URL"]))
    database.rows((HERE.parent / "sql" / "job.sql").read_text(encoding="utf-8"))
    falcon("db", "check")
    for name, location, tpu_type, more in CLUSTERS:
        where = (
            "--project",
            "falcon-demo",
            "--location",
            location,
            "--tpu-type",
            tpu_type,
            "--gcs-bucket",
            "demo-logs",
        )
        falcon("cluster", "add", name, *where, *more)
    files = sorted(SUBMISSIONS.glob("[0-9]*.yaml"))
    falcon("submit", *(part for path in files for part in ("-f", str(path))))
    with log_path.open("w", encoding="utf-8") as log:
        controller = subprocess.Popen(["falcon-rm", "run"], stderr=log)
        try:
            quiet = watch(database, admin, controller)
        finally:
            controller.terminate()
            stopped = controller.wait(timeout=15)
    print()
    falcon("status")
    faults = judge(database, admin)
    if not quiet:
        faults.append(f"not quiet after {LIMIT_SECONDS} s")
    if stopped:
        faults.append(f"falcon-rm run ended with {stopped}")
    if faults:
        print(*(f"WRONG: {fault}" for fault in faults), sep="\n")
        print(log_path.read_text(encoding="utf-8")[-4000:], file=sys.stderr)
        return 1
    print("\nEvery job ended as it should; no pool, Job or Service of ours is left in the simulated cloud.")
    return 0


def falcon(*arguments: str) -> None:
    """Run a command and show it."""
    print(f"$ falcon-rm {' '.join(arguments)}", flush=True)
    subprocess.run(["falcon-rm", *arguments], check=True)


def watch(database: Database, admin: str, controller: "subprocess.Popen[bytes]") -> bool:
    """Show each event as it comes, abort what is to be aborted; return whether all became quiet in time."""
    began, last, aborted = time.monotonic(), 0, set[str]()
    while time.monotonic() - began < LIMIT_SECONDS and controller.poll() is None:
        rows = database.rows(
            "SELECT id, job_id, to_status, to_reason, message FROM job_events WHERE id > %s ORDER BY id", (last,)
        )
        for number, job_id, status, reason, message in rows:
            last = int(str(number))
            state = f"{status}/{reason}" if reason else f"{status}"
            print(
                f"{time.monotonic() - began:6.1f}s  {job_id:<36.36}  {state:<24}  {str(message or '')[:90]}", flush=True
            )
        jobs = states(database)
        for job_id, when in ABORTS.items():
            if jobs[job_id] == when and job_id not in aborted:
                aborted.add(job_id)
                falcon("abort", job_id)
        if {status for status, _ in jobs.values()} <= TERMINAL and not leftovers(admin):
            return True
        time.sleep(LOOK_SECONDS)
    return False


def states(database: Database) -> dict[str, tuple[str, str | None]]:
    """Return job id -> (status, reason)."""
    return {
        str(i): (str(s), None if r is None else str(r))
        for i, s, r in database.rows("SELECT id, status, reason FROM job")
    }


def leftovers(admin: str) -> list[str]:
    """Return the pools, Jobs and Services of ours in the simulated cloud."""
    with urllib.request.urlopen(f"{admin}/state", timeout=10) as answer:
        clusters: dict[str, Any] = json.load(answer)["clusters"]
    found = []
    for path, held in clusters.items():
        found += [f"pool {path}/{pool['name']}" for pool in held["pools"] if pool["name"].startswith("falcon-")]
        for kind in ("jobs", "services"):
            found += [f"{kind} {path}/{item['metadata']['name']}" for item in held[kind]]
    return found


def judge(database: Database, admin: str) -> list[str]:
    """Return what is not as it should be."""
    expected: dict[str, str] = yaml.safe_load((SUBMISSIONS / "expected.yaml").read_text(encoding="utf-8"))
    actual = {job: f"{status}/{reason}" if reason else status for job, (status, reason) in states(database).items()}
    wrong = [f"{job} is {actual.get(job)}, not {want}" for job, want in expected.items() if actual.get(job) != want]
    wrong += [f"{job} was not expected" for job in actual.keys() - expected.keys()]
    return wrong + leftovers(admin)


if __name__ == "__main__":
    sys.exit(main())
