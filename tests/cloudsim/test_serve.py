"""`hack/cloudsim/serve`: a simulated cloud in a process of its own, as the demonstration runs it."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SERVE = Path(__file__).parents[2] / "hack" / "cloudsim" / "serve"
PATH = "projects/sim-project/locations/us-central1/clusters/alpha"
SCENARIO = {
    "speed": 5,
    "tempo": "brisk",
    "clusters": [{"path": PATH, "zones": ["us-central1-a"]}],
    "reservations": [
        {"project": "sim-project", "zone": "us-central1-a", "name": "r", "machine_type": "ct6e-standard-4t", "count": 2}
    ],
    "scripts": {"job-1": {"seconds": 3, "exit_code": 1}},
    "acts": [{"do": "set_quota", "args": {"project": "sim-project", "machine": "tpu7x-standard-4t", "chips": 8}}],
}
CLIENT = f"""
import os
from google.cloud import container_v1
client = container_v1.ClusterManagerClient(client_options={{"api_endpoint": os.environ["FALCON_GKE_ENDPOINT"]}})
print(client.get_cluster(name="{PATH}", retry=None, timeout=10).name)
"""
Started = tuple["subprocess.Popen[str]", dict[str, Any]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[dict[str, Any]], Started]]:
    """Start `serve` on a scenario; answers the process and what it printed."""
    begun: list[subprocess.Popen[str]] = []

    def run(scenario: dict[str, Any]) -> Started:
        path = tmp_path / "scenario.json"
        path.write_text(json.dumps(scenario), encoding="utf-8")
        pipe = subprocess.PIPE
        process = subprocess.Popen([sys.executable, SERVE, path], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        begun.append(process)
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline() or "{}")

    yield run
    for process in begun:
        process.kill()
        process.communicate(timeout=10)


def ask(url: str, body: object = None) -> Any:
    """Send a GET, or a POST with a JSON body; answers the JSON that comes back."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
        return json.load(answer)


def test_another_process_uses_it_by_environment_alone(start: Callable[[dict[str, Any]], Started]) -> None:
    """A client with the printed environment reaches the cloud, and /state shows its call."""
    _, said = start(SCENARIO)
    environment = {**os.environ, **said["environment"]}
    ran = subprocess.run([sys.executable, "-c", CLIENT], env=environment, capture_output=True, timeout=60, check=False)

    assert (0, "alpha\n") == (ran.returncode, ran.stdout.decode()), ran.stderr.decode()
    assert {"gke.get_cluster": {PATH: 1}} == ask(said["admin"] + "/state")["calls"]


def test_acts_change_the_world_and_mistakes_are_told(start: Callable[[dict[str, Any]], Started]) -> None:
    """A known act is done and shows in /state without a call; an unknown one and wrong arguments are 400."""
    _, said = start(SCENARIO)
    pool = {"name": "by-hand", "initialNodeCount": 1, "config": {"machineType": "e2-standard-4"}}
    ask(said["admin"] + "/act", {"do": "create_pool", "args": {"path": PATH, "node_pool": pool}})
    state = ask(said["admin"] + "/state")

    assert "by-hand" in [found["name"] for found in state["clusters"][PATH]["pools"]]
    assert {} == state["calls"]
    for wrong in ({"do": "fork"}, {"do": "advance", "args": {"hours": 1}}, ["advance"], {}):
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            ask(said["admin"] + "/act", wrong)
        refused.value.close()


@pytest.mark.parametrize("how", ["input", "signal"])
def test_it_ends_with_its_caller(start: Callable[[dict[str, Any]], Started], how: str) -> None:
    """When its input is closed, or on SIGTERM, it ends well and quickly."""
    process, _ = start(SCENARIO)
    if how == "signal":
        process.send_signal(signal.SIGTERM)
    else:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None

    assert 0 == process.wait(timeout=10)


def test_it_ends_when_its_caller_dies(tmp_path: Path) -> None:
    """Started in the background by a shell, it ends when the shell is killed."""
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps(SCENARIO), encoding="utf-8")
    line = f"'{sys.executable}' '{SERVE}' '{scenario}' </dev/null & wait"
    shell = subprocess.Popen(["sh", "-c", line], stdout=subprocess.PIPE, text=True)
    assert shell.stdout is not None
    assert "environment" in json.loads(shell.stdout.readline())
    shell.kill()

    assert "" == shell.communicate(timeout=10)[0]


def test_its_clock_runs(start: Callable[[dict[str, Any]], Started]) -> None:
    """Time passes in the world at the scenario's speed."""
    _, said = start({**SCENARIO, "speed": 1000})
    first = ask(said["admin"] + "/state")["now"]
    until = time.monotonic() + 10
    while (now := ask(said["admin"] + "/state")["now"]) < first + 100 and time.monotonic() < until:
        pass

    assert now >= first + 100


@pytest.mark.parametrize(
    ("scenario", "said"),
    [({"sped": 2}, "unknown: sped"), ({"tempo": {"pace": 1}}, "pace"), ({"scripts": {"j": {"exit": 1}}}, "exit")],
)
def test_a_wrong_scenario_is_one_line(
    start: Callable[[dict[str, Any]], Started], scenario: dict[str, Any], said: str
) -> None:
    """A scenario that cannot be is one line on stderr and exit 64."""
    process, _ = start(scenario)
    _, errors = process.communicate(timeout=10)

    assert (64, 1, True) == (process.returncode, errors.count("\n"), said in errors)
