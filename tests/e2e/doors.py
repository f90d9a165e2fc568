"""The two doors through which every scenario runs, as a pytest plugin: in memory, and on the wire."""

from collections.abc import Iterator

import pytest
from cloudsim.tempo import Tempo
from cloudsim_fixtures import Serve
from database_roles import Roles
from wire import Start, StartOnWire, WireFalcon
from world import Falcon

from falcon_rm.core.model import Bounds, Cluster


@pytest.fixture
def start_on_wire(roles: Roles, serve: Serve) -> Iterator[StartOnWire]:
    """Start Falcon on the wire; its connections end with the test."""
    started: list[WireFalcon] = []

    def begin(*clusters: Cluster, bounds: Bounds | None = None, tempo: Tempo | None = None) -> WireFalcon:
        started.append(WireFalcon(*clusters, roles=roles, serve=serve, bounds=bounds, tempo=tempo))
        return started[-1]

    yield begin
    for falcon in started:
        falcon.store.close_all()


@pytest.fixture(params=["memory", "wire"])
def start(request: pytest.FixtureRequest) -> Start:
    """Start Falcon in memory, and once more on the wire."""
    if request.param == "memory":
        return Falcon
    begin: Start = request.getfixturevalue("start_on_wire")
    return begin
