"""Clusters that are taken out of service or cannot be reached, and what nobody needs any more."""

from typing import Any

from attrs import evolve
from cloudsim.errors import SimError
from cloudsim.faults import Fault, Under
from cloudsim.workload import NEVER_ENDS, Workload
from wire import Start
from world import ZONE, Falcon, cluster, spec

from falcon_rm.core import names
from falcon_rm.core.model import Bounds
from falcon_rm.core.words import ClusterStatus

pytest_plugins = ["doors"]

POOL: dict[str, Any] = {
    "locations": [ZONE],
    "initialNodeCount": 1,
    "config": {
        "machineType": "ct6e-standard-4t",
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
    },
}


def start_two(start: Start) -> tuple[Falcon, str]:
    """Return Falcon with two clusters, and the one of them in which a job now runs without end."""
    falcon = start(cluster("c1"), cluster("c2"))
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1")
    falcon.until_state("j1", "Running")
    return falcon, falcon.job("j1").cluster_id or ""


def orphan(falcon: Falcon, job_id: str) -> None:
    """Let c1 hold a pool of ours that the database knows nothing of."""
    facts = {"instance": falcon.store.read().instance, "cluster_id": "c1", "job_id": job_id, "attempt": 1}
    labels = names.labels(**facts, exp_id="", owner="")
    body = {**POOL, "name": names.cloud_name(job_id, 1), "config": {**POOL["config"], "labels": labels}}
    falcon.sim.gke.create_by_hand(falcon.clusters["c1"].path, body)


# --- clusters


def test_maintenance_gives_waiting_jobs_away_and_ends_running_ones(start: Start) -> None:
    """A cluster in maintenance takes no new job and follows what runs there (P79)."""
    falcon = start(cluster("c1"), cluster("c2"))
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=60)
    falcon.submit("j1", spec())
    falcon.until_state("j1", "Running")
    first = falcon.job("j1").cluster_id or ""
    falcon.register(cluster(first, status=ClusterStatus.MAINTENANCE))
    falcon.submit("j2", spec())
    falcon.settle()
    assert ("Succeeded", "Succeeded") == (falcon.state("j1"), falcon.state("j2"))
    assert first != falcon.job("j2").cluster_id


def test_maintenance_of_the_only_cluster_is_what_a_job_waits_for(start: Start) -> None:
    """With no other cluster a job waits, says why, and starts when the cluster is back."""
    falcon = start(cluster("c1", status=ClusterStatus.MAINTENANCE))
    falcon.submit("j1")
    falcon.passes(2)
    assert ("Pending/Waiting", []) == (falcon.state("j1"), falcon.creates())
    assert "c1 is maintenance" in falcon.message("j1")
    falcon.register(cluster("c1"))
    falcon.settle()
    assert "Succeeded" == falcon.state("j1")


def test_offline_cluster_is_not_read_and_its_jobs_stay(start: Start) -> None:
    """Nothing is known of an offline cluster and nothing changes there; back again, it is followed on (P73)."""
    falcon, first = start_two(start)
    falcon.register(cluster(first, status=ClusterStatus.OFFLINE))
    falcon.submit("j2")
    falcon.step()
    before = len(falcon.sim.calls)
    falcon.until_state("j2", "Succeeded")
    assert [] == [call for call in falcon.sim.calls[before:] if Under(falcon.clusters[first].path)(call)]
    assert "Running" == falcon.state("j1")
    assert f"cluster {first} cannot be read, state unknown: offline" in falcon.message("j1")
    falcon.register(cluster(first))
    falcon.store.set_status("j1", "Aborting")
    falcon.settle()
    assert "Aborted" == falcon.state("j1")


def test_unreachable_kubernetes_keeps_its_jobs_and_others_go_on(start: Start) -> None:
    """What cannot be read is unknown: an abort there waits and says so, others proceed (P73, P75)."""
    falcon, first = start_two(start)
    falcon.cut_off(first)
    falcon.store.set_status("j1", "Aborting")
    falcon.submit("j2")
    falcon.until_state("j2", "Succeeded")
    assert "Aborting" == falcon.state("j1")
    assert f"cluster {first} cannot be read, state unknown: Kubernetes: " in falcon.message("j1")
    assert (first,) == falcon.step().unread
    falcon.reconnect(first)
    falcon.settle()
    assert "Aborted" == falcon.state("j1")


def test_unreachable_gke_keeps_its_jobs_and_others_go_on(start: Start) -> None:
    """The same where GKE answers nothing of use (P73, P75)."""
    falcon, first = start_two(start)
    away = SimError("UNAVAILABLE", "no route", 503)
    fault = falcon.sim.faults.add(Fault("gke.*", error=away, times=None, where=Under(falcon.clusters[first].path)))
    falcon.submit("j2")
    falcon.until_state("j2", "Succeeded")
    assert ("Running", ["falcon-j1"]) == (falcon.state("j1"), falcon.pools(first))
    falcon.sim.faults.remove(fault)
    falcon.store.set_status("j1", "Aborting")
    falcon.settle()
    assert "Aborted" == falcon.state("j1")


def test_cluster_that_gke_does_not_know_disturbs_no_other(start: Start) -> None:
    """A row that names no cluster is no candidate and says why."""
    falcon = start(cluster("c2"))
    falcon.store.add_cluster(cluster("c1"))
    falcon.submit("j1")
    falcon.settle()
    assert ("Succeeded", "c2") == (falcon.state("j1"), falcon.job("j1").cluster_id)
    problem, _ = falcon.store.read().health["c1"]
    assert problem is not None and "Not found" in problem


def test_two_rows_share_one_cluster(start: Start) -> None:
    """One GKE cluster offers two TPU types in two rows: each sees its own, neither sweeps the other's."""
    row = cluster("c1", "v6e", gke_name="shared")
    falcon = start(row, evolve(row, id="c2", name="c2", tpu_type="v5e"))
    for job_id in ("j1", "j2"):
        falcon.sim.scripts_by_job_id[job_id] = NEVER_ENDS
    falcon.submit("j1", spec("2x2", "v6e"))
    falcon.submit("j2", spec("2x2", "v5e"))
    falcon.until(lambda: (falcon.state("j1"), falcon.state("j2")) == ("Running", "Running"))
    falcon.passes(3)
    assert ["falcon-j1", "falcon-j2"] == sorted(falcon.pools())
    assert ("c1", "c2") == (falcon.job("j1").cluster_id, falcon.job("j2").cluster_id)


# --- the sweep


def test_orphan_pool_is_entered_and_swept(start: Start) -> None:
    """A pool that is ours by its labels and in no row goes, and is kept in the ledger (P28)."""
    falcon = start()
    orphan(falcon, "lost")
    falcon.settle()
    assert [("falcon-lost", "lost", "Deleted")] == [(pool.name, pool.job_id, pool.state) for pool in falcon.pool_rows()]


def test_orphan_pool_serves_a_waiting_job(start: Start) -> None:
    """After a restore from a backup a pool without a row serves the next job that fits it."""
    falcon = start()
    orphan(falcon, "lost")
    falcon.advance(100)
    falcon.submit("j1")
    falcon.settle()
    assert ("Succeeded", "falcon-lost", []) == (
        falcon.state("j1"),
        falcon.job("j1").node_pool_name,
        falcon.creates(),
    )


def test_foreign_pool_is_counted_and_left_alone(start: Start) -> None:
    """A falcon-* pool without our labels is never touched (P29)."""
    falcon = start()
    falcon.sim.gke.create_by_hand(falcon.clusters["c1"].path, {**POOL, "name": "falcon-x"})
    falcon.submit("j1")
    falcon.until_state("j1", "Succeeded")
    assert {"c1": 1} == falcon.step().plan.foreign
    assert (["falcon-x"], 1) == (falcon.pools(), len(falcon.creates()))


def test_taken_name_costs_an_attempt(start: Start) -> None:
    """A stranger's pool of our name is neither used nor touched: the job takes the next name (P5)."""
    falcon = start()
    falcon.sim.gke.create_by_hand(falcon.clusters["c1"].path, {**POOL, "name": "falcon-j1"})
    falcon.submit("j1")
    falcon.until_state("j1", "Succeeded")
    assert (2, ["falcon-j1"]) == (falcon.job("j1").attempt, falcon.pools())


def test_emptied_database_trips_the_brake(start: Start) -> None:
    """With every row gone nothing is swept until a person says so (P26)."""
    falcon = start()
    topologies = ["1x1", "2x2", "2x4", "4x4", "4x8"]
    jobs = [f"j{number}" for number in range(5)]
    for job_id, topology in zip(jobs, topologies, strict=True):
        falcon.sim.scripts_by_job_id[job_id] = NEVER_ENDS
        falcon.submit(job_id, spec(topology))
    falcon.until(lambda: all(falcon.state(job_id) == "Running" for job_id in jobs))
    for job_id in jobs:
        falcon.store.delete_row(job_id)
    falcon.passes(3)
    assert falcon.step().plan.brake is not None
    assert (5, 5) == (len(falcon.pools()), len(falcon.works()))
    falcon.bounds = Bounds(language="en", allow_mass_delete=True)
    falcon.settle()
    assert [] == falcon.pools()
