"""
The programs of a control plane: given, kept from an earlier build, or built from the Go files of this folder.

1. The name by which the one binary is called chooses what it is; a folder of links gives it all its names.
2. A build is kept in an ignored folder under the hash of the Go files, so a change of any of them builds anew.
3. FALCON_TEST_KUBE_MINOR asks for an older minor version, built from a module of its own (older.py).
"""

import fcntl
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from control_plane import go, older
from control_plane.go import NoPrograms

HERE = Path(__file__).resolve().parent
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
GO_FILES = ("go.mod", "go.sum", "main.go")
VERSION_PACKAGE = "k8s.io/component-base/version"
GIVEN = "KUBEBUILDER_ASSETS"
MINOR = "FALCON_TEST_KUBE_MINOR"


def programs() -> Path:
    """Return a folder with every one of PROGRAMS, building them if they are missing. Raises NoPrograms."""
    if given := os.environ.get(GIVEN):
        missing = [name for name in PROGRAMS if not os.access(Path(given) / name, os.X_OK)]
        if missing:
            raise NoPrograms(f"{GIVEN}={given} lacks {', '.join(missing)}")
        return Path(given)
    folder = go.CACHE / key()
    with _alone():
        if not folder.is_dir():
            _build(folder)
    return folder


def are_there() -> bool:
    """Whether the programs are there without a build."""
    try:
        return bool(os.environ.get(GIVEN)) or (go.CACHE / key()).is_dir()
    except NoPrograms:
        return False


def key() -> str:
    """Return what a build is kept under."""
    parts = [(HERE / name).read_bytes() for name in GO_FILES]
    if os.environ.get(MINOR):
        parts.append(version().encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def version() -> str:
    """Return the version of Kubernetes that is asked for, such as v1.37.2. Raises NoPrograms."""
    if minor := os.environ.get(MINOR):
        if minor not in older.VERSIONS:
            raise NoPrograms(f"{MINOR}={minor}; it can be {' or '.join(older.VERSIONS)}")
        return older.VERSIONS[minor]
    found = re.search(r"k8s\.io/kubernetes (v\S+)", (HERE / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise NoPrograms("go.mod requires no k8s.io/kubernetes")
    return found[1]


def flags() -> str:
    """Return the linker's flags: without the version the components disagree about themselves."""
    whole = version()
    major, minor, _ = whole.removeprefix("v").split(".", 2)
    values = {"gitVersion": whole, "gitMajor": major, "gitMinor": minor}
    return " ".join(("-s -w", *(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in values.items())))


def _build(folder: Path) -> None:
    """Build into a folder beside the wanted one, then put it there whole."""
    program, whole = go.find(), version()
    print(f"hack/kube: building Kubernetes {whole}; the first time this takes 10 minutes or more", file=sys.stderr)
    source, modules = HERE, "-mod=readonly"
    if os.environ.get(MINOR):
        source, modules = go.CACHE / f"{whole}.module", "-mod=mod"
        older.module(program, whole, HERE / "main.go", source)
    new = folder.with_suffix(f".{os.getpid()}")
    how = ("-trimpath", "-buildvcs=false", modules, "-ldflags", flags(), "-o", str(new / "kube"))
    try:
        go.run(program, source, "build", *how, ".")
    except NoPrograms:
        shutil.rmtree(new, ignore_errors=True)
        raise
    for name in PROGRAMS:
        (new / name).symlink_to("kube")
    new.rename(folder)


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process at a time build; the others wait for what it makes."""
    go.CACHE.mkdir(parents=True, exist_ok=True)
    with (go.CACHE / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
