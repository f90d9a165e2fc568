"""
The clouds of one pass: clients made for it and thrown away after it, around the process's one credential.

1. Nothing is asked before something is needed: making this costs nothing and cannot fail.
2. `close` ends the connections; a pass that forgets it leaves that to the collector.
"""

from falcon_rm.cloud.compute import ComputeAdapter
from falcon_rm.cloud.credential import Credential
from falcon_rm.cloud.gke import GkeAdapter
from falcon_rm.cloud.google import GoogleAdapter
from falcon_rm.cloud.kube import KubeAdapter
from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.model import Cluster
from falcon_rm.ports import Compute, Gke, Google, Kubernetes, Rights


class GoogleClouds:
    """
    Google Cloud and the clusters in it, for one pass.

    Args:
        credential: the process's own, shared by every pass.
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
        credential: Credential,
        gke_endpoint: str | None = None,
        compute_endpoint: str | None = None,
        resource_manager_endpoint: str | None = None,
        storage_endpoint: str | None = None,
        system_ca: str | None = None,
        read_seconds: float = 8,
        write_seconds: float = 30,
    ) -> None:
        self._credential = credential
        self._system_ca = system_ca
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds
        self._gke = GkeAdapter(
            credential=credential, endpoint=gke_endpoint, read_seconds=read_seconds, write_seconds=write_seconds
        )
        self._compute = ComputeAdapter(
            credential=credential, endpoint=compute_endpoint, read_seconds=read_seconds, write_seconds=write_seconds
        )
        self.google: Google = GoogleAdapter(
            credential=credential,
            resource_manager=resource_manager_endpoint,
            storage=storage_endpoint,
            read_seconds=read_seconds,
        )
        self.gke: Gke = self._gke
        self.compute: Compute = self._compute

    def kubernetes(self, cluster: Cluster, info: ClusterInfo) -> Kubernetes:
        """
        Return one cluster's Kubernetes.

        Raises:
            CloudError: CLUSTER, if it offers no endpoint of the kind asked for.
        """
        return self._kubernetes(cluster, info)

    def _kubernetes(self, cluster: Cluster, info: ClusterInfo) -> KubeAdapter:
        return KubeAdapter(
            cluster,
            info,
            credential=self._credential,
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
        self._gke.close()
        self._compute.close()
