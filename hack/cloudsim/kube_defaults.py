"""What the API server adds to an object that leaves it out."""

from cloudsim.chance import Chance
from cloudsim.kube_check import SINGULAR
from cloudsim.values import Json

CONTROLLER_UID = ("batch.kubernetes.io/controller-uid", "controller-uid")
JOB_NAME = ("batch.kubernetes.io/job-name", "job-name")
API_VERSIONS = {"jobs": "batch/v1"}


def set_defaults(kind: str, obj: Json, source: Chance) -> None:
    """Complete an object before it is stored."""
    obj.setdefault("kind", SINGULAR[kind])
    obj.setdefault("apiVersion", API_VERSIONS.get(kind, "v1"))
    metadata = obj["metadata"]
    if kind == "namespaces":
        obj.setdefault("spec", {"finalizers": ["kubernetes"]})
        obj["status"] = {"phase": "Active"}
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]
    elif kind == "services":
        obj.setdefault("spec", {}).setdefault("type", "ClusterIP")
        obj["spec"].setdefault("clusterIP", f"10.0.{source.randrange(256)}.{source.randrange(1, 255)}")
        obj["status"] = {"loadBalancer": {}}
    elif kind == "jobs":
        default_job(obj)


def default_job(job: Json) -> None:
    """Complete a Job; what needs its UID comes with `name_pods`."""
    spec = job["spec"]
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("parallelism", 1)
    spec.setdefault("completions", spec["parallelism"] if spec["completionMode"] == "Indexed" else 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    template = spec["template"].setdefault("metadata", {})
    labels = template["labels"] = dict(template.get("labels") or {})
    metadata = job["metadata"]
    metadata.setdefault("labels", {key: value for key, value in labels.items() if key not in JOB_NAME})
    metadata["generation"] = 1
    job["status"] = {}


def name_pods(job: Json) -> None:
    """Give a stored Job its selector, and its pods the labels it finds them by."""
    metadata, spec = job["metadata"], job["spec"]
    labels = spec["template"]["metadata"]["labels"]
    labels |= dict.fromkeys(CONTROLLER_UID, metadata["uid"])
    labels |= dict.fromkeys(JOB_NAME, metadata["name"])
    spec["selector"] = {"matchLabels": {CONTROLLER_UID[0]: metadata["uid"]}}
