"""
Kubernetes' JSON as the values of the model.

1. A field that is missing reads as its default; an object without a name or uid, or of another form, raises CloudError
   UNKNOWN for the whole list (P81).
2. Nothing is judged here: what a pod's words mean is decided in `core/`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from falcon_rm.cloud.errors import bounded
from falcon_rm.core.live import Condition, ContainerState, KubeEvent, LiveWork, Pod
from falcon_rm.core.words import CloudError, ErrorKind

T = TypeVar("T")

POOL_LABEL = "cloud.google.com/gke-nodepool"
JOB_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")

Raw = Mapping[str, Any]


def understood(read: Callable[[Raw], T], items: Iterable[Raw]) -> tuple[T, ...]:
    """Return every item as a value; raises UNKNOWN if one has a form nobody knows."""
    try:
        return tuple(read(item) for item in items)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CloudError(ErrorKind.UNKNOWN, bounded(f"an answer nobody understands: {error!r}")) from error


def live_work(raw: Raw) -> LiveWork:
    """Return a Job."""
    meta, spec, status = raw["metadata"], _part(raw, "spec"), _part(raw, "status")
    selector = _part(_part(_part(spec, "template"), "spec"), "nodeSelector")
    return LiveWork(
        name=_named(meta, "name"),
        uid=_named(meta, "uid"),
        labels=dict(_part(meta, "labels")),
        annotations=dict(_part(meta, "annotations")),
        conditions={
            entry["type"]: Condition(entry["status"] == "True", entry.get("reason") or "", entry.get("message") or "")
            for entry in status.get("conditions") or ()
        },
        parallelism=_count(spec, "parallelism", 1),
        active=_count(status, "active"),
        ready=_count(status, "ready"),
        succeeded=_count(status, "succeeded"),
        failed=_count(status, "failed"),
        deleting=bool(meta.get("deletionTimestamp")),
        suspended=spec.get("suspend") is True,
        pool=selector.get(POOL_LABEL),
    )


def pod(raw: Raw) -> Pod:
    """Return a pod."""
    meta, spec, status = raw["metadata"], _part(raw, "spec"), _part(raw, "status")
    labels = dict(_part(meta, "labels"))
    conditions = {entry["type"]: entry for entry in status.get("conditions") or ()}
    scheduled, disrupted = conditions.get("PodScheduled", {}), conditions.get("DisruptionTarget", {})
    sandbox = conditions.get("PodReadyToStartContainers", {})
    return Pod(
        name=_named(meta, "name"),
        work=next((labels[key] for key in JOB_NAME_LABELS if key in labels), ""),
        uid=_named(meta, "uid"),
        labels=labels,
        annotations=dict(_part(meta, "annotations")),
        phase=status.get("phase") or "Pending",
        node=spec.get("nodeName") or None,
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        deleting=bool(meta.get("deletionTimestamp")),
        unschedulable=(scheduled.get("message") or scheduled.get("reason") or "")
        if scheduled.get("status") == "False"
        else None,
        disrupted=(disrupted.get("reason") or "") if disrupted.get("status") == "True" else None,
        scheduled_at=scheduled.get("lastTransitionTime") or "",
        has_sandbox=sandbox.get("status") == "True",
        containers=_containers(spec, status),
    )


def _containers(spec: Raw, status: Raw) -> tuple[ContainerState, ...]:
    sidecars = {entry["name"] for entry in spec.get("initContainers") or () if entry.get("restartPolicy") == "Always"}
    return (
        *(_container(entry, init=True, sidecars=sidecars) for entry in status.get("initContainerStatuses") or ()),
        *(_container(entry, init=False, sidecars=sidecars) for entry in status.get("containerStatuses") or ()),
    )


def _container(raw: Raw, *, init: bool, sidecars: set[str]) -> ContainerState:
    state = _part(raw, "state")
    word = next((word for word in ("terminated", "running", "waiting") if state.get(word) is not None), "waiting")
    facts = _part(state, word)
    return ContainerState(
        name=raw["name"],
        state=word,
        reason=facts.get("reason") or "",
        message=facts.get("message") or "",
        exit_code=facts.get("exitCode"),
        finished=facts.get("finishedAt") or "",
        init=init,
        sidecar=init and raw["name"] in sidecars,
    )


def kube_event(raw: Raw) -> KubeEvent:
    """Return an event."""
    seen = _part(raw, "series").get("lastObservedTime") or raw.get("lastTimestamp") or raw.get("eventTime")
    return KubeEvent(
        about=_part(raw, "involvedObject").get("name") or "",
        reason=raw.get("reason") or "",
        message=raw.get("message") or "",
        last_seen=seen or raw["metadata"].get("creationTimestamp") or "",
        first_seen=raw.get("firstTimestamp") or raw.get("eventTime") or raw["metadata"].get("creationTimestamp") or "",
    )


def ready_node(raw: Raw) -> tuple[str, str, bool]:
    """Return a node's name, its pool and whether it is Ready."""
    meta = raw["metadata"]
    ready = any(
        entry["type"] == "Ready" and entry["status"] == "True" for entry in _part(raw, "status").get("conditions") or ()
    )
    return _named(meta, "name"), _part(meta, "labels").get(POOL_LABEL, ""), ready


def _part(raw: Raw, key: str) -> Raw:
    return raw.get(key) or {}


def _named(meta: Raw, key: str) -> str:
    value = meta[key]
    if not (value and isinstance(value, str)):
        raise ValueError(f"{key} is {value!r}")
    return value


def _count(raw: Raw, key: str, default: int = 0) -> int:
    value = raw.get(key)
    return default if value is None else int(value)
