"""
How much a reservation can still give.

1. Unknown room is None, which is not zero: nobody is promised it and nobody is told it is full.
2. VMs of our own pools that Compute may not count yet are taken off: two passes must not promise the same room. For
   how long that may be has a bound.
3. The count is a hint; the create's answer is final.
4. Full is not too small: for a slice that a reservation can never give, as it stands, no room is kept.
"""

from falcon_rm.core.live import Reservation
from falcon_rm.core.messages import Messages
from falcon_rm.core.model import Cluster, ClusterView, Pool, TaskSpec
from falcon_rm.core.scene import Scene
from falcon_rm.core.shapes import Shape
from falcon_rm.core.words import Mode, PoolState


def reservation_path(cluster: Cluster) -> str | None:
    """Return projects/P/reservations/R[/...] of a cluster's reservation, or None if it has none."""
    name = cluster.default_reservation
    if not name:
        return None
    return name if name.startswith("projects/") else f"projects/{cluster.project}/reservations/{name}"


def mode_for(task: TaskSpec, cluster: Cluster) -> Mode:
    """Return where the machines of a new pool come from: the job's word, else the cluster's default."""
    return task.mode or (Mode.RESERVATION if cluster.default_reservation else Mode.FLEX_START)


def units(shape: Shape, reservation: Reservation) -> int:
    """Return what one slice takes from a reservation, in its own unit."""
    return shape.hosts if reservation.unit == "vm" else shape.chips


def room(reservation: Reservation, shape: Shape, taken: int) -> int | None:
    """
    Return the whole slices a reservation can still give, never below 0; None if its numbers make no sense.

    Args:
        taken: units that Compute does not count yet: of pools of ours, and what this pass has given away already.
    """
    if reservation.used > reservation.total:
        return None
    if not reservation.ready or reservation.machine_type not in (None, shape.machine_type):
        return 0
    return max(0, reservation.total - reservation.used - taken) // units(shape, reservation)


def never(task: TaskSpec, view: ClusterView, messages: Messages) -> str | None:
    """Return why a cluster's reservation, as it stands, can never give what a job asks of it; None if it could."""
    shape, reservation = task.shape, view.reservation
    if shape is None or reservation is None or mode_for(task, view.cluster) is not Mode.RESERVATION:
        return None
    if reservation.machine_type not in (None, shape.machine_type):
        offers, needs = reservation.machine_type, shape.machine_type
        return messages.say("room-machine", path=reservation.path, offers=offers, needs=needs)
    needed = units(shape, reservation)
    if reservation.used <= reservation.total < needed:
        facts = {"total": reservation.total, "unit": reservation.unit, "topology": shape.topology, "needed": needed}
        return messages.say("room-small", path=reservation.path, **facts)
    return None


def is_full(task: TaskSpec, view: ClusterView, scene: Scene) -> bool:
    """Return whether a cluster's reservation is known to have no room at present for what a job asks of it."""
    shape, reservation = task.shape, view.reservation
    if shape is None or reservation is None or mode_for(task, view.cluster) is not Mode.RESERVATION:
        return False
    return room(reservation, shape, uncounted(reservation, scene)) == 0


def uncounted(reservation: Reservation, scene: Scene) -> int:
    """Return the units of our own pools that may be missing in what Compute says is in use."""
    return sum(
        pool.hosts if reservation.unit == "vm" else pool.chips
        for pool in scene.pools.values()
        if pool.reservation == reservation.path and _may_be_missing(pool, scene)
    )


def _may_be_missing(pool: Pool, scene: Scene) -> bool:
    """
    Return whether the VMs of one of our pools may be missing in `in_use`: not all up, or only for a moment.

    Past the bounds of its creation and of its nodes they count as counted, or as never made: a node that fails to come,
    or a cluster that nobody reads, takes no room for ever.
    """
    bounds = scene.bounds
    if pool.state is not PoolState.ACTIVE or pool.mode is not Mode.RESERVATION:
        return False
    if pool.ready_at is not None:
        return scene.age(pool.ready_at) < bounds.visibility_grace
    if pool.up_at is not None:
        return scene.age(pool.up_at) < bounds.node_wait
    return pool.requested_at is None or scene.age(pool.requested_at) < bounds.pool_timeout
