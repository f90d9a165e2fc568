"""What runs control planes: where its programs come from, and that it ends its own leftovers and nobody else's."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane import build, go, older, plane

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def started() -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Processes that are ended after the test."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def sleeper(folder: Path) -> "subprocess.Popen[bytes]":
    """Start a process that looks as if the run of a folder had started it."""
    return subprocess.Popen(SLEEP, env={plane.MARK: str(folder)})


def run_of(place: Path, pid: int, begun: int, name: str) -> Path:
    """Make the folder of a run."""
    folder = place / f"{plane.PREFIX}{pid}-{begun}-{name}"
    folder.mkdir()
    return folder


def test_leftovers_of_a_dead_owner_are_ended(tmp_path: Path, started: list["subprocess.Popen[bytes]"]) -> None:
    """Its processes and its folder go, also where its process id is another's by now; the living keep theirs."""
    me = os.getpid()
    living = run_of(tmp_path, me, plane.start_time(me), "a")
    dead = run_of(tmp_path, me, plane.start_time(me) - 1, "b")
    foreign = tmp_path / "falcon-kube-notes"
    foreign.mkdir()
    started += [sleeper(living), sleeper(dead), sleeper(tmp_path / f"{dead.name}x")]
    plane.end_leftovers(tmp_path)
    assert -9 == started[1].wait(10)
    assert [None, None] == [started[0].poll(), started[2].poll()]
    assert [living.name, foreign.name] == sorted(path.name for path in tmp_path.iterdir())
    assert [started[0].pid] == plane.marked(living)


def test_ports_are_free_and_different() -> None:
    """Each port is given once, and free again afterwards."""
    with plane.free_ports(3) as ports:
        assert 3 == len(set(ports))
    with plane.free_ports(1):
        pass


def test_given_programs_have_to_be_all_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBEBUILDER_ASSETS wins, and what it lacks is named."""
    monkeypatch.setenv(build.GIVEN, str(tmp_path))
    for name in build.PROGRAMS:
        (tmp_path / name).touch(mode=0o755)
    assert tmp_path == build.programs()
    (tmp_path / "kube-scheduler").unlink()
    with pytest.raises(go.NoPrograms, match="lacks kube-scheduler"):
        build.programs()


def test_the_version_is_told_to_the_linker() -> None:
    """Version, major and minor stand in the flags, and every staging module is of the same minor."""
    version = build.version()
    _, minor, patch = version.split(".")
    assert f"-X {build.VERSION_PACKAGE}.gitVersion={version}" in build.flags()
    assert f"-X {build.VERSION_PACKAGE}.gitMinor={minor}" in build.flags()
    replaced = re.findall(
        r"^\tk8s\.io/(\S+) => k8s\.io/(\S+) (\S+)$", (build.HERE / "go.mod").read_text(), re.MULTILINE
    )
    assert len(replaced) > 30
    assert {(name, name, f"v0.{minor}.{patch}") for name, _, _ in replaced} == set(replaced)


def test_a_build_is_kept_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was built is used again without a Go; a failed build leaves nothing, and says so."""
    monkeypatch.setattr(go, "CACHE", tmp_path)
    monkeypatch.delenv(build.GIVEN, raising=False)
    monkeypatch.delenv(build.MINOR, raising=False)
    monkeypatch.setattr(go, "find", lambda: "false")
    with pytest.raises(go.NoPrograms, match="go build ended with 1"):
        build.programs()
    assert ["lock"] == [path.name for path in tmp_path.iterdir()]
    (tmp_path / build.key()).mkdir()
    assert tmp_path / build.key() == build.programs()


def test_a_go_that_is_none(tmp_path: Path) -> None:
    """A program that is missing has no version."""
    assert () == go.version(str(tmp_path / "go"))


def a_go(folder: Path, version: str) -> Path:
    """Write a program that says it is a Go of some version."""
    folder.mkdir(parents=True)
    program = folder / "go"
    program.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(("version", "good"), [("go1.26.8", True), ("go1.27rc1", True), ("go1.25.9", False)])
def test_the_machines_go_is_taken_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, good: bool
) -> None:
    """Else the one that was installed before; nothing is installed again."""
    monkeypatch.setattr(go, "CACHE", tmp_path)
    machines, private = a_go(tmp_path / "bin", version), a_go(tmp_path / "go" / "bin", "go1.26.0")
    monkeypatch.setenv("PATH", str(machines.parent))
    assert str(machines if good else private) == go.find()


def test_an_older_minor_has_a_build_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version, told to the linker, and kept beside the other; a minor that nobody knows is refused."""
    monkeypatch.delenv(build.MINOR, raising=False)
    usual = build.key()
    for minor, version in older.VERSIONS.items():
        monkeypatch.setenv(build.MINOR, minor)
        assert (version, True) == (build.version(), f"gitMinor={minor.removeprefix('1.')}" in build.flags())
        assert usual != build.key()
    monkeypatch.setenv(build.MINOR, "1.2")
    with pytest.raises(go.NoPrograms, match=r"it can be 1\.34"):
        build.version()


GO = """#!/bin/sh
case "$2" in
init) echo "module $3" >go.mod ;;
download) echo '{"GoMod": "THEIRS"}' ;;
edit) shift 2; printf '%s\\n' "$@" >edits ;;
esac
"""
THEIRS = """go 1.24.0

require (
\tgo.etcd.io/etcd/client/v3 v3.6.4
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubectl => ./staging/src/k8s.io/kubectl
)
"""


def test_the_module_of_an_older_minor(tmp_path: Path) -> None:
    """Its own Go language, etcd and staging modules, all of its patch."""
    program = a_go(tmp_path / "bin", "")
    program.write_text(GO.replace("THEIRS", str(tmp_path / "theirs.mod")), encoding="utf-8")
    (tmp_path / "theirs.mod").write_text(THEIRS, encoding="utf-8")
    older.module(str(program), "v1.34.4", build.HERE / "main.go", tmp_path / "new")
    assert [
        "-go=1.24.0",
        "-godebug=default=go1.24",
        "-require=k8s.io/kubernetes@v1.34.4",
        "-require=go.etcd.io/etcd/server/v3@v3.6.4",
        "-replace=k8s.io/api=k8s.io/api@v0.34.4",
        "-replace=k8s.io/kubectl=k8s.io/kubectl@v0.34.4",
    ] == (tmp_path / "new" / "edits").read_text(encoding="utf-8").splitlines()
    assert (build.HERE / "main.go").read_text() == (tmp_path / "new" / "main.go").read_text()


def test_a_version_whose_requirements_cannot_be_read(tmp_path: Path) -> None:
    """The error names it."""
    program = a_go(tmp_path / "bin", "")
    program.write_text(GO.replace("THEIRS", str(tmp_path / "theirs.mod")), encoding="utf-8")
    (tmp_path / "theirs.mod").write_text("module k8s.io/kubernetes\n", encoding="utf-8")
    with pytest.raises(go.NoPrograms, match=r"k8s\.io/kubernetes v1\.34\.4 cannot be read"):
        older.module(str(program), "v1.34.4", build.HERE / "main.go", tmp_path / "new")
