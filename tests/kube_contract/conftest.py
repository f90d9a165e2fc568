"""
One contract suite, several doors; FALCON_KUBE_DOORS names them, and `real` among them builds the real programs.

At the end it prints how many cases used each method at each door, and fails the run if a door ran fewer than another.
"""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest
from cloudsim.premises import Premises
from cloudsim.real_planes import RealKubernetes
from kube.client import Client
from kube_doors import CALLS, PATH, Cluster, Door, WireDoor, opened

DOORS = os.environ.get("FALCON_KUBE_DOORS", "world,cloudsim").split(",")
REAL_ONLY = "test_real_*.py"
RAN: Counter[str] = Counter()

collect_ignore_glob = [] if "real" in DOORS else [REAL_ONLY]
_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def open_door(premises: Premises, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Door]]:
    """Open doors by name, each once, for all tests that follow."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(opened(name, premises, tmp_path_factory.mktemp(name))))


@pytest.fixture(scope="session", params=DOORS)
def door(request: pytest.FixtureRequest, open_door: Callable[[str], Door]) -> Door:
    """Each door in turn."""
    return open_door(request.param)


@pytest.fixture(scope="session")
def real(open_door: Callable[[str], Door]) -> RealKubernetes:
    """The real control plane."""
    found = open_door("real")
    assert isinstance(found, WireDoor)
    assert found.real is not None
    return found.real


@pytest.fixture(scope="session")
def admin(real: RealKubernetes) -> Client:
    """Somebody who may do everything there."""
    return real.planes[PATH].client()


@pytest.fixture
def cluster(door: Door) -> Iterator[Cluster]:
    """A namespace of its own behind each door in turn."""
    made = Cluster(door, f"contract-{next(_NUMBERS)}")
    door.call("POST", "/api/v1/namespaces", {"metadata": {"name": made.namespace}})
    made.until(lambda: made.door.call("GET", f"/api/v1/namespaces/{made.namespace}/serviceaccounts/default").ok)
    yield made
    RAN[door.name] += 1
    CALLS.setdefault(door.name, Counter()).update(made.methods)
    with door.world.lock:
        for pool in door.world.gke.pools.of(PATH):
            if pool.name.startswith(f"{made.namespace}-p") and pool.status == "RUNNING":
                door.world.gke.delete_by_hand(PATH, pool.name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a door ran fewer cases than another."""
    if len(set(RAN.values())) > 1 and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table: methods, doors, cases."""
    if not RAN:
        return
    doors = [name for name in DOORS if name in RAN]
    terminalreporter.section("Kubernetes contract: cases by method and door")
    for method in sorted({method for counts in CALLS.values() for method in counts}):
        terminalreporter.write_line(f"{method:<28}" + "".join(f"{CALLS[name][method]:>10}" for name in doors))
    terminalreporter.write_line(f"{'all':<28}" + "".join(f"{RAN[name]:>10}" for name in doors))
    terminalreporter.write_line(f"{'':<28}" + "".join(f"{name:>10}" for name in doors))
