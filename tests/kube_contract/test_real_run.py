"""`hack/kube/run`: what it starts is there, answers kubectl, and ends with `down`, or with its caller."""

import json
import subprocess
import sys
import time
from pathlib import Path

from cloudsim.real_planes import RealKubernetes
from kube import plane
from kube_doors import PATH

RUN = Path(plane.__file__).with_name("run")
SECONDS = 120


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
    with subprocess.Popen([sys.executable, RUN, "up", "--clusters", "2"], stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        said = json.loads(up.stdout.readline())
        folder = Path(said["kubeconfig"]).parent
        assert (2, 8) == (len(said["clusters"]), len(plane.marked(folder)))
        kubectl = [sys.executable, str(RUN), "kubectl", "--context", "c1", "get", "namespaces", "-o", "name"]
        seen = subprocess.run(kubectl, capture_output=True, text=True, check=True, timeout=SECONDS).stdout.split()
        assert "namespace/default" in seen
        subprocess.run([sys.executable, RUN, "down"], check=True, timeout=SECONDS)
        assert 0 == up.wait(SECONDS)
    assert gone(folder)
    assert real.planes[PATH].client().call("GET", "/readyz").ok


def test_it_ends_with_its_caller() -> None:
    """The caller is killed: nothing stays, and what it has left on disk goes with the next run."""
    script = f"import subprocess, sys; subprocess.run([sys.executable, {str(RUN)!r}, 'up'])"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        folder = Path(json.loads(caller.stdout.readline())["kubeconfig"]).parent
        assert 4 == len(plane.marked(folder))
        caller.kill()
        caller.wait(SECONDS)
    assert gone(folder)
