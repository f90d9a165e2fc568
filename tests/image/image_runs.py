"""The image runs as its manifest says: its own user, a read-only root, no shell, least rights in the database."""

import os
import shutil
from pathlib import Path

import pytest
from cloudsim.tempo import brisk
from cloudsim.world import World
from cloudsim_fixtures import Serve
from container import Container
from database_roles import FALCON, UPSTREAM, Roles

from falcon_rm import __version__
from falcon_rm.cloud import people
from falcon_rm.cloud.database import Address, Database
from falcon_rm.submission import NewJob

SPEC = '{"image": "busybox", "command": "true", "device_type": "v6e", "device_topo": "2x2", "supply_mode": "on-demand"}'
PATH = "projects/p/locations/us-central1-a/clusters/c1"
LOOK = "import os; print(os.getuid(), os.getgid(), os.getgroups())"
SHELL = """
import subprocess
try:
    subprocess.run("true", shell=True)
except OSError as error:
    print(type(error).__name__)
"""
WRITE = """
import os, stat
places = (os.path.join(top, name) for top, folders, files in os.walk("/") if not top.startswith("/proc")
          for name in [*folders, *files] if not os.path.islink(os.path.join(top, name)))
print([place for place in places if os.access(place, os.W_OK) and not stat.S_ISCHR(os.stat(place).st_mode)])
"""


@pytest.fixture
def container(tmp_path: Path) -> Container:
    """The image that hack/image has built."""
    return Container(Path(os.environ["FALCON_TEST_IMAGE"]), tmp_path)


def reached(at: Address) -> tuple[dict[str, str], dict[str, Path]]:
    """Return the setting and the mount by which the container reaches a database on this machine."""
    if at.unix_socket is None:
        return {"FALCON_DATABASE_URL": f"mysql://{at.user}:{at.password}@{at.host}:{at.port}/{at.database}"}, {}
    url = f"mysql://{at.user}:{at.password}@localhost/{at.database}?unix_socket=/run/database"
    return {"FALCON_DATABASE_URL": url}, {"database": Path(at.unix_socket)}


def test_it_tells_its_version(container: Container) -> None:
    """The entry point is falcon-rm itself."""
    (entry,) = container.config()["config"]["Entrypoint"]
    ended = container.run(entry, "--version")
    assert (0, f"falcon-rm {__version__}\n", "") == (ended.returncode, ended.stdout, ended.stderr)


def test_its_user_owns_nothing_and_writes_nowhere(container: Container) -> None:
    """The process is user and group 65532 of no other group, and no file and no folder is open to it."""
    assert "65532 65532 []\n" == container.run("python3", "-c", LOOK).stdout
    ended = container.run("python3", "-c", WRITE)
    assert ("[]\n", "") == (ended.stdout, ended.stderr)


def test_there_is_no_shell(container: Container) -> None:
    """Nothing that follows could have started one."""
    assert "PermissionError\n" == container.run("python3", "-c", SHELL).stdout


def test_it_plans_and_makes_a_pass(container: Container, roles: Roles, serve: Serve, tmp_path: Path) -> None:
    """plan --dry-run writes nothing; run-once under the controller's role alone takes the job and asks for its pool."""
    world = World(0, 1_700_000_000.0, brisk())
    world.add_cluster(PATH)
    sim = serve(world)
    row = {"project": "p", "location": "us-central1-a", "tpu_type": "v6e"}
    people.add_cluster(roles.administrator, "c1", row)
    upstream = Database(roles.address(UPSTREAM))
    people.submit(upstream, [NewJob("j1", "ann", SPEC, "n", 0, None, None)])
    upstream.close()
    address, mounts = reached(roles.address(FALCON))
    papers = tmp_path / "papers"
    shutil.copytree(sim.premises.directory, papers)
    papers.chmod(0o755)
    outside = str(sim.premises.directory)
    there = {name: value.replace(outside, "/run/cloud") for name, value in sim.environment().items()}
    settings = {**there, **address, "FALCON_LOG_FORMAT": "console"}
    mounts = {**mounts, "cloud": papers}

    planned = container.run("falcon-rm", "plan", "--dry-run", settings=settings, mounts=mounts)
    assert 0 == planned.returncode, planned.stderr
    assert "j1" in planned.stdout
    asked = "SELECT status, COALESCE(reason, '') FROM job"
    assert (("Pending", ""),) == roles.administrator.rows(asked)

    for _ in range(3):
        ended = container.run("falcon-rm", "run-once", settings=settings, mounts=mounts)
        assert 0 == ended.returncode, ended.stderr
    assert (("Pending", "Provisioning"),) == roles.administrator.rows(asked)
    assert ["falcon-j1"] == [pool.name for pool in world.gke.pools.of(PATH) if pool.name.startswith("falcon-")]
