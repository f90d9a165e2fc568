"""
A private MySQL-family server: its own data directory and socket, no network, gone with its caller.

1. It touches no server that is there already: nothing is read from option files, nothing is shared.
2. It ends with the process that started it, however that ends (Linux), or when it is told to.
3. It serves root and ordinary users; MariaDB's and MySQL's binaries both do.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from attrs import define, field

PREFIX = "falcon-mysql-"
"""What data directories are called, followed by the process id of the caller."""

START_SECONDS, STOP_SECONDS = 60, 20

PACKAGES = ("mariadb-server-core", "mariadb-client-core")

SERVER = (
    "--skip-networking",
    "--skip-log-bin",
    "--skip-name-resolve",
    "--loose-performance-schema=OFF",
    "--loose-mysqlx=OFF",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=2",  # survives the death of a process, which is what tests are about
    "--max-connections=200",
)

DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, linux/prctl.h


class NoServer(Exception):
    """There is no server to start, or it did not start; the text says what to do."""


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
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start() -> PrivateServer:
    """Start a server and wait until it answers. Raises NoServer."""
    binary = find_server()
    place = _fast_folder()
    _remove_orphans(place)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))
    user = [f"--user={_user_name()}"]
    data = f"--datadir={folder / 'data'}"
    command = [binary, "--no-defaults", data]
    with (folder / "log").open("wb") as log:
        subprocess.run([*_initialise(binary), data, *user], stdout=log, stderr=log, check=False, timeout=START_SECONDS)
        process = subprocess.Popen(
            [*command, f"--socket={folder / 'sock'}", f"--pid-file={folder / 'pid'}", *SERVER, *user],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 (nothing else runs in a process that has just begun)
        )
    server = PrivateServer(folder, process)
    try:
        _wait(server)
    except BaseException:
        server.stop()
        raise
    return server


def find_server() -> str:
    """Return the path of a server binary, installing one where that is ours to do."""
    found = _which()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *PACKAGES]):
            subprocess.run(["apt-get", *command], env=environment, stdout=sys.stderr, check=False, timeout=600)
        found = _which()
    if found is None:
        raise NoServer(
            f"no mariadbd or mysqld on PATH; install one (on Debian or Ubuntu: apt-get install {' '.join(PACKAGES)}),"
            " or give a server by FALCON_TEST_DATABASE_URL"
        )
    return found


def _which() -> str | None:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin", "/usr/libexec"])
    return shutil.which("mariadbd", path=path) or shutil.which("mysqld", path=path)


def _initialise(binary: str) -> Sequence[str]:
    """Return the command that makes a data directory; MariaDB has a script for it, MySQL an option."""
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
    if "MariaDB" not in version:
        return [binary, "--no-defaults", "--initialize-insecure"]
    script = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")
    if script is None:
        raise NoServer("mariadb-install-db is missing; it comes with the server's package")
    return [script, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]


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


def _die_with(parent: int) -> Callable[[], None] | None:
    """Return what the child does before it becomes the server: it asks to be ended when *parent* ends."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)

    def before_exec() -> None:
        libc.prctl(DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


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
