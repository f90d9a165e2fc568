"""
A private Prometheus: Debian's programs, unpacked into an ignored folder, and a server that is gone with its caller.

1. Nothing is installed and no service is set up: what is on PATH is used, else Debian's package is unpacked.
2. What was got stays, and is used again without a network.
3. A server listens on loopback alone, keeps its data in a folder of its caller, and ends with the block.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "prometheus"
PACKAGE = "prometheus"
DOWNLOAD = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", PACKAGE]
ASK_SECONDS, GET_SECONDS, START_SECONDS, STOP_SECONDS = 10, 300, 30, 10


class NoPrometheus(Exception):
    """It is not there and could not be got, or did not start; the text says why."""


def find(program: str) -> str | None:
    """Return the path of `prometheus` or `promtool`, if it is there."""
    return shutil.which(program) or shutil.which(program, path=str(CACHE / "usr" / "bin"))


def is_there() -> bool:
    """Return whether both programs can be run without getting anything."""
    return None not in (find("prometheus"), find("promtool"))


def get() -> None:
    """Get the programs where they are missing. Raises NoPrometheus."""
    if is_there():
        return
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NoPrometheus(f"no prometheus on PATH; it is got from Debian's package {PACKAGE} alone")
    CACHE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        if not _run(DOWNLOAD, folder) and os.geteuid() == 0:
            _run(["apt-get", "update", "-qq"], folder)
            _run(DOWNLOAD, folder)
        archive = next(Path(folder).glob("*.deb"), None)
        if archive is None or not _run(["dpkg-deb", "-x", str(archive), "root"], folder):
            raise NoPrometheus(f"Debian's package {PACKAGE} could not be downloaded; apt-get's words stand above")
        if not CACHE.exists():
            (Path(folder) / "root").rename(CACHE)


def _run(command: list[str], folder: str) -> bool:
    return subprocess.run(command, cwd=folder, stdout=sys.stderr, check=False, timeout=GET_SECONDS).returncode == 0


def promtool(*arguments: str, text: str | None = None) -> "subprocess.CompletedProcess[str]":
    """Run promtool to its end."""
    command = [find("promtool") or "promtool", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


@frozen
class Server:
    """A Prometheus that runs."""

    address: str

    def ask(self, path: str, **arguments: object) -> Any:
        """Return the data of an answer of its API."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=ASK_SECONDS) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series that an expression has now."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def range(self, expression: str, *, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """Return the series that an expression has over a time."""
        found: list[dict[str, Any]] = self.ask("query_range", query=expression, start=start, end=end, step=step)[
            "result"
        ]
        return found

    def is_ready(self) -> bool:
        """Return whether it answers queries."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=ASK_SECONDS) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def free_address() -> str:
    """Return an address of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def scraping(target: str, folder: Path, *, rules: Path | None = None) -> Iterator[Server]:
    """
    Scrape HOST:PORT every second for as long as the block lasts, and judge by these rules.

    Raises:
        NoPrometheus: there is none, or it does not start.
    """
    program, address = find("prometheus"), free_address()
    if program is None:
        raise NoPrometheus("no prometheus: hack/telemetry --get gets one")
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "5s"},
        "rule_files": [str(rules)] if rules else [],
        "scrape_configs": [{"job_name": "falcon", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(settings), encoding="utf-8")
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    with (
        (folder / "prometheus.log").open("wb") as log,
        subprocess.Popen([program, *options, f"--web.listen-address={address}"], stdout=log, stderr=log) as process,
    ):
        server = Server(address)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not server.is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise NoPrometheus((folder / "prometheus.log").read_text(encoding="utf-8")[-500:])
                time.sleep(0.1)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
