"""
What the demonstration is made of: a simulated cloud in a process of its own, three clusters, the submissions of demo.d,
and how it must end. `hack/demo` shows it to people; the tests of processes run the same load.

1. The cloud is reached by environment alone; `admin` is for those who stage it and look at it.
2. What is left is what the cloud says of itself, not what Falcon believes.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen

from falcon_rm.cloud.database import Database

HERE = Path(__file__).resolve().parent
SUBMISSIONS = HERE / "demo.d"
SCENARIO = SUBMISSIONS / "scenario.yaml"

SETTINGS = {"FALCON_INTERVAL": "1", "FALCON_POD_START_IMAGE": "8s", "FALCON_LOG_FORMAT": "json"}
WHERE = ("--project", "falcon-demo", "--gcs-bucket", "demo-logs", "--location")
CLUSTERS = (
    ("tpuv7x-64-node", *WHERE, "us-central1", "--tpu-type", "v7x", "--default-reservation", "demo-reservation"),
    ("tpuv7x-spill", *WHERE, "us-east5-b", "--tpu-type", "v7x", "--endpoint", "dns"),
    ("tpuv6e-16-node", *WHERE, "us-east1-d", "--tpu-type", "v6e"),
)
"""What `falcon-rm cluster add` is told."""

ABORTS = {"job-ab0rt00001": "Pending/Provisioning", "job-ab0rt00002": "Running"}
"""When a person aborts a job: as soon as it stands there."""

TERMINAL = {"Succeeded", "Failed", "Aborted"}


@frozen
class Cloud:
    """A simulated cloud that runs."""

    environment: Mapping[str, str]
    admin: str

    def state(self) -> Mapping[str, Any]:
        """Return what there is in it, and what was asked of it."""
        answer: Mapping[str, Any] = self._ask("state")
        return answer

    def act(self, name: str, **arguments: Any) -> None:
        """Do one thing to it."""
        self._ask("act", {"do": name, "args": arguments})

    def leftovers(self) -> list[str]:
        """Return the pools, Jobs and Services of ours in it."""
        found = []
        for path, held in self.state()["clusters"].items():
            names = [("pool", pool["name"]) for pool in held["pools"]]
            names += [(kind, item["metadata"]["name"]) for kind in ("jobs", "services") for item in held[kind]]
            found += [f"{kind} {path}/{name}" for kind, name in names if name.startswith("falcon-")]
        return found

    def _ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{self.admin}/{path}", data), timeout=10) as answer:
            return json.load(answer)


@contextmanager
def served(scenario: Path = SCENARIO, *, real_kubernetes: bool = False) -> Iterator[Cloud]:
    """Serve a simulated cloud for as long as the context lasts; its Kubernetes may be real control planes."""
    options = ["--real-kubernetes"] if real_kubernetes else []
    command = [sys.executable, str(HERE / "cloudsim" / "serve"), *options, str(scenario)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        try:
            yield Cloud(said["environment"], said["admin"])
        finally:
            process.terminate()
            process.wait(timeout=10)


def submissions() -> list[Path]:
    """Return the files to submit, in their order."""
    return sorted(SUBMISSIONS.glob("[0-9]*.yaml"))


def states(database: Database) -> dict[str, str]:
    """Return job id -> Status or Status/Reason."""
    rows = database.rows("SELECT id, status, reason FROM job ORDER BY created_at, id")
    return {str(job): f"{status}/{reason}" if reason else str(status) for job, status, reason in rows}


def is_over(states: Mapping[str, str]) -> bool:
    """Return whether every job has ended."""
    return {state.partition("/")[0] for state in states.values()} <= TERMINAL


def wrongs(states: Mapping[str, str]) -> list[str]:
    """Return which jobs of the demonstration did not end as they should."""
    expected: dict[str, str] = yaml.safe_load((SUBMISSIONS / "expected.yaml").read_text(encoding="utf-8"))
    jobs = sorted(expected.keys() | states.keys())
    return [
        f"{job} is {states.get(job)}, not {expected.get(job)}" for job in jobs if states.get(job) != expected.get(job)
    ]
