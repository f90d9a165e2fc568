"""What the user sees: a reason at any time, an end that is one, and the cause of it (P105, P106, P109 to P111)."""

from collections.abc import Callable

import pytest
from attrs import evolve
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault, Under
from cloudsim.gke_pools import Doom
from cloudsim.workload import NEVER_ENDS, NEVER_PULLS, OUT_OF_MEMORY, Workload
from memory_tables import TABLES
from world import ZONE, Falcon, cluster, spec
from world_acts import kill_after, pods

from falcon_rm.core.words import ClusterStatus

AWAY = SimError("UNAVAILABLE", "no route", 503)
DENIED = SimError("PERMISSION_DENIED", 'Required "container.nodePools.create" permission(s) for "projects/p".', 403)


def crowd(falcon: Falcon) -> None:
    """Insert jobs of three actors over several topologies and modes."""
    for number in range(6):
        mode = ("on-demand", "flex-start", "reservation", "")[number % 4]
        task = spec(("4x4", "2x2")[number % 2], mode=mode, max_retries=1)
        falcon.submit(f"j{number}", task, actor=("ann", "bob", "carol")[number % 3], timeout_seconds=900)
    falcon.submit("cpu", {"image": "i", "device_type": "cpu", "command": "true"})
    falcon.submit("v4", spec("2x2x1", "v4"))
    falcon.submit("bad", "{}")


def nothing(_: Falcon) -> None:
    """Let all go well."""


def no_machines(falcon: Falcon) -> None:
    """Let no machine be had."""
    falcon.sim.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", 0)
    falcon.sim.set_capacity(ZONE, "flex-start", "ct6e-standard-4t", 0)


def no_quota(falcon: Falcon) -> None:
    """Let the quota be used up."""
    falcon.sim.set_quota("p", "ct6e-standard-4t", 0)


def no_right(falcon: Falcon) -> None:
    """Let creates be denied."""
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=DENIED, times=None))


def no_answer(falcon: Falcon) -> None:
    """Let c1 be away after a while."""
    begins, under = falcon.store.now + 100, Under(cluster("c1").path)
    falcon.sim.faults.add(Fault("*", error=AWAY, times=None, where=lambda call: call.at > begins and under(call)))


def no_submit(falcon: Falcon) -> None:
    """Let Kubernetes be too busy for new Jobs."""
    falcon.sim.faults.add(Fault("kube.create.jobs", error=KubeError(503, "ServiceUnavailable", "busy"), times=None))


def no_image(falcon: Falcon) -> None:
    """Let no image be found."""
    falcon.sim.default_workload = NEVER_PULLS


def no_nodes(falcon: Falcon) -> None:
    """Let nodes be late."""
    falcon.sim.tempo.node_seconds = 1500


def no_luck(falcon: Falcon) -> None:
    """Let pools fail for a reason nobody knows."""
    falcon.sim.gke.doom(Doom(message="the moon is in the wrong house"), times=None)


def no_cluster(falcon: Falcon) -> None:
    """Let both clusters be under maintenance."""
    for cluster_id in ("c1", "c2"):
        falcon.store.add_cluster(cluster(cluster_id, status=ClusterStatus.MAINTENANCE))


TROUBLES = [
    nothing, no_machines, no_quota, no_right, no_answer, no_submit, no_image, no_nodes, no_luck, no_cluster,
]  # fmt: skip


def troubled(trouble: Callable[[Falcon], None]) -> Falcon:
    """Return a world with a crowd in it and one trouble."""
    falcon = Falcon(cluster("c1", default_reservation="r"), cluster("c2"))
    falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 8, in_use=5)
    trouble(falcon)
    crowd(falcon)
    return falcon


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: str(trouble.__name__))
def test_whoever_waits_is_told_why(trouble: Callable[[Falcon], None], language: str) -> None:
    """After each pass every Pending row has a reason and a message, one line that fits (P105)."""
    falcon = troubled(trouble)
    falcon.bounds = type(falcon.bounds)(language=language)
    for _ in range(150):
        if not falcon.step().progress:
            falcon.advance(10)
        for job in falcon.rows():
            message = job.message or ""
            if job.status == "Pending":
                assert (bool(job.reason), bool(message)) == (True, True), f"{job.id}: {job.reason} {message}"
            assert message.isprintable()
            assert len(message.encode()) <= 4096


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: str(trouble.__name__))
def test_looking_does_nothing(trouble: Callable[[Falcon], None]) -> None:
    """A dry pass changes no table and makes no call that acts, whatever there is to do (P109)."""
    falcon = troubled(trouble)
    for _ in range(40):
        before = [getattr(falcon.store, name).copy() for name in TABLES], len(_acts(falcon))
        dry = falcon.step(dry=True)
        assert before == ([getattr(falcon.store, name).copy() for name in TABLES], len(_acts(falcon)))
        done = falcon.step()
        assert dry.plan == done.plan
        if not done.progress:
            falcon.advance(10)


def _acts(falcon: Falcon) -> list[str]:
    return [call.name for call in falcon.sim.calls if call.mutating]


def versions(falcon: Falcon) -> dict[str, int]:
    """Return how often each row was written."""
    return {job.id: job.version for job in falcon.rows()}


def writes(before: dict[str, int], after: dict[str, int]) -> int:
    """Return the writes between two looks at the versions."""
    return sum(after[job_id] - before[job_id] for job_id in before)


def test_start_of_one_does_not_rewrite_the_queue() -> None:
    """When one of a thousand starts, about a hundred rows are written, and none in a pass without news (P106)."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    for number in range(1000):
        falcon.submit(f"j{number:04}", spec("4x4"), created_at=1_700_000_000.0 + number)
    falcon.until_state("j0001", "Pending/WaitingForNode")
    falcon.passes(1)
    before = versions(falcon)
    falcon.until_state("j0002", "Pending/WaitingForNode")
    behind = {job_id: version for job_id, version in before.items() if job_id > "j0102"}
    assert writes(behind, versions(falcon)) < 30
    news = 3  # of those in front: who holds the slot and a new place; its next two reasons
    assert writes(before, versions(falcon)) < (news + 1) * 100
    falcon.step()
    before = versions(falcon)
    for _ in range(3):
        falcon.step()
    assert before == versions(falcon)


@pytest.mark.parametrize("end", ["Succeeded", "Failed/JobFailed", "Failed/Timeout", "Aborted"])
def test_end_is_told_when_nothing_is_left(end: str) -> None:
    """While the pool takes its time to go the job is not over; when it is, nothing of it is there (P110)."""
    falcon = Falcon()
    falcon.sim.tempo.delete_seconds = 200
    workloads = {"Failed/JobFailed": Workload(seconds=20, exit_code=1), "Succeeded": Workload()}
    falcon.sim.default_workload = workloads.get(end, NEVER_ENDS)
    falcon.submit("j1", spec("4x4"), timeout_seconds=60)
    falcon.until_state("j1", "Running")
    if end == "Aborted":
        falcon.store.set_status("j1", "Aborting")
    before = falcon.store.now
    while falcon.pools():
        assert falcon.state("j1") in ("Running", "Aborting")
        if not falcon.step().progress:
            falcon.advance(10)
    assert falcon.store.now - before >= 200
    falcon.until_state("j1", end, seconds=30)
    assert ([], []) == (falcon.works(), pods(falcon, "j1"))


def test_pool_that_is_handed_on_ends_the_first_job_at_once() -> None:
    """With a job of that shape waiting the pool changes hands, and the first one is over without a delete (P110)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=300)
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    falcon.sim.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", 0)
    falcon.submit("j2", spec("4x4"), actor="bob")
    falcon.submit("j3", spec("4x4"), actor="bob")
    falcon.until(lambda: falcon.job("j1").outcome is not None)
    falcon.until_state("j1", "Succeeded", seconds=20)
    assert "falcon-j1" in falcon.pools()
    falcon.until_state("j2", "Succeeded")
    assert [] == [call for call in _acts(falcon) if call == "gke.delete_node_pool"][2:]


def test_timeout_survives_a_kill_after_the_stop() -> None:
    """The Job is gone at the next look, and the row still says why (P111)."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("4x4"), timeout_seconds=60)
    falcon.until_state("j1", "Running")
    falcon.advance(61)
    kill_after(falcon, "kube.delete.jobs")
    falcon.settle()
    assert ("Failed/Timeout", "Job timed out (60s), K8s Job cancelled") == (
        falcon.state("j1"),
        falcon.job("j1").message,
    )


@pytest.mark.parametrize("kill", ["gke.delete_node_pool", "kube.delete.jobs", ""])
def test_cause_survives_the_pods(kill: str) -> None:
    """The pod that was killed for memory is collected with its node after the first look: its end is known (P111)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = OUT_OF_MEMORY
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: falcon.job("j1").outcome is not None)
    if kill:
        kill_after(falcon, kill)
    else:
        for pod in pods(falcon, "j1"):
            falcon.sim.gke.pools.lose_node(cluster("c1").path, pod["spec"]["nodeName"])
        falcon.advance(120)
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")
    assert "OOMKilled (exit code 137)" in (falcon.job("j1").message or "")


@pytest.mark.parametrize("how", ["deleted", "collected"])
def test_end_that_nobody_saw_is_not_made_up(how: str) -> None:
    """A Job deleted by others, or whose pods are gone, is a failure that says so, and never a second run (P111)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=5, exit_code=3) if how == "collected" else NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    kube = falcon.sim.kube(cluster("c1").path)
    if how == "deleted":
        kube.delete_by_hand("jobs", "falcon-jobs", "falcon-j1")
    else:
        falcon.advance(20)
        for pod in pods(falcon, "j1"):
            kube.store.drop("pods", pod)
    falcon.settle()
    assert "Failed/JobFailed" == falcon.state("j1")
    assert falcon.job("j1").message
    assert ["falcon-j1"] == falcon.creates()


def test_release_that_hangs_is_told_with_the_end() -> None:
    """A pool that cannot be deleted holds the end back for a while, stands in its message, and goes later (P110)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    stuck = SimError("INTERNAL", "cannot delete, sorry", 500)
    falcon.sim.faults.add(Fault("gke.delete_node_pool", error=stuck, times=None))
    began = falcon.store.now
    falcon.until_state("j1", "Succeeded")
    assert falcon.store.now - began > falcon.bounds.release_timeout
    assert "cannot delete, sorry" in (falcon.job("j1").message or "")
    falcon.sim.faults.clear()
    falcon.settle()
    assert [] == falcon.leftovers()


@pytest.mark.parametrize("language", ["zh", "en"])
def test_end_that_waits_for_a_cluster_says_so(language: str) -> None:
    """An outcome whose cluster cannot be read says that beside its own text for as long as it lasts (contract.md 3)."""
    falcon = Falcon()
    falcon.bounds = evolve(falcon.bounds, language=language)
    falcon.sim.default_workload = OUT_OF_MEMORY
    falcon.submit("j1")
    falcon.until(lambda: falcon.job("j1").outcome is not None)
    said = falcon.job("j1").message or ""
    falcon.cut_off("c1")
    falcon.passes(5)
    message = falcon.job("j1").message or ""
    assert (True, 1) == (message.startswith(f"{said}; "), message.count("falcon-rm cluster abandon")), message
    falcon.sim.faults.clear()
    falcon.settle()
    assert ("Failed/JobFailed", said) == (falcon.state("j1"), falcon.job("j1").message)


def test_flex_start_job_that_is_not_submitted_says_why() -> None:
    """What Kubernetes answers to the submit is told while the nodes are waited for (P105)."""
    falcon = Falcon()
    webhook = KubeError(500, "InternalError", 'failed calling webhook "x": no endpoints')
    fault = falcon.sim.faults.add(Fault("kube.create.jobs", times=None, error=webhook))
    falcon.submit("j1", spec(mode="flex-start"))
    falcon.until_state("j1", "Pending/WaitingForNode")
    falcon.until(lambda: "no endpoints" in (falcon.job("j1").message or ""), seconds=60)
    falcon.sim.faults.remove(fault)
    falcon.until(lambda: "no endpoints" not in (falcon.job("j1").message or ""), seconds=60)


def test_pool_that_others_delete_while_it_is_made_is_told() -> None:
    """Its job is not told for hours that the pool is created (P105)."""
    falcon = Falcon()
    falcon.submit("j1")
    falcon.until_state("j1", "Pending/Provisioning")
    falcon.passes(2)
    falcon.sim.gke.pools.find(falcon.clusters["c1"].path, "falcon-j1").status = "STOPPING"
    falcon.passes(1)
    words = "Creating node pool (supply: on-demand)...; node pool falcon-j1 is being deleted by others"
    assert ("Pending/Provisioning", words) == (falcon.state("j1"), falcon.job("j1").message)


def test_audit_says_of_everything_what_it_is() -> None:
    """A job in it is told from a pool of that name: each subject begins with what it is about (P105)."""
    falcon = Falcon()
    falcon.submit("never-1", status="Running", outcome="Odd")
    falcon.submit("j1", spec(colour="red"))
    falcon.until_state("j1", "Succeeded")
    about = {(audit.kind, audit.subject) for audit in falcon.store.audits}
    assert {
        ("impossible row", "job/never-1"),
        ("unknown fields", "job/j1"),
        ("pool created", "pool/c1/falcon-j1"),
    } <= about
    assert {"job", "pool"} == {subject.partition("/")[0] for _, subject in about}


def test_retry_whose_release_is_stuck_says_why() -> None:
    """An attempt must be gone before the next one may exist: the job waits for that, and is told on what (P105)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = NEVER_ENDS
    falcon.submit("j1", spec(max_retries=1))
    falcon.until_state("j1", "Running")
    denied = SimError("PERMISSION_DENIED", "no right to delete", 403)
    fault = falcon.sim.faults.add(Fault("gke.delete_node_pool", error=denied, times=None))
    path = falcon.clusters["c1"].path
    falcon.sim.gke.pools.lose_node(path, falcon.sim.gke.pools.find(path, "falcon-j1").nodes[0])
    falcon.until(lambda: falcon.job("j1").outcome == "Lost")
    words = falcon.message("j1")
    assert words.startswith("queued again (attempt 1 ended): lost with its infrastructure")
    falcon.until(lambda: "the release is stuck" in falcon.message("j1"), seconds=falcon.bounds.release_timeout + 60)
    assert f"{words}; the release is stuck: no right to delete" == falcon.message("j1")
    version = falcon.job("j1").version
    falcon.passes(20)
    assert version == falcon.job("j1").version
    falcon.sim.faults.remove(fault)
    falcon.until(lambda: falcon.state("j1") == "Running" and falcon.job("j1").attempt == 2)
    assert "the release is stuck" not in " ".join(event.message or "" for event in falcon.store.event_rows())
