"""
What one simulated cluster's API server holds, and the events its components write.

1. Objects are the stored ones: whoever changes one says so with `touch`, which gives it a new resource version.
2. Nothing here decides anything.
"""

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cloudsim.kube_check import SINGULAR
from cloudsim.values import Json, kube_time

if TYPE_CHECKING:
    from cloudsim.world import World

KINDS = tuple(SINGULAR)
CLUSTER_WIDE = ("namespaces", "nodes")
LIFE_SECONDS = 3600.0  # of an event
Key = tuple[str, str]


class Store:
    """Objects by kind, namespace and name."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.objects: dict[str, dict[Key, Json]] = {kind: {} for kind in KINDS}
        self.version = 1000

    def find(self, kind: str, namespace: str | None, name: str) -> Json | None:
        """Return the stored object, None if there is none."""
        return self.objects[kind].get(("" if kind in CLUSTER_WIDE else namespace or "", name))

    def add(self, kind: str, obj: Json) -> Json:
        """Store a new object: it gets its UID and time of creation."""
        metadata = obj["metadata"]
        metadata["uid"] = str(uuid.UUID(int=self.world.random.getrandbits(128), version=4))
        metadata["creationTimestamp"] = kube_time(self.world.now)
        self.objects[kind][key_of(kind, obj)] = obj
        self.touch(obj)
        return obj

    def touch(self, obj: Json) -> None:
        """Take note that an object changed."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)

    def drop(self, kind: str, obj: Json) -> None:
        """Let an object be gone."""
        self.version += 1
        self.objects[kind].pop(key_of(kind, obj), None)

    def has(self, kind: str, obj: Json) -> bool:
        """Whether this very object, not another of its name, is stored."""
        return self.objects[kind].get(key_of(kind, obj)) is obj

    def dependents(self, uid: str) -> Iterator[tuple[str, Json]]:
        """Yield what is owned by an object, with its kind."""
        for kind, objects in self.objects.items():
            for obj in list(objects.values()):
                if any(owner["uid"] == uid for owner in obj["metadata"].get("ownerReferences", ())):
                    yield kind, obj


def key_of(kind: str, obj: Json) -> Key:
    """Return what an object is stored under."""
    metadata = obj["metadata"]
    return ("" if kind in CLUSTER_WIDE else metadata.get("namespace", ""), metadata["name"])


class Events:
    """Events about objects: told again, one only counts up."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.known: dict[tuple[str, str, str], Json] = {}
        self.last: dict[str, float] = {}  # UID -> when it was last told

    def add(self, obj: Json, kind: str, reason: str, message: str, component: str = "cloudsim") -> None:
        """Write an event of type *kind*, Normal or Warning, about an object."""
        metadata, now = obj["metadata"], kube_time(self.store.world.now)
        namespace = metadata.get("namespace", "default")
        about = (metadata["uid"], reason, message)
        if (event := self.known.get(about)) is not None and self.store.has("events", event):
            event["count"] += 1
            event["lastTimestamp"] = now
            self.last[event["metadata"]["uid"]] = self.store.world.now
            self.store.touch(event)
            return
        self._expire()
        name = f"{metadata['name']}.{self.store.world.random.getrandbits(64):016x}"
        event = self.known[about] = self.store.add(
            "events",
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": namespace},
                "involvedObject": {
                    "kind": obj["kind"],
                    "name": metadata["name"],
                    "namespace": namespace,
                    "uid": metadata["uid"],
                },
                "type": kind,
                "reason": reason,
                "message": message,
                "count": 1,
                "firstTimestamp": now,
                "lastTimestamp": now,
                "source": {"component": component},
            },
        )
        self.last[event["metadata"]["uid"]] = self.store.world.now

    def _expire(self) -> None:
        """Forget the oldest events that nobody has told again for an hour."""
        for event in list(self.store.objects["events"].values())[:2]:
            uid = event["metadata"]["uid"]
            if self.store.world.now - self.last.get(uid, 0.0) > LIFE_SECONDS:
                self.store.drop("events", event)
                self.last.pop(uid, None)
                self.known.pop((event["involvedObject"]["uid"], event["reason"], event["message"]), None)
