"""
Google Kubernetes Engine: clusters, node pools, operations (google-cloud-container over gRPC).

What can be seen: a pool is listed some time after its create was accepted, and stays listed, in ERROR, after most
creates that failed. An operation that is DONE may carry an error. Nothing guards a delete but the pool's name.

1. A request follows the tables of gke.md 2.2, 2.4 and 2.5 to the letter; `pool_request` alone builds one.
2. Lists are complete or raise. A word or number nobody understands makes that pool's status UNKNOWN; a pool without a
   name makes the whole list useless (P23, P81).
3. Creates and deletes are asked and left: the next pass reads how they go (P24).
4. Answers are read as raw protobuf: the wrapped ones warn about words they do not know.
"""

import base64
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.cloud.container_v1 import (
    ClusterManagerClient,
    NodeConfig,
    NodeManagement,
    NodePool,
    NodePoolAutoscaling,
    ReservationAffinity,
    StatusCondition,
    WorkloadMetadataConfig,
)
from google.cloud.container_v1 import Operation as GkeOperation
from google.protobuf.duration_pb2 import Duration
from google.rpc.code_pb2 import Code

from falcon_rm.cloud.asked import Name
from falcon_rm.cloud.credential import Credential
from falcon_rm.cloud.errors import bounded, translating
from falcon_rm.cloud.retry import Deadline, ask, within
from falcon_rm.core.actions import CreatePool
from falcon_rm.core.errors import Call
from falcon_rm.core.live import ClusterInfo, LivePool, Operation
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import CloudError, ErrorKind, Mode, PoolStatus

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
RESERVATION_KEY = "compute.googleapis.com/reservation-name"
TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
CONSOLIDATION_SECONDS = (60, 86400)
POLICY_TOPOLOGY = re.compile(r"\d+x\d+x\d+$")
"""What the name of a workload policy of ours ends with."""

Affinity = ReservationAffinity.Type
AFFINITY = {
    Mode.RESERVATION: Affinity.SPECIFIC_RESERVATION,
    Mode.ON_DEMAND: Affinity.NO_RESERVATION,  # unset would mean any
    Mode.FLEX_START: Affinity.NO_RESERVATION,
}

STATUSES: Mapping[int, PoolStatus] = {
    NodePool.Status.PROVISIONING: PoolStatus.PROVISIONING,
    NodePool.Status.RUNNING: PoolStatus.RUNNING,
    NodePool.Status.RUNNING_WITH_ERROR: PoolStatus.RUNNING_WITH_ERROR,
    NodePool.Status.RECONCILING: PoolStatus.RECONCILING,
    NodePool.Status.STOPPING: PoolStatus.STOPPING,
    NodePool.Status.ERROR: PoolStatus.ERROR,
}
CONDITION: Any = StatusCondition.Code
CONDITIONS = {int(word): word.name for word in CONDITION if word}
CODES = {number: name for name, number in Code.items() if number}


def pool_request(action: CreatePool) -> NodePool:
    """Return the node pool to ask for (gke.md 2.2, 2.4, 2.5). Whatever is not set here is GKE's to choose."""
    pool, flex = action.pool, action.pool.mode is Mode.FLEX_START
    config = NodeConfig(
        machine_type=pool.machine_type,
        oauth_scopes=[CLOUD_PLATFORM],
        labels=dict(action.labels),
        resource_labels=dict(action.resource_labels),
        workload_metadata_config=WorkloadMetadataConfig(mode=WorkloadMetadataConfig.Mode.GKE_METADATA),
        reservation_affinity=ReservationAffinity(consume_reservation_type=AFFINITY[pool.mode]),
    )
    if action.cluster.node_service_account:
        config.service_account = action.cluster.node_service_account
    if pool.mode is Mode.RESERVATION:
        config.reservation_affinity.key = RESERVATION_KEY
        config.reservation_affinity.values = [pool.reservation or ""]
    request = NodePool(
        name=pool.name,
        locations=[action.zone],  # one: every count is per zone
        initial_node_count=0 if flex else pool.hosts,
        management=NodeManagement(auto_repair=not flex, auto_upgrade=False),
    )
    if flex:
        shortest, longest = CONSOLIDATION_SECONDS
        config.flex_start = True
        config.consolidation_delay = Duration(seconds=min(max(action.idle_seconds, shortest), longest))
        request.autoscaling = NodePoolAutoscaling(
            enabled=True,
            min_node_count=0,
            max_node_count=pool.hosts,
            location_policy=NodePoolAutoscaling.LocationPolicy.ANY,
        )
    request.config = config
    if pool.hosts > 1:
        request.placement_policy = _placement(action)
    return request


def _placement(action: CreatePool) -> NodePool.PlacementPolicy:
    if action.policy:
        return NodePool.PlacementPolicy(policy_name=action.policy, tpu_topology=action.pool.topology)
    return NodePool.PlacementPolicy(type_=NodePool.PlacementPolicy.Type.COMPACT, tpu_topology=action.pool.topology)


def _policy_alone(pool: NodePool) -> bool:
    if not (pool.placement_policy.policy_name and pool.placement_policy.tpu_topology):
        return False
    pool.placement_policy.tpu_topology = ""
    return True


def _with_upgrades(pool: NodePool) -> bool:
    if pool.management.auto_upgrade:
        return False
    pool.management.auto_upgrade = True
    return True


SECOND_WORDINGS: Sequence[tuple[re.Pattern[str], Callable[[NodePool], bool]]] = (
    # sources differ on whether the topology goes with the policy: gke.md 2.4
    (re.compile(r"polic.*topology|topology.*polic", re.IGNORECASE | re.DOTALL), _policy_alone),
    # a cluster on a release channel insists on upgrades: gke.md 2.5
    (re.compile(r"auto[ _-]?upgrade", re.IGNORECASE), _with_upgrades),
)
"""A refusal's text, and how the same pool is asked for in the other way; False if it was already."""

REFUSALS = (ErrorKind.PERMANENT, ErrorKind.CAPACITY)


def reworded(pool: NodePool, refusal: CloudError) -> bool:
    """Change *pool* to the other wording for what was surely refused; False if there is none."""
    if refusal.kind not in REFUSALS:
        return False
    return any(pattern.search(refusal.text) and change(pool) for pattern, change in SECOND_WORDINGS)


def live_pool(raw: Any) -> LivePool:
    """
    Return a node pool as GKE shows it.

    Args:
        raw: the protobuf message google.container.v1.NodePool.
    """
    config, affinity = raw.config, raw.config.reservation_affinity
    scaling = raw.autoscaling
    hosts = (scaling.max_node_count or scaling.total_max_node_count) if scaling.enabled else raw.initial_node_count
    status = STATUSES.get(raw.status, PoolStatus.UNKNOWN)
    return LivePool(
        name=raw.name,
        status=status if hosts >= 0 else PoolStatus.UNKNOWN,
        labels=dict(config.labels),
        machine_type=config.machine_type,
        topology=_topology(raw),
        hosts=max(hosts, 0),
        mode=_mode(config),
        reservation=affinity.values[0] if affinity.key == RESERVATION_KEY and affinity.values else None,
        errors=_errors(raw),
    )


def _topology(raw: Any) -> str:
    placement = raw.placement_policy
    by_policy = POLICY_TOPOLOGY.search(placement.policy_name)  # asked for by the policy alone
    return str(
        placement.tpu_topology or raw.config.labels.get(TOPOLOGY_LABEL, "") or (by_policy and by_policy[0]) or ""
    )


def _mode(config: Any) -> Mode | None:
    affinity = config.reservation_affinity.consume_reservation_type
    if config.spot or config.preemptible:
        return None
    if config.flex_start:
        return Mode.FLEX_START
    return {Affinity.SPECIFIC_RESERVATION: Mode.RESERVATION, Affinity.NO_RESERVATION: Mode.ON_DEMAND}.get(affinity)


def _errors(raw: Any) -> tuple[str, ...]:
    texts = [raw.status_message]
    for condition in raw.conditions:
        word = CONDITIONS.get(condition.code) or CODES.get(condition.canonical_code)
        texts.append(": ".join(part for part in (word, condition.message) if part))
    return tuple(bounded(text) for text in texts if text)


def operation(raw: Any) -> Operation:
    """
    Return an operation as GKE shows it; DONE is not success.

    Args:
        raw: the protobuf message google.container.v1.Operation.
    """
    failed = raw.error.message or raw.status_message or (f"error code {raw.error.code}" if raw.error.code else "")
    return Operation(
        name=raw.name,
        target=raw.target_link,
        done=raw.status == GkeOperation.Status.DONE,
        started=raw.start_time,
        error=bounded(failed) if failed else None,
    )


def cluster_info(raw: Any) -> ClusterInfo:
    """
    Return what Falcon needs of a cluster.

    Args:
        raw: the protobuf message google.container.v1.Cluster.

    Raises:
        CloudError: UNKNOWN, if the certificate cannot be read.
    """
    endpoints = raw.control_plane_endpoints_config
    addresses = endpoints.ip_endpoints_config
    by_address = not (addresses.HasField("enabled") and not addresses.enabled)
    with translating("read"):
        certificate = base64.b64decode(raw.master_auth.cluster_ca_certificate, validate=True).decode("ascii")
    return ClusterInfo(
        locations=tuple(raw.locations),
        ip_endpoint=(raw.endpoint or None) if by_address else None,
        ca_certificate=certificate or None,
        dns_endpoint=endpoints.dns_endpoint_config.endpoint or None,
        workload_pool=raw.workload_identity_config.workload_pool or None,
        gcs_fuse=raw.addons_config.gcs_fuse_csi_driver_config.enabled,
    )


class GkeAdapter:
    """
    GKE for one pass.

    Args:
        credential: shared by all clients.
        endpoint: host:port of another API server than Google's own; always TLS.
        read_seconds: bound of a call that reads.
        write_seconds: bound of a create or delete.
    """

    def __init__(
        self,
        *,
        credential: Credential,
        endpoint: str | None = None,
        read_seconds: float = 8,
        write_seconds: float = 30,
    ) -> None:
        self._credential = credential
        self._endpoint = endpoint
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds
        self._lock = threading.Lock()
        self._client: Any = None

    def get_cluster(self, cluster: Cluster) -> ClusterInfo:
        """Return how to reach a cluster, and its own zones."""
        answer = self._call("read", "get_cluster", {"name": cluster.path})
        return cluster_info(type(answer).pb(answer))

    def list_pools(self, cluster: Cluster) -> tuple[LivePool, ...]:
        """Return every node pool of a cluster."""
        answer = self._call("read", "list_node_pools", {"parent": cluster.path})
        pools = tuple(live_pool(raw) for raw in type(answer).pb(answer).node_pools)
        names = {pool.name for pool in pools}
        if "" in names or len(names) < len(pools):
            raise CloudError(ErrorKind.UNKNOWN, f"the list of node pools of {cluster.gke} has an empty or double name")
        return pools

    def list_operations(self, project: str, location: str) -> tuple[Operation, ...]:
        """Return the CREATE_NODE_POOL operations of a location; raises UNKNOWN if zones are missing."""
        answer = self._call("read", "list_operations", {"parent": f"projects/{project}/locations/{location}"})
        raw = type(answer).pb(answer)
        if raw.missing_zones:
            raise CloudError(ErrorKind.UNKNOWN, bounded(f"operations of {', '.join(raw.missing_zones)} are missing"))
        creates = GkeOperation.Type.CREATE_NODE_POOL
        return tuple(operation(entry) for entry in raw.operations if entry.operation_type == creates)

    def create_pool(self, action: CreatePool) -> None:
        """Ask for a node pool; a wording that was refused for sure is changed once."""
        pool = pool_request(action)
        deadline = Deadline(self._write_seconds)
        for _ in SECOND_WORDINGS:
            try:
                self._create(action, pool, deadline)
            except CloudError as refusal:
                if not reworded(pool, refusal):
                    raise
            else:
                return
        self._create(action, pool, deadline)

    def delete_pool(self, cluster: Cluster, name: str) -> None:
        """Ask for a node pool to be deleted; one that is gone is fine."""
        try:
            self._call("delete", "delete_node_pool", {"name": f"{cluster.path}/nodePools/{name}"})
        except CloudError as error:
            if error.kind is not ErrorKind.GONE:
                raise

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._client is not None:
                self._client.transport.close()

    def _create(self, action: CreatePool, pool: NodePool, deadline: Deadline) -> None:
        request = {"parent": action.cluster.path, "node_pool": pool}
        self._call("create", "create_node_pool", request, deadline)

    def _call(self, call: Call, method: str, request: Mapping[str, object], deadline: Deadline | None = None) -> Any:
        bound = deadline or Deadline(self._read_seconds if call == "read" else self._write_seconds)

        def send() -> Any:
            with translating(call):
                return getattr(self._connected(), method)(request=dict(request), retry=None, timeout=bound.left())

        return ask(lambda: within(bound, send), name=Name("gke", method), call=call, credential=self._credential)

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                options = {"api_endpoint": self._endpoint} if self._endpoint else None
                self._client = ClusterManagerClient(credentials=self._credential.google(), client_options=options)
            return self._client
