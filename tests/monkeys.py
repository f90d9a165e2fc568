"""
People and other programs (proof.md 6): each does one thing to a world, to something that is there.

1. A monkey takes what it acts on from the world by the chance it is handed; where there is nothing, it says Nobody.
2. Those of HANDS write rows of `job` by hand, with values Falcon would not write; they return the job's id: the laws do
   not hold for it any more.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

from attrs import evolve
from cloudsim.errors import KubeError, SimError
from cloudsim.gke_pools import Pool as SimPool
from world import ZONE, Falcon

from falcon_rm.core import names
from falcon_rm.core.model import Cluster, InvalidSpec, Job
from falcon_rm.core.words import ClusterStatus

Thing = TypeVar("Thing")

HOUR = 3600.0
FAR = 24 * HOUR
JOBS_NAMESPACE = "falcon-jobs"


class Nobody(Exception):
    """There is nothing to act on."""


def one(chance: Random, things: Sequence[Thing]) -> Thing:
    """Return one of these."""
    if not things:
        raise Nobody
    return things[chance.randrange(len(things))]


# --- what there is


def _live(falcon: Falcon) -> list[Job]:
    return [job for job in falcon.rows() if job.status in ("Pending", "Running", "Aborting")]


def _rows(falcon: Falcon) -> list[Cluster]:
    return [row for row in falcon.store.clusters.values() if row.path in falcon.sim.clusters]


def _pools(falcon: Falcon) -> list[SimPool]:
    return [pool for key, pool in sorted(falcon.sim.gke.pools.all.items()) if pool.name.startswith(names.PREFIX)]


def _objects(falcon: Falcon, kind: str) -> list[tuple[str, str]]:
    return [(row.path, name) for row in _rows(falcon) for name in falcon.names(kind, row.id) if "default" not in name]


# --- clouds


def delete_pool(falcon: Falcon, chance: Random) -> None:
    """Delete one of our pools."""
    pool = one(chance, _pools(falcon))
    falcon.sim.gke.delete_by_hand(pool.path, pool.name)


def resize_pool(falcon: Falcon, chance: Random) -> None:
    """Take nodes from one of our pools."""
    pool = one(chance, [pool for pool in _pools(falcon) if pool.nodes])
    falcon.sim.gke.resize_by_hand(pool.path, pool.name, len(pool.nodes) - 1)


def lose_node(falcon: Falcon, chance: Random) -> None:
    """Let the machine of one of our nodes die."""
    pool = one(chance, [pool for pool in _pools(falcon) if pool.nodes])
    falcon.sim.gke.pools.lose_node(pool.path, one(chance, sorted(pool.nodes)))


def drain_pool(falcon: Falcon, chance: Random) -> None:
    """Evict every pod from the nodes of one of our pools."""
    pool = one(chance, [pool for pool in _pools(falcon) if pool.nodes])
    falcon.sim.kube(pool.path).nodes.drain(sorted(pool.nodes))


def delete_work(falcon: Falcon, chance: Random) -> None:
    """Delete a Kubernetes Job."""
    path, name = one(chance, _objects(falcon, "jobs"))
    falcon.sim.kube(path).delete_by_hand("jobs", JOBS_NAMESPACE, name)


def delete_pod(falcon: Falcon, chance: Random) -> None:
    """Delete a pod."""
    path, name = one(chance, _objects(falcon, "pods"))
    falcon.sim.kube(path).delete_by_hand("pods", JOBS_NAMESPACE, name)


def upgrade_cluster(falcon: Falcon, chance: Random) -> None:
    """Upgrade a control plane for an hour: pool operations are refused."""
    falcon.sim.gke.upgrade_cluster(one(chance, _rows(falcon)).path, HOUR)


def foreign_pool(falcon: Falcon, chance: Random) -> None:
    """Make a pool whose name looks like ours: without a label, or of another instance."""
    row, number = one(chance, _rows(falcon)), chance.randrange(1000)
    labels = one(chance, ({}, {names.INSTANCE: "another", names.CLUSTER_ID: row.id, names.JOB_ID: "j1"}))
    _make(falcon, row, f"falcon-foreign{number}", labels)


def forgotten_pool(falcon: Falcon, chance: Random) -> None:
    """Make a pool with our labels that the ledger lacks."""
    row, number = one(chance, _rows(falcon)), chance.randrange(1000)
    labels = names.labels(
        instance=falcon.store.instance, cluster_id=row.id, job_id=f"old{number}", attempt=1, exp_id="", owner=""
    )
    _make(falcon, row, names.cloud_name(f"old{number}", 1), labels)


def _make(falcon: Falcon, row: Cluster, name: str, labels: Mapping[str, str]) -> None:
    machine = {"v6e": "ct6e-standard-4t", "v7x": "tpu7x-standard-4t"}[row.tpu_type]
    affinity = {"consumeReservationType": "NO_RESERVATION"}
    config = {"machineType": machine, "labels": dict(labels), "reservationAffinity": affinity}
    falcon.sim.gke.create_by_hand(
        row.path, {"name": name, "initialNodeCount": 1, "locations": [row.zone or ZONE], "config": config}
    )


# --- clusters


def maintenance(falcon: Falcon, chance: Random) -> None:
    """Take a cluster out of use for new jobs."""
    falcon.store.add_cluster(evolve(one(chance, _rows(falcon)), status=ClusterStatus.MAINTENANCE))


def offline(falcon: Falcon, chance: Random) -> None:
    """Say that a cluster cannot be reached."""
    falcon.store.add_cluster(evolve(one(chance, _rows(falcon)), status=ClusterStatus.OFFLINE))


def back(falcon: Falcon, chance: Random) -> None:
    """Put a cluster back to use."""
    falcon.store.add_cluster(evolve(one(chance, _rows(falcon)), status=ClusterStatus.ACTIVE))


def wrong_endpoint(falcon: Falcon, chance: Random) -> None:
    """Register an endpoint of a kind that the cluster does not offer."""
    falcon.store.add_cluster(evolve(one(chance, _rows(falcon)), endpoint="dns"))


def cut_off(falcon: Falcon, chance: Random) -> None:
    """Let nobody reach a cluster's Kubernetes, until the faults are taken away."""
    falcon.sim.faults.cluster_down(one(chance, _rows(falcon)).path)


# --- rows, as upstream may


def abort(falcon: Falcon, chance: Random) -> None:
    """Ask for the end of a job, perhaps once more."""
    falcon.store.set_status(one(chance, _live(falcon)).id, "Aborting")


def delete_row(falcon: Falcon, chance: Random) -> None:
    """Delete the row of a job."""
    falcon.store.delete_row(one(chance, _live(falcon)).id)


# --- rows, as nobody should


def write_terminal(falcon: Falcon, chance: Random) -> str:
    """Write the end of a job that is not over."""
    job_id = one(chance, _live(falcon)).id
    falcon.store.edit_job(job_id, status=one(chance, ("Succeeded", "Failed", "Aborted")), reason=None)
    return job_id


def edit_row(falcon: Falcon, chance: Random) -> str:
    """Write one column that only Falcon writes."""
    job = one(chance, _live(falcon))
    column, value = one(
        chance,
        (
            ("version", job.version + 7),
            ("reason", one(chance, ("Waiting", "Dispatching", "Provisioning", None))),
            ("message", "按手写入" * 50),
            ("retry_at", falcon.store.now + FAR),
            ("cluster_id", one(chance, ("c1", "c2", "nowhere", None))),
            ("attempt", job.attempt + 1),
            ("task", InvalidSpec("device_topo", "9x9", "a topology that exists")),
            ("status", "Paused"),
        ),
    )
    falcon.store.edit_job(job.id, **{column: value})
    return job.id


GENTLE: tuple[Callable[[Falcon, Random], None], ...] = (
    delete_pool, resize_pool, lose_node, drain_pool, delete_work, delete_pod, upgrade_cluster, foreign_pool,
    forgotten_pool, maintenance, offline, back, wrong_endpoint, cut_off, abort, delete_row,
)  # fmt: skip
HANDS: tuple[Callable[[Falcon, Random], str], ...] = (write_terminal, edit_row)


def let(falcon: Falcon, monkey: Callable[[Falcon, Random], str | None], chance: Random) -> str | None:
    """Let one monkey act; return the job for which the laws are suspended, if any."""
    try:
        return monkey(falcon, chance)
    except (Nobody, SimError, KubeError):
        return None
