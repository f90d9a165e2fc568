"""`hack/kube`: what it starts is there, answers kubectl, and ends with `down`, its caller, or the next `up`."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from cloudsim.real_planes import RealKubernetes
from control_plane import plane
from kube_doors import PATH

HACK = Path(plane.__file__).parent.parent
KUBE = (sys.executable, "-m", "control_plane")
SECONDS = 120


@contextmanager
def running(command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """Run a command beside the test; whatever becomes of that, it ends with it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HACK) as process:
        try:
            yield process
        finally:
            process.kill()


def started(*arguments: str) -> AbstractContextManager["subprocess.Popen[str]"]:
    """Start `hack/kube` in the environment that the tests have already."""
    return running([*KUBE, *arguments])


def folder_of(up: "subprocess.Popen[str]") -> Path:
    """Wait until `up` says that it is ready; return the folder of its run."""
    assert up.stdout is not None
    return Path(json.loads(up.stdout.readline())["kubeconfig"]).parent


def marked(folder: Path, count: int) -> int:
    """Return how many programs bear a run's mark, once they are *count*: who becomes another bears none meanwhile."""
    end = time.monotonic() + SECONDS
    while (found := len(plane.marked(folder))) != count and time.monotonic() < end:
        time.sleep(0.1)
    return found


def told(*arguments: str) -> list[str]:
    """Return the words that `hack/kube` writes."""
    return subprocess.run(
        [*KUBE, *arguments], capture_output=True, text=True, check=True, timeout=SECONDS, cwd=HACK
    ).stdout.split()


def gone(folder: Path) -> bool:
    """Wait until a run has left nothing; return whether it did in time."""
    end = time.monotonic() + SECONDS
    while plane.marked(folder) or folder.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def test_up_kubectl_down(real: RealKubernetes) -> None:
    """Two planes come up, kubectl looks into the second one, and down ends them but not another's."""
    with started("up", "--clusters", "2") as up:
        folder = folder_of(up)
        assert (2, 8) == (len(list(folder.glob("c?"))), marked(folder, 8))
        assert "namespace/default" in told("kubectl", "--context", "c1", "get", "namespaces", "-o", "name")
        told("down")
        assert 0 == up.wait(SECONDS)
    assert gone(folder)
    assert real.planes[PATH].client().call("GET", "/readyz").ok


def test_it_ends_with_its_caller() -> None:
    """The caller is killed: nothing stays."""
    script = f"import subprocess; subprocess.run({[*KUBE, 'up']!r})"
    with running([sys.executable, "-c", script]) as caller:
        folder = folder_of(caller)
        assert 4 == marked(folder, 4)
        caller.kill()
        caller.wait(SECONDS)
    assert gone(folder)


def test_what_a_killed_one_has_left_goes_with_the_next() -> None:
    """Its programs end with it, a process that does not, and its files, with the next `up`."""
    with started("up") as up:
        left = folder_of(up)
        up.kill()
        up.wait(SECONDS)
    with subprocess.Popen(["sleep", str(SECONDS)], env={**os.environ, plane.MARK: str(left)}) as survivor:
        assert left.exists()
        with started("up") as up:
            folder = folder_of(up)
            assert (-9, False, 4) == (survivor.wait(SECONDS), left.exists(), marked(folder, 4))
            up.terminate()
            assert 0 == up.wait(SECONDS)
    assert gone(folder)
