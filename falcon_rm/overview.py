"""
What `falcon-rm status` shows: clusters, queues, node pools and jobs, from rows alone.

1. SECTIONS is the table of it all: a section's columns, which of them are for `-o wide` only, and its rows.
2. A row's data is complete for `-o json|yaml`, but for the spec: an environment may hold secrets.
3. Ages are counted by the database's clock.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from falcon_rm.core.model import Cluster, Job, Pool
from falcon_rm.core.text import clean
from falcon_rm.core.words import CPU_TOPOLOGY, Reason
from falcon_rm.ports import Rows
from falcon_rm.report import FORMS, NONE, age, plain, table

NARROW_BYTES = 60
"""The longest cell of a table that is not wide."""

QUEUED = {Reason.WAITING, Reason.CLUSTER_BUSY}


@frozen
class Scene:
    """The rows, with what several sections look up in them."""

    rows: Rows
    jobs: tuple[Job, ...]  # live ones, then those that ended lately

    def cluster(self, cluster_id: str | None) -> str | None:
        """Return a cluster's name; its id if the registry has it no more."""
        names = {cluster.id: cluster.name for cluster in self.rows.clusters}
        return names.get(cluster_id, cluster_id) if cluster_id else None

    def age(self, at: float | None) -> str:
        """Return how long ago that was."""
        return NONE if at is None else age(self.rows.now - at)


@frozen
class Queue:
    """One queue: its slot and who waits."""

    cluster_id: str
    topology: str
    holder: str | None
    held_at: float | None
    phase: str | None
    waiting: int


@frozen
class Section:
    """
    One table: which rows it has, its columns, and what is added to a row's own data for machines.

    A column is (header, the row's attribute or a function of it, whether only -o wide shows it). The first is the name.
    """

    kind: str
    rows: Callable[[Scene], Iterable[Any]]
    columns: Sequence[tuple[str, str | Callable[[Scene, Any], object], bool]]
    data: Callable[[Scene, Any], Mapping[str, object]]


def queues(scene: Scene) -> list[Queue]:
    """Return every queue that has a slot or a waiting job."""
    slots = {(slot.cluster_id, slot.topology): slot for slot in scene.rows.slots}
    waiting: dict[tuple[str, str], int] = {}
    for job in scene.rows.jobs:
        if job.reason in QUEUED and job.cluster_id and job.topology and job.topology != CPU_TOPOLOGY:
            key = (job.cluster_id, job.topology)
            waiting[key] = waiting.get(key, 0) + 1
    reasons = {job.id: job.reason for job in scene.rows.jobs}
    found = []
    for key in sorted(slots.keys() | waiting.keys(), key=lambda key: (scene.cluster(key[0]) or "", key[1])):
        slot = slots.get(key)
        holder = slot.holder if slot else None
        found.append(
            Queue(*key, holder, slot.held_at if slot else None, reasons.get(holder or ""), waiting.get(key, 0))
        )
    return found


def _problem(scene: Scene, cluster: Cluster) -> str | None:
    return scene.rows.health.get(cluster.id, (None, None))[0]


def _zone(scene: Scene, cluster: Cluster) -> str | None:
    return cluster.zone or scene.rows.health.get(cluster.id, (None, None))[1]


def _ready(_: Scene, pool: Pool) -> str:
    if pool.error and not pool.ready_at:
        return str(pool.error.kind)
    return "ready" if pool.ready_at else "up" if pool.up_at else "creating"


SECTIONS = (
    Section(
        "cluster",
        lambda scene: sorted(scene.rows.clusters, key=lambda cluster: cluster.name),
        (
            ("NAME", "name", False),
            ("STATUS", "status", False),
            ("TYPE", "tpu_type", False),
            ("PROJECT", "project", True),
            ("LOCATION", "location", True),
            ("ZONE", _zone, False),
            ("RESERVATION", "default_reservation", False),
            ("BUCKET", "gcs_bucket", True),
            ("PROBLEM", _problem, False),
        ),
        lambda scene, each: {"problem": _problem(scene, each), "used_zone": _zone(scene, each)},
    ),
    Section(
        "queue",
        queues,
        (
            ("NAME", lambda scene, each: f"{scene.cluster(each.cluster_id)}/{each.topology}", False),
            ("WAITING", "waiting", False),
            ("HOLDER", "holder", False),
            ("PHASE", "phase", False),
            ("AGE", lambda scene, each: scene.age(each.held_at), False),
        ),
        lambda scene, each: {"cluster": scene.cluster(each.cluster_id)},
    ),
    Section(
        "pool",
        lambda scene: sorted(scene.rows.pools, key=lambda pool: (scene.cluster(pool.cluster_id) or "", pool.name)),
        (
            ("NAME", "name", False),
            ("CLUSTER", lambda scene, each: scene.cluster(each.cluster_id), False),
            ("TOPOLOGY", "topology", False),
            ("MACHINE", "machine_type", True),
            ("HOSTS", "hosts", False),
            ("MODE", "mode", False),
            ("STATE", "state", False),
            ("SEEN", _ready, False),
            ("JOB", "lease", False),
            ("ERROR", lambda _, each: each.error.text if each.error else None, True),
            ("AGE", lambda scene, each: scene.age(each.requested_at), False),
        ),
        lambda scene, each: {"cluster": scene.cluster(each.cluster_id)},
    ),
    Section(
        "job",
        lambda scene: scene.jobs,
        (
            ("NAME", "id", False),
            ("ACTOR", "actor", False),
            ("STATUS", "status", False),
            ("REASON", "reason", False),
            ("CLUSTER", lambda scene, each: scene.cluster(each.cluster_id), False),
            ("TOPOLOGY", "topology", False),
            ("MODE", "supply_mode", True),
            ("PRIORITY", "priority", True),
            ("ATTEMPT", "attempt", True),
            ("POOL", "node_pool_name", True),
            ("MESSAGE", "message", True),
            ("AGE", lambda scene, each: scene.age(each.created_at), False),
        ),
        lambda scene, each: {"cluster": scene.cluster(each.cluster_id)},
    ),
)


def render(rows: Rows, ended: Iterable[Job] = (), output: str | None = None, *, only: str | None = None) -> str:
    """
    Return the whole overview.

    Args:
        rows: what a pass reads.
        ended: jobs that ended lately, newest first.
        output: None for tables, or wide, name, json, yaml.
        only: the one kind of row to show.
    """
    live = sorted(rows.jobs, key=lambda job: (job.created_at, job.id))
    scene = Scene(rows, (*live, *ended))
    sections = [section for section in SECTIONS if only in {None, section.kind}]
    if output and output in FORMS:
        return FORMS[output]({section.kind + "s": _data(section, scene) for section in sections})
    if output == "name":
        return "\n".join(
            f"{section.kind}/{_name(section, scene, row)}" for section in sections for row in section.rows(scene)
        )
    return "\n\n".join(_table(section, scene, wide=output == "wide") for section in sections)


def _value(scene: Scene, row: Any, value: str | Callable[[Scene, Any], object]) -> object:
    """Return what a column shows of a row."""
    return getattr(row, value) if isinstance(value, str) else value(scene, row)


def _name(section: Section, scene: Scene, row: Any) -> object:
    return _value(scene, row, section.columns[0][1])


def _data(section: Section, scene: Scene) -> list[Mapping[str, object]]:
    return [
        {name: value for name, value in plain(row).items() if name != "task"} | dict(section.data(scene, row))
        for row in section.rows(scene)
    ]


def _table(section: Section, scene: Scene, *, wide: bool) -> str:
    columns = [column for column in section.columns if wide or not column[2]]
    rows = [[_value(scene, row, value) for _, value, _ in columns] for row in section.rows(scene)]
    if not wide:
        rows = [[clean(cell, NARROW_BYTES) if isinstance(cell, str) else cell for cell in row] for row in rows]
    return f"{section.kind.upper()}S\n" + (table([header for header, _, _ in columns], rows) if rows else NONE)
