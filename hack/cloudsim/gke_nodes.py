"""The Node objects that GKE's machines register with."""

from typing import TYPE_CHECKING

from cloudsim.values import Json, kube_time

if TYPE_CHECKING:
    from cloudsim.gke_pools import Pool

ORDINARY = (30, 120)  # vCPUs and GB of a machine that is no TPU host
PREFIX = "cloud.google.com/"


def node_labels(pool: "Pool") -> dict[str, str]:
    """Return a node's labels but for its host name: the pool's own and those that GKE adds."""
    labels = dict(pool.spec.get("config", {}).get("labels", {}))
    labels |= {
        PREFIX + "gke-nodepool": pool.name,
        "node.kubernetes.io/instance-type": pool.machine_type,
        "topology.kubernetes.io/zone": pool.zone,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    if pool.machine is not None:
        labels[PREFIX + "gke-tpu-accelerator"] = pool.machine.accelerator
        labels[PREFIX + "gke-tpu-topology"] = pool.topology or pool.machine.topology
    if pool.mode == "flex-start":
        labels[PREFIX + "gke-flex-start"] = "true"
    if pool.mode == "spot":
        labels[PREFIX + "gke-spot"] = "true"
    if pool.reservation is not None:
        labels[PREFIX + "reservation-project"], labels[PREFIX + "reservation-name"] = pool.reservation
    return labels


def node_taints(pool: "Pool") -> list[Json]:
    """Return a node's taints: TPU nodes take only pods that tolerate them."""
    if pool.machine is None:
        return []
    return [{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}]


def node_capacity(pool: "Pool") -> dict[str, str]:
    """Return what a node can hold."""
    cpu, memory = (pool.machine.cpu, pool.machine.memory_gb) if pool.machine else ORDINARY
    capacity = {"cpu": str(cpu), "memory": f"{memory}G", "ephemeral-storage": "100Gi", "pods": "110"}
    if pool.machine is not None:
        capacity["google.com/tpu"] = str(pool.machine.chips)
    return capacity


def node_object(pool: "Pool", name: str, now: float) -> Json:
    """Return a Node that is Ready."""
    capacity = node_capacity(pool)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**node_labels(pool), "kubernetes.io/hostname": name}},
        "spec": {"taints": node_taints(pool), "providerID": f"gce://{pool.path.split('/')[1]}/{pool.zone}/{name}"},
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "message": "kubelet is posting ready status",
                    "lastHeartbeatTime": kube_time(now),
                    "lastTransitionTime": kube_time(now),
                }
            ],
        },
    }
