"""The doors of the contract suite, and a namespace of its own behind each of them for each test."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

import kube_table
import pytest
from cloudsim.premises import Premises
from cloudsim.real_planes import RealKubernetes
from control_plane.client import Client
from kube_doors import PATH, Cluster, Door, WireDoor, delete_pools, opened

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def open_door(premises: Premises, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Door]]:
    """Open doors by name, each once for the tests of a file: a control plane that idles takes 7 % of a core."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(opened(name, premises, tmp_path_factory.mktemp(name))))


@pytest.fixture(scope="module", params=kube_table.DOORS)
def door(request: pytest.FixtureRequest, open_door: Callable[[str], Door]) -> Door:
    """Each door in turn."""
    return open_door(request.param)


@pytest.fixture(scope="module")
def real(open_door: Callable[[str], Door]) -> RealKubernetes:
    """The real control plane."""
    found = open_door("real")
    assert isinstance(found, WireDoor)
    assert found.real is not None
    return found.real


@pytest.fixture(scope="module")
def admin(real: RealKubernetes) -> Client:
    """Somebody who may do everything there."""
    return real.planes[PATH].client()


@contextmanager
def namespace(door: Door) -> Iterator[Cluster]:
    """Give a namespace of its own behind a door; in the end count what was asked there, and delete its pools."""
    made = Cluster(door, f"contract-{next(_NUMBERS)}")
    door.call("POST", "/api/v1/namespaces", {"metadata": {"name": made.namespace}})
    made.until(lambda: made.door.call("GET", f"/api/v1/namespaces/{made.namespace}/serviceaccounts/default").ok)
    yield made
    kube_table.count(door.name, made.methods)
    delete_pools(door.world, f"{made.namespace}-p")


@pytest.fixture
def cluster(door: Door) -> Iterator[Cluster]:
    """A namespace of its own behind each door in turn."""
    with namespace(door) as made:
        yield made


@pytest.fixture(scope="module")
def long_cluster(door: Door) -> Iterator[Cluster]:
    """A namespace for what begins before the tests of a file and is awaited by one of them."""
    with namespace(door) as made:
        yield made
