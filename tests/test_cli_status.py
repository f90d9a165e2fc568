"""The command status: on a database server, on a terminal and off it."""

import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from database_roles import url_for
from test_cli import ADD, JOB, complaint

from falcon_rm import cli_show
from falcon_rm.cli import build, commands
from falcon_rm.cloud.database import Database, parse_url

pytestmark = pytest.mark.usefixtures("kept_log")

Cli = Callable[..., Result]
COLUMNS, LINES = 80, 24


@pytest.fixture
def cli(database: str, controller_url: str) -> Cli:
    """The command line on a database with a cluster and a few jobs."""

    def ask(*arguments: str, **more: str) -> Result:
        app = build({"FALCON_DATABASE_URL": url_for(controller_url, arguments)})
        return CliRunner().invoke(commands, arguments, obj=app, **more)  # type: ignore[arg-type]

    for words in (ADD, ("cluster", "add", "c2", *ADD[3:])):
        assert 0 == ask(*words).exit_code
    jobs = [JOB | {"id": f"{actor}-{number}", "actor": actor} for actor in ("ann", "bob") for number in range(3)]
    assert 0 == ask("submit", "-f", "-", input=json.dumps(jobs)).exit_code
    rows = Database(parse_url(database))
    rows.rows("UPDATE job SET cluster_id = (SELECT id FROM clusters WHERE name = 'c2') WHERE id LIKE '%-2'")
    rows.rows("UPDATE job SET status = 'Running' WHERE id = 'ann-1'")
    rows.close()
    return ask


@pytest.mark.parametrize(
    ("filters", "jobs"),
    [
        ((), {"ann-0", "ann-1", "ann-2", "bob-0", "bob-1", "bob-2"}),
        (("--actor", "ann"), {"ann-0", "ann-1", "ann-2"}),
        (("--cluster", "c2"), {"ann-2", "bob-2"}),
        (("--status", "running"), {"ann-1"}),
        (("--status", "Pending", "--status", "Running", "--actor", "ann"), {"ann-0", "ann-1", "ann-2"}),
        (("--cluster", "c2", "--actor", "bob", "--status", "Pending"), {"bob-2"}),
        (("--status", "Failed"), set()),
    ],
)
def test_filters(cli: Cli, filters: tuple[str, ...], jobs: set[str]) -> None:
    """Every filter alone and together with others chooses jobs; for people, machines and as names."""
    assert jobs == {row["id"] for row in json.loads(cli("status", *filters, "-o", "json").stdout)["jobs"]}
    names = cli("status", *filters, "-o", "name").stdout.split()
    assert jobs == {name.removeprefix("job/") for name in names if name.startswith("job/")}
    assert jobs == set(re.findall(r"^(?:ann|bob)-\d", cli("status", *filters).stdout, re.MULTILINE))


def test_cluster_filter(cli: Cli) -> None:
    """One cluster is shown alone; one that is not there is refused."""
    (row,) = json.loads(cli("status", "--cluster", "c2", "-o", "json").stdout)["clusters"]
    assert ("c2", None) == (row["name"], row["reachable"])
    assert "there is no cluster 'nope'" == complaint(cli("status", "--cluster", "nope"), 1)


def test_watch_of_what_cannot_be_watched(cli: Cli) -> None:
    """Forms for machines are asked for once, and an unknown status is refused with those there are."""
    told = complaint(cli("status", "--watch", "-o", "json"), 64)
    assert "--watch shows tables that fit; it goes with no -o. See 'falcon-rm status --help'." == told
    assert "'On' is not one of 'pending', 'running'" in complaint(cli("status", "--status", "On"), 64)


def test_watch_without_a_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Off a terminal the tables come one after another, plain, until somebody interrupts."""
    pauses = iter((lambda: None, interrupt))

    def pause() -> None:
        next(pauses)()

    monkeypatch.setattr(cli_show, "_pause", pause)
    result = cli("status", "--watch")
    assert (130, "", 2) == (result.exit_code, result.stderr, result.stdout.count("JOBS\n"))
    assert 2 == len(re.findall(r"^\S+Z  jobs: 5 Pending, 1 Running$", result.stdout, re.MULTILINE))
    assert "\x1b" not in result.stdout


def interrupt() -> None:
    """Press Control-C."""
    raise KeyboardInterrupt


class Terminal:
    """A terminal of 80 columns and 24 lines with `falcon-rm` in it."""

    def __init__(self, url: str, *arguments: str) -> None:
        self.screen, inside = pty.openpty()
        ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "falcon_rm", *arguments],
            env={"PATH": os.environ["PATH"], "FALCON_DATABASE_URL": url, "TERM": "xterm"},
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
        )
        os.close(inside)
        self.shown = ""

    def read(self, reached: Callable[[str], bool] = lambda _: False) -> str:
        """Read until something is shown, or to the end; return all that was shown."""
        deadline = time.monotonic() + 30
        while not reached(self.shown):
            assert time.monotonic() < deadline, self.shown
            if select.select([self.screen], [], [], 1)[0]:
                try:
                    self.shown += os.read(self.screen, 65536).decode()
                except OSError:  # Linux says so when the other side is closed
                    break
        return self.shown

    def close(self) -> None:
        """End what runs in it."""
        self.process.kill()
        self.process.wait()
        os.close(self.screen)


@pytest.fixture
def terminal(cli: Cli, controller_url: str) -> Iterator[Callable[..., Terminal]]:
    """Open terminals on the database that *cli* filled."""
    opened: list[Terminal] = []

    def begin(*arguments: str) -> Terminal:
        opened.append(Terminal(controller_url, *arguments))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


def lines_of(text: str) -> list[str]:
    """Return what a terminal's lines hold, without what moves its cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "").split("\n")


def test_watch_in_place(cli: Cli, terminal: Callable[..., Terminal]) -> None:
    """On a terminal the view stands on a screen of its own, is renewed in its place, fits, and is gone at the end."""
    watch = terminal("status", "--watch")
    watch.read(lambda shown: "ann-0" in shown)
    jobs = [JOB | {"id": f"{'long-' * 11}{number}", "actor": "zoe" * 20} for number in range(99)]
    assert 0 == cli("submit", "-f", "-", input=json.dumps(jobs)).exit_code
    watch.read(lambda shown: re.search(r"and \d+ more", shown) is not None)
    watch.process.send_signal(signal.SIGINT)
    shown = watch.read()
    assert (130, 1, 1) == (watch.process.wait(10), shown.count("\x1b[?1049h"), shown.count("\x1b[?1049l"))
    assert shown.endswith("\x1b[?1049l")
    frames = shown.removesuffix("\x1b[?25h\x1b[?1049l").split("\x1b[H")[2:]
    assert len(frames) >= 2
    assert all(len(lines_of(frame)) <= LINES for frame in frames)
    assert all(len(line) <= COLUMNS for frame in frames for line in lines_of(frame))
    assert all("CLUSTERS" in frame and "JOBS" in frame for frame in frames)


def test_watch_when_the_database_goes(cli: Cli, database: str, terminal: Callable[..., Terminal]) -> None:
    """A database that goes away is told in place, and the view comes back with it."""
    del cli
    watch = terminal("status", "--watch")
    watch.read(lambda shown: "ann-0" in shown)
    server = Database(parse_url(database))
    server.rows("RENAME TABLE clusters TO gone")
    watch.read(lambda shown: "the database does not answer, trying again: " in shown)
    server.rows("RENAME TABLE gone TO clusters")
    length = len(watch.shown)
    watch.read(lambda shown: "ann-0" in shown[length:])
    server.close()
    watch.process.send_signal(signal.SIGINT)
    watch.read()
    assert 130 == watch.process.wait(10)


def test_tables_on_a_terminal(cli: Cli, terminal: Callable[..., Terminal]) -> None:
    """Once, too, tables fit the terminal, and nothing moves its cursor."""
    jobs = [JOB | {"id": f"{'long-' * 11}{number}", "actor": "zoe" * 20} for number in range(3)]
    assert 0 == cli("submit", "-f", "-", input=json.dumps(jobs)).exit_code
    shown = terminal("status").read()
    assert "\x1b" not in shown
    assert 70 < max(len(line) for line in lines_of(shown)) <= COLUMNS
    assert "long-" * 11 in cli("status").stdout


def test_names_of_nothing(cli: Cli) -> None:
    """Where nothing is, no name is an empty answer, without an empty line."""
    assert "" == cli("status", "--actor", "nobody", "-o", "name").stdout


def test_output_that_finds_no_room(controller_url: str, cli: Cli) -> None:
    """An answer that a full disk does not take ends the command with one line and exit code 1."""
    del cli
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m falcon_rm status -o name >/dev/full"],
        env={"PATH": os.environ["PATH"], "FALCON_DATABASE_URL": controller_url},
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (1, "error: the answer could not be written: No space left on device\n") == (done.returncode, done.stderr)


def test_output_that_nobody_reads(controller_url: str, cli: Cli, tmp_path: Path) -> None:
    """A pipe whose reader has left ends the command without a trace on stderr."""
    del cli
    errors = tmp_path / "errors"
    command = f"{sys.executable} -m falcon_rm status -o name 2>{errors} | true"
    environment = {"PATH": os.environ["PATH"], "FALCON_DATABASE_URL": controller_url}
    subprocess.run(["bash", "-c", command], env=environment, check=True, timeout=30)
    assert "" == errors.read_text(encoding="utf-8")
