"""
A Python that has imported all of Falcon and opened nothing: each line on its input runs `falcon-rm` in a fork of it.

A line is an object: arguments, environment, the files `out`, `err` and `code`, and what strikes the process
(outgoing.py). The answer is the process id; when the process has ended, `code` holds its exit code, negative for a
signal. Between the two stands a keeper that waits.
"""

import gc
import json
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from outgoing import Strike, meet

import falcon_rm
from falcon_rm.cli import commands

NOT_IMPORTED = {
    "falcon_rm.__main__",  # runs when it is imported
    "falcon_rm.cloud.cloudsql",  # an extra
}
IMPORTED = (
    *(found.name for found in walk_packages(falcon_rm.__path__, "falcon_rm.") if found.name not in NOT_IMPORTED),
    "google.cloud.compute_v1", "kubernetes.client.api.core_v1_api", "kubernetes.client.api.authorization_v1_api",
)  # fmt: skip
"""All that commands import when they run, and what that imports when it is used."""


def main() -> None:
    """Run commands until the input ends."""
    for name in IMPORTED:
        import_module(name)
    gc.collect()
    gc.freeze()  # what is here already stays shared between the forks
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the keepers
    while line := os.read(0, 1 << 20):
        if os.fork() == 0:
            keep(json.loads(line))


def keep(ask: dict[str, Any]) -> None:
    """Start the process, tell its id, and write down how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        become(ask)
        commands.main(ask["arguments"])
    os.write(1, f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    told = Path(ask["code"] + ".new")
    told.write_text(str(os.waitstatus_to_exitcode(status)), encoding="utf-8")
    told.rename(ask["code"])
    os._exit(0)


def become(ask: dict[str, Any]) -> None:
    """Take on the environment, and the files for standard input, output and error."""
    os.environ.clear()
    os.environ.update(ask["environment"])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, (path, mode) in enumerate(
        ((os.devnull, os.O_RDONLY), (ask["out"], os.O_WRONLY | os.O_CREAT), (ask["err"], os.O_WRONLY | os.O_CREAT))
    ):
        os.dup2(os.open(path, mode), number)
    if ask["strike"]:
        meet(Strike(Path(ask["struck"]), **ask["strike"]))


if __name__ == "__main__":
    main()
    sys.exit(0)
