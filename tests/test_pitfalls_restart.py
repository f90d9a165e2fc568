"""Restart and several copies: nothing is remembered, nothing done twice, whoever writes in between (P82 to P87)."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from cloudsim.direct import DirectClouds
from cloudsim.errors import SimError
from cloudsim.faults import Fault
from cloudsim.workload import NEVER_ENDS, OUT_OF_MEMORY, Workload
from interruptions import deal, lose_connection, overtaken, tapped_pass
from memory_tables import TABLES
from world import Falcon, cluster, spec
from world_acts import calls, kill_after, objects, pods, work

from falcon_rm.core.actions import EndLease
from falcon_rm.core.plan import plan
from falcon_rm.observe import observe

LIFE = ["Pending/Waiting", "Pending/Provisioning", "Pending/WaitingForNode", "Pending/Dispatching", "Running"]
TOPOLOGIES = ("1x1", "2x2", "2x4", "4x4", "4x8")


def tables(falcon: Falcon) -> dict[str, Any]:
    """Return a copy of every table."""
    return {name: getattr(falcon.store, name).copy() for name in TABLES}


def acts(falcon: Falcon) -> list[tuple[str, str]]:
    """Return the calls that change a cloud, by name and target."""
    return [(call.name, call.target) for call in falcon.sim.calls if call.mutating]


def busy(falcon: Falcon, jobs: int) -> None:
    """Insert jobs of two actors over three topologies that end in several ways."""
    lost = Workload(seconds=20, attempts={1: Workload(seconds=None, lose_node_after=15)})
    ends = [Workload(seconds=15), Workload(seconds=5, exit_code=3), OUT_OF_MEMORY, lost, Workload(seconds=40)]
    for number in range(jobs):
        falcon.sim.scripts_by_job_id[f"j{number:02}"] = ends[number % len(ends)]
        topology = ("2x2", "4x4", "2x4")[number % 3]
        falcon.submit(f"j{number:02}", spec(topology, max_retries=1), actor="ann" if number % 2 else "bob")


def test_first_pass_over_a_settled_world_writes_nothing() -> None:
    """A new process over terminal and running rows changes no table and calls nothing that acts (P82)."""
    falcon = Falcon(*(cluster(f"c{number}") for number in range(4)))
    falcon.sim.default_workload = NEVER_ENDS
    for number in range(40):
        falcon.submit(f"r{number}", spec(TOPOLOGIES[number % 5]))
        falcon.submit(f"t{number}", spec(TOPOLOGIES[number % 5]), status="Succeeded", attempt=1, cluster_id="c0")
    falcon.until(lambda: all(falcon.state(f"r{number}") == "Running" for number in range(40)))
    falcon.passes(3)
    before = tables(falcon), acts(falcon)
    for seconds in (0, 3600, 86400):
        falcon.advance(seconds)
        assert () == falcon.step().plan.actions
    assert before == (tables(falcon), acts(falcon))


def test_no_state_between_passes() -> None:
    """A world handed to a fresh copy of everything before each pass goes the same way, call for call (P83)."""
    worlds = []
    for fresh in (False, True):
        falcon = Falcon(cluster("c1"), cluster("c2"))
        busy(falcon, 8)
        for _ in range(400):
            if fresh:
                falcon.store, falcon.sim = falcon.store.copy(), falcon.sim.fork()
            if not falcon.step().progress:
                falcon.advance(10)
        assert falcon.is_over()
        worlds.append((tables(falcon), acts(falcon)))
    assert worlds[0] == worlds[1]


@pytest.mark.parametrize("seed", range(6))
def test_two_copies_with_kills_do_nothing_twice(seed: int) -> None:
    """Two controllers in any order, killed now and then: one Job at a time for each job (P84, P99)."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    busy(falcon, 9)

    def one_at_a_time() -> None:
        for path in (cluster("c1").path, cluster("c2").path):
            kube = falcon.sim.kube(path)
            owners = [item["metadata"]["labels"]["falcon.io/job-id"] for item in kube.store.objects["jobs"].values()]
            jobs = Counter(owners)
            assert [] == [job_id for job_id, count in jobs.items() if count > 1], falcon.describe()

    deal(falcon, seed, copies=2, kills=0.02, watch=one_at_a_time)
    made = {call.target for call in falcon.sim.calls if call.name == "gke.create_node_pool"}
    assert made <= {f"{cluster(row.cluster_id).path}/nodePools/{row.name}" for row in falcon.store.pools.values()}
    ends = {job.id: ("Failed/JobFailed" if int(job.id[1:]) % 5 in (1, 2) else "Succeeded") for job in falcon.rows()}
    assert ends == {job_id: falcon.state(job_id) for job_id in ends}
    assert {"j03": 1, "j08": 1} == {job.id: job.losses for job in falcon.rows() if job.losses}
    for job_id in ends:
        assert_history_is_the_path(falcon, job_id)


def assert_history_is_the_path(falcon: Falcon, job_id: str) -> None:
    """Check that a job's events follow each other from its insertion to where it stands."""
    at: tuple[str, str | None] = ("Pending", None)
    for event in falcon.store.event_rows():
        if event.job_id == job_id:
            assert at == (event.from_status, event.from_reason)
            assert at != (event.to_status, event.to_reason)
            at = (event.to_status, event.to_reason)
    assert (falcon.job(job_id).status, falcon.job(job_id).reason) == at


@pytest.mark.parametrize("state", LIFE)
def test_plan_made_for_an_older_world_changes_nothing_twice(state: str) -> None:
    """A controller that slept through another one's pass finds itself too late with everything (P84)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.submit("j2", spec("4x4"), actor="bob")
    falcon.until_state("j1", state)
    overtaken(falcon, lambda: falcon.passes(3))
    falcon.settle()
    assert {"j1": "Succeeded", "j2": "Succeeded"} == {job_id: falcon.state(job_id) for job_id in ("j1", "j2")}
    assert (1, 1) == (falcon.job("j1").attempt, falcon.job("j2").attempt)
    for job_id in ("j1", "j2"):
        assert 1 == calls(falcon, "kube.create.jobs", f"falcon-{job_id}")
        assert_history_is_the_path(falcon, job_id)


@pytest.mark.parametrize("state", LIFE)
def test_late_controller_makes_no_second_run(state: str) -> None:
    """A plan that is carried out after the whole job ended leaves nothing behind (P84)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    overtaken(falcon, falcon.settle)
    falcon.settle()
    falcon.passes(30)
    assert ([], "Succeeded") == (falcon.leftovers(), falcon.state("j1"))
    assert 1 == calls(falcon, "kube.create.jobs", "falcon-j1")


@pytest.mark.parametrize("state", LIFE)
def test_abort_between_read_and_write_is_never_overwritten(state: str) -> None:
    """Upstream's Aborting lands just before Falcon's write: it stands, and is carried out (P85)."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    version = falcon.job("j1").version

    def abort(name: str, done: bool) -> None:
        if not done and falcon.job("j1").status in ("Pending", "Running"):
            falcon.store.set_status("j1", "Aborting")

    for _ in range(50):
        if falcon.job("j1").status == "Aborting":
            break
        tapped_pass(falcon, abort)
        falcon.advance(10)
        if state == "Running" and falcon.job("j1").status != "Aborting":
            falcon.store.set_status("j1", "Aborting")
    assert ("Aborting", version) == (falcon.job("j1").status, falcon.job("j1").version)
    falcon.settle()
    assert "Aborted" == falcon.state("j1")
    assert [] == [event for event in falcon.store.event_rows() if event.from_status == "Aborted"]


@pytest.mark.parametrize("effect", [False, True])
@pytest.mark.parametrize(
    "write", ["work_submitted", "work_resumed", "pool_answered", "work_requested", "pool_requested"]
)
def test_cloud_obeyed_and_the_database_went_away(write: str, effect: bool) -> None:
    """Whichever write around a call is lost, the next pass finds pool or Job by its name (P86)."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    before = "Pending/Provisioning" if write.startswith("pool") else "Pending/Dispatching"
    falcon.until_state("j1", before)
    if write == "work_resumed":
        falcon.step()
    lose_connection(falcon, write, effect=effect)
    falcon.until_state("j1", "Running")
    assert (["falcon-j1"], ["falcon-j1"]) == (falcon.works(), falcon.pools())
    assert work(falcon, "falcon-j1")["metadata"]["uid"] == falcon.job("j1").job_uid
    assert (1, 0) == (falcon.job("j1").attempt, falcon.job("j1").pool_failures)


@pytest.mark.parametrize(
    "call", ["gke.create_node_pool", "kube.create.jobs", "kube.create.services", "kube.patch.jobs"]
)
def test_killed_right_after_a_create(call: str) -> None:
    """What a killed process had made is taken over by its name, with its Service (P84, P86)."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec("4x4"))
    kill_after(falcon, call)
    falcon.until_state("j1", "Running")
    assert (["falcon-j1"], ["falcon-j1"], 4) == (falcon.works(), falcon.pools(), len(pods(falcon, "j1")))
    assert ["falcon-j1"] == [item["metadata"]["name"] for item in objects(falcon, "services")]


def test_abort_that_comes_with_the_end_stands() -> None:
    """Aborting before the end is written is Aborted, with no Succeeded in between and one delete of the pool (P87)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", "Running")
    falcon.advance(60)
    falcon.store.set_status("j1", "Aborting")
    falcon.settle()
    assert [*LIFE, "Aborted"] == falcon.story("j1")
    assert 1 == calls(falcon, "gke.delete_node_pool", "falcon-j1")


def test_abort_after_the_outcome_is_written_stands_too() -> None:
    """Aborting while the end is on its way, before it is written, is Aborted: the pool is released once (P87)."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: falcon.job("j1").outcome is not None)
    falcon.store.set_status("j1", "Aborting")
    falcon.settle()
    assert "Aborted" == falcon.state("j1")
    assert 1 == calls(falcon, "gke.delete_node_pool", "falcon-j1")


@pytest.mark.parametrize("state", LIFE)
def test_database_from_a_backup_takes_no_name_twice(state: str) -> None:
    """Rows of some states ago, and a run that they know nothing of: in the end one run, nothing left (P83)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=300)
    falcon.submit("j1", spec("4x4"))
    falcon.until_state("j1", state)
    backup = falcon.store.copy()
    falcon.until_state("j1", "Running")
    falcon.passes(3)
    backup.now, falcon.store = falcon.store.now, backup
    for _ in range(400):
        for pod in pods(falcon, "j1"):
            assert pod["metadata"]["labels"]["falcon.io/attempt"] in ("1", "2")
        if not falcon.step().progress:
            falcon.advance(10)
    assert ("Succeeded", []) == (falcon.state("j1"), falcon.leftovers()), falcon.describe()


@pytest.mark.parametrize("job_id", ["j1", "Job A/b", "x" * 64], ids=["plain", "odd", "long"])
def test_name_of_a_pool_that_was_found_is_passed_over(job_id: str) -> None:
    """A database restored to nothing finds a pool, closes it, and then its job comes anew, whatever its id (P83)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id[job_id] = NEVER_ENDS
    falcon.submit(job_id, spec("4x4"))
    falcon.until_state(job_id, "Running")
    falcon.store = falcon.new_store()
    falcon.store.now = falcon.sim.now
    falcon.register(cluster("c1"))
    falcon.settle()
    falcon.submit(job_id, spec("4x4"))
    falcon.until_state(job_id, "Running", seconds=600)
    assert 2 == falcon.job(job_id).attempt


def test_abort_of_a_job_that_waits_again_is_one_write() -> None:
    """After a lost attempt it owns nothing, so its abort asks no cluster, not even one that is away (P87)."""
    falcon = Falcon()
    falcon.sim.scripts_by_job_id["j1"] = Workload(seconds=None, lose_node_after=15)
    falcon.submit("j1", spec("4x4", max_retries=1))
    falcon.until(lambda: falcon.state("j1") == "Pending/Waiting" and falcon.job("j1").losses == 1)
    falcon.sim.faults.add(Fault("*", error=SimError("UNAVAILABLE", "no route", 503), times=None))
    falcon.store.set_status("j1", "Aborting")
    falcon.step()
    assert "Aborted" == falcon.state("j1")


def test_leases_younger_than_the_rows_that_were_read_are_no_orphans() -> None:
    """A slow controller finds pools that another one has claimed and made since it read the rows (P27, P84)."""
    falcon = Falcon()
    for topology in TOPOLOGIES:
        falcon.submit(f"j-{topology}", spec(topology))
    falcon.step()
    early = falcon.store.read()
    falcon.advance(1)
    falcon.step()
    falcon.step()
    assert len(TOPOLOGIES) == len(falcon.pools())
    slow: Any = SimpleNamespace(
        read=lambda: early, statuses=falcon.store.statuses, pools_named=falcon.store.pools_named
    )
    made = plan(observe(slow, DirectClouds(falcon.sim), falcon.bounds, seconds=30))
    assert None is made.brake
    assert () == tuple(action for action in made.actions if isinstance(action, EndLease))
