"""
What one pass has promised already, and which clusters can take a job at all: no pool, slot or room is promised twice.

1. Made anew for each pass. What it keeps of a shape of jobs is worked out once, however many such jobs wait.
2. Promises only grow: a cluster that could start nobody a moment ago cannot start anybody now.
"""

from attrs import Factory, define

from falcon_rm.core.backoff import backoff_until
from falcon_rm.core.messages import Messages, moment
from falcon_rm.core.model import ClusterView, Job, Pool, TaskSpec
from falcon_rm.core.room import mode_for, never, room, uncounted, units
from falcon_rm.core.scene import Key, Scene, fits
from falcon_rm.core.shapes import Shape
from falcon_rm.core.words import ClusterStatus, Mode

Want = tuple[str | None, Mode | None, Shape | None]
"""What jobs have in common that every cluster takes alike: type, mode and shape."""


@define
class Tally:
    """What this pass has promised already."""

    scene: Scene
    messages: Messages
    depth: dict[Key, int] = Factory(dict)  # who waits or acquires in a queue; of CPU jobs all that are on a cluster
    promised: set[Key] = Factory(set)  # free pools
    slots: set[Key] = Factory(set)  # slots claimed, or kept for a job that moves there
    taken: dict[str, int] = Factory(dict)  # units by reservation: of pools Compute may not count yet, and promised
    held_for: dict[str, Job] = Factory(dict)  # reservations nobody behind this job may take from
    misfits: dict[tuple[str, str, str, Mode | None], str | None] = Factory(dict)
    fitting: dict[tuple[str | None, bool], tuple[dict[str, ClusterView], list[str]]] = Factory(dict)
    vacancies: dict[Want, list[ClusterView]] = Factory(dict)
    hopes: dict[Want, list[ClusterView]] = Factory(dict)

    def free_pool(self, job: Job, cluster_id: str) -> Pool | None:
        """Return the best free pool that fits a job; none of a reservation whose room is kept for another."""
        task = task_of(job)
        free = self.scene.free_pools(cluster_id) if task.shape else ()
        for pool in free:
            kept_for = self.held_for.get(pool.reservation or "", job)
            if fits(pool, task) and kept_for is job and (cluster_id, pool.name) not in self.promised:
                return pool
        return None

    def room(self, task: TaskSpec, view: ClusterView) -> int | None:
        """Return the slices left for this shape; None if nobody knows."""
        if view.reservation is None or task.shape is None:
            return None
        path = view.reservation.path
        if path not in self.taken:
            self.taken[path] = uncounted(view.reservation, self.scene)
        return room(view.reservation, task.shape, self.taken[path])

    def misfit(self, task: TaskSpec, view: ClusterView) -> str | None:
        """Return why a cluster's reservation, as it stands, can never give what a job asks of it; None if it could."""
        key = (view.cluster.id, task.topology, task.shape.machine_type if task.shape else "", task.mode)
        if key not in self.misfits:
            self.misfits[key] = never(task, view, self.messages)
        return self.misfits[key]

    def never(self, job: Job, view: ClusterView) -> str | None:
        """Return why a cluster can never start a job, as its reservation stands; None if it could, or nobody knows."""
        why = self.misfit(task_of(job), view)
        return why if why and self.free_pool(job, view.cluster.id) is None else None

    def keeps_off_until(self, job: Job, cluster_id: str) -> float | None:
        """Return until when a job does not try a cluster again; None: now. A free pool that fits needs no back-off."""
        until = backoff_until(job, cluster_id, self.scene)
        return None if until is None or self.free_pool(job, cluster_id) else until

    def slot_free(self, key: Key) -> bool:
        """Return whether nobody acquires in this queue and this pass has not given its slot away."""
        slot = self.scene.slots.get(key)
        return key not in self.slots and not (slot and slot.holder) and not self.scene.acquiring.get(key)

    def promise(self, task: TaskSpec, view: ClusterView, pool: Pool | None, mode: Mode | None) -> None:
        """Note what a claim takes: the slot, and a pool or room."""
        self.slots.add((view.cluster.id, task.topology))
        if pool:
            self.promised.add((view.cluster.id, pool.name))
        elif mode is Mode.RESERVATION and view.reservation and task.shape:
            self.taken[view.reservation.path] += units(task.shape, view.reservation)  # the room was asked for first

    def candidates(self, task: TaskSpec) -> tuple[dict[str, ClusterView], list[str]]:
        """Return the clusters that can take a job, by id, and for each other of its type why it cannot."""
        key = (task.tpu_type, task.mode is Mode.RESERVATION)
        if key not in self.fitting:
            self.fitting[key] = candidates(task, self.scene, self.messages)
        return self.fitting[key]

    def vacant(self, task: TaskSpec) -> list[ClusterView]:
        """Return the clusters that could start a job at once when this was first asked, if the job itself may there."""
        want = (task.tpu_type, task.mode, task.shape)
        if want not in self.vacancies:
            self.vacancies[want] = [view for view in self.candidates(task)[0].values() if self.is_vacant(task, view)]
        return self.vacancies[want]

    def is_vacant(self, task: TaskSpec, view: ClusterView) -> bool:
        """Return whether slot and queue of a cluster are empty, and a pool or room may be there."""
        key = (view.cluster.id, task.topology)
        if self.depth.get(key) or not self.slot_free(key):
            return False
        if self.scene.free_pools(view.cluster.id) or mode_for(task, view.cluster) is not Mode.RESERVATION:
            return True
        return (self.room(task, view) or 0) > 0

    def hopeful(self, task: TaskSpec) -> list[ClusterView]:
        """Return the clusters of which it is known that they can start a job some day, if the job itself may there."""
        want = (task.tpu_type, task.mode, task.shape)
        if want not in self.hopes:
            self.hopes[want] = [
                view
                for view in self.candidates(task)[0].values()
                if (mode_for(task, view.cluster) is not Mode.RESERVATION or self.room(task, view) is not None)
                and (self.misfit(task, view) is None or self.scene.free_pools(view.cluster.id))
            ]
        return self.hopes[want]


def task_of(job: Job) -> TaskSpec:
    """Return the parsed spec of a job that has one."""
    assert isinstance(job.task, TaskSpec)
    return job.task


def candidates(task: TaskSpec, scene: Scene, messages: Messages) -> tuple[dict[str, ClusterView], list[str]]:
    """Return the clusters that can take a job, by id, and for each other of its type why it cannot."""
    fitting: dict[str, ClusterView] = {}
    reasons: list[str] = []
    for view in sorted(scene.snapshot.views, key=lambda view: view.cluster.name):
        cluster = view.cluster
        if task.tpu_type not in (None, cluster.tpu_type):
            continue
        trouble = scene.trouble(cluster.id)
        if cluster.status is not ClusterStatus.ACTIVE:
            reasons.append(messages.say("cluster-status", cluster=cluster.name, status=cluster.status))
        elif not view.readable or view.problem:
            reasons.append(messages.say("cluster-unread", cluster=cluster.name, why=view.problem or "?"))
        elif trouble:
            until = moment(trouble.at + scene.bounds.cluster_pause)
            reasons.append(messages.say("cluster-trouble", cluster=cluster.name, until=until, why=trouble.text))
        elif task.mode is Mode.RESERVATION and not cluster.default_reservation:
            reasons.append(messages.say("no-reservation", cluster=cluster.name))
        else:
            fitting[cluster.id] = view
    return fitting, reasons
