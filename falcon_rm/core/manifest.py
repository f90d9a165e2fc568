"""
The Kubernetes Job and Service of one attempt, as plain dicts (design.md 6, contract.md 5, gke.md 6.1 to 6.4).

1. Pods are pinned to their pool by its name; without that name there is no manifest (P43).
2. Every `$` of a word that is not ours to expand is doubled: the workload sees the user's bytes (P112).
3. A user's variables win over all but FALCON_*.
4. Values that the API server or the client's models check are strings where they want strings.
"""

import re
from typing import Any
from urllib.parse import quote

from falcon_rm.core import names, wrapper
from falcon_rm.core.model import Cluster, Job, Mount, TaskSpec
from falcon_rm.core.shapes import Shape

Manifest = dict[str, Any]

NAMESPACE = "falcon-jobs"
SERVICE_ACCOUNT = "falcon-job"
CONTAINER = "task"
BUCKET_PATH = "/gcs"
SCRATCH_PATH = "/tmp/tpu_logs"
COORDINATOR_PORT = 8476
WORD_BYTES = 120_000  # Linux refuses 131,072 in one variable

TPU = "google.com/tpu"
COMPLETION_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

# The bucket is written by images of any user; a log is live only if it is not streamed (gke.md 6.4).
BUCKET_OPTIONS = ("implicit-dirs", "file-mode=666", "dir-mode=777", "enable-streaming-writes=false")
# A pod has its node for itself: the sidecar asks for little and is limited by nothing ("0"), since one that runs out of
# memory or staging space breaks the mount until the pod is made anew (gke.md 6.3).
SIDECAR = {
    "gke-gcsfuse/volumes": "true",
    "gke-gcsfuse/cpu-request": "250m",
    "gke-gcsfuse/cpu-limit": "0",
    "gke-gcsfuse/memory-request": "256Mi",
    "gke-gcsfuse/memory-limit": "0",
    "gke-gcsfuse/ephemeral-storage-request": "1Gi",
    "gke-gcsfuse/ephemeral-storage-limit": "0",
}
SAFE_TO_EVICT = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def build(
    *, job: Job, task: TaskSpec, cluster: Cluster, name: str, pool: str | None, instance: str, log_path_template: str
) -> tuple[Manifest, Manifest | None]:
    """
    Return the Job of the current attempt, and the Service of a multi-host one.

    Args:
        job: the row; its attempt counts.
        task: its spec, parsed.
        name: of the Job, its Service and, by prefix, its pods.
        pool: the node pool its pods are pinned to; None for a CPU job.
        instance: of this database.
        log_path_template: the object of a pod's log, with {job_id} and {pod_name}.

    Raises:
        ValueError: a TPU job without a pool.
    """
    if task.shape and not pool:
        raise ValueError(f"job {job.id} needs the name of its node pool")
    metadata = {
        "labels": names.labels(
            instance=instance,
            cluster_id=cluster.id,
            job_id=job.id,
            attempt=job.attempt,
            exp_id=task.exp_id,
            owner=task.owner,
            extra=task.labels,
        ),
        "annotations": names.annotations(job_id=job.id, exp_id=task.exp_id, owner=task.owner, extra=task.labels),
    }
    pod = _pod(job, task, cluster, name, pool, log_file(job, task, cluster, log_path_template))
    manifest = _job(task, name, metadata, pod, mounted=bool(cluster.gcs_bucket or task.mounts))
    return manifest, _service(name, metadata) if task.hosts > 1 else None


def _job(task: TaskSpec, name: str, metadata: Manifest, pod: Manifest, *, mounted: bool) -> Manifest:
    annotations = {**metadata["annotations"], **SAFE_TO_EVICT, **(SIDECAR if mounted else {})}
    lost = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": {
            "suspend": True,  # until its uid is in the row
            "completionMode": "Indexed" if task.hosts > 1 else "NonIndexed",
            "completions": task.hosts,
            "parallelism": task.hosts,
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": [lost]},
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": metadata["labels"], "annotations": annotations}, "spec": pod},
        },
    }


def _service(name: str, metadata: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": name}},
    }


def _pod(job: Job, task: TaskSpec, cluster: Cluster, name: str, pool: str | None, log_path: str | None) -> Manifest:
    volumes, volume_mounts = _volumes(task, cluster)
    container: Manifest = {
        "name": CONTAINER,
        "image": task.image,
        **_command(task, wrapped=log_path is not None),
        "env": _env(job, task, cluster, name, log_path),
        "resources": _resources(task),
        "volumeMounts": volume_mounts,
    }
    return {
        "restartPolicy": "Never",
        "serviceAccountName": SERVICE_ACCOUNT,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": task.grace_seconds,
        **({"subdomain": name} if task.hosts > 1 else {}),
        **(_placement(task.shape, pool) if task.shape else {}),
        "containers": [container],
        "volumes": volumes,
    }


def _placement(shape: Shape, pool: str | None) -> Manifest:
    return {
        "nodeSelector": {
            "cloud.google.com/gke-nodepool": pool,
            "cloud.google.com/gke-tpu-accelerator": shape.accelerator,
            "cloud.google.com/gke-tpu-topology": shape.topology,
        },
        "tolerations": [
            {"key": TPU, "operator": "Exists", "effect": "NoSchedule"},
            {"key": "cloud.google.com/gke-flex-start", "operator": "Exists", "effect": "NoSchedule"},
        ],
    }


def _command(task: TaskSpec, *, wrapped: bool) -> Manifest:
    """Return `command` and `args`; without a command the image's own entry point gets the args."""
    if task.command is None:
        return {"args": _literal(task.args)} if task.args else {}
    argv = ["/bin/sh", "-c", task.command] if isinstance(task.command, str) else [*task.command, *task.args]
    return {"command": _literal(wrapper.wrap(argv) if wrapped else argv)}


def _env(job: Job, task: TaskSpec, cluster: Cluster, name: str, log_path: str | None) -> list[Manifest]:
    own = {"FALCON_POD_NAME": _field("metadata.name"), **_ranks(task, name)}
    own |= {
        "FALCON_JOB_ID": _value(job.id),
        "FALCON_EXP_ID": _value(task.exp_id),
        "FALCON_ATTEMPT": _value(str(job.attempt)),
        "FALCON_CLUSTER": _value(cluster.name),
        "FALCON_WORLD_SIZE": _value(str(task.hosts)),
        "FALCON_JAX_PROCESS_COUNT": _value(str(task.hosts)),
        "POD_NAME": _field("metadata.name"),
        "PYTHONUNBUFFERED": _value("1"),
    }
    if log_path is not None:
        own["FALCON_LOG_PATH"] = {"value": log_path}
    if cluster.gcs_bucket and job.artifact_path:
        prefix = job.artifact_path.strip("/")
        directory = _value(f"{BUCKET_PATH}/{prefix}")
        own |= {"ARTIFACT_LOCAL_DIR": directory, "FALCON_ARTIFACT_DIR": directory}
        own["FALCON_ARTIFACT_URI"] = _value(f"gs://{cluster.gcs_bucket}/{prefix}")
    theirs = {variable: _value(value) for variable, value in task.envs.items()}
    ours = {variable: source for variable, source in own.items() if variable.startswith("FALCON_")}
    return [{"name": variable, **source} for variable, source in {**own, **theirs, **ours}.items()]


def _ranks(task: TaskSpec, name: str) -> dict[str, Manifest]:
    """Return what tells a pod its place among its peers, which reach each other at <name>-<index>.<name>."""
    many = task.hosts > 1
    rank = _field(COMPLETION_INDEX) if many else _value("0")
    coordinator = f"{name}-0.{name}" if many else "localhost"
    ranks = {
        "FALCON_RANK": rank,
        "FALCON_JAX_PROCESS_ID": rank,
        "FALCON_JAX_COORDINATOR_ADDRESS": _value(f"{coordinator}:{COORDINATOR_PORT}"),
    }
    if many and task.shape:
        ranks["TPU_WORKER_ID"] = rank
        hostnames = ",".join(f"{name}-{index}.{name}" for index in range(task.hosts))
        if len(hostnames) <= WORD_BYTES:
            ranks["TPU_WORKER_HOSTNAMES"] = _value(hostnames)
    return ranks


def log_file(job: Job, task: TaskSpec, cluster: Cluster, template: str) -> str | None:
    """
    Return the file of a pod's log, None if it writes none; Kubernetes puts the pod's name in.

    An id that is no file name is quoted.
    """
    if not task.log or task.command is None or not cluster.gcs_bucket:
        return None
    plain = job.id not in {".", ".."} and "/" not in job.id
    directory = job.id if plain else quote(job.id, safe="").replace(".", "%2E")
    path = _doubled(template.strip("/")).replace("{job_id}", _doubled(directory))
    return f"{BUCKET_PATH}/{path.replace('{pod_name}', '$(FALCON_POD_NAME)')}"


def log_object(job: Job, task: TaskSpec, cluster: Cluster, template: str, pod: str) -> str | None:
    """Return where the log of a pod stands in the cluster's bucket, gs://...; None if it writes none."""
    file = log_file(job, task, cluster, template)
    if file is None:
        return None
    path = file.removeprefix(BUCKET_PATH).replace("$(FALCON_POD_NAME)", pod).replace("$$", "$")
    return f"gs://{cluster.gcs_bucket}{path}"


def _resources(task: TaskSpec) -> Manifest:
    """Return requests and limits; a pod of a slice takes all chips of its node."""
    chips = {TPU: str(task.shape.chips_per_host)} if task.shape else {}
    found: Manifest = {}
    for kind in ("request", "limit"):
        given = {unit: task.resources.get(f"{unit}_{kind}") for unit in ("cpu", "memory")}
        quantities = {**chips, **{unit: quantity for unit, quantity in given.items() if quantity}}
        if quantities:
            found[f"{kind}s"] = quantities
    return found


def _volumes(task: TaskSpec, cluster: Cluster) -> tuple[list[Manifest], list[Manifest]]:
    """Return the volumes, and where they are mounted: scratch space, the cluster's bucket, the user's buckets."""
    volumes: list[Manifest] = [{"name": "tpu-logs", "emptyDir": {}}]
    places: list[Manifest] = [{"name": "tpu-logs", "mountPath": SCRATCH_PATH}]
    mounts = [(_volume_name(index, mount.name), mount, _options(mount)) for index, mount in enumerate(task.mounts)]
    if cluster.gcs_bucket:
        mounts.insert(0, ("gcs", Mount("gcs", cluster.gcs_bucket, BUCKET_PATH), BUCKET_OPTIONS))
    for volume, mount, options in mounts:
        read_only = {"readOnly": True} if mount.read_only else {}
        csi = {
            "driver": "gcsfuse.csi.storage.gke.io",
            **read_only,
            "volumeAttributes": {
                "bucketName": mount.bucket,
                "mountOptions": ",".join(options),
                "gcsfuseLoggingSeverity": "warning",
                "skipCSIBucketAccessCheck": "true",
            },
        }
        volumes.append({"name": volume, "csi": csi})
        places.append({"name": volume, "mountPath": mount.mount_path, **read_only})
    return volumes, places


def _options(mount: Mount) -> tuple[str, ...]:
    """Return a user's options as they are; without implicit-dirs most buckets would look empty."""
    named = {re.split("[=:]", option)[0] for option in mount.options}
    implied = () if "implicit-dirs" in named else ("implicit-dirs",)
    prefix = (f"only-dir={mount.prefix}",) if mount.prefix else ()
    return (*implied, *prefix, *mount.options)


def _volume_name(index: int, name: str) -> str:
    legible = re.sub("[^a-z0-9]+", "-", name.lower())[:40].strip("-")
    return f"mount-{index}-{legible}" if legible else f"mount-{index}"


def _value(text: str) -> Manifest:
    return {"value": _doubled(text)}


def _field(path: str) -> Manifest:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


def _literal(words: list[str] | tuple[str, ...]) -> list[str]:
    return [_doubled(word) for word in words]


def _doubled(text: str) -> str:
    """Return *text* so that Kubernetes' own expansion gives it back unchanged."""
    return text.replace("$", "$$")
