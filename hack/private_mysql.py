"""
A private MySQL-family server: its own data directory and socket, no network, gone with its caller.

1. It touches no server that is there already: nothing is read from option files, nothing is shared.
2. It ends with the process that started it, however that ends (Linux), or when it is told to.
3. It serves root and ordinary users; MariaDB's and MySQL's programs both do.
"""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pymysql
import unpacked_mysql
from attrs import define, field, frozen

PREFIX = "falcon-mysql-"
"""What data directories are called, followed by the process id of the caller."""

START_SECONDS, STOP_SECONDS = 60, 20
DYING = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL: linux/prctl.h
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""A program that becomes another one which ends with its caller."""

PACKAGES = ("mariadb-server-core", "mariadb-client-core")

SERVER = (
    "--skip-networking",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--loose-performance-schema=OFF",
    "--loose-mysqlx=OFF",
    "--loose-innodb-redo-log-capacity=32M",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=2",  # survives the death of a process, which is what tests are about
    "--max-connections=200",
)

SERVERS = ("mariadb", "mysql")
PROGRAMS = {"mariadb": ("mariadbd",), "mysql": ("mysqld",), None: ("mariadbd", "mysqld")}
"""What each server's program is called; without a choice, the first that is found."""


class NoServer(Exception):
    """There is no server to start, or it did not start; the text says what to do."""


@frozen
class Program:
    """A server program: what starts it, what makes its data directory, and options for both."""

    start: Sequence[str]
    initialise: Sequence[str]
    options: Sequence[str] = ()


@define
class PrivateServer:
    """A running server; stop() ends it and removes its data."""

    folder: Path
    process: "subprocess.Popen[bytes]" = field(repr=False)

    @property
    def socket(self) -> Path:
        """The unix socket it listens on."""
        return self.folder / "sock"

    def url(self, database: str) -> str:
        """Return the URL of a database on this server."""
        return f"mysql://root@localhost/{database}?unix_socket={quote(str(self.socket), safe='/')}"

    def stop(self) -> None:
        """End the server and remove its data."""
        self.process.kill()  # what it holds goes with the folder
        self.process.wait(STOP_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)


def start(kind: str | None = None, *more: str) -> PrivateServer:
    """
    Start a server and wait until it answers. Raises NoServer.

    Args:
        kind: `mariadb` or `mysql`; without it the one that is there.
        more: options that stand above SERVER.
    """
    program = find_program(kind)
    place = _fast_folder()
    _remove_orphans(place)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))
    (folder / "tmp").mkdir()  # a server clears its folder for temporary tables when it starts: never a shared one
    own = [f"--datadir={folder / 'data'}", f"--tmpdir={folder / 'tmp'}", f"--user={_user_name()}", *program.options]
    with (folder / "log").open("wb") as log:
        subprocess.run([*program.initialise, *own], stdout=log, stderr=log, check=False, timeout=START_SECONDS)
        process = subprocess.Popen(
            _dying_with_us(
                [*program.start, *own, f"--socket={folder / 'sock'}", f"--pid-file={folder / 'pid'}", *SERVER, *more]
            ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    server = PrivateServer(folder, process)
    try:
        _wait(server)
    except BaseException:
        server.stop()
        raise
    return server


@contextmanager
def serving(kind: str | None, database: str) -> Iterator[str]:
    """Run a server with one empty database for as long as the context lasts; yield that one's URL. Raises NoServer."""
    server = start(kind)
    try:
        with pymysql.connect(unix_socket=str(server.socket), user="root") as connection:
            connection.query(f"CREATE DATABASE {database}")
        yield server.url(database)
    finally:
        server.stop()


def find_program(kind: str | None = None) -> Program:
    """Return a server program, getting one where that is ours to do. Raises NoServer."""
    found = _which(kind)
    if found is None and kind == "mysql":
        try:
            return _unpacked(unpacked_mysql.get())
        except unpacked_mysql.NoMySql as error:
            raise NoServer(f"no mysqld on PATH, and none could be got: {error}") from None
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *PACKAGES]):
            subprocess.run(["apt-get", *command], env=environment, stdout=sys.stderr, check=False, timeout=600)
        found = _which(kind)
    if found is None:
        raise NoServer(
            f"no {' or '.join(PROGRAMS[kind])} on PATH; install one (on Debian or Ubuntu: apt-get install"
            f" {' '.join(PACKAGES)}), or give a server by FALCON_TEST_DATABASE_URL"
        )
    return found


@cache
def is_there(kind: str) -> bool:
    """Return whether a server of this kind can be started without getting anything."""
    return _which(kind) is not None or (kind == "mysql" and unpacked_mysql.unpacked() is not None)


def _which(kind: str | None) -> Program | None:
    """Return the program on PATH; Debian's MariaDB also answers to the name of MySQL's."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/usr/libexec"])
    for binary in filter(None, (shutil.which(name, path=path) for name in PROGRAMS[kind])):
        mariadb = _is_mariadb(binary)
        if kind is None or mariadb == (kind == "mariadb"):
            return _mariadb(binary) if mariadb else _mysql([binary])
    return None


def _is_mariadb(binary: str) -> bool:
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
    return "MariaDB" in version


def _mariadb(binary: str) -> Program:
    script = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")
    if script is None:
        raise NoServer("mariadb-install-db is missing; it comes with the server's package")
    initialise = (script, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db")
    return Program((binary, "--no-defaults"), initialise)


def _mysql(command: Sequence[str], options: Sequence[str] = ()) -> Program:
    start = (*command, "--no-defaults")
    return Program(start, (*start, "--initialize-insecure"), options)


def _unpacked(folder: Path) -> Program:
    return _mysql(unpacked_mysql.command(folder), unpacked_mysql.options(folder))


def _user_name() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _fast_folder() -> Path:
    """Return a folder in memory where there is one, else the usual place for temporary files."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    return memory if roomy else Path(tempfile.gettempdir())


def _remove_orphans(place: Path) -> None:
    """Remove the data of servers whose callers were killed."""
    if not Path("/proc/self").exists():
        return
    for folder in place.glob(f"{PREFIX}*-*"):
        caller = folder.name.removeprefix(PREFIX).partition("-")[0]
        if caller.isdigit() and not Path(f"/proc/{caller}").exists():
            shutil.rmtree(folder, ignore_errors=True)  # others' folders are not ours to remove, and stay


def _dying_with_us(command: Sequence[str]) -> list[str]:
    """Return a command that ends with this process, at its own request: a fork of a process with threads may hang."""
    if not sys.platform.startswith("linux"):
        return list(command)
    return [sys.executable, "-c", DYING, str(os.getpid()), *command]


def _wait(server: PrivateServer) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(server.socket))
        except OSError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                log = (server.folder / "log").read_text(errors="replace").strip().splitlines()
                raise NoServer("the private server did not start: " + " | ".join(log[-3:])) from None
            time.sleep(0.02)
        else:
            return
