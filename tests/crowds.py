"""
Snapshots of many rows at once, written down and not lived: what plan() is measured on, and what it reads is counted on.

1. Every cluster has a reservation of its own that is full, and the slots of its queues; its lists are empty.
2. Jobs and pools stand on the clusters in turn.
"""

from attrs import evolve

from falcon_rm.core.live import Reservation
from falcon_rm.core.model import Bounds, Cluster, ClusterView, Job, Pool, Slot, Snapshot, TaskSpec
from falcon_rm.core.shapes import shape
from falcon_rm.core.words import Mode

NOW = 1_700_000_000.0
MACHINE = "ct6e-standard-4t"
TOPOLOGIES = ("2x2", "4x4", "4x8", "8x8", "8x16", "16x16")
CPU = TaskSpec(image="busybox:1.36", command="true", shape=None)
RESERVED = tuple(
    TaskSpec(image="busybox:1.36", command="true", shape=shape("v6e", topology, MACHINE, None), mode=Mode.RESERVATION)
    for topology in TOPOLOGIES
)
LARGEST = max(task.hosts for task in RESERVED)


def new_cpu_jobs(jobs: int, clusters: int) -> Snapshot:
    """Return jobs without a TPU that no pass has seen."""
    return _crowd(
        clusters,
        LARGEST,
        jobs=tuple(Job(f"j{number}", f"a{number % 7}", CPU, "Pending", NOW - jobs + number) for number in range(jobs)),
    )


def jobs_that_lack_room(jobs: int, clusters: int, pools: int = 0, machines: int = LARGEST) -> Snapshot:
    """
    Return jobs of six topologies that wait for their reservations, behind pools that run.

    Args:
        jobs: how many wait.
        clusters: on how many clusters.
        pools: how many pools others hold.
        machines: of which a reservation consists, all in use.
    """
    waiting = []
    for number in range(jobs):
        cluster_id, task = f"c{number % clusters:02}", RESERVED[number % len(RESERVED)]
        new = Job(f"j{number}", f"a{number % 7}", task, "Pending", NOW - jobs + number)
        waiting.append(evolve(new, reason="Waiting", cluster_id=cluster_id, topology=task.topology))
    return _crowd(
        clusters, machines, jobs=tuple(waiting), pools=tuple(_pool(number, clusters) for number in range(pools))
    )


def _pool(number: int, clusters: int) -> Pool:
    """Return a pool that came up long ago; who holds it is no row here."""
    name, where = f"x{number}", number % clusters
    return Pool(
        cluster_id=f"c{where:02}",
        name=f"falcon-{name}",
        job_id=name,
        attempt=1,
        tpu_type="v6e",
        topology="2x2",
        machine_type=MACHINE,
        hosts=1,
        chips=4,
        mode=Mode.RESERVATION,
        reservation=f"projects/p/reservations/r{where}",
        lease=name,
        requested_at=1.0,
        seen_at=1.0,
        ready_at=1.0,
    )


def _crowd(clusters: int, machines: int, jobs: tuple[Job, ...], pools: tuple[Pool, ...] = ()) -> Snapshot:
    rows = [
        Cluster(f"c{number:02}", f"c{number:02}", "p", "us-central1-a", "v6e", default_reservation=f"r{number}")
        for number in range(clusters)
    ]
    views = tuple(
        ClusterView(
            row,
            pools=(),
            works=(),
            zone=row.location,
            known_zone=row.location,
            reservation=Reservation(
                f"projects/p/reservations/{row.default_reservation}", True, "vm", machines, machines, MACHINE
            ),
        )
        for row in rows
    )
    slots = tuple(Slot(row.id, topology) for row in rows for topology in TOPOLOGIES)
    return Snapshot(
        now=NOW, instance="i", bounds=Bounds(language="en"), jobs=jobs, views=views, pools=pools, slots=slots
    )
