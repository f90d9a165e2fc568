"""The private server ends with its caller, and says where it is."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import private_mysql
import pytest
import unpacked_mysql

from falcon_rm.cloud.database import Database, parse_url

HACK = Path(private_mysql.__file__).parent

PATIENCE = 30


def becomes(condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds, within a bound."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def socket_of(url: str) -> Path:
    """Return the socket that a URL names."""
    return Path(url.partition("unix_socket=")[2].strip())


def test_runs_a_command_beside_a_server() -> None:
    """The command finds the database in its environment; its exit code is the answer, and nothing is left."""
    code = "import os, private_mysql, pymysql; print(os.environ['FALCON_DATABASE_URL']); raise SystemExit(7)"
    command = [sys.executable, str(HACK / "mysql"), "--", sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(HACK)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (7, "") == (done.returncode, done.stderr)
    assert not socket_of(done.stdout).parent.exists()


def test_ends_when_told() -> None:
    """SIGTERM ends the server too, and removes its data."""
    with subprocess.Popen([sys.executable, HACK / "mysql"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        socket = socket_of(process.stdout.readline())
        assert socket.is_socket()
        process.terminate()
        process.wait(PATIENCE)
    assert (143, False) == (process.returncode, socket.parent.exists())


def test_ends_with_a_caller_that_is_killed() -> None:
    """A caller that cannot clean up leaves no server; its data goes with the next start."""
    with subprocess.Popen([sys.executable, HACK / "mysql"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = socket_of(process.stdout.readline()).parent
        server = int((folder / "pid").read_text())
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    assert becomes(lambda: not Path(f"/proc/{server}").exists())
    private_mysql.start().stop()
    assert not folder.exists()


@pytest.mark.every_server
def test_runs_the_server_that_is_asked_for(database_url: str, database_server: str) -> None:
    """MariaDB is MariaDB, and MySQL is no MariaDB under that name."""
    ((version,),) = Database(parse_url(database_url)).rows("SELECT VERSION()")
    assert database_server in ("given", "mariadb" if "MariaDB" in str(version) else "mysql")


def test_says_why_there_is_no_mysql(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where it can neither be found nor got, the error says why."""
    monkeypatch.setattr("private_mysql._which", lambda kind: None)
    monkeypatch.setattr("unpacked_mysql.CACHE", tmp_path)
    monkeypatch.setattr("unpacked_mysql.NEEDS", ("no-such-program",))
    with pytest.raises(private_mysql.NoServer, match="no mysqld on PATH, and none could be got: no-such-program"):
        private_mysql.find_program("mysql")


def test_an_unsigned_archive_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What apt cannot verify is never unpacked."""
    release = tmp_path / "mirror" / "dists" / "sid" / "Release"
    release.parent.mkdir(parents=True)
    release.write_text("Suite: sid\nCodename: sid\nComponents: main\nArchitectures: amd64 arm64\n")
    monkeypatch.setattr("unpacked_mysql.CACHE", tmp_path / "cache")
    monkeypatch.setattr("unpacked_mysql._mirror", lambda: f"file:{tmp_path / 'mirror'}")
    if all(map(shutil.which, unpacked_mysql.NEEDS)):
        with pytest.raises(unpacked_mysql.NoMySql, match=r"not signed|no Release"):
            unpacked_mysql.get()
    assert None is unpacked_mysql.unpacked()


def test_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server on the machine the error says what to install."""
    monkeypatch.setattr("private_mysql._which", lambda kind: None)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(private_mysql.NoServer, match="apt-get install mariadb-server-core"):
        private_mysql.find_program()


@pytest.mark.parametrize("words", [["start"], ["--server", "postgres"], ["--"], ["--get", "now"]], ids=" ".join)
def test_usage(words: list[str]) -> None:
    """Words that are no command are refused."""
    done = subprocess.run(
        [sys.executable, HACK / "mysql", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert (64, "") == (done.returncode, done.stdout)
