"""
Lists as tables, the form in which kubectl asks for them: `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`.

Jobs, pods and nodes have the columns that the API server gives them; of everything else name and age are shown.
"""

from collections.abc import Callable
from datetime import datetime

from cloudsim.kube_pods import init_statuses
from cloudsim.values import Json

AS_TABLE = "as=Table"
NAME = {"description": "Name must be unique within a namespace.", "format": "name"}
UNITS = (("d", 86400.0), ("h", 3600.0), ("m", 60.0))
LAST = ("Complete", "Failed")
SIGNS = ("Suspended", "FailureTarget", "SuccessCriteriaMet")

Cells = Callable[[Json, float], list[str]]


def table(kind: str, found: Json, now: float) -> Json:
    """Return a List object as a Table."""
    columns, cells = TABLES.get(kind, ("Name Age", name_and_age))
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": found["metadata"],
        "columnDefinitions": [
            {
                "name": name,
                "type": "string",
                "format": "",
                "description": name,
                "priority": 0,
                **(NAME if not at else {}),
            }
            for at, name in enumerate(columns.split())
        ],
        "rows": [{"cells": cells(obj, now), "object": partial(obj)} for obj in found["items"]],
    }


def partial(obj: Json) -> Json:
    """Return what a row says of its object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def lasting(seconds: float) -> str:
    """Return a time span as kubectl shows it, its largest unit only."""
    for unit, length in UNITS:
        if seconds >= 2 * length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def seconds_of(text: str) -> float:
    """Return a time that Kubernetes wrote."""
    return datetime.fromisoformat(text).timestamp()


def age(obj: Json, now: float) -> str:
    """Return how old an object is."""
    return lasting(now - seconds_of(obj["metadata"]["creationTimestamp"]))


def name_and_age(obj: Json, now: float) -> list[str]:
    """Return the cells of anything."""
    return [obj["metadata"]["name"], age(obj, now)]


def of_job(job: Json, now: float) -> list[str]:
    """Return the cells of a Job."""
    status = job["status"]
    signs = {item["type"] for item in status.get("conditions", ()) if item["status"] == "True"}
    word = next((sign for sign in LAST if sign in signs), None)
    if word is None and "deletionTimestamp" in job["metadata"]:
        word = "Terminating"
    word = word or next((sign for sign in SIGNS if sign in signs), "Running")
    took = ""
    if "startTime" in status:
        end = seconds_of(status["completionTime"]) if "completionTime" in status else now
        took = lasting(end - seconds_of(status["startTime"]))
    done = f"{status.get('succeeded', 0)}/{job['spec']['completions']}"
    return [job["metadata"]["name"], word, done, took, age(job, now)]


def of_pod(pod: Json, now: float) -> list[str]:
    """Return the cells of a pod."""
    status, word = pod["status"], pod["status"]["phase"]
    sidecars = {item["name"] for item in pod["spec"].get("initContainers", ()) if item.get("restartPolicy") == "Always"}
    counted = [item for item in init_statuses(pod) if item["name"] in sidecars] + status.get("containerStatuses", [])
    for item in reversed(status.get("containerStatuses", [])):
        state = item["state"]
        word = (state.get("waiting") or state.get("terminated") or {}).get("reason", word)
    if "deletionTimestamp" in pod["metadata"]:
        word = "Terminating"
    ready = sum(item["ready"] for item in counted)
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(pod['spec']['containers']) + len(sidecars)}",
        word,
        "0",
        age(pod, now),
    ]


def of_node(node: Json, now: float) -> list[str]:
    """Return the cells of a node."""
    word = "Ready" if node["status"]["conditions"][0]["status"] == "True" else "NotReady"
    if node["spec"].get("unschedulable"):
        word += ",SchedulingDisabled"
    version = node["status"].get("nodeInfo", {}).get("kubeletVersion", "")
    return [node["metadata"]["name"], word, "<none>", age(node, now), version]


TABLES: dict[str, tuple[str, Cells]] = {
    "jobs": ("Name Status Completions Duration Age", of_job),
    "pods": ("Name Ready Status Restarts Age", of_pod),
    "nodes": ("Name Status Roles Age Version", of_node),
}
"""Kind -> its columns and what stands in them."""
