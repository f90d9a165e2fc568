"""What clouds refuse, or never answer, time and again: such a job ends, or waits and says why; nobody else does."""

from types import SimpleNamespace
from typing import Any

import pytest
from cloudsim.direct import DirectGke
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Call, Fault
from cloudsim.kube_refusals import denied, no_right, over_quota
from cloudsim.workload import NEVER_ENDS
from world import ZONE, Falcon, Inline, cluster, spec
from world_acts import calls

from falcon_rm import loop
from falcon_rm.core.words import ClusterStatus

HOUR = 3600.0
MACHINE = "ct6e-standard-4t"
UPGRADE = SimError("FAILED_PRECONDITION", "Cluster is running incompatible operation operation-1.")
MAY_NOT_DELETE = SimError("PERMISSION_DENIED", 'Required "container.clusters.update" permission(s) for "projects/p".')
NO_SERVICES = denied("w", "no services for you", 403, "Forbidden")
QUOTA = over_quota("jobs", "falcon-j1", "q", "count/jobs.batch", asked=1, used=5, limit=5)
CPU = {"image": "b", "command": "true", "device_type": "cpu"}


def refusing(call: str, error: SimError | KubeError, task: dict[str, Any] | None = None) -> Falcon:
    """Return a world in which one call is always refused, with a job on its way."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault(call, times=None, error=error))
    falcon.submit("j1", task)
    return falcon


def let_pass(falcon: Falcon, seconds: float) -> int:
    """Let passes be made for a while; return how many followed each other at once."""
    ends, at_once = falcon.sim.now + seconds, 0
    while falcon.sim.now < ends:
        if falcon.step().progress:
            at_once += 1
            assert at_once < 200, falcon.describe()
        else:
            falcon.wait()
    return at_once


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (NO_SERVICES, "Failed/JobSubmitFailed"),
        (no_right("falcon", "create", "services", "falcon-jobs"), "Pending/Waiting"),
    ],
    ids=["webhook", "right"],
)
def test_a_service_that_is_refused_is_a_verdict(error: KubeError, state: str) -> None:
    """Its Job is there and was never let go: the refusal counts as one of the Job, and the Job goes (law 8)."""
    falcon = refusing("kube.create.services", error, spec("4x4"))
    let_pass(falcon, 600)
    assert (state, [], None) == (falcon.state("j1"), falcon.works(), falcon.holder("4x4"))
    assert error.message in falcon.message("j1")


@pytest.mark.parametrize(("abort", "state"), [(False, "Succeeded"), (True, "Aborted")])
def test_a_job_object_that_cannot_be_deleted_hides_no_end(abort: bool, state: str) -> None:
    """Past the bound of a release the end is written, and says what is stuck (contract 3)."""
    falcon = refusing("kube.delete.*", no_right("falcon", "delete", "jobs", "falcon-jobs"))
    falcon.until(lambda: falcon.job("j1").outcome is not None)
    if abort:
        falcon.store.set_status("j1", "Aborting")
    let_pass(falcon, falcon.bounds.release_timeout + HOUR)
    assert (state, []) == (falcon.state("j1"), falcon.pools())
    assert "release is stuck" in falcon.message("j1")


def test_a_cluster_that_is_upgraded_for_hours_ends_no_job() -> None:
    """Busy costs no attempt: queue heads give way and come back, and run when it is over (design.md 4)."""
    falcon = refusing("gke.create_node_pool", UPGRADE)
    for number in range(2, 5):
        falcon.submit(f"j{number}", actor=f"a{number}")
    let_pass(falcon, 3 * HOUR)
    assert {"Pending"} == {job.status for job in falcon.rows()}
    assert {0} == {job.pool_failures for job in falcon.rows()}
    falcon.sim.faults.clear()
    falcon.settle()
    assert ["Succeeded"] * 4 == [falcon.state(job.id) for job in falcon.rows()]


def test_creates_that_are_taken_and_come_to_nothing_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that no list ever shows is given up after the bound of a creation, as often as the budget says (law 8)."""
    monkeypatch.setattr(DirectGke, "create_pool", lambda _gke, _action: None)
    falcon = Falcon()
    falcon.submit("j1")
    falcon.until_state("j1", "Failed/NodePoolFailed", seconds=6 * HOUR)
    assert "was accepted, and it never came" in falcon.message("j1")
    assert falcon.bounds.pool_attempts == falcon.job("j1").attempt


def test_a_pool_that_others_delete_for_ever_is_given_up() -> None:
    """Its job holds the slot no longer than the bound of a creation, and says who deletes it."""
    falcon = Falcon()
    falcon.submit("j1")
    falcon.until(lambda: bool(falcon.pools()))
    stops = Fault("gke.list_node_pools", "changed", times=None, change=stopping)
    falcon.sim.faults.add(stops)
    falcon.until(lambda: falcon.job("j1").pool_failures > 0, seconds=falcon.bounds.pool_timeout + 600)
    assert ("Pending/Waiting", None) == (falcon.state("j1"), falcon.holder("2x2"))
    assert "is being deleted by others" in falcon.message("j1")


def test_a_pool_that_others_delete_for_ever_before_the_submit_is_given_up() -> None:
    """Its job holds the slot no longer than the bound of the wait for nodes, and runs once, on another pool."""
    falcon = Falcon()
    falcon.submit("j1")
    falcon.submit("j2", actor="bob")
    falcon.until_state("j1", "Pending/Dispatching")
    falcon.sim.faults.add(Fault("gke.list_node_pools", "changed", times=None, change=stopping_first))
    falcon.passes(2)
    assert "is being deleted by others" in falcon.message("j1")
    falcon.until(lambda: falcon.job("j1").pool_failures > 0, seconds=falcon.bounds.node_wait + 60)
    assert ("Pending/Waiting", None) == (falcon.state("j1"), falcon.holder("2x2"))
    assert "node pool falcon-j1 is being deleted by others, and is still listed" in falcon.message("j1")
    falcon.until(falcon.is_over)
    assert ["Succeeded", "Succeeded"] == [falcon.state("j1"), falcon.state("j2")]
    assert ["falcon-j1", "falcon-j1-2", "falcon-j2"] == sorted(falcon.creates())
    assert ["falcon-j1-2", "falcon-j2"] == sorted(submits(falcon))


def stopping(pools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a list in which every pool is being deleted."""
    return [{**pool, "status": "STOPPING"} for pool in pools]


def stopping_first(pools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a list in which the first pool is being deleted."""
    return [{**pool, "status": "STOPPING"} if pool["name"] == "falcon-j1" else pool for pool in pools]


def submits(falcon: Falcon) -> list[str]:
    """Return the names of the Kubernetes Jobs that were asked for."""
    return [call.arguments[2]["metadata"]["name"] for call in falcon.sim.calls if call.name == "kube.create.jobs"]


@pytest.mark.parametrize(
    ("call", "error", "name"),
    [
        ("gke.delete_node_pool", MAY_NOT_DELETE, "gke.delete_node_pool"),
        ("kube.create.jobs", QUOTA, "kube.create.jobs"),
    ],
)
def test_what_is_refused_for_now_is_asked_once_an_interval(call: str, error: SimError | KubeError, name: str) -> None:
    """No pass follows at once on an answer from which nothing follows."""
    falcon = refusing(call, error)
    falcon.until(lambda: calls(falcon, name, "falcon-j1") > 0)
    before = calls(falcon, name, "falcon-j1")
    falcon.passes(20)
    at_once = let_pass(falcon, 600)
    assert (0, 20 + 60) == (at_once, calls(falcon, name, "falcon-j1") - before)


class Clock(SimpleNamespace):
    """Time that only calls spend."""

    spent = 0.0

    def monotonic(self) -> float:
        """Return the seconds that were spent."""
        return self.spent


def test_a_cluster_that_hangs_on_writes_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first call that hangs is its last of that pass; the others' jobs start in the same one (S12, law 9)."""
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)
    falcon = Falcon(cluster("bad", "v5e"), cluster("good", "v6e"))

    def hangs(call: Call) -> bool:
        bad = call.name == "kube.create.jobs" and call.target.startswith(falcon.clusters["bad"].path)
        clock.spent += 30 if bad else 0
        return bad

    for number in range(8):
        falcon.submit(f"a{number}", spec("1x1", "v5e"), cluster_id="bad")
    falcon.until(lambda: falcon.job("a0").reason == "Dispatching")
    falcon.sim.faults.add(Fault("*", "hang", times=None, where=hangs))
    falcon.submit("z", spec("4x4"))
    for number in range(20):
        falcon.submit(f"c{number}", CPU)
    for _ in range(12):
        before = clock.spent
        made = loop.one_pass(
            store=falcon.open_store, clouds=falcon.clouds, bounds=falcon.bounds, pass_seconds=120, readers=Inline
        )
        assert clock.spent - before <= 30
        if not made.progress:
            falcon.wait()
    falcon.sim.advance(0)
    assert "Pending/Provisioning" != falcon.state("z") or falcon.pools("good")
    there = [job for job in falcon.rows() if job.topology == "cpu" and job.cluster_id == "good"]
    assert there and {"Running", "Succeeded"} >= {job.status for job in there}


def test_a_submit_that_hangs_every_time_goes_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own cluster too it costs the others one pass, not their start."""
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)
    falcon = Falcon()

    def hangs(call: Call) -> bool:
        first = call.name == "kube.create.jobs" and call.arguments[2]["metadata"]["name"] == "falcon-c0"
        clock.spent += 30 if first else 0
        return first

    falcon.sim.faults.add(Fault("*", "hang", times=None, where=hangs))
    for number in range(6):
        falcon.submit(f"c{number}", CPU)
    let_pass(falcon, 300)
    states = {job.id: falcon.state(job.id) for job in falcon.rows()}
    assert {"c0": "Pending/Dispatching", **{f"c{number}": "Succeeded" for number in range(1, 6)}} == states


def where_one_hangs(monkeypatch: pytest.MonkeyPatch, method: str, name: str) -> Falcon:
    """Return a world in which a call about what bears a name ends in half a minute without an answer, each time."""
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)
    falcon = Falcon()

    def hangs(call: Call) -> bool:
        first = call.name == method and call.target.endswith(name)
        clock.spent += 30 if first else 0
        return first

    falcon.sim.faults.add(Fault("*", "hang", times=None, where=hangs))
    return falcon


def test_a_delete_that_hangs_every_time_goes_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that cannot be deleted costs the others of its cluster one pass, not their release."""
    falcon = where_one_hangs(monkeypatch, "gke.delete_node_pool", "falcon-j0")
    for number, topology in enumerate(("1x1", "2x2", "2x4")):
        falcon.submit(f"j{number}", spec(topology))
    falcon.until(lambda: falcon.pools() == ["falcon-j0"] and not falcon.works(), seconds=HOUR)
    assert ["Running", "Succeeded", "Succeeded"] == [falcon.state(f"j{number}") for number in range(3)]


def test_deletes_that_hang_hold_up_no_start_of_their_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one Job after the other cannot be deleted, what starts is asked for in the same pass."""
    falcon = where_one_hangs(monkeypatch, "kube.delete.jobs", "")
    ended = [f"c{number}" for number in range(8)]
    for job_id in ended:
        falcon.submit(job_id, CPU)
    falcon.until(lambda: all(falcon.job(job_id).outcome for job_id in ended))
    falcon.submit("z", CPU)
    falcon.until_state("z", "Pending/Dispatching")
    hung = calls(falcon, "kube.delete.jobs", "")
    falcon.step()
    assert (1, True) == (calls(falcon, "kube.delete.jobs", "") - hung, "falcon-z" in falcon.works())


@pytest.mark.parametrize("over", [False, True], ids=["in time", "past the bound of a release"])
def test_a_job_object_whose_delete_hangs_holds_up_no_other(monkeypatch: pytest.MonkeyPatch, over: bool) -> None:
    """Jobs of its cluster start and end beside it, before and after its own end was written without it."""
    falcon = where_one_hangs(monkeypatch, "kube.delete.jobs", "falcon-c0")
    falcon.submit("c0", CPU)
    falcon.until(lambda: falcon.job("c0").outcome is not None)
    let_pass(falcon, falcon.bounds.release_timeout + 60 if over else 60)
    assert over is (falcon.state("c0") == "Succeeded")
    for number in range(1, 4):
        falcon.submit(f"c{number}", CPU)
    let_pass(falcon, 300)
    assert ["Succeeded"] * 3 == [falcon.state(f"c{number}") for number in range(1, 4)], falcon.describe()
    assert ["falcon-c0"] == falcon.works()


def test_a_job_object_of_an_older_attempt_whose_delete_hangs_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came late, after its pool was lost, and nobody waits for its end: those that end beside it go first."""
    falcon = where_one_hangs(monkeypatch, "kube.delete.jobs", "falcon-a1")
    falcon.sim.faults.add(Fault("kube.create.jobs", "hang", later=120))
    falcon.sim.scripts_by_job_id["a1"] = NEVER_ENDS
    falcon.submit("a1")
    falcon.until_state("a1", "Pending/Dispatching")
    falcon.step()
    falcon.sim.gke.delete_by_hand(falcon.clusters["c1"].path, "falcon-a1")
    falcon.until(lambda: falcon.job("a1").attempt == 2 and "falcon-a1" in falcon.works())
    for number in range(3):
        falcon.submit(f"c{number}", CPU)
    let_pass(falcon, 300)
    assert ["Succeeded"] * 3 == [falcon.state(f"c{number}") for number in range(3)], falcon.describe()
    assert ["falcon-a1", "falcon-a1-2"] == falcon.works()


def test_a_job_without_tpu_that_waits_after_a_refusal_is_aborted_at_once() -> None:
    """It owns nothing while it waits, also when its cluster cannot be read: one write ends it (contract 3)."""
    falcon = refusing("kube.create.jobs", no_right("falcon", "create", "jobs", "falcon-jobs"), CPU)
    falcon.until(lambda: falcon.state("j1") == "Pending/Waiting" and falcon.job("j1").attempt == 1)
    falcon.cut_off("c1")
    falcon.passes(1)
    falcon.store.set_status("j1", "Aborting")
    before, version = len(falcon.sim.effects), falcon.job("j1").version
    falcon.step()
    assert ("Aborted", version + 1) == (falcon.state("j1"), falcon.job("j1").version), falcon.describe()
    assert before == len(falcon.sim.effects)


def test_a_job_without_tpu_that_may_have_been_submitted_is_not_aborted_unseen() -> None:
    """Whether its Job is there nobody knows until its cluster can be read: then it goes first."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("kube.create.jobs", "hang", effect=True))
    falcon.submit("j1", CPU)
    falcon.until_state("j1", "Pending/Dispatching")
    falcon.step()
    falcon.cut_off("c1")
    falcon.store.set_status("j1", "Aborting")
    falcon.passes(3)
    assert ("Aborting", ["falcon-j1"]) == (falcon.state("j1"), falcon.works())
    falcon.reconnect("c1")
    falcon.settle(seconds=60)
    assert "Aborted" == falcon.state("j1")


@pytest.mark.parametrize("ahead", [24 * HOUR, 10 * 365 * 24 * HOUR], ids=["a day", "years"])
def test_a_next_try_that_no_pass_wrote_holds_nobody_up(ahead: float) -> None:
    """By hand, or by longer back-offs than are in force now: its job waited, and told another time in each pass."""
    falcon = Falcon()
    falcon.submit("j1")
    falcon.until_state("j1", "Pending/Waiting")
    falcon.store.edit_job("j1", retry_at=falcon.store.now + ahead)
    falcon.settle(seconds=HOUR)
    assert "Succeeded" == falcon.state("j1")


@pytest.mark.parametrize("columns", [{}, {"default_reservation": None}, {"status": ClusterStatus.MAINTENANCE}], ids=str)
def test_a_waiter_that_cannot_start_there_takes_no_pool_from_others(columns: dict[str, Any]) -> None:
    """Nodes that take longer than their bound are waited for as long as giving their pool up would start nobody."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", MACHINE, 4)
    falcon.sim.set_capacity(ZONE, "flex-start", MACHINE, 0)
    falcon.submit("j1", spec("4x4", mode="flex-start"))
    falcon.submit("j2", spec("4x8", mode="reservation"), actor="bob")
    falcon.until_state("j1", "Pending/WaitingForNode")
    assert "has 4 vm(s) in all" in falcon.message("j2")
    falcon.register(cluster("c1", **{"default_reservation": "r", **columns}))
    let_pass(falcon, falcon.bounds.node_wait_flex + HOUR)
    assert ("Pending/WaitingForNode", 1) == (falcon.state("j1"), falcon.job("j1").attempt), falcon.describe()
    falcon.sim.set_capacity(ZONE, "flex-start", MACHINE, None)
    falcon.until_state("j1", "Succeeded")
