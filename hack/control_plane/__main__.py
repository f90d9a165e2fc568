"""
Real Kubernetes control planes on loopback.

  hack/kube up [--clusters N]     runs N of them until it is ended: by `down`, a signal, or the end of its caller
  hack/kube down                  ends what `up` of this tree has started, and nothing else
  hack/kube kubectl ARGUMENT...   speaks to the first one of the latest run; --context c1 to the second, and so on
  hack/kube build                 builds the programs and prints their folder
  hack/kube test [--minor 1.34] [ARGUMENT...]
                                  runs the contract suite, at the door of an older minor version if asked; what follows
                                  is pytest's

`up` prints one line of JSON when all of them answer: where each is, and a kubeconfig of somebody who may do everything.
Bearer tokens are those of its own metadata server, whose address it prints too.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cloudsim.metadata import EMAIL
from cloudsim.premises import Premises
from cloudsim.token_review import TokenReviewDoor

from control_plane import build, go, older, plane
from control_plane.rights import grant

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
UP = "up"  # the file in a run's folder that says which tree's `up` has made it
DOORS = "FALCON_TEST_KUBE_DOORS"
TREE = Path(__file__).resolve().parent.parent.parent
LOOK_SECONDS, DOWN_SECONDS = 0.5, 30.0


def main() -> int:
    """Do what is asked; return the exit code."""
    parser = argparse.ArgumentParser(prog="hack/kube", usage=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up").add_argument("--clusters", type=int, default=1)
    commands.add_parser("down")
    commands.add_parser("build")
    commands.add_parser("kubectl")
    commands.add_parser("test", add_help=False).add_argument("--minor", choices=sorted(older.VERSIONS))
    try:
        if sys.argv[1:2] == ["kubectl"]:
            return speak(sys.argv[2:])
        asked, rest = parser.parse_known_args()
        if rest and asked.command != "test":
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        match asked.command:
            case "up":
                return up(asked.clusters)
            case "down":
                return down()
            case "test":
                return test(asked.minor, rest)
        print(build.programs())
    except (go.NoPrograms, plane.NoPlane) as error:
        print(f"hack/kube: {error}", file=sys.stderr)
        return 1
    return 0


def up(clusters: int) -> int:
    """Run control planes until told to end."""
    caller = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    with tempfile.TemporaryDirectory(prefix="falcon-kube-premises-") as directory:
        premises = Premises(Path(directory), 300.0)
        door = TokenReviewDoor(premises.tokens, premises.authority.context(), premises.authority.path)
        began = time.monotonic()
        run = plane.start(clusters, tokens=door.config)
        try:
            (run.folder / UP).write_text(str(TREE), encoding="utf-8")
            for each in run.planes:
                grant(each.client(), EMAIL)
            said = {
                "clusters": [each.url for each in run.planes],
                "kubeconfig": str(run.kubeconfig),
                "metadata": premises.metadata.address,
                "seconds": round(time.monotonic() - began, 1),
            }
            print(json.dumps(said), flush=True)
            while signal.sigtimedwait(ENDING, LOOK_SECONDS) is None and os.getppid() == caller:
                pass
        finally:
            run.stop()
            door.stop()
            premises.stop()
    return 0


def down() -> int:
    """End every `up` of this tree, and what is left of those that were killed."""
    place = plane.fast_folder()
    owners = [
        owner
        for folder, owner, lives in plane.runs(place)
        if lives and (folder / UP).is_file() and (folder / UP).read_text(encoding="utf-8") == str(TREE)
    ]
    for owner in owners:
        os.kill(owner, signal.SIGTERM)
    deadline = time.monotonic() + DOWN_SECONDS
    while any(owner in owners and lives for _, owner, lives in plane.runs(place)):
        if time.monotonic() > deadline:
            print("hack/kube: it does not end", file=sys.stderr)
            return 1
        time.sleep(LOOK_SECONDS / 10)
    plane.end_leftovers(place)
    return 0


def speak(arguments: list[str]) -> int:
    """Let kubectl speak to the latest run; return its exit code."""
    living = [folder / plane.KUBECONFIG for folder, _, lives in plane.runs(plane.fast_folder()) if lives]
    config = max(filter(Path.is_file, living), key=lambda path: path.stat().st_mtime, default=None)
    if config is None:
        print("hack/kube: nothing is up; hack/kube up", file=sys.stderr)
        return 1
    kubectl = [str(build.programs() / "kubectl"), *arguments]
    return subprocess.run(kubectl, env={**os.environ, "KUBECONFIG": str(config)}, check=False).returncode


def test(minor: str | None, arguments: list[str]) -> int:
    """Run the contract suite at every door; return pytest's exit code."""
    if minor is not None:
        os.environ[build.MINOR] = minor
    build.programs()
    pytest = [sys.executable, "-m", "pytest", "tests/kube_contract", *arguments]
    environment = {**os.environ, DOORS: "world,cloudsim,real"}
    return subprocess.run(pytest, cwd=TREE, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
