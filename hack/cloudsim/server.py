"""
The simulated cloud behind the real protocols, on loopback ports of this process.

1. A `CloudSim` puts one world behind doors; several may follow one another on the same premises (`premises.py`).
2. Each Kubernetes cluster has an authority of its own for its IP endpoint; its DNS endpoint is signed by Google's.
"""

import base64
from pathlib import Path
from types import TracebackType
from typing import Self

from cloudsim.clock import Driver
from cloudsim.doors_compute import ComputeDoor
from cloudsim.doors_faults import WireFaults
from cloudsim.doors_gke import GkeDoor
from cloudsim.doors_kube import KubeDoor
from cloudsim.doors_onlookers import OnlookersDoor
from cloudsim.premises import Premises
from cloudsim.real_planes import RealKubernetes
from cloudsim.tls import Authority
from cloudsim.world import World


class CloudSim:
    """One world behind its doors; also a context manager."""

    def __init__(
        self,
        world: World,
        directory: Path,
        *,
        premises: Premises | None = None,
        speed: float | None = None,
        real: RealKubernetes | None = None,
    ) -> None:
        """
        Make it; `start` opens the doors.

        Args:
            world: What stands behind the doors.
            directory: Where certificates are written.
            premises: Those the client already knows; None: its own.
            speed: How many times as fast as real time the world's clock goes; None: only `world.advance` moves it.
            real: The control planes of its clusters; None: the simulated ones.
        """
        self.world = world
        self.wires = WireFaults()
        self.premises = premises or Premises(directory)
        self._own_premises = premises is None
        self._directory = directory
        self._driver = None if speed is None else Driver(world, speed)
        self._real = real
        self._kube_doors: dict[str, tuple[KubeDoor, KubeDoor]] = {}

    def start(self) -> None:
        """Open the doors and let time pass."""
        world, authority, tokens, wires = self.world, self.premises.authority, self.premises.tokens, self.wires
        self._gke = GkeDoor(world, authority, tokens, wires)
        self._compute = ComputeDoor(world, authority.context(), tokens, wires)
        self._onlookers = OnlookersDoor(world, authority.context(), tokens, wires)
        for path in world.clusters:
            self.open_cluster(path)
        if self._driver is not None:
            self._driver.start()

    def open_cluster(self, path: str) -> None:
        """Open the two doors of a cluster and let GetCluster answer where they are."""
        cluster = self.world.clusters[path]
        if self._real is not None:
            self._real.announce(path)
            return
        authority = Authority(self._directory, path.replace("/", "-"))
        doors = (
            KubeDoor(self.world, cluster, authority.context(), self.premises.tokens, self.wires),
            KubeDoor(
                self.world, cluster, self.premises.authority.context(), self.premises.tokens, self.wires, by_name=True
            ),
        )
        self._kube_doors[path] = doors
        with self.world.lock:
            cluster.ip_endpoint = f"127.0.0.1:{doors[0].port}"
            cluster.ca_certificate = base64.b64encode(authority.pem).decode()
            cluster.dns_endpoint = f"localhost:{doors[1].port}"

    def close_cluster(self, path: str) -> None:
        """Close the doors of a cluster: connections to it are refused from now on."""
        for door in self._kube_doors.pop(path):
            door.stop()

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that is to use this cloud."""
        return {
            **self.premises.environment(),
            "FALCON_GKE_ENDPOINT": f"127.0.0.1:{self._gke.port}",
            "FALCON_COMPUTE_ENDPOINT": f"https://127.0.0.1:{self._compute.port}",
            "FALCON_RESOURCE_MANAGER_ENDPOINT": f"https://127.0.0.1:{self._onlookers.port}",
            "FALCON_STORAGE_ENDPOINT": f"https://127.0.0.1:{self._onlookers.port}",
        }

    def stop(self) -> None:
        """Stop the clock and close all doors."""
        if self._driver is not None:
            self._driver.stop()
        self._gke.stop()
        self._compute.stop()
        self._onlookers.stop()
        for path in tuple(self._kube_doors):
            self.close_cluster(path)
        if self._own_premises:
            self.premises.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
