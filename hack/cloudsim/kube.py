"""
The simulated Kubernetes API of one cluster: plain Kubernetes JSON in and out, KubeError for every refusal.

kinds: namespaces serviceaccounts services jobs pods nodes events. A namespace of None is "all namespaces" in `list`,
and the only one for namespaces and nodes. `delete` takes a DeleteOptions object and returns the object being deleted,
or a Status if it is gone at once. A list is a List object: {kind, apiVersion, metadata{resourceVersion, continue,
remainingItemCount}, items}.

1. A Job deleted without propagationPolicy orphans its pods: the default of batch/v1.
2. A page of a list shows the world as it was at the first page; its continue token ends after a while (410).
"""

import re
from typing import TYPE_CHECKING, cast

from cloudsim.errors import KubeError
from cloudsim.kube_check import GROUPS, SINGULAR, check, invalid, refusal
from cloudsim.kube_defaults import API_VERSIONS, name_pods, set_defaults
from cloudsim.kube_jobs import Jobs
from cloudsim.kube_nodes import Nodes
from cloudsim.kube_pods import Pods
from cloudsim.kube_refusals import about, full, leaving, too_old
from cloudsim.kube_select import field_terms, fields_match, matches, requirements
from cloudsim.kube_store import CLUSTER_WIDE, KINDS, Events, Store
from cloudsim.values import Json, clone, kube_time

if TYPE_CHECKING:
    from cloudsim.world import SimCluster, World

Items = list[Json]
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
POLICIES = ("Foreground", "Background", "Orphan")
TYPE = ("kind", "apiVersion")  # an item of a list does not say what it is: the list does
RETURNED = ("serviceaccounts", "services")  # the answer to their deletion is what is gone
PAGES_KEPT = 256
TOKEN = re.compile(r"\d+-[0-9a-f]{16}")


class Kube:
    """One cluster's API server with its controllers, scheduler and kubelets."""

    def __init__(self, world: "World", cluster: "SimCluster") -> None:
        self.world = world
        self.cluster = cluster
        self.store = Store(world)
        self.events = Events(self.store)
        self.pods = Pods(self)
        self.nodes = Nodes(self)
        self.jobs = Jobs(self)
        self.pods_refused: str | None = None  # why pods are not admitted, e.g. 'exceeded quota: q'
        self.pages: dict[str, tuple[float, str, Items]] = {}
        for name in ("default", "kube-system"):
            self._create("namespaces", None, {"metadata": {"name": name}})

    # what clients may call

    def create(self, kind: str, namespace: str | None, obj: Json) -> Json:
        """Create an object; returns it as stored."""
        name = (obj.get("metadata") or {}).get("name", "")
        target = f"{self.cluster.path}/{namespace or '-'}/{kind}/{name}"
        act = self.world.call(f"kube.create.{kind}", target, self._create, kind, namespace, obj, mutating=True)
        return cast(Json, act)

    def get(self, kind: str, namespace: str | None, name: str) -> Json:
        """Return an object."""
        target = f"{self.cluster.path}/{namespace or '-'}/{kind}/{name}"
        return cast(Json, self.world.call(f"kube.get.{kind}", target, self._get, kind, namespace, name))

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int | None = None,
        continue_: str | None = None,
    ) -> Json:
        """Return a List object."""
        with self.world.lock:
            return cast(Json, clone(self.look(kind, namespace, label_selector, field_selector, limit, continue_)))

    def look(
        self, kind: str, namespace: str | None, labels: str, fields: str, limit: int | None, continue_: str | None
    ) -> Json:
        """Return a List object that holds the world's own objects, for one who reads them at once."""
        target = f"{self.cluster.path}/{namespace or '-'}/{kind}"
        arguments = (kind, namespace, labels, fields, limit, continue_)
        return cast(Json, self.world.call(f"kube.list.{kind}", target, self._list, *arguments))

    def delete(self, kind: str, namespace: str | None, name: str, options: Json | None = None) -> Json:
        """Delete an object by the DeleteOptions *options*: preconditions, propagationPolicy, gracePeriodSeconds."""
        target = f"{self.cluster.path}/{namespace or '-'}/{kind}/{name}"
        arguments = (kind, namespace, name, dict(options or {}))
        return cast(Json, self.world.call(f"kube.delete.{kind}", target, self._delete, *arguments, mutating=True))

    def patch(self, kind: str, namespace: str | None, name: str, body: Json) -> Json:
        """Change an object by a merge patch; of a Job, whether it is suspended, and nothing else."""
        target = f"{self.cluster.path}/{namespace or '-'}/{kind}/{name}"
        arguments = (kind, namespace, name, body)
        return cast(Json, self.world.call(f"kube.patch.{kind}", target, self._patch, *arguments, mutating=True))

    def log(self, namespace: str, pod: str) -> str:
        """Return what the main container of a pod wrote."""
        target = f"{self.cluster.path}/{namespace}/pods/{pod}/log"
        return cast(str, self.world.call("kube.log.pods", target, self._log, namespace, pod))

    # what people do beside it: as an ordinary call, but logged nowhere and struck by no fault

    def create_by_hand(self, kind: str, namespace: str | None, obj: Json) -> Json:
        """Let a person create an object."""
        with self.world.lock:
            return self._create(kind, namespace, obj)

    def delete_by_hand(self, kind: str, namespace: str | None, name: str, options: Json | None = None) -> None:
        """Let a person delete an object, a Job with its pods. A Node: its machine is gone."""
        with self.world.lock:
            if kind == "nodes":
                self.world.gke.pools.lose_node(self.cluster.path, name)
            else:
                self._delete(kind, namespace, name, options or {"propagationPolicy": "Background"})

    def suspend_by_hand(self, namespace: str, name: str, *, suspend: bool = True) -> None:
        """Let a person suspend or resume a Job."""
        with self.world.lock:
            self._patch("jobs", namespace, name, {"spec": {"suspend": suspend}})

    # the answers

    def _find(self, kind: str, namespace: str | None, name: str) -> Json:
        obj = self.store.find(kind, namespace, name)
        if obj is None:
            raise KubeError(404, "NotFound", f'{full(kind)} "{name}" not found', details=about(kind, name))
        return obj

    def _create(self, kind: str, namespace: str | None, body: Json) -> Json:
        if not isinstance(body.get("metadata"), dict):
            raise KubeError(400, "BadRequest", f"{SINGULAR[kind]} has no metadata")
        obj: Json = clone(body)
        if kind not in CLUSTER_WIDE:
            if obj["metadata"].setdefault("namespace", namespace) != namespace:
                text = "the namespace of the provided object does not match the namespace sent on the request"
                raise KubeError(400, "BadRequest", text)
            home = self._find("namespaces", None, str(namespace))
        if "name" not in obj["metadata"] and "generateName" in obj["metadata"]:
            obj["metadata"]["name"] = f"{obj['metadata']['generateName']}{self.world.random.getrandbits(20):05x}"
        check(kind, obj)
        name = obj["metadata"]["name"]
        old = self.store.find(kind, namespace, name)
        if old is not None:
            ending = "object is being deleted: " if "deletionTimestamp" in old["metadata"] else ""
            text = f'{ending}{full(kind)} "{name}" already exists'
            raise KubeError(409, "AlreadyExists", text, details=about(kind, name))
        if kind not in CLUSTER_WIDE and "deletionTimestamp" in home["metadata"]:
            raise leaving(kind, name, str(namespace))
        set_defaults(kind, obj, self.world.random)
        if kind == "pods":
            if (refusal := self.pod_refusal_of(obj["spec"], str(namespace), name)) is not None:
                raise KubeError(403, "Forbidden", refusal)
            self.pods.admit(obj)
            return cast(Json, clone(obj))
        self.store.add(kind, obj)
        for owner in obj["metadata"].get("ownerReferences") or ():
            self.world.after(self.world.tempo.reaction_seconds, self._collect_unowned, owner["uid"])
        if kind == "namespaces":
            self._create("serviceaccounts", name, {"metadata": {"name": "default"}})
        if kind == "jobs":
            name_pods(obj)
            self.jobs.poke(obj["metadata"]["uid"])
        return cast(Json, clone(obj))

    def _get(self, kind: str, namespace: str | None, name: str) -> Json:
        return cast(Json, clone(self._find(kind, namespace, name)))

    def _log(self, namespace: str, pod: str) -> str:
        return self.world.workload_of(self._find("pods", namespace, pod)).log

    def _list(
        self, kind: str, namespace: str | None, labels: str, fields: str, limit: int | None, token: str | None
    ) -> Json:
        if token:
            version, items = self._page(token)
        else:
            terms, field_list, version = requirements(labels), field_terms(kind, fields), str(self.store.version)
            items = [
                {part: value for part, value in obj.items() if part not in TYPE}
                for key, obj in sorted(self.store.objects[kind].items())
                if (namespace is None or kind in CLUSTER_WIDE or key[0] == namespace)
                and matches(obj["metadata"].get("labels") or {}, terms)
                and fields_match(obj, field_list)
            ]
        metadata: Json = {"resourceVersion": version}
        if limit and len(items) > limit:
            metadata["continue"] = self._keep(version, clone(items[limit:]))
            if not (labels or fields):
                metadata["remainingItemCount"] = len(items) - limit
            items = items[:limit]
        word = f"{SINGULAR[kind]}List"
        return {"kind": word, "apiVersion": API_VERSIONS.get(kind, "v1"), "metadata": metadata, "items": items}

    def _keep(self, version: str, items: Items) -> str:
        """Keep the rest of a list; return the token for it."""
        token = f"{version}-{self.world.random.getrandbits(64):016x}"
        self.pages[token] = (self.world.now + self.world.tempo.continue_seconds, version, items)
        while len(self.pages) > PAGES_KEPT:
            del self.pages[next(iter(self.pages))]
        return token

    def _page(self, token: str) -> tuple[str, Items]:
        if not TOKEN.fullmatch(token):
            raise KubeError(400, "BadRequest", "continue key is not valid: illegal base64 data")
        until, version, items = self.pages.get(token, (0.0, "", []))
        if until < self.world.now:
            raise too_old(self._keep(str(self.store.version), items))
        return version, items

    # deletion

    def _patch(self, kind: str, namespace: str | None, name: str, body: Json) -> Json:
        obj = self._find(kind, namespace, name)
        uid = body.get("metadata", {}).get("uid", obj["metadata"]["uid"])
        if uid != obj["metadata"]["uid"]:
            raise refusal(kind, name, [invalid("metadata.uid", uid, "field is immutable")])
        if kind != "jobs" or body.keys() - {"metadata", "spec"} or body.get("spec", {}).keys() != {"suspend"}:
            raise KubeError(422, "Invalid", f"the simulated server patches spec.suspend of Jobs alone, not {body}")
        if obj["spec"]["suspend"] != body["spec"]["suspend"]:
            obj["spec"]["suspend"] = body["spec"]["suspend"]
            self.store.touch(obj)
            self.jobs.poke(obj["metadata"]["uid"])
        return cast(Json, clone(obj))

    def _delete(self, kind: str, namespace: str | None, name: str, options: Json) -> Json:
        obj = self._find(kind, namespace, name)
        metadata = obj["metadata"]
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted is not None and wanted != metadata["uid"]:
            text = (
                f'Operation cannot be fulfilled on {typed(kind)} "{name}": the UID in the precondition ({wanted}) does '
                f"not match the UID in record ({metadata['uid']}). The object might have been "
                "deleted and then recreated"
            )
            raise KubeError(409, "Conflict", text, details=about(kind, name))
        policy = options.get("propagationPolicy") or ("Orphan" if kind == "jobs" else "Background")
        if policy not in POLICIES:
            raise no_policy(policy)
        if kind == "pods":
            self.pods.delete(obj, options.get("gracePeriodSeconds"))
            return cast(Json, clone(obj))
        if "deletionTimestamp" in metadata:
            return cast(Json, clone(obj))
        held = metadata.get("finalizers", [])
        if kind == "namespaces" or held or (kind == "jobs" and policy != "Background"):
            metadata |= {"deletionTimestamp": kube_time(self.world.now), "deletionGracePeriodSeconds": 0}
            act = self._empty if kind == "namespaces" else self._orphan if policy == "Orphan" else self._foreground
            if kind == "namespaces":
                obj["status"]["phase"] = "Terminating"
            elif policy != "Background":
                metadata["finalizers"] = [*held, ORPHAN if policy == "Orphan" else FOREGROUND]
            self.store.touch(obj)
            if not held:
                self.world.after(self.world.tempo.reaction_seconds, act, obj)
            return cast(Json, clone(obj))
        self._remove(kind, obj)
        if kind in RETURNED:
            return cast(Json, clone(obj))
        details = {"name": name, "group": GROUPS.get(kind, ""), "kind": kind, "uid": metadata["uid"]}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def _remove(self, kind: str, obj: Json) -> None:
        """Let an object be gone, and what it owns after it."""
        self.store.drop(kind, obj)
        uid = obj["metadata"]["uid"]
        self.world.after(self.world.tempo.reaction_seconds, self._collect, uid)
        if kind == "jobs":
            self.jobs.poke(uid)

    def _empty(self, namespace: Json) -> None:
        """Let a namespace be gone with all that is in it; what a finalizer holds, holds it too."""
        name = namespace["metadata"]["name"]
        within = [
            (kind, obj) for kind in KINDS for key, obj in list(self.store.objects[kind].items()) if key[0] == name
        ]
        held = [(kind, obj) for kind, obj in within if kind != "pods" and obj["metadata"].get("finalizers")]
        for each in within:
            if each not in held:
                self.store.drop(*each)
        if not held:
            self.store.drop("namespaces", namespace)

    def _collect(self, uid: str) -> None:
        """Delete what an object that is gone owned."""
        for kind, obj in self.store.dependents(uid):
            if kind == "pods":
                self.pods.delete(obj, None)
            else:
                self._remove(kind, obj)

    def _collect_unowned(self, uid: str) -> None:
        """Delete what was created for an owner that is gone already."""
        if not any(
            obj["metadata"]["uid"] == uid for objects in self.store.objects.values() for obj in objects.values()
        ):
            self._collect(uid)

    def _orphan(self, job: Json) -> None:
        uid = job["metadata"]["uid"]
        for kind, obj in self.store.dependents(uid):
            metadata = obj["metadata"]
            metadata["ownerReferences"] = [owner for owner in metadata["ownerReferences"] if owner["uid"] != uid]
            self.store.touch(obj)
            if kind == "pods":
                self.pods.release(obj)
        self.store.drop("jobs", job)

    def _foreground(self, job: Json) -> None:
        """Delete what a Job owns, and the Job once nothing of it is left."""
        if not self.store.has("jobs", job):
            return
        uid = job["metadata"]["uid"]
        self._collect(uid)
        if any(True for _ in self.store.dependents(uid)):
            return
        self._remove("jobs", job)

    def gone(self, metadata: Json) -> None:
        """Take note that a pod's object is gone."""
        self.nodes.poke()
        for owner in metadata["ownerReferences"]:
            job = self.store.find("jobs", metadata["namespace"], owner["name"])
            if job is not None and FOREGROUND in job["metadata"].get("finalizers", ()):
                self.world.after(0.0, self._foreground, job)

    # admission of pods

    def pod_refusal(self, job: Json) -> str | None:
        """Return why a Job's pods are not admitted, None if they are."""
        metadata = job["metadata"]
        return self.pod_refusal_of(job["spec"]["template"]["spec"], metadata["namespace"], f"{metadata['name']}-")

    def pod_refusal_of(self, spec: Json, namespace: str, name: str) -> str | None:
        """Return why a pod is not admitted, None if it is."""
        account = spec.get("serviceAccountName", "default")
        if self.store.find("serviceaccounts", namespace, account) is None:
            return (
                f'pods "{name}" is forbidden: error looking up service account {namespace}/{account}: '
                f'serviceaccount "{account}" not found'
            )
        return None if self.pods_refused is None else f'pods "{name}" is forbidden: {self.pods_refused}'


def no_policy(word: str) -> KubeError:
    """Return the answer to a propagation policy that is none."""
    known = ", ".join(f'"{policy}"' for policy in (*POLICIES, "nil"))
    text = f'Unsupported value: "{word}": supported values: {known}'
    cause = {"reason": "FieldValueNotSupported", "message": text, "field": "propagationPolicy"}
    details = {"group": "meta.k8s.io", "kind": "DeleteOptions"}
    message = f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {text}'
    return KubeError(422, "Invalid", message, [cause], details=details)


def typed(kind: str) -> str:
    """Return a kind as a failed precondition names it, such as Job.batch."""
    return f"{SINGULAR[kind]}.{GROUPS[kind]}" if kind in GROUPS else SINGULAR[kind]
