"""
One cluster's Kubernetes API (the kubernetes client), built from what GetCluster says.

1. The server's certificate is always verified: by the cluster's CA at an IP endpoint, by the system's at a DNS one.
2. Every request carries a token that is good now (P100, P103); the client's own retries are off (P113).
3. Lists are read from the present (no resourceVersion, P104), page by page; one that is cut short is begun again once,
   then UNKNOWN (P102). Only "NotFound" in a Status body means that something is not there.
4. What is imported for pods, nodes and namespaces takes nearly half a second: done when they are first asked for.
5. A Job of our name, job id and attempt counts as submitted (P59); anything else of that name is in the way.
"""

import json
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from kubernetes.client import ApiClient, BatchV1Api, Configuration

from falcon_rm.cloud.asked import Name
from falcon_rm.cloud.credential import Credential
from falcon_rm.cloud.errors import Expired, bounded, translating
from falcon_rm.cloud.kube_values import POOL_LABEL, kube_event, live_work, pod, ready_node, understood
from falcon_rm.cloud.retry import Deadline, ask, within
from falcon_rm.core.errors import Call
from falcon_rm.core.live import ClusterInfo, KubeEvent, LiveWork, Pod
from falcon_rm.core.manifest import NAMESPACE, SERVICE_ACCOUNT
from falcon_rm.core.model import Cluster
from falcon_rm.core.names import ATTEMPT, JOB_ID
from falcon_rm.core.words import CloudError, ErrorKind

OURS = (JOB_ID, ATTEMPT)
"""The labels by which a Job found under our name is told to be this attempt's."""

CLUSTER_WIDE = ("namespaces", "nodes")
"""The kinds we use that live in no namespace."""

PAGE = 500
MERGE = "application/merge-patch+json"
POOLS_PER_LIST = 50
"""Names in one label selector: it is part of a URL."""

Raw = dict[str, Any]


def configuration(cluster: Cluster, info: ClusterInfo, *, system_ca: str | None) -> Configuration:
    """
    Return where the API is and whom to trust there.

    Args:
        cluster: its `endpoint` says which kind; None takes the first that GetCluster offers.
        info: GetCluster's answer.
        system_ca: a file with the CAs for DNS endpoints; None: the system's.

    Raises:
        CloudError: CLUSTER, if the cluster does not offer such an endpoint, or one without a certificate.
    """
    if info.ip_endpoint and info.ca_certificate and cluster.endpoint in ("ip", None):
        host, certificate, file = info.ip_endpoint, info.ca_certificate, None
    elif info.dns_endpoint and cluster.endpoint in ("dns", None):
        host, certificate, file = info.dns_endpoint, None, system_ca
    else:
        wanted = f"no {cluster.endpoint} endpoint" if cluster.endpoint else "no endpoint"
        raise CloudError(ErrorKind.CLUSTER, f"cluster {cluster.gke} offers {wanted} that can be used")
    return Configuration(host=f"https://{host}", ca_cert_data=certificate, ssl_ca_cert=file, retries=False)


class KubeAdapter:
    """
    One cluster's Kubernetes for one pass.

    Args:
        cluster: the cluster.
        info: GetCluster's answer in this pass.
        credential: shared by all clients.
        system_ca: a file with the CAs for DNS endpoints; None: the system's.
        read_seconds: bound of a list, however many pages.
        write_seconds: bound of a submit or delete, however many requests.

    Raises:
        CloudError: as `configuration` does; UNKNOWN, if there is no token.
    """

    def __init__(
        self,
        cluster: Cluster,
        info: ClusterInfo,
        *,
        credential: Credential,
        system_ca: str | None = None,
        read_seconds: float = 8,
        write_seconds: float = 30,
    ) -> None:
        self._credential = credential
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds
        self._home_is_there = False
        settings: Any = configuration(cluster, info, system_ca=system_ca)
        settings.api_key = {"authorization": ""}  # empty, the hook would never be called (gke.md 4.2)
        settings.refresh_api_key_hook = self._authorize
        self._client = client = ApiClient(settings)
        self._connections = _watched(client.rest_client.pool_manager.connection_from_url(settings.host))
        self._batch = BatchV1Api(client)

    @cached_property
    def _core(self) -> Any:
        from kubernetes.client import CoreV1Api  # noqa: PLC0415 - rule 4

        return CoreV1Api(self._client)

    def list_works(self, selector: str) -> tuple[LiveWork, ...]:
        """Return the Jobs with these labels."""
        return understood(live_work, self._list(self._batch.list_namespaced_job, NAMESPACE, label_selector=selector))

    def list_pods(self, selector: str) -> tuple[Pod, ...]:
        """Return the pods with these labels."""
        return understood(pod, self._list(self._core.list_namespaced_pod, NAMESPACE, label_selector=selector))

    def list_events(self, names: Collection[str]) -> tuple[KubeEvent, ...]:
        """Return Warning events about Jobs and pods whose name is, or begins with, one of *names*."""
        found = self._list(self._core.list_namespaced_event, NAMESPACE, field_selector="type=Warning")
        events = understood(kube_event, found)
        beginnings = tuple(f"{name}-" for name in names)
        return tuple(event for event in events if event.about in names or event.about.startswith(beginnings))

    def list_ready_nodes(self, pools: Iterable[str]) -> Mapping[str, str]:
        """Return the Ready nodes of these pools: node name -> pool name."""
        names, ready = sorted(set(pools)), {}
        for start in range(0, len(names), POOLS_PER_LIST):
            selector = f"{POOL_LABEL} in ({','.join(names[start : start + POOLS_PER_LIST])})"
            nodes = understood(ready_node, self._list(self._core.list_node, label_selector=selector))
            ready.update({node: pool for node, pool, is_ready in nodes if is_ready})
        return ready

    def submit(self, manifest: Mapping[str, object], service: Mapping[str, object] | None) -> str:
        """
        Create the Job, then its Service owned by it, making namespace and service account if they are missing.

        Returns:
            The Job's UID, also if it was there with our job id and attempt.

        Raises:
            CloudError: PERMANENT names what else is there under that name; BUSY, while it is being deleted.
        """
        deadline = Deadline(self._write_seconds)
        self._ensure_home(deadline)
        job, was_there = self._create(
            self._batch.create_namespaced_job, self._batch.read_namespaced_job, manifest, deadline
        )
        if was_there and not _same_attempt(job, manifest):
            raise CloudError(
                ErrorKind.PERMANENT, f"a Job {job['metadata']['name']} that is not this attempt's is there"
            )
        uid = str(job["metadata"]["uid"])
        if service is not None:
            self._serve(_owned(service, job["metadata"]["name"], uid), uid, deadline)
        return uid

    def resume_work(self, name: str, uid: str) -> None:
        """
        Let a suspended Job run, if it still has this UID.

        Raises:
            CloudError: UNKNOWN, it is gone; GONE, another of that name is there.
        """
        body = {"metadata": {"uid": uid}, "spec": {"suspend": False}}
        patch = self._batch.patch_namespaced_job
        self._call("submit", patch, Deadline(self._write_seconds), name, NAMESPACE, body=body, _content_type=MERGE)

    def delete_work(self, name: str, uid: str) -> None:
        """Delete a Job with its pods in the background; one that is gone, or another of that name, is fine."""
        deadline = Deadline(self._write_seconds)
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            self._call("delete", self._batch.delete_namespaced_job, deadline, name, NAMESPACE, body=body)
        except CloudError as error:
            if error.kind is not ErrorKind.GONE:
                raise

    def is_allowed(self, group: str, kind: str, verb: str) -> bool:
        """Return whether we may do this (SelfSubjectAccessReview), in the jobs' namespace if the kind lives in one."""
        from kubernetes.client import AuthorizationV1Api  # noqa: PLC0415 - rule 4

        place = {} if kind in CLUSTER_WIDE else {"namespace": NAMESPACE}
        body = {"spec": {"resourceAttributes": {"group": group, "resource": kind, "verb": verb, **place}}}
        review = AuthorizationV1Api(self._client).create_self_subject_access_review
        answer = self._call("read", review, Deadline(self._read_seconds), body=body)
        return (answer.get("status") or {}).get("allowed") is True

    def has_namespace(self) -> bool:
        """Return whether the jobs' namespace is there."""
        return self._found(self._core.read_namespace, NAMESPACE) is not None

    def service_account(self) -> Mapping[str, str] | None:
        """Return the annotations of the pods' service account; None if there is none."""
        found = self._found(self._core.read_namespaced_service_account, SERVICE_ACCOUNT, NAMESPACE)
        return None if found is None else found["metadata"].get("annotations") or {}

    def _found(self, read: Callable[..., Any], *place: str) -> Raw | None:
        try:
            return self._call("read", read, Deadline(self._read_seconds), *place)
        except CloudError as error:
            if error.kind is ErrorKind.GONE:
                return None
            raise

    def _list(self, method: Callable[..., Any], *place: str, **selector: str) -> list[Raw]:
        deadline = Deadline(self._read_seconds)
        try:
            return self._pages(method, deadline, *place, **selector)
        except Expired:
            return self._pages(method, deadline, *place, **selector)

    def _pages(self, method: Callable[..., Any], deadline: Deadline, *place: str, **selector: str) -> list[Raw]:
        items: list[Raw] = []
        more: dict[str, str] = {}
        while True:
            page = self._call("read", method, deadline, *place, limit=PAGE, **selector, **more)
            found, meta = page.get("items", ""), page.get("metadata")  # an empty list may be null
            if not (found is None or isinstance(found, list)) or not isinstance(meta, dict):
                raise CloudError(ErrorKind.UNKNOWN, bounded(f"no list: {page}"))
            items += found or ()
            if not meta.get("continue"):
                return items
            more = {"_continue": meta["continue"]}

    def _ensure_home(self, deadline: Deadline) -> None:
        """Make namespace and service account if the account is missing; looked at once a pass."""
        if self._home_is_there:
            return
        account: Raw = {"metadata": {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}}
        try:
            self._call("read", self._core.read_namespaced_service_account, deadline, SERVICE_ACCOUNT, NAMESPACE)
        except CloudError as error:
            if error.kind is not ErrorKind.GONE:
                raise
            self._make(deadline, self._core.create_namespace, body={"metadata": {"name": NAMESPACE}})
            self._make(deadline, self._core.create_namespaced_service_account, NAMESPACE, body=account)
        self._home_is_there = True

    def _make(self, deadline: Deadline, method: Callable[..., Any], *place: str, body: Raw) -> None:
        try:
            self._call("submit", method, deadline, *place, body=body)
        except CloudError as error:
            if error.kind is not ErrorKind.EXISTS:
                raise

    def _create(
        self, create: Callable[..., Any], read: Callable[..., Any], body: Mapping[str, object], deadline: Deadline
    ) -> tuple[Raw, bool]:
        """Return the object and whether it was there already."""
        try:
            return self._call("submit", create, deadline, NAMESPACE, body=dict(body)), False
        except CloudError as refusal:
            if refusal.kind is not ErrorKind.EXISTS:
                raise
        name = _meta(body)["name"]
        try:
            found = self._call("read", read, deadline, name, NAMESPACE)
        except CloudError as error:
            if error.kind is not ErrorKind.GONE:
                raise
            raise CloudError(ErrorKind.BUSY, f"{name} was there and is gone") from error
        if found["metadata"].get("deletionTimestamp"):
            raise CloudError(ErrorKind.BUSY, f"{name} is being deleted")
        return found, True

    def _serve(self, service: Mapping[str, object], uid: str, deadline: Deadline) -> None:
        create, read = self._core.create_namespaced_service, self._core.read_namespaced_service
        found, was_there = self._create(create, read, service, deadline)
        owners = [owner.get("uid") for owner in found["metadata"].get("ownerReferences") or ()]
        if was_there and uid not in owners:
            if owners:  # of an earlier Job: it goes with that
                raise CloudError(ErrorKind.BUSY, f"Service {_meta(service)['name']} of an earlier Job is still there")
            raise CloudError(ErrorKind.PERMANENT, f"a Service {_meta(service)['name']} that is not this Job's is there")

    def _call(self, call: Call, method: Callable[..., Any], deadline: Deadline, *place: str, **options: Any) -> Raw:
        def send() -> Raw:
            with translating(call):
                self._credential.token()  # before the time that is left is counted
                left = deadline.left()
                response = method(*place, _preload_content=False, _request_timeout=left, **options)
                answer = json.loads(response.data)
            if not isinstance(answer, dict):
                raise CloudError(ErrorKind.UNKNOWN, bounded(f"no object: {answer}"))
            return answer

        def bounded_send() -> Raw:
            return within(deadline, send, abandon=self._cut)

        name = Name("kubernetes", method.__name__)
        return ask(bounded_send, name=name, call=call, credential=self._credential)

    def _authorize(self, settings: Configuration) -> None:
        settings.api_key["authorization"] = f"Bearer {self._credential.token()}"

    def _cut(self) -> None:
        """End what is on the wire: the thread of a call given up must not outlive it for long."""
        for connection in self._connections:
            if connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)


def _watched(pool: Any) -> list[Any]:
    """Return the list in which every connection of this urllib3 pool will stand once it is opened."""
    connections: list[Any] = []

    class Watched(pool.ConnectionCls):  # type: ignore[misc]
        def connect(self) -> None:
            connections.append(self)
            super().connect()

    pool.ConnectionCls = Watched
    return connections


def _meta(body: Mapping[str, object]) -> Mapping[str, Any]:
    meta = body["metadata"]
    assert isinstance(meta, Mapping)
    return meta


def _same_attempt(found: Raw, wanted: Mapping[str, object]) -> bool:
    there, ours = found["metadata"].get("labels") or {}, _meta(wanted)["labels"]
    return all(there.get(key) == ours[key] for key in OURS)


def _owned(service: Mapping[str, object], job: str, uid: str) -> Mapping[str, object]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid}
    return {**service, "metadata": {**_meta(service), "ownerReferences": [owner]}}
