#!/usr/bin/env python3
"""
A real MySQL server on a Debian that has only MariaDB: the packages of sid, unpacked into an ignored folder.

  hack/unpacked_mysql.py      gets it where it is missing, and prints its folder

1. Nothing is installed: apt works with lists, a state and a cache of its own, its hooks are off, no package is set up.
2. Mirror, proxy and the age that an archive may have are as the machine's own apt has them; signatures are always
   checked, and without a good one there is no server.
3. The programs run with their own libraries, through their own dynamic loader.
4. What was got stays under its version, and is used again without a network.
"""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache" / "mysql"
PACKAGE, SUITE = "mysql-server-core", "sid"
WANTED = ("mysql-", "lib")
"""Of what the package depends on: itself, and libraries."""

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
NEEDS = ("apt-get", "apt-config", "dpkg-deb")
ASK_SECONDS, GET_SECONDS = 120, 300

NOT_OURS = ("Acquire::IndexTargets", "Acquire::Changelogs", "Acquire::Languages")

SETTINGS = """
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "{folder}/debian.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
APT::Get::AllowUnauthenticated "false";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Debug::NoLocking "true";
"""
SOURCE = "Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\n"


class NoMySql(Exception):
    """It is not there and could not be got; the text, one line, says why."""


def unpacked() -> Path | None:
    """Return the folder of the newest one that was got."""
    return max(CACHE.glob("[0-9]*"), key=lambda folder: folder.stat().st_mtime, default=None)


def get() -> Path:
    """Return its folder, getting it first where it is missing. Raises NoMySql."""
    missing = [name for name in NEEDS if shutil.which(name) is None]
    with alone():
        found = unpacked()
        if found is not None:
            return found
        if missing:
            raise NoMySql(f"{', '.join(missing)} missing: it is got from Debian's packages")
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            return _unpack(_download(Path(folder)), Path(folder) / "root")


def command(folder: Path) -> tuple[str, ...]:
    """Return what its server is started by, options left out."""
    libraries = folder / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    loader = next(libraries.glob("ld-linux*.so*"))
    return (str(loader), "--library-path", f"{libraries}:{folder}/usr/lib/mysql/private", f"{folder}/usr/sbin/mysqld")


def options(folder: Path) -> tuple[str, ...]:
    """Return the options that tell it where its own files are."""
    share = folder / "usr" / "share" / "mysql"
    return (
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={folder / 'usr' / 'lib' / 'mysql' / 'plugin'}",
        "--secure-file-priv=NULL",
    )


@contextmanager
def alone() -> Iterator[None]:
    """Let one process at a time get it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(folder: Path) -> list[Path]:
    """Return the packages, downloaded and verified."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    source = SOURCE.format(mirror=_mirror(), suite=SUITE) + (f"Signed-By: {KEYRING}\n" if KEYRING.exists() else "")
    (folder / "debian.sources").write_text(source, encoding="utf-8")
    dump = _ask("apt-config", "dump").splitlines()
    machine = [line for line in dump if line.startswith("Acquire::") and not line.startswith(NOT_OURS)]
    (folder / "apt.conf").write_text("\n".join(machine) + SETTINGS.format(folder=folder), encoding="utf-8")
    for words in (["update", "--error-on=any"], ["install", "--download-only", "--yes", PACKAGE]):
        _apt(folder, *words)
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def _mirror() -> str:
    """Return the mirror from which this machine has its own Debian packages."""
    release = platform.freedesktop_os_release()
    if release.get("ID") == "debian":
        targets = ("indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
        for words in (targets, ("update", "-qq"), targets):  # a machine that was never updated names none
            for line in _ask("apt-get", *words).splitlines():
                if line.split()[1:] == [release.get("VERSION_CODENAME"), "main"]:
                    return line.split()[0]
    raise NoMySql("the sources of this machine's apt name no mirror of Debian")


def _ask(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=ASK_SECONDS)
    return done.stdout


def _apt(folder: Path, *words: str) -> None:
    environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf"), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["apt-get", "-q", *words], env=environment, capture_output=True, text=True, check=False, timeout=GET_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NoMySql(f"apt-get {words[0]} took more than {GET_SECONDS} s") from None
    if done.returncode:
        complaint = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        raise NoMySql(f"apt-get {words[0]} failed: {complaint[0] if complaint else done.returncode}")


def _unpack(packages: list[Path], root: Path) -> Path:
    """Unpack, and move the whole to the folder of its version."""
    server = next(path for path in packages if path.name.startswith(f"{PACKAGE}_"))
    for path in packages:
        if path.name.startswith(WANTED):
            subprocess.run(["dpkg-deb", "--extract", str(path), str(root)], check=True, timeout=GET_SECONDS)
    version = _ask("dpkg-deb", "--field", str(server), "Version").strip()
    return root.rename(CACHE / version.replace(":", "_"))


if __name__ == "__main__":
    try:
        print(get())
    except NoMySql as error:
        sys.exit(f"hack/unpacked_mysql.py: {error}")
