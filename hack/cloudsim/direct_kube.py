"""
One simulated cluster's Kubernetes as the product's port, without sockets; see direct.py for its rules.

1. What the real adapter does in several requests is several calls to the world here, in the same order.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cloudsim.errors import Hang, KubeError
from cloudsim.kube import Kube
from cloudsim.values import Json
from falcon_rm.cloud.kube_values import kube_event, live_work, pod, ready_node, understood
from falcon_rm.core.errors import Call, classify_kubernetes
from falcon_rm.core.live import KubeEvent, LiveWork, Pod
from falcon_rm.core.names import ATTEMPT, JOB_ID
from falcon_rm.core.words import CloudError, ErrorKind

NAMESPACE, ACCOUNT = "falcon-jobs", "falcon-job"
POOL_LABEL = "cloud.google.com/gke-nodepool"
PAGE = 500


class ExpiredError(CloudError):
    """The rest of a list is not to be had any more."""


@contextmanager
def translating(call: Call) -> Iterator[None]:
    """Turn what the world answers into CloudError."""
    try:
        yield
    except KubeError as error:
        reason, text = ("", error.raw) if error.raw is not None else (error.reason or "Unknown", error.message)
        kind = classify_kubernetes(call=call, status=error.status, reason=reason, text=text)
        raise (ExpiredError if error.status == 410 else CloudError)(kind, text) from error
    except Hang as error:
        raise CloudError(ErrorKind.UNKNOWN, f"timed out: {error}") from error


class DirectKubernetes:
    """A cluster of a world."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._home_is_there = False

    def list_works(self, selector: str) -> tuple[LiveWork, ...]:
        """Return the Jobs with these labels."""
        return understood(live_work, self._list("jobs", NAMESPACE, selector))

    def list_pods(self, selector: str) -> tuple[Pod, ...]:
        """Return the pods with these labels."""
        return understood(pod, self._list("pods", NAMESPACE, selector))

    def list_events(self, names: Collection[str]) -> tuple[KubeEvent, ...]:
        """Return Warning events about Jobs and pods whose name is, or begins with, one of *names*."""
        events = understood(kube_event, self._list("events", NAMESPACE, fields="type=Warning"))
        beginnings = tuple(f"{name}-" for name in names)
        return tuple(event for event in events if event.about in names or event.about.startswith(beginnings))

    def list_ready_nodes(self, pools: Iterable[str]) -> Mapping[str, str]:
        """Return the Ready nodes of these pools: node name -> pool name."""
        names = sorted(set(pools))
        if not names:
            return {}
        nodes = self._list("nodes", None, f"{POOL_LABEL} in ({','.join(names)})")
        return {node: pool for node, pool, ready in understood(ready_node, nodes) if ready}

    def submit(self, manifest: Mapping[str, object], service: Mapping[str, object] | None) -> str:
        """Create the Job, then its Service owned by it, making namespace and service account if they are missing."""
        self._ensure_home()
        job, was_there = self._create("jobs", dict(manifest))
        wanted, found = metadata_of(manifest)["labels"], job["metadata"].get("labels") or {}
        if was_there and any(found.get(key) != wanted[key] for key in (JOB_ID, ATTEMPT)):
            text = f"a Job {job['metadata']['name']} that is not this attempt's is there"
            raise CloudError(ErrorKind.PERMANENT, text)
        uid = str(job["metadata"]["uid"])
        if service is not None:
            self._serve(service, job["metadata"]["name"], uid)
        return uid

    def resume_work(self, name: str, uid: str) -> None:
        """Let a suspended Job run, if it still has this UID."""
        with translating("submit"):
            self._kube.patch("jobs", NAMESPACE, name, {"metadata": {"uid": uid}, "spec": {"suspend": False}})

    def delete_work(self, name: str, uid: str) -> None:
        """Delete a Job with its pods in the background; one that is gone, or another of that name, is fine."""
        options = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            with translating("delete"):
                self._kube.delete("jobs", NAMESPACE, name, options)
        except CloudError as error:
            if error.kind is not ErrorKind.GONE:
                raise

    def _list(self, kind: str, namespace: str | None, labels: str = "", fields: str = "") -> list[Json]:
        try:
            return self._pages(kind, namespace, labels, fields)
        except ExpiredError:
            return self._pages(kind, namespace, labels, fields)

    def _pages(self, kind: str, namespace: str | None, labels: str, fields: str) -> list[Json]:
        items: list[Json] = []
        more: str | None = None
        while True:
            with translating("read"):
                page = self._kube.look(kind, namespace, labels, fields, PAGE, more)
            items += page["items"]
            more = page["metadata"].get("continue")
            if not more:
                return items

    def _ensure_home(self) -> None:
        if self._home_is_there:
            return
        try:
            with translating("read"):
                self._kube.get("serviceaccounts", NAMESPACE, ACCOUNT)
        except CloudError as error:
            if error.kind is not ErrorKind.GONE:
                raise
            self._make("namespaces", None, NAMESPACE)
            self._make("serviceaccounts", NAMESPACE, ACCOUNT)
        self._home_is_there = True

    def _make(self, kind: str, namespace: str | None, name: str) -> None:
        try:
            with translating("submit"):
                self._kube.create(kind, namespace, {"metadata": {"name": name}})
        except CloudError as error:
            if error.kind is not ErrorKind.EXISTS:
                raise

    def _create(self, kind: str, body: Json) -> tuple[Json, bool]:
        """Return the object and whether it was there already."""
        name = str(metadata_of(body)["name"])
        try:
            with translating("submit"):
                return self._kube.create(kind, NAMESPACE, body), False
        except CloudError as refusal:
            if refusal.kind is not ErrorKind.EXISTS:
                raise
        try:
            with translating("read"):
                found = self._kube.get(kind, NAMESPACE, name)
        except CloudError as error:
            if error.kind is not ErrorKind.GONE:
                raise
            raise CloudError(ErrorKind.BUSY, f"{name} was there and is gone") from error
        if "deletionTimestamp" in found["metadata"]:
            raise CloudError(ErrorKind.BUSY, f"{name} is being deleted")
        return found, True

    def _serve(self, service: Mapping[str, object], job: str, uid: str) -> None:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid}
        body = {**service, "metadata": {**metadata_of(service), "ownerReferences": [owner]}}
        found, was_there = self._create("services", body)
        owners = [item["uid"] for item in found["metadata"].get("ownerReferences") or ()]
        if was_there and uid not in owners:
            kind = ErrorKind.BUSY if owners else ErrorKind.PERMANENT
            raise CloudError(kind, f"a Service {job} that is not this Job's is there")


def metadata_of(body: Mapping[str, object]) -> Mapping[str, Any]:
    """Return an object's metadata."""
    found = body["metadata"]
    assert isinstance(found, Mapping)
    return found
