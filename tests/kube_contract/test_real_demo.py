"""The demonstration on real control planes: the same load, the same end, and kubectl sees it run."""

import subprocess
import sys
import time
from pathlib import Path

from control_plane import plane

HACK = Path(plane.__file__).parent.parent
KUBECTL = (sys.executable, "-m", "control_plane", "kubectl")
DEMO = (sys.executable, str(HACK / "demo.py"), "--kubernetes", "real")
CONTEXTS = ("c0", "c1", "c2")
KINDS = {"job.batch/falcon", "pod/falcon", "node/gke"}
SECONDS = 300


def runs_of_three() -> set[Path]:
    """Return the kubeconfigs of the runs with a plane for each cluster of the demonstration."""
    folders = [folder for folder, _, lives in plane.runs(plane.fast_folder()) if lives]
    return {folder / plane.KUBECONFIG for folder in folders if all((folder / name).is_dir() for name in CONTEXTS)}


def seen(kubeconfig: Path) -> set[str]:
    """Return the first words of the names of all Jobs, pods and nodes."""
    found = set()
    for context in CONTEXTS:
        look = ("--kubeconfig", str(kubeconfig), "--context", context, "get", "jobs,pods,nodes", "-A", "-o", "name")
        done = subprocess.run([*KUBECTL, *look], capture_output=True, text=True, check=False, cwd=HACK, timeout=SECONDS)
        found |= {line.partition("-")[0] for line in done.stdout.split()}
    return found


def test_the_demonstration_on_real_control_planes(tmp_path: Path) -> None:
    """Every job ends as it should; meanwhile a foreign kubectl shows its Jobs, pods and nodes."""
    before, end = runs_of_three(), time.monotonic() + SECONDS
    output = tmp_path / "output"
    with output.open("wb") as written, subprocess.Popen(DEMO, stdout=written, stderr=subprocess.STDOUT) as demo:
        try:
            shown: set[str] = set()
            while not shown >= KINDS:
                assert demo.poll() is None and time.monotonic() < end, output.read_text(encoding="utf-8")[-4000:]
                time.sleep(0.2)
                for kubeconfig in runs_of_three() - before:
                    shown |= seen(kubeconfig) if kubeconfig.is_file() else set()
            code = demo.wait(SECONDS)
        finally:
            demo.terminate()
    text = output.read_text(encoding="utf-8")
    told = "\n".join(line for line in text.splitlines() if not line.startswith("{"))
    assert 0 == code, told[-6000:]
    assert "Every job ended as it should; no pool, Job or Service of ours is left in the simulated cloud." in text
