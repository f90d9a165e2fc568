#!/usr/bin/env python3
"""
MariaDB's plugin for `ed25519`, which Debian keeps in a package that would set a server up: unpacked, not installed.

  hack/unpacked_plugin.py      gets it where it is missing, and prints its folder

It is the one of the installed server's own version, from where this machine has its packages, and is used again without
a network.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from unpacked_mysql import CACHE, GET_SECONDS, alone

PLUGIN = "auth_ed25519"
SERVER, PACKAGE = "mariadb-server-core", "mariadb-server"
PLACE = Path("usr/lib/mysql/plugin")
NEEDS = ("apt-get", "dpkg-deb", "dpkg-query")


class NoPlugin(Exception):
    """It is not there and could not be got; the text, one line, says why."""


def there() -> Path | None:
    """Return the folder that has it, None if it has to be got."""
    version = _version()
    folders = (Path("/") / PLACE, *([] if version is None else [_kept(version) / PLACE]))
    return next((folder for folder in folders if (folder / f"{PLUGIN}.so").exists()), None)


def get() -> Path:
    """Return its folder, getting it first where it is missing. Raises NoPlugin."""
    if (found := there()) is not None:
        return found
    version = _version()
    if version is None:
        raise NoPlugin(f"the package {SERVER} is not installed")
    with alone(), tempfile.TemporaryDirectory(dir=CACHE) as folder:
        for words in (["download", f"{PACKAGE}={version}"], ["update", "-qq"], ["download", f"{PACKAGE}={version}"]):
            _run(folder, "apt-get", "-q", "-o", "APT::Sandbox::User=root", *words)
            for package in Path(folder).glob("*.deb"):
                _run(folder, "dpkg-deb", "--extract", str(package), f"{folder}/root")
                return Path(folder, "root").rename(_kept(version)) / PLACE
    raise NoPlugin(f"apt-get download {PACKAGE}={version} failed")


def _version() -> str | None:
    """Return the version of the server that is installed."""
    if any(shutil.which(name) is None for name in NEEDS):
        return None
    asked = ("dpkg-query", "--show", "--showformat", "${Version}", SERVER)
    return subprocess.run(asked, capture_output=True, text=True, check=False, timeout=GET_SECONDS).stdout or None


def _kept(version: str) -> Path:
    return CACHE / f"{PACKAGE}-{version.replace(':', '_')}"


def _run(folder: str, *words: str) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    subprocess.run(words, cwd=folder, env=environment, capture_output=True, check=False, timeout=GET_SECONDS)


if __name__ == "__main__":
    try:
        print(get())
    except NoPlugin as error:
        sys.exit(f"hack/unpacked_plugin.py: {error}")
