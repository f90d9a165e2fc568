"""
`falcon-rm` as processes of the operating system, on a real server and a simulated cloud that is a process itself.

1. Importing the clients of three clouds takes seconds: a Site starts processes as forks of one that has done it.
2. What a test looks at is the database, the cloud's own state, files that the processes wrote, and exit codes.
3. Whatever is awaited has a deadline, and every process ends with its Site.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import demonstration
from attrs import define, field, frozen
from click.testing import CliRunner
from database_roles import url_for
from demonstration import Cloud, served

from falcon_rm.cli import build, commands

COMMAND = (sys.executable, "-m", "falcon_rm")
WARM = Path(__file__).with_name("warm_falcon.py")
LOOK_SECONDS = 0.02
PROJECT = "falcon-demo"
V6E, V7X = (
    f"projects/{PROJECT}/locations/{zone}/clusters/{name}"
    for zone, name in (("us-east1-d", "tpuv6e"), ("us-central1-c", "tpuv7x"))
)
SCENARIO: Mapping[str, Any] = {
    "speed": 2,
    "tempo": "brisk",
    "clusters": [{"path": V6E}, {"path": V7X}],
    "reservations": [
        {"project": PROJECT, "zone": "us-central1-c", "name": "r", "machine_type": "tpu7x-standard-4t", "count": 4}
    ],
    "otherwise": {"seconds": 3},
}
"""Two clusters, each within a few seconds of everything."""

QUICK = {"FALCON_INTERVAL": "0.2s", "FALCON_VISIBILITY_GRACE": "1s", "FALCON_BACKOFF_BASE": "1s", "FALCON_LANG": "en"}
"""Bounds that fit such a cloud."""


@frozen
class Ended:
    """A process that ended: its exit code, negative for a signal, and what it wrote."""

    code: int
    out: str
    err: str


@frozen
class Process:
    """A process that a Site started; its files begin with *base*."""

    pid: int
    base: Path

    def wait(self, seconds: float = 30) -> Ended:
        """Wait for its end."""
        code = self.base.with_suffix(".code")
        until(code.exists, seconds)
        out, err = (self.base.with_suffix(end).read_text(encoding="utf-8") for end in (".out", ".err"))
        return Ended(int(code.read_text(encoding="utf-8")), out, err)

    def lines(self) -> list[dict[str, Any]]:
        """Return the log so far; a line that is being written does not count."""
        *whole, _ = self.base.with_suffix(".err").read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in whole]

    def made_a_pass(self) -> bool:
        """Return whether it finished a pass."""
        return any(line["message"] == "Finished pass" for line in self.lines())

    def struck(self) -> str | None:
        """Return the name of the call at which its strike fell, if it has."""
        told = self.base.with_suffix(".struck")
        return told.read_text(encoding="utf-8") or None if told.exists() else None

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal, if it is still there."""
        if not self.base.with_suffix(".code").exists():
            os.kill(self.pid, number)


@define
class Site:
    """A cloud, and processes that use it."""

    cloud: Cloud
    folder: Path
    _warm: "subprocess.Popen[str]"
    _numbers: Iterator[int] = field(factory=count)
    _started: list[Process] = field(factory=list)

    def begin(self, url: str, *arguments: str, **settings: str) -> Process:
        """Start `falcon-rm` with these arguments on a database."""
        return self.begin_struck({}, url, *arguments, **settings)

    def begin_struck(self, strike: Mapping[str, Any], url: str, *arguments: str, **settings: str) -> Process:
        """Start a process to which something happens: *strike* has fields of outgoing.Strike."""
        base = self.folder / f"falcon-{next(self._numbers)}"
        ask = {
            "arguments": arguments,
            "environment": environment(self.cloud, url_for(url, arguments), **settings),
            "strike": strike,
            **{kind: str(base.with_suffix(f".{kind}")) for kind in ("out", "err", "code", "struck")},
        }
        assert self._warm.stdin is not None
        assert self._warm.stdout is not None
        base.with_suffix(".err").touch()
        self._warm.stdin.write(json.dumps(ask) + "\n")
        self._warm.stdin.flush()
        process = Process(int(self._warm.stdout.readline()), base)
        self._started.append(process)
        return process

    def falcon(self, url: str, *arguments: str, **settings: str) -> Ended:
        """Run `falcon-rm` to its end."""
        return self.begin(url, *arguments, **settings).wait()

    def end_all(self) -> None:
        """End what still runs."""
        for process in self._started:
            process.kill()
            process.wait()


@contextmanager
def site(folder: Path, scenario: Mapping[str, Any] | Path = SCENARIO) -> Iterator[Site]:
    """Open a site; a scenario is a file, or what it is to hold."""
    path = scenario if isinstance(scenario, Path) else folder / "scenario.json"
    if path != scenario:
        path.write_text(json.dumps(scenario), encoding="utf-8")
    with (
        served(path) as cloud,
        subprocess.Popen(
            [sys.executable, WARM],
            env={"PATH": os.environ["PATH"], **cloud.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as warm,
    ):
        opened = Site(cloud, folder, warm)
        try:
            yield opened
        finally:
            opened.end_all()


def environment(cloud: Cloud, url: str, **settings: str) -> dict[str, str]:
    """Return the environment of a process that uses a cloud and a database."""
    return {"PATH": os.environ["PATH"], **cloud.environment, "FALCON_DATABASE_URL": url, **QUICK, **settings}


def people(url: str, *arguments: str, text: str | None = None) -> None:
    """Do what upstream or an operator does, in this process; it must succeed."""
    app = build({"FALCON_DATABASE_URL": url_for(url, arguments)})
    done = CliRunner().invoke(commands, arguments, input=text, obj=app)
    assert 0 == done.exit_code, done.output


def add_clusters(url: str) -> None:
    """Register the two clusters of SCENARIO."""
    for path, tpu_type, *more in ((V6E, "v6e"), (V7X, "v7x", "--default-reservation", "r")):
        _, project, _, location, _, name = path.split("/")
        people(url, "cluster", "add", name, "--project", project, "--location", location, "--tpu-type", tpu_type, *more)


def begin_demonstration(url: str) -> None:
    """Register the clusters of the demonstration, and submit its load."""
    for words in demonstration.CLUSTERS:
        people(url, "cluster", "add", *words)
    people(url, "submit", *(word for path in demonstration.submissions() for word in ("-f", str(path))))


def until(reached: Callable[[], object], seconds: float) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(LOOK_SECONDS)


def told(state: Mapping[str, Any], log: str, prefix: str) -> int:
    """Return how many calls (or effects) there were whose name begins so."""
    return sum(sum(targets.values()) for name, targets in state[log].items() if name.startswith(prefix))
