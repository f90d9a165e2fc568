"""
The direct door: the product's ports met on a world, without sockets.

1. Requests are built, and answers read, by the product's own functions over the real messages; equal answers are read
   once.
2. Errors mean what the product's tables say; a call that hangs is an unknown outcome, and takes no time.
"""

import base64
import binascii
import marshal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from attrs import field, frozen
from google.cloud import container_v1
from google.protobuf import json_format

from cloudsim.direct_kube import DirectKubernetes
from cloudsim.errors import Hang, SimError
from cloudsim.values import Json, kept
from cloudsim.world import World
from falcon_rm.cloud.gke import SECOND_WORDINGS, live_pool, operation, pool_request, reworded
from falcon_rm.core.actions import CreatePool
from falcon_rm.core.errors import Call, classify
from falcon_rm.core.live import ClusterInfo, LivePool, Operation, Reservation
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import CloudError, ErrorKind
from falcon_rm.ports import Compute, Gke, Kubernetes

POLICY = "HIGH_THROUGHPUT"


@contextmanager
def translating(call: Call) -> Iterator[None]:
    """Turn what the world answers into CloudError."""
    try:
        yield
    except SimError as error:
        kind = classify(call=call, code=error.code, text=error.message)
        raise CloudError(kind, error.message) from error
    except Hang as error:
        raise CloudError(ErrorKind.UNKNOWN, f"timed out: {error}") from error


@lru_cache(maxsize=5000)
def pool_of(kept: bytes) -> LivePool:
    """Return a node pool from what `kept` made of its JSON."""
    return live_pool(json_format.ParseDict(marshal.loads(kept), container_v1.NodePool.pb(container_v1.NodePool())))


@lru_cache(maxsize=5000)
def operation_of(kept: bytes) -> Operation:
    """Return an operation from what `kept` made of its JSON."""
    return operation(json_format.ParseDict(marshal.loads(kept), container_v1.Operation.pb(container_v1.Operation())))


@lru_cache(maxsize=5000)
def cluster_of(kept: bytes, name: str) -> ClusterInfo:
    """Return how to reach a cluster, from what `kept` made of its JSON; *name*: for errors."""
    found = marshal.loads(kept)
    certificate = str(found.get("masterAuth", {}).get("clusterCaCertificate", ""))
    try:
        pem = base64.b64decode(certificate, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise CloudError(ErrorKind.UNKNOWN, f"certificate of {name}: {error}") from error
    endpoints = found["controlPlaneEndpointsConfig"]
    return ClusterInfo(
        locations=tuple(found["locations"]),
        ip_endpoint=found.get("endpoint"),
        ca_certificate=pem or None,
        dns_endpoint=endpoints.get("dnsEndpointConfig", {}).get("endpoint"),
        workload_pool=found.get("workloadIdentityConfig", {}).get("workloadPool"),
        gcs_fuse=found.get("addonsConfig", {}).get("gcsFuseCsiDriverConfig", {}).get("enabled", False),
    )


@frozen
class Asked:
    """A request for a node pool, told from others by its text."""

    text: str
    action: CreatePool = field(eq=False)


@lru_cache(maxsize=5000)
def request_of(asked: Asked) -> bytes:
    """Return what `kept` makes of the first wording of a request."""
    return kept(json_of(pool_request(asked.action)))


def json_of(pool: container_v1.NodePool) -> Json:
    """Return the JSON of a node pool."""
    made: Json = json_format.MessageToDict(type(pool).pb(pool))
    return made


class DirectGke:
    """GKE of a world."""

    def __init__(self, world: World) -> None:
        self._gke = world.gke

    def get_cluster(self, cluster: Cluster) -> ClusterInfo:
        """Return how to reach a cluster, and its own zones."""
        with translating("read"):
            found = self._gke.get_cluster(cluster.path)
        return cluster_of(kept(found), cluster.gke)

    def list_pools(self, cluster: Cluster) -> tuple[LivePool, ...]:
        """Return every node pool of a cluster."""
        with translating("read"):
            found = self._gke.list_node_pools(cluster.path)
        return tuple(pool_of(kept(pool)) for pool in found)

    def list_operations(self, project: str, location: str) -> tuple[Operation, ...]:
        """Return the operations that make node pools."""
        with translating("read"):
            found = self._gke.list_operations(f"projects/{project}/locations/{location}")
        if found.missing_zones:
            raise CloudError(ErrorKind.UNKNOWN, f"operations of {', '.join(found.missing_zones)} are missing")
        creates = (item for item in found if item["operationType"] == "CREATE_NODE_POOL")
        return tuple(operation_of(kept(item)) for item in creates)

    def create_pool(self, action: CreatePool) -> None:
        """Ask for a node pool; a wording that was refused for sure is changed once."""
        try:
            return self._create(action, marshal.loads(request_of(Asked(repr(action), action))))
        except CloudError as error:
            refusal = error
        pool = pool_request(action)
        for _ in SECOND_WORDINGS:
            if not reworded(pool, refusal):
                break
            try:
                return self._create(action, json_of(pool))
            except CloudError as error:
                refusal = error
        raise refusal

    def _create(self, action: CreatePool, body: Json) -> None:
        with translating("create"):
            self._gke.create_node_pool(action.cluster.path, body)

    def delete_pool(self, cluster: Cluster, name: str) -> None:
        """Ask for a node pool to be deleted; one that is gone is fine."""
        try:
            with translating("delete"):
                self._gke.delete_node_pool(cluster.path, name)
        except CloudError as error:
            if error.kind is not ErrorKind.GONE:
                raise


class DirectCompute:
    """Compute of a world."""

    def __init__(self, world: World) -> None:
        self._compute = world.compute

    def get_reservation(self, project: str, zone: str, name: str) -> Reservation:
        """Return a reservation."""
        with translating("read"):
            found = self._compute.get_reservation(project, zone, name)
        machine_type: str | None = None
        if "specificReservation" in found:
            unit, counts = "vm", found["specificReservation"]
            total, used = int(counts["count"]), int(counts.get("inUseCount", 0))
            machine_type = counts["instanceProperties"]["machineType"]
        else:
            unit, counts = "chip", found["aggregateReservation"]
            total, used = chips(counts["reservedResources"]), chips(counts.get("inUseResources", ()))
        if not 0 <= used <= total:
            raise CloudError(ErrorKind.UNKNOWN, f"reservation {name} says {used} of {total} in use")
        return Reservation(
            path=f"projects/{project}/reservations/{name}",
            ready=found["status"] == "READY",
            unit=unit,
            total=total,
            used=used,
            machine_type=machine_type,
        )

    def find_reservation(self, project: str, name: str) -> tuple[str, ...]:
        """Return the zones that have a reservation of this name."""
        with translating("read"):
            return tuple(sorted(self._compute.aggregated_reservations(project, name)))

    def ensure_policy(self, *, project: str, region: str, name: str, topology: str) -> None:
        """Make the workload policy of a topology, unless it is there."""
        if self._has_policy(project, region, name, topology):
            return
        body = {"name": name, "workloadPolicy": {"type": POLICY, "acceleratorTopology": topology}}
        try:
            with translating("create"):
                self._compute.insert_resource_policy(project, region, body)
        except CloudError as error:
            if error.kind is not ErrorKind.EXISTS:
                raise
        if not self._has_policy(project, region, name, topology):
            raise CloudError(ErrorKind.BUSY, f"policy {name} is being made")

    def _has_policy(self, project: str, region: str, name: str, topology: str) -> bool:
        try:
            with translating("read"):
                found = self._compute.get_resource_policy(project, region, name)
        except CloudError as error:
            if error.kind is ErrorKind.GONE:
                return False
            raise
        content = found.get("workloadPolicy", {})
        if (content.get("type"), content.get("acceleratorTopology")) != (POLICY, topology):
            raise CloudError(ErrorKind.PERMANENT, f"policy {name} has other content: {content}")
        return True


def chips(resources: Any) -> int:
    """Return the chips of an aggregate reservation's resources."""
    return sum(int(resource["accelerator"]["acceleratorCount"]) for resource in resources)


class DirectClouds:
    """The clouds of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.gke: Gke = DirectGke(world)
        self.compute: Compute = DirectCompute(world)

    def kubernetes(self, cluster: Cluster, info: ClusterInfo) -> Kubernetes:
        """Return one cluster's Kubernetes; raises CLUSTER if it offers no endpoint of the kind asked for."""
        address = {"ip": info.ip_endpoint, "dns": info.dns_endpoint, None: info.ip_endpoint or info.dns_endpoint}
        if not address[cluster.endpoint]:
            raise CloudError(ErrorKind.CLUSTER, f"cluster {cluster.gke} offers no endpoint that can be used")
        return DirectKubernetes(self.world.kube(cluster.path))

    def close(self) -> None:
        """Nothing is open."""
