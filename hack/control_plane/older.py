"""
The Go module of an older minor version of Kubernetes: the same program with the requirements of that version.

1. It is made in the cache from what `k8s.io/kubernetes` itself requires; this folder's go.mod is the only one kept.
2. A staging module k8s.io/X has the version v0.MINOR.PATCH, as in go.mod.
"""

import json
import re
import shutil
from pathlib import Path

from control_plane import go

VERSIONS = {"1.34": "v1.34.4"}
"""Minors that GKE still serves beside the one of go.mod, and that the suite has been run against."""

STORE = "go.etcd.io/etcd"
STAGING = re.compile(r"^\s*(k8s\.io/\S+) => \./staging", re.MULTILINE)
LANGUAGE = re.compile(r"^go (\S+)$", re.MULTILINE)
STORE_VERSION = re.compile(rf"^\s*{re.escape(STORE)}/client/v3 (\S+)", re.MULTILINE)


def module(program: str, version: str, source: Path, folder: Path) -> None:
    """
    Write the module of a version into a new folder.

    Args:
        program: the Go to use.
        version: of Kubernetes.
        source: the file with the program's text.
        folder: where to.

    Raises:
        NoPrograms: it is not to be had.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(source, folder)
    go.run(program, folder, "mod", "init", "falcon/hack/control_plane", quiet=True)
    told = go.run(program, folder, "mod", "download", "-json", f"k8s.io/kubernetes@{version}", quiet=True)
    theirs = Path(json.loads(told)["GoMod"]).read_text(encoding="utf-8")
    staging, language, store = STAGING.findall(theirs), LANGUAGE.search(theirs), STORE_VERSION.search(theirs)
    if not staging or language is None or store is None:
        raise go.NoPrograms(f"the go.mod of k8s.io/kubernetes {version} cannot be read")
    changes = [
        f"-go={language[1]}",
        f"-godebug=default=go{'.'.join(language[1].split('.')[:2])}",
        f"-require=k8s.io/kubernetes@{version}",
        f"-require={STORE}/server/v3@{store[1]}",
        *(f"-replace={name}={name}@v0{version.removeprefix('v1')}" for name in staging),
    ]
    go.run(program, folder, "mod", "edit", *changes, quiet=True)
