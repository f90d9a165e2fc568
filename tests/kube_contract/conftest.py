"""The doors of the contract suite, and a namespace of its own behind each of them for each test."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import kube_table
import pytest
from cloudsim.premises import Premises
from cloudsim.real_planes import RealKubernetes
from control_plane.client import Client
from kube_doors import PATH, Cluster, Door, WireDoor, opened

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def open_door(premises: Premises, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Door]]:
    """Open doors by name, each once, for all tests that follow."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(opened(name, premises, tmp_path_factory.mktemp(name))))


@pytest.fixture(scope="session", params=kube_table.DOORS)
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
    kube_table.count(door.name, made.methods)
    with door.world.lock:
        for pool in door.world.gke.pools.of(PATH):
            if pool.name.startswith(f"{made.namespace}-p") and pool.status == "RUNNING":
                door.world.gke.delete_by_hand(PATH, pool.name)
