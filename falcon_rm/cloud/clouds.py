"""
The clouds of one pass: clients made for it and thrown away after it, around the process's one credential.

1. Nothing is asked before something is needed: making this costs nothing and cannot fail.
2. A client library is imported when it is first needed: together they cost more than a second of a command.
3. `close` ends the connections; a pass that forgets it leaves that to the collector.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.model import Cluster
from falcon_rm.ports import Compute, Gke, Google, Kubernetes, Rights

if TYPE_CHECKING:
    from falcon_rm.cloud.compute import ComputeAdapter
    from falcon_rm.cloud.credential import Credential
    from falcon_rm.cloud.gke import GkeAdapter
    from falcon_rm.cloud.kube import KubeAdapter


class GoogleClouds:
    """
    Google Cloud and the clusters in it, for one pass.

    Args:
        credential: returns the process's own, shared by every pass.
        gke_endpoint: host:port of another GKE API than Google's own.
        compute_endpoint: the same for Compute.
        resource_manager_endpoint: the same for Resource Manager.
        storage_endpoint: the same for Cloud Storage.
        system_ca: a file with the CAs for clusters' DNS endpoints; None: the system's.
        read_seconds: bound of a call that reads.
        write_seconds: bound of a create or delete.
    """

    def __init__(
        self,
        *,
        credential: "Callable[[], Credential]",
        gke_endpoint: str | None = None,
        compute_endpoint: str | None = None,
        resource_manager_endpoint: str | None = None,
        storage_endpoint: str | None = None,
        system_ca: str | None = None,
        read_seconds: float = 8,
        write_seconds: float = 30,
    ) -> None:
        self._credential = credential
        self._gke_endpoint = gke_endpoint
        self._compute_endpoint = compute_endpoint
        self._resource_manager_endpoint = resource_manager_endpoint
        self._storage_endpoint = storage_endpoint
        self._system_ca = system_ca
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds
        self._lock = threading.Lock()
        self._gke: GkeAdapter | None = None
        self._compute: ComputeAdapter | None = None

    @property
    def gke(self) -> Gke:
        """Google Kubernetes Engine."""
        from falcon_rm.cloud.gke import GkeAdapter  # noqa: PLC0415 - rule 2

        with self._lock:
            self._gke = self._gke or GkeAdapter(
                credential=self._credential(),
                endpoint=self._gke_endpoint,
                read_seconds=self._read_seconds,
                write_seconds=self._write_seconds,
            )
            return self._gke

    @property
    def compute(self) -> Compute:
        """Compute."""
        from falcon_rm.cloud.compute import ComputeAdapter  # noqa: PLC0415 - rule 2

        with self._lock:
            self._compute = self._compute or ComputeAdapter(
                credential=self._credential(),
                endpoint=self._compute_endpoint,
                read_seconds=self._read_seconds,
                write_seconds=self._write_seconds,
            )
            return self._compute

    @property
    def google(self) -> Google:
        """What Google Cloud lets us and the pods do."""
        from falcon_rm.cloud.google import GoogleAdapter  # noqa: PLC0415 - rule 2

        return GoogleAdapter(
            credential=self._credential(),
            resource_manager=self._resource_manager_endpoint,
            storage=self._storage_endpoint,
            read_seconds=self._read_seconds,
        )

    def kubernetes(self, cluster: Cluster, info: ClusterInfo) -> Kubernetes:
        """
        Return one cluster's Kubernetes.

        Raises:
            CloudError: CLUSTER, if it offers no endpoint of the kind asked for.
        """
        return self._kubernetes(cluster, info)

    def _kubernetes(self, cluster: Cluster, info: ClusterInfo) -> "KubeAdapter":
        from falcon_rm.cloud.kube import KubeAdapter  # noqa: PLC0415 - rule 2

        return KubeAdapter(
            cluster,
            info,
            credential=self._credential(),
            system_ca=self._system_ca,
            read_seconds=self._read_seconds,
            write_seconds=self._write_seconds,
        )

    def rights(self, cluster: Cluster, info: ClusterInfo) -> Rights:
        """
        Return what one cluster's Kubernetes lets us do.

        Raises:
            CloudError: as `kubernetes` does.
        """
        return self._kubernetes(cluster, info)

    def close(self) -> None:
        """Close the connections."""
        for adapter in (self._gke, self._compute):
            if adapter is not None:
                adapter.close()
