"""
The simulated cloud's servers for tests, as a pytest plugin.

google-auth and gRPC read their environment when they are first used, so the metadata server and Google's authority are
there before the first test file is imported, one pair for the session. From then on nothing in this process can reach
the real Google Cloud.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from cloudsim.premises import Premises

if TYPE_CHECKING:
    from cloudsim.server import CloudSim
    from cloudsim.world import World

PREMISES = pytest.StashKey[Premises]()


class Serve(Protocol):
    """Puts a world behind doors until the test ends, and sets the environment to reach it."""

    def __call__(self, world: "World", speed: float | None = None) -> "CloudSim": ...


def pytest_configure(config: pytest.Config) -> None:
    """Start what the session shares and set the environment of Google's libraries."""
    premises = Premises(Path(tempfile.mkdtemp(prefix="falcon-premises-")))
    os.environ.update(premises.environment())
    config.stash[PREMISES] = premises


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop it."""
    premises = config.stash[PREMISES]
    premises.stop()
    shutil.rmtree(premises.directory)


@pytest.fixture(scope="session")
def premises(pytestconfig: pytest.Config) -> Premises:
    """The session's metadata server and Google's authority."""
    return pytestconfig.stash[PREMISES]


@pytest.fixture
def serve(premises: Premises, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Put a world behind the real protocols."""
    from cloudsim.server import CloudSim

    with ExitStack() as opened:

        def open_doors(world: "World", speed: float | None = None) -> CloudSim:
            sim = opened.enter_context(CloudSim(world, tmp_path, premises=premises, speed=speed))
            for name, value in sim.environment().items():
                monkeypatch.setenv(name, value)
            return sim

        yield open_doors
