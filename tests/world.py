"""
Falcon in memory: the real observe, plan and apply over a store in memory and the simulated cloud, on one clock.

1. Time moves only when a test says so, or when a pass made no progress: then by the interval.
2. Tests look at the world: rows, ledger, events, and what the cloud holds.
3. What stands on the store or the doors alone is a method of its own, so that a scenario runs over any of them.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from math import ceil
from typing import Any

import structlog
from cloudsim.direct import DirectClouds
from cloudsim.faults import Fault
from cloudsim.tempo import Tempo
from cloudsim.world import World
from deadlines import bounds_ahead
from fingerprint import fingerprint
from memory_store import MemoryStore

from falcon_rm.apply import Result
from falcon_rm.core.model import Bounds, Cluster, Job, Pool, Slot
from falcon_rm.core.words import PoolState
from falcon_rm.loop import Pass, one_pass
from falcon_rm.ports import Clouds

INTERVAL = 10.0
EPSILON = 1e-6  # bounds are passed a moment after they are reached
ZONE = "us-central1-a"
QUIET_PASSES = 400

structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))


def cluster(cluster_id: str, tpu_type: str = "v6e", **columns: Any) -> Cluster:
    """Return a zonal cluster whose id is its name."""
    return Cluster(
        **{"id": cluster_id, "name": cluster_id, "project": "p", "location": ZONE, "tpu_type": tpu_type, **columns}
    )


def spec(topology: str = "2x2", tpu_type: str = "v6e", mode: str = "on-demand", **fields: Any) -> dict[str, Any]:
    """Return a TaskSpec as upstream writes it; no mode if it is empty."""
    asked = {"supply_mode": mode} if mode else {}
    return {
        "image": "busybox:1.36",
        "command": "true",
        "device_type": tpu_type,
        "device_topo": topology,
        **asked,
        **fields,
    }


Late = tuple[float, str, tuple[Any, ...]]
"""A write whose client gave up too early: when it happens all the same, what is called, with what."""


class Inline(Executor):
    """Reads clusters one after the other in the pass itself: no thread, and what kills a read kills the pass."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call at once."""
        future = Future[Any]()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as an executor does: whoever asks for the result gets it
            future.set_exception(error)
        return future


class Owned:
    """A world that ends with the one Falcon that holds this."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __del__(self) -> None:
        self._world.let_go()


class Falcon:
    """One controller, its database and its clouds."""

    store: Any
    owned: Owned | None = None  # the world of a fork

    def __init__(self, *clusters: Cluster, bounds: Bounds | None = None, tempo: Tempo | None = None) -> None:
        self.store = self.new_store()
        self.sim = World(seed=1, start=self.store.now, tempo=tempo)
        self.bounds = bounds or Bounds(language="en")
        self.clusters: dict[str, Cluster] = {}
        self.late: list[Late] = []
        self._cut: dict[str, Fault] = {}
        for row in clusters or (cluster("c1"),):
            self.register(row)
            if row.path not in self.sim.clusters:
                self.sim.add_cluster(row.path)

    def new_store(self) -> Any:
        """Return an empty database with what tests do to it beside a pass."""
        return MemoryStore()

    def open_store(self) -> AbstractContextManager[Any]:
        """Open the database for one pass."""
        return nullcontext(self.store)

    def clouds(self) -> Clouds:
        """Return the clouds of one pass."""
        return DirectClouds(self.sim)

    def register(self, row: Cluster) -> None:
        """Write a row of `clusters`, as an operator does."""
        self.clusters[row.id] = row
        self.store.add_cluster(row)

    def fork(self) -> "Falcon":
        """Return an independent copy of the whole world."""
        store, sim, late = self.store.copy(), self.sim.fork(), self.late.copy()
        copied = copy(self)
        copied.store, copied.sim, copied.late, copied.owned = store, sim, late, Owned(sim)
        return copied

    def fork_rows(self, of: "Falcon | None" = None) -> "Falcon":
        """Return a copy with a database of its own; its clouds are those of this one, or *of* one whose are equal."""
        copied = copy(of or self)
        copied.store, copied.late = self.store.copy(), self.late.copy()
        return copied

    def fingerprint(self) -> str:
        """Return what of this world can influence its future; equal for worlds whose futures are equal."""
        return fingerprint(self)

    def submit(self, job_id: str, task: Mapping[str, object] | str | None = None, **columns: Any) -> None:
        """Insert a row of `job`."""
        self.store.insert_job(job_id, spec() if task is None else task, **columns)

    def step(self, **bounds: Any) -> Pass:
        """Make one pass."""
        return one_pass(
            store=self.open_store,
            clouds=self.clouds,
            bounds=self.bounds,
            pass_seconds=60,
            readers=Inline,
            **bounds,
        )

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.sim.advance(seconds)
        self.store.now = self.sim.now
        due, self.late = [w for w in self.late if w[0] <= self.sim.now], [w for w in self.late if w[0] > self.sim.now]
        for _, name, arguments in due:
            getattr(self.store, name)(*arguments)

    def wait(self) -> None:
        """Let the interval between two passes go by."""
        self.advance(INTERVAL)

    def jump(self, *others: float) -> None:
        """
        Let as many intervals go by as it takes until something falls due: in the clouds, or by a bound of Falcon's.

        The passes between would see the same world, and plan nothing, as the one before. *others*: moments at which a
        test does something.
        """
        happens = (self.sim.agenda.next_at(), *(at for at, _, _ in self.late), *others)
        due = [at for at in (*happens, *bounds_ahead(self.store, self.bounds, self.sim)) if at is not None]
        ahead = min(due, default=self.sim.now) - self.sim.now
        self.advance(INTERVAL * max(1, ceil(ahead / INTERVAL + EPSILON)))

    def go_on(self, made: Pass, *others: float) -> None:
        """Let time pass after a pass as the loop does: none after progress, and no longer than needed in idleness."""
        if made.progress:
            return
        if any(acted.result is not Result.TOLD for acted in made.acted):
            self.wait()
        else:
            self.jump(*others)

    def until(self, reached: Callable[[], bool], *, seconds: float = 7200) -> None:
        """Make passes, waiting the interval when one made no progress, until something holds."""
        ends = self.store.now + seconds
        while not reached():
            assert self.store.now < ends, self.describe()
            if not self.step().progress:
                self.wait()

    def until_state(self, job_id: str, state: str, *, seconds: float = 7200) -> None:
        """Make passes until a job stands at Status or Status/Reason."""
        self.until(lambda: self.state(job_id) == state, seconds=seconds)

    def settle(self, *, seconds: float = 7200) -> None:
        """Make passes until every job is terminal and the cloud holds nothing of ours."""
        self.until(lambda: self.is_over() and not self.leftovers(), seconds=seconds)

    def passes(self, count: int) -> None:
        """Make that many passes, the interval between them."""
        for _ in range(count):
            self.step()
            self.advance(INTERVAL)

    def cut_off(self, cluster_id: str) -> None:
        """Let nobody reach a cluster's Kubernetes."""
        self._cut[cluster_id] = self.sim.faults.cluster_down(self.clusters[cluster_id].path)

    def reconnect(self, cluster_id: str) -> None:
        """Let it be reached again."""
        self.sim.faults.remove(self._cut.pop(cluster_id))

    # --- what there is

    def rows(self) -> list[Job]:
        """Return every row of `job`."""
        return list(self.store.jobs.values())

    def pool_rows(self) -> list[Pool]:
        """Return the whole ledger."""
        return list(self.store.pools.values())

    def holder(self, topology: str, cluster_id: str = "c1") -> str | None:
        """Return who holds a slot."""
        slot: Slot = self.store.slots[cluster_id, topology]
        return slot.holder

    def job(self, job_id: str) -> Job:
        """Return a row of `job`."""
        row: Job = self.store.row(job_id)
        return row

    def message(self, job_id: str) -> str:
        """Return what people are told of a job."""
        return self.job(job_id).message or ""

    def state(self, job_id: str) -> str:
        """Return Status or Status/Reason."""
        return state_of(self.job(job_id))

    def story(self, job_id: str) -> list[str]:
        """Return the states a job went through."""
        events = [event for event in self.store.event_rows() if event.job_id == job_id]
        return [f"{event.to_status}/{event.to_reason}" if event.to_reason else event.to_status for event in events]

    def is_over(self) -> bool:
        """Return whether every job is terminal."""
        return all(job.status in ("Succeeded", "Failed", "Aborted") for job in self.rows())

    def ledger(self, name: str, cluster_id: str = "c1") -> Pool:
        """Return a ledger row."""
        (pool,) = self.store.pools_named(cluster_id, [name])
        return pool  # type: ignore[no-any-return]

    def pools(self, cluster_id: str = "c1") -> list[str]:
        """Return the names of falcon-* pools that GKE holds."""
        listed = self.sim.gke.pools.of(self.clusters[cluster_id].path)
        return [pool.name for pool in listed if pool.name.startswith("falcon-")]

    def works(self, cluster_id: str = "c1") -> list[str]:
        """Return the names of Kubernetes Jobs."""
        return self.names("jobs", cluster_id)

    def names(self, kind: str, cluster_id: str = "c1") -> list[str]:
        """Return the names of objects in Kubernetes."""
        objects = self.sim.kube(self.clusters[cluster_id].path).store.objects[kind]
        return sorted(item["metadata"]["name"] for item in objects.values())

    def leftovers(self) -> list[str]:
        """Return what the clouds still hold, and ledger rows that are not closed."""
        held = [
            name
            for each in self.clusters
            for name in (*self.pools(each), *self.works(each), *self.names("services", each))
        ]
        open_rows = [pool.name for pool in self.pool_rows() if pool.state is not PoolState.DELETED]
        return held + open_rows

    def creates(self) -> list[str]:
        """Return the create calls that GKE took or refused, by pool name."""
        return [call.arguments[1]["name"] for call in self.sim.calls if call.name == "gke.create_node_pool"]

    def describe(self) -> str:
        """Return every job's state and message, for a failing test."""
        rows = [f"{job.id}: {state_of(job)} {job.outcome} {job.message}" for job in self.rows()]
        return "\n".join([*rows, f"left: {self.leftovers()}"])


def state_of(job: Job) -> str:
    """Return Status or Status/Reason."""
    return f"{job.status}/{job.reason}" if job.reason else job.status
