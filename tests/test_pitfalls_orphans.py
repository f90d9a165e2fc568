"""Deleting and orphans (pitfalls.md 4), each input against the simulated cloud in memory."""

from collections.abc import Callable

import pytest
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Call, Fault
from cloudsim.workload import NEVER_ENDS, Workload
from memory_store import MemoryStore
from world import Falcon, cluster, spec
from world_acts import NAMESPACE, make_pool, objects, own_labels, pods, pools_of_pods, quiet, watch, work

from falcon_rm.core.model import Bounds
from falcon_rm.core.words import Mode, PoolState
from falcon_rm.ports import Rows, StoreDown

AWAY = SimError("UNAVAILABLE", "The service is currently unavailable.", 503)
PAGE_LOST = KubeError(503, "ServiceUnavailable", "the server is currently unable to handle the request")
PATH = cluster("c1").path


class Interrupted(MemoryStore):
    """A store whose next read is followed by what somebody else does, or breaks."""

    hook: Callable[[], None] | None = None

    def read(self) -> Rows:
        rows = super().read()
        hook, self.hook = self.hook, None
        if hook:
            hook()
        return rows


def running(count: int, topology: str = "1x1") -> Falcon:
    """Return a world in which so many jobs run in c1 and nothing is left to do."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    for number in range(count):
        falcon.submit(f"j{number}", spec(topology))
    falcon.until(lambda: all(job.status == "Running" for job in falcon.store.jobs.values()))
    quiet(falcon)
    return falcon


def held(falcon: Falcon) -> tuple[list[str], list[str]]:
    """Return what the cluster holds of ours: pools and Jobs."""
    return sorted(falcon.pools()), falcon.works()


def standing(falcon: Falcon) -> dict[str, str]:
    """Return where every job stands."""
    return {job_id: falcon.state(job_id) for job_id in falcon.store.jobs}


def break_rows() -> None:
    """End a read as a lost connection does."""
    raise StoreDown("lost after 10 rows")


@pytest.mark.parametrize(
    "fault",
    [
        Fault("gke.list_node_pools", error=AWAY, times=None),
        Fault("kube.list.jobs", error=PAGE_LOST, times=None),
        Fault("gke.get_cluster", error=AWAY, times=None),
        Fault("kube.list.jobs", "hang", times=None),
    ],
    ids=["pools", "jobs", "cluster", "hang"],
)
def test_incomplete_read_of_a_cluster_deletes_nothing(fault: Fault) -> None:
    """While one list of a cluster fails nothing there is swept and no row changes (P25)."""
    falcon = running(6)
    falcon.store.delete_row("j0")
    before, rows = held(falcon), standing(falcon)
    falcon.sim.faults.add(fault)
    falcon.passes(10)
    assert before == held(falcon)
    assert rows == standing(falcon)
    falcon.sim.faults.clear()
    falcon.until(lambda: "falcon-j0" not in falcon.pools())
    assert 5 == len(falcon.pools())


def test_rows_that_break_off_mean_no_pass_at_all() -> None:
    """A row query that fails ends the pass before anything is done (P25)."""
    falcon = running(2)
    store = Interrupted()
    for name in ("now", "jobs", "clusters", "pools", "works", "slots", "leases", "events"):
        setattr(store, name, getattr(falcon.store, name))
    store.hook = break_rows
    falcon.store = store
    before = held(falcon)
    with pytest.raises(StoreDown):
        falcon.step()
    assert before == held(falcon)


@pytest.mark.parametrize(("orphans", "left"), [(3, 7), (4, 10)])
def test_brake_lets_three_of_ten_go_and_holds_four(orphans: int, left: int) -> None:
    """Up to max(3, 30 %) of our live pools are swept in one pass, more are not (P26)."""
    falcon = running(10)
    for number in range(orphans):
        falcon.store.delete_row(f"j{number}")
    falcon.passes(40)
    assert left == len(falcon.pools())
    assert (left == 10) == (falcon.step().plan.brake is not None)


def test_brake_that_held_goes_on_only_when_told() -> None:
    """An emptied database loses no pool until mass deletion is allowed, then all (P26)."""
    falcon = running(20)
    falcon.store.jobs.clear()
    falcon.passes(10)
    assert 20 == len(falcon.pools())
    falcon.bounds = Bounds(language="en", allow_mass_delete=True)
    falcon.settle()
    assert [] == falcon.pools()


def test_pool_that_is_younger_than_the_row_read_is_no_orphan() -> None:
    """Another process claims and creates between our reads: its pool lives (P27)."""
    falcon = Falcon()
    store = Interrupted(now=falcon.store.now)
    store.add_cluster(cluster("c1"))
    falcon.store = store

    def other() -> None:
        falcon.submit("j2", spec("4x4"))
        falcon.until_state("j2", "Pending/WaitingForNode")

    store.hook = other
    falcon.step()
    assert ["falcon-j2"] == falcon.pools()
    falcon.until_state("j2", "Running")
    assert ["falcon-j2"] == falcon.creates()


def test_sweep_starts_from_the_clouds_list_and_knows_every_wreck() -> None:
    """A pool without any row and one of a job ended by hand both go, and the ledger keeps them (P28)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j9"] = NEVER_ENDS
    falcon.submit("j9", spec("4x4"))
    falcon.until_state("j9", "Running")
    make_pool(falcon, "x", entered=False)
    falcon.advance(120)
    falcon.sim.gke.resize_by_hand(PATH, "falcon-x", 0)
    falcon.store.edit_job("j9", status="Aborted", reason=None)
    falcon.until(lambda: not falcon.leftovers())
    assert {"falcon-x": PoolState.DELETED, "falcon-j9": PoolState.DELETED} == {
        pool.name: pool.state for pool in falcon.store.pools.values()
    }


@pytest.mark.parametrize("topology", ["1x1", "2x2", "2x4"])
def test_pool_without_a_row_is_entered_and_used(topology: str) -> None:
    """A pool of ours that the database does not know is entered as free, then used by a job it fits (P28)."""
    falcon = Falcon()
    make_pool(falcon, "x", topology, entered=False)
    falcon.advance(120)
    falcon.submit("j1", spec(topology))
    falcon.until_state("j1", "Running")
    assert {"falcon-x"} == pools_of_pods(falcon, "j1")


def test_pool_that_is_gone_when_its_delete_arrives_is_done() -> None:
    """404 on a delete ends the cleaning, without a trace in the message (P30)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))

    def by_hand(call: Call) -> bool:
        falcon.sim.gke.pools._forget(falcon.sim.gke.pools.find(PATH, "falcon-j1"))
        return True

    gone = SimError("NOT_FOUND", f"Not found: {PATH}/nodePools/falcon-j1.", 404)
    falcon.sim.faults.add(Fault("gke.delete_node_pool", error=gone, where=by_hand))
    falcon.settle()
    assert ("Succeeded", "") == (falcon.state("j1"), falcon.job("j1").message)
    assert PoolState.DELETED is falcon.ledger("falcon-j1").state


def test_pool_is_released_only_when_the_pods_are_gone() -> None:
    """An aborted job's pods end with their Job, and its pool goes after them (P31)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=None, stop_seconds=25)
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    falcon.store.set_status("j1", "Aborting")
    falcon.until(lambda: falcon.ledger("falcon-j1").lease is None)
    assert [] == pods(falcon, "j1")
    falcon.settle()
    assert "Aborted" == falcon.state("j1")


def test_pool_that_comes_after_the_abort_is_not_left() -> None:
    """An abort while the create runs waits for the pool to be gone (P32)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: bool(falcon.pools()))
    falcon.store.set_status("j1", "Aborting")
    falcon.passes(3)
    assert ("Aborting", ["falcon-j1"]) == (falcon.state("j1"), falcon.pools())
    falcon.until_state("j1", "Aborted")
    assert [] == falcon.pools()


def test_only_as_many_free_pools_are_kept_as_jobs_wait_for_them() -> None:
    """Of three free pools one is used and the others go at once; nothing new is made (P34)."""
    falcon = Falcon()
    names = [make_pool(falcon, f"old{number}") for number in range(3)]
    falcon.advance(120)
    falcon.submit("j1", spec("4x4"))
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.until_state("j1", "Running", seconds=120)
    falcon.passes(10)
    assert 1 == len(falcon.pools())
    assert set(falcon.pools()) == pools_of_pods(falcon, "j1")
    assert (set(), True) == (set(falcon.creates()), set(falcon.pools()) <= set(names))


def test_job_and_service_of_a_job_that_is_over_are_swept() -> None:
    """A Kubernetes Job left behind goes with its Service (P35)."""
    falcon = running(1, "4x4")
    assert ["falcon-j0"] == [item["metadata"]["name"] for item in objects(falcon, "services")]
    falcon.store.edit_job("j0", status="Succeeded")
    falcon.until(lambda: not falcon.leftovers())
    falcon.advance(5)
    assert ([], []) == (objects(falcon, "services"), objects(falcon, "pods"))


def test_job_made_anew_between_list_and_delete_is_not_deleted_unseen() -> None:
    """The delete names the UID it saw: the new Job of that name is judged by the next pass (P35)."""
    falcon = running(1, "4x4")
    falcon.store.edit_job("j0", status="Succeeded")
    kube = falcon.sim.kube(PATH)
    seen = work(falcon, "falcon-j0")

    def anew(call: Call) -> bool:
        kube.delete_by_hand("jobs", NAMESPACE, "falcon-j0")
        kube.create_by_hand(
            "jobs", NAMESPACE, {"metadata": {"name": "falcon-j0", "labels": seen["metadata"]["labels"]}, "spec": bare()}
        )
        return False

    def bare() -> dict[str, object]:
        pod = {"restartPolicy": "Never", "containers": [{"name": "task", "image": "i"}]}
        return {"template": {"metadata": {"labels": seen["metadata"]["labels"]}, "spec": pod}}

    fault = falcon.sim.faults.add(Fault("kube.delete.jobs", where=anew))
    falcon.step()
    assert seen["metadata"]["uid"] != work(falcon, "falcon-j0")["metadata"]["uid"]
    falcon.sim.faults.remove(fault)
    falcon.until(lambda: not falcon.leftovers())


def test_half_made_pool_goes_to_the_next_job_that_fits() -> None:
    """An abort hands a pool that is still being made to the waiting job: no delete, no second create (P36)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: bool(falcon.pools()))
    falcon.submit("j2", spec("4x4"), actor="bob", created_at=falcon.store.now + 1)
    falcon.until_state("j2", "Pending/Waiting")
    falcon.store.set_status("j1", "Aborting")
    falcon.until_state("j1", "Aborted", seconds=30)
    falcon.until_state("j2", "Pending/Provisioning", seconds=30)
    assert "j2" == falcon.ledger("falcon-j1").lease
    falcon.until_state("j2", "Running")
    assert (["falcon-j1"], ["falcon-j1"]) == (falcon.creates(), falcon.pools())


def test_pool_is_handed_on_only_after_the_last_pod() -> None:
    """While the old pods end, no Job of the next holder is on their pool (P37)."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", "us-central1-a", "r", "ct6e-standard-4t", 4)
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=None, stop_seconds=120)
    falcon.submit("j1", spec("4x4", mode="reservation", termination_grace_seconds=200))
    falcon.until_state("j1", "Running")
    falcon.submit("j2", spec("4x4", mode="reservation"), actor="bob")
    falcon.until_state("j2", "Pending/ClusterBusy")
    falcon.store.set_status("j1", "Aborting")
    watch(falcon, 110, lambda: "falcon-j2" not in falcon.works() or not pods(falcon, "j1"))
    falcon.until_state("j2", "Running")
    assert {"falcon-j1"} == pools_of_pods(falcon, "j2")


def test_pool_on_which_a_stranger_runs_is_found_and_left() -> None:
    """A pool without a row that something of ours is pinned to is shown and never used (P28)."""
    falcon = running(1, "4x4")
    falcon.store.pools.clear()
    falcon.store.jobs.clear()
    falcon.store.leases.clear()
    falcon.step()
    falcon.submit("j2", spec("4x4"))
    falcon.step()
    assert falcon.ledger("falcon-j0").found
    falcon.until_state("j2", "Running")
    assert {"falcon-j2"} == pools_of_pods(falcon, "j2")


def test_foreign_instance_is_counted_and_left_alone() -> None:
    """A pool with another installation's label is never touched (P29)."""
    falcon = Falcon()
    labels = own_labels(falcon, "j9") | {"falcon.io/instance": "another"}
    config = {"machineType": "ct6e-standard-4t", "labels": labels}
    falcon.sim.gke.create_by_hand(PATH, {"name": "falcon-j9", "initialNodeCount": 1, "config": config})
    falcon.passes(20)
    assert ({"c1": 1}, ["falcon-j9"]) == (falcon.step().plan.foreign, falcon.pools())
    assert {} == falcon.store.pools


def test_flex_pool_without_a_row_is_entered_in_its_mode() -> None:
    """What a pool is made of is read off the pool itself (P28)."""
    falcon = Falcon()
    make_pool(falcon, "x", mode=Mode.FLEX_START, entered=False)
    falcon.advance(30)
    falcon.submit("j1", spec("4x4", mode="flex-start"))
    falcon.until_state("j1", "Running")
    assert ({"falcon-x"}, "flex-start") == (pools_of_pods(falcon, "j1"), falcon.job("j1").supply_mode)


def test_job_object_that_lost_its_annotation_is_still_its_jobs() -> None:
    """An id that no label can spell stands in an annotation, which others may take away: the label tells as well."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("Job_A/1")
    falcon.until_state("Job_A/1", "Running")
    (stripped,) = falcon.sim.kube(falcon.clusters["c1"].path).store.objects["jobs"].values()
    stripped["metadata"]["annotations"] = {}
    falcon.passes(20)
    assert ("Running", 1) == (falcon.state("Job_A/1"), len(falcon.works())), falcon.describe()
    falcon.store.delete_row("Job_A/1")
    falcon.settle(seconds=600)
