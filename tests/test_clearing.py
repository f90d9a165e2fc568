"""Writing a cluster off: what lives there ends, each in a transaction of its own, and passes go on without it."""

from collections.abc import Callable

import pytest
from attrs import evolve
from cloudsim.workload import NEVER_ENDS, Workload
from interruptions import TappedStore
from laws import check
from world import Falcon, cluster, spec

from falcon_rm.clearing import living, write_off
from falcon_rm.core.messages import Messages
from falcon_rm.core.words import ClusterStatus, PoolState
from falcon_rm.ports import Rows

WORDS = "cluster c1 was given up for good by an operator"


def world() -> Falcon:
    """Return a world of two clusters, whose jobs run for ever."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    falcon.sim.default_workload = NEVER_ENDS
    falcon.store.add_cluster(evolve(falcon.clusters["c2"], status=ClusterStatus.OFFLINE))
    return falcon


def abandon(falcon: Falcon) -> None:
    """Cut c1 off for good, and write it off as the command does."""
    falcon.cut_off("c1")
    falcon.store.add_cluster(evolve(falcon.store.clusters["c1"], status=ClusterStatus.OFFLINE))
    assert not write_off(falcon.store, "c1", "c1", Messages("en"))


def provisioning(falcon: Falcon) -> None:
    """Bring the job to a pool that is being made."""
    falcon.until_state("j1", "Pending/Provisioning")


def running(falcon: Falcon) -> None:
    """Let the job run."""
    falcon.until_state("j1", "Running")


def aborting(falcon: Falcon) -> None:
    """Ask for the end of the running job."""
    running(falcon)
    falcon.store.set_status("j1", "Aborting")


def succeeded(falcon: Falcon) -> None:
    """See the job succeed, and nothing of it released."""
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=5)
    falcon.until(lambda: falcon.job("j1").outcome == "Succeeded")


def timed_out(falcon: Falcon) -> None:
    """See the job run out of its time."""
    falcon.store.edit_job("j1", timeout_seconds=60)
    falcon.until(lambda: falcon.job("j1").outcome == "Timeout")


CASES: dict[str, tuple[Callable[[Falcon], None], str, str]] = {
    "provisioning": (provisioning, "Failed/JobFailed", WORDS),
    "running": (running, "Failed/JobFailed", WORDS),
    "aborting": (aborting, "Aborted", WORDS),
    "succeeded": (succeeded, "Succeeded", ""),
    "timed out": (timed_out, "Failed/Timeout", "Job timed out (60s), K8s Job cancelled"),
}
"""Where the job stands -> how it ends, with which message."""


@pytest.mark.parametrize("case", CASES)
def test_a_job_is_written_off(case: str) -> None:
    """A job ends as design.md 3 says; its lease, its slot and its pool end with it, and the audit says why."""
    bring, state, message = CASES[case]
    falcon = world()
    falcon.submit("j1")
    bring(falcon)
    abandon(falcon)
    assert (state, message) == (falcon.state("j1"), falcon.message("j1"))
    assert {PoolState.DELETED} == {pool.state for pool in falcon.pool_rows()}
    assert [None] == [slot.holder for slot in falcon.store.slots.values()]
    assert all(lease.until_at is not None for lease in falcon.store.lease_rows())
    assert state.partition("/")[0] == falcon.story("j1")[-1].partition("/")[0]
    assert "cluster c1 was abandoned" in {audit.text for audit in falcon.store.audit_rows()}
    check(falcon, by_hand=[job.id for job in falcon.rows() if job.status != "Running"])


def test_who_waits_goes_elsewhere() -> None:
    """A job that only waits is left alone, and runs on another cluster."""
    falcon = world()
    for job_id in ("j1", "j2"):
        falcon.submit(job_id)
    falcon.until_state("j1", "Pending/Provisioning")
    abandon(falcon)
    assert ("Failed/JobFailed", "Pending/Waiting") == (falcon.state("j1"), falcon.state("j2"))
    falcon.store.add_cluster(falcon.clusters["c2"])
    falcon.until_state("j2", "Running")
    assert "c2" == falcon.job("j2").cluster_id


def test_passes_go_on() -> None:
    """After it a pass finds nothing to do on that cluster, whatever is left there."""
    falcon = world()
    falcon.submit("j1")
    falcon.until_state("j1", "Running")
    abandon(falcon)
    falcon.step()
    assert () == falcon.step().plan.actions
    assert [*falcon.pools(), *falcon.works()]


def test_other_clusters_are_left_alone() -> None:
    """Jobs and pools of another cluster live on."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    falcon.sim.default_workload = NEVER_ENDS
    for number in range(2):
        falcon.submit(f"j{number}", spec("2x2"))
    falcon.until(lambda: all(job.status == "Running" for job in falcon.rows()))
    there = {job.id: job.cluster_id for job in falcon.rows()}
    assert {"c1", "c2"} == set(there.values())
    abandon(falcon)
    assert {"c1": "Failed/JobFailed", "c2": "Running"} == {there[job.id]: falcon.state(job.id) for job in falcon.rows()}
    falcon.passes(5)
    check(falcon, by_hand=[job.id for job in falcon.rows() if job.status != "Running"])


def test_a_lease_that_nobody_knows() -> None:
    """The pool of a job whose row upstream deleted is written off too."""
    falcon = world()
    falcon.submit("j1")
    falcon.until_state("j1", "Running")
    falcon.store.delete_row("j1")
    abandon(falcon)
    assert ["orphan"] == [lease.ended for lease in falcon.store.lease_rows()]
    assert {PoolState.DELETED} == {pool.state for pool in falcon.pool_rows()}


def test_somebody_is_first() -> None:
    """What another controller writes meanwhile is read again, and written off as it then is."""
    falcon = world()
    falcon.submit("j1")
    falcon.until_state("j1", "Running")
    asked = list[bool]()

    def tap(name: str, done: bool) -> None:
        if name == "commit" and not asked:
            asked.append(done)
            falcon.store.set_status("j1", "Aborting")

    assert not write_off(TappedStore(falcon.store, tap), "c1", "c1", Messages("en"))
    assert "Aborted" == falcon.state("j1")


def test_a_job_ends_in_one_transaction() -> None:
    """Status, slot and lease end together."""
    falcon = world()
    falcon.submit("j1")
    provisioning(falcon)
    seen = list[tuple[str, str | None, str | None]]()

    def tap(name: str, done: bool) -> None:
        if name == "commit" and done:
            seen.append((falcon.state("j1"), falcon.holder("2x2"), falcon.store.lease_rows()[0].ended))

    assert not write_off(TappedStore(falcon.store, tap), "c1", "c1", Messages("en"))
    assert [("Failed/JobFailed", None, "abandoned")] == seen


def test_living_names_what_is_left() -> None:
    """Each job and pool is named with how it stands; who only waits is not."""
    falcon = world()
    for job_id in ("j1", "j2"):
        falcon.submit(job_id)
    falcon.until_state("j1", "Pending/Provisioning")
    falcon.step()
    rows: Rows = falcon.store.read()
    assert ("job/j1 (Pending/Provisioning)", f"pool/{falcon.pools()[0]} (Active)") == living(rows, "c1").named()
    assert not living(rows, "c2")
