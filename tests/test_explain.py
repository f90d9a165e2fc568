"""What explain tells: for every phase and reason the text, and never anything else than the next pass does."""

import random
from collections.abc import Callable
from typing import Any

import builders
import pytest
from attrs import asdict, evolve
from builders import free, job, live, pool, snapshot, task, view, work
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault
from cloudsim.gke_pools import Doom
from cloudsim.workload import NEVER_ENDS, NEVER_PULLS, OUT_OF_MEMORY, Workload
from world import ZONE, Falcon, cluster, spec

from falcon_rm.core.actions import Change
from falcon_rm.core.live import Pod
from falcon_rm.core.machine import RULES, TABLE, Phase, Verb
from falcon_rm.core.messages import moment
from falcon_rm.core.model import Job, Turn
from falcon_rm.core.plan import plan
from falcon_rm.core.scene import PHASE, phase_of
from falcon_rm.core.words import ClusterStatus, Outcome, Reason, Status
from falcon_rm.explain import Explanation, explain, explain_ended, text
from falcon_rm.loop import Pass
from falcon_rm.story import Event, History, Lease

FOUR_HOSTS = "ct6e-standard-4t"
DENIED = SimError("PERMISSION_DENIED", 'Required "container.nodePools.create" permission(s) for "projects/p".', 403)
REFUSED = KubeError(403, "Forbidden", 'admission webhook "policy" denied the request: no')
CPU = {"image": "i", "device_type": "cpu", "command": "true"}
LEASE_COLUMNS = ("cluster_id", "pool", "attempt", "mode", "from_at", "until_at", "ended", "ended_text")


def kept(falcon: Falcon, job_id: str) -> History:
    """Return what the tables keep of a job."""
    store = falcon.store
    rows = [(number, asdict(event)) for number, event in enumerate(store.event_rows(), start=1)]
    leases = [asdict(lease) for lease in store.lease_rows() if lease.job_id == job_id]
    return History(
        now=store.now,
        job=store.jobs.get(job_id),
        events=tuple(Event(number, **row) for number, row in rows if row["job_id"] == job_id),
        leases=tuple(Lease(**{name: lease[name] for name in LEASE_COLUMNS}) for lease in leases),
    )


def told(falcon: Falcon, job_id: str = "j1", made: Pass | None = None) -> Explanation:
    """Explain a job as a pass that only looks sees it, or by its history if it is over."""
    made = made or falcon.step(dry=True)
    job = next((each for each in made.snapshot.jobs if each.id == job_id), None)
    history = kept(falcon, job_id)
    return (
        explain(job, made.snapshot, made.plan, history)
        if job
        else explain_ended(job_id, history, falcon.clusters, falcon.bounds)
    )


def lines(falcon: Falcon, job_id: str = "j1") -> dict[str, list[str]]:
    """Return the labelled lines of the text: label -> what stands behind it."""
    found: dict[str, list[str]] = {}
    for line in text(told(falcon, job_id), {"c1": "c1"}).split("\n\n")[0].splitlines():
        label, _, words = line.partition(":")
        found.setdefault(label, []).append(words.strip())
    return found


def at(state: str, topology: str = "4x4", **columns: Any) -> Falcon:
    """Return a world whose job j1 has reached a state."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1", spec(topology), **columns)
    falcon.until_state("j1", state)
    return falcon


def new() -> Falcon:
    """A job that no pass has seen."""
    falcon = Falcon()
    falcon.submit("j1")
    return falcon


def queued() -> Falcon:
    """Two jobs wait while a third one acquires."""
    falcon = Falcon()
    for number, (job_id, actor) in enumerate((("j0", "ann"), ("j2", "bob"), ("j1", "carol"))):
        falcon.submit(job_id, spec("4x4"), actor=actor, created_at=falcon.store.now + number)
    falcon.until_state("j0", "Pending/Provisioning")
    falcon.passes(2)
    return falcon


def next_in_line() -> Falcon:
    """A job that the next pass starts."""
    return at("Pending/Waiting")


def no_type() -> Falcon:
    """No cluster has the job's type."""
    falcon = Falcon()
    falcon.submit("j1", spec("2x2x1", "v4"))
    falcon.passes(2)
    return falcon


def maintenance() -> Falcon:
    """The cluster the job waits for is under maintenance."""
    falcon = queued()
    falcon.register(cluster("c1", status=ClusterStatus.MAINTENANCE))
    falcon.passes(2)
    return falcon


def unreadable() -> Falcon:
    """The cluster the job waits for cannot be read."""
    falcon = queued()
    falcon.cut_off("c1")
    falcon.passes(2)
    return falcon


def trouble() -> Falcon:
    """The cluster lets Falcon make no pools."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=DENIED, times=None))
    falcon.submit("j1", spec("4x4"))
    falcon.passes(6)
    return falcon


def backing_off() -> Falcon:
    """A pool failed for want of machines."""
    falcon = Falcon()
    falcon.sim.gke.doom(Doom("falcon-j1", "[GCE_STOCKOUT]: no machines", condition="GCE_STOCKOUT"))
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: falcon.job("j1").pool_failures == 1)
    falcon.passes(1)
    return falcon


def busy() -> Falcon:
    """The reservation is full."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", FOUR_HOSTS, 4, in_use=4)
    falcon.submit("j1", spec("4x4", mode="reservation"))
    falcon.until_state("j1", "Pending/ClusterBusy")
    return falcon


def behind_busy() -> Falcon:
    """The reservation is full, and another one that needs it goes first."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", FOUR_HOSTS, 4, in_use=4)
    for number, job_id in enumerate(("j0", "j1")):
        falcon.submit(job_id, spec("4x4", mode="reservation"), created_at=falcon.store.now + number)
    falcon.until_state("j0", "Pending/ClusterBusy")
    falcon.passes(1)
    return falcon


def too_large() -> Falcon:
    """The reservation never has room for it."""
    falcon = Falcon(cluster("c1", default_reservation="r"))
    falcon.sim.add_reservation("p", ZONE, "r", FOUR_HOSTS, 4)
    falcon.submit("j1", spec("8x8", mode="reservation"))
    falcon.passes(2)
    return falcon


def cpu() -> Falcon:
    """A job that needs no pool waits for the next pass."""
    falcon = Falcon()
    falcon.submit("j1", CPU)
    falcon.until_state("j1", "Pending/Waiting")
    return falcon


def no_image() -> Falcon:
    """The image cannot be pulled."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_PULLS
    falcon.submit("j1", spec("2x2"))
    falcon.until_state("j1", "Pending/Dispatching")
    falcon.passes(8)
    return falcon


def limited() -> Falcon:
    """A run with a limit."""
    return at("Running", timeout_seconds=3600)


def cut_off() -> Falcon:
    """A run on a cluster that cannot be read."""
    falcon = at("Running")
    falcon.cut_off("c1")
    return falcon


def ending() -> Falcon:
    """A run that is over, whose pool is not yet given up."""
    falcon = Falcon()
    falcon.submit("j1", spec("4x4"))
    falcon.until(lambda: falcon.job("j1").outcome is not None)
    return falcon


def aborting() -> Falcon:
    """A run whose end was asked for."""
    falcon = at("Running")
    falcon.store.set_status("j1", "Aborting")
    falcon.passes(1)
    return falcon


def impossible() -> Falcon:
    """A job whose spec can never run."""
    falcon = Falcon()
    falcon.submit("j1", {**spec("4x4"), "replica": 3})
    return falcon


def moves_on() -> Falcon:
    """The cluster the job waits for goes into maintenance, another one has come."""
    falcon = queued()
    falcon.register(cluster("c1", status=ClusterStatus.MAINTENANCE))
    other = cluster("c2")
    falcon.register(other)
    falcon.sim.add_cluster(other.path)
    return falcon


def senseless() -> Falcon:
    """A row that somebody spoilt."""
    falcon = Falcon()
    falcon.submit("j1", reason="Thinking")
    return falcon


POOL_UP = "node pool falcon-j1 is RUNNING, at the latest 40m after it was asked for"
ANY_CLUSTER = "a cluster for v6e is active, readable and without trouble"
FIRST = "a pass finds it first in its queue, and able to start"
LEFT = "its work and its lease are gone; then it becomes"

CASES: dict[str, tuple[Callable[[], Falcon], str, str, tuple[str, ...]]] = {
    "new": (new, "Pending", "Queue position #1", ("the next pass has read its spec and chosen a cluster",)),
    "queued": (
        queued,
        "Pending/Waiting",
        "Queue position #2, 1 job(s) ahead (bob: j2); acquiring now: ann: j0 (Provisioning)",
        (
            "j0, which acquires in this queue, runs or gives its slot up",
            "the 1 ahead have started, or cannot start now and are passed over",
        ),
    ),
    "next": (next_in_line, "Pending/Waiting", "Creating node pool", ("the next pass takes it out of its queue",)),
    "no type": (
        no_type,
        "Pending/Waiting",
        "no cluster can take it: no cluster offers v4",
        (ANY_CLUSTER.replace("v6e", "v4"),),
    ),
    "maintenance": (maintenance, "Pending/Waiting", "no cluster can take it: c1 is maintenance", (ANY_CLUSTER,)),
    "unreadable": (unreadable, "Pending/Waiting", "no cluster can take it: c1 cannot be read", (ANY_CLUSTER,)),
    "trouble": (trouble, "Pending/Waiting", "no cluster can take it: c1 is in trouble", (ANY_CLUSTER,)),
    "back-off": (
        backing_off,
        "Pending/Waiting",
        "Queue position #1, 0 job(s) ahead; next try after 2023-11-14T22:15:00Z: [GCE_STOCKOUT]: no machines",
        ("2023-11-14T22:15:00Z comes", FIRST),
    ),
    "busy": (
        busy,
        "Pending/ClusterBusy",
        "reservation_remaining_slices=0 reservation_needed_slices=1",
        ("reservation r has room for a slice of 4x4", FIRST),
    ),
    "behind busy": (
        behind_busy,
        "Pending/Waiting",
        "Queue position #2, 1 job(s) ahead",
        (
            "reservation r has room for a slice of 4x4",
            "the 1 ahead have started, or cannot start now and are passed over",
        ),
    ),
    "too large": (
        too_large,
        "Pending/Waiting",
        "Queue position #1, 0 job(s) ahead; reservation projects/p/reservations/r has 4 vm(s) in all",
        ("the reservation of some cluster has, or is given, the machines of a whole slice of 8x8", FIRST),
    ),
    "cpu": (cpu, "Pending/Waiting", "Submitting K8s Job...", ("the next pass takes it out of its queue",)),
    "provisioning": (lambda: at("Pending/Provisioning"), "Pending/Provisioning", "Creating node pool", (POOL_UP,)),
    "nodes": (
        lambda: at("Pending/WaitingForNode"),
        "Pending/WaitingForNode",
        "node pool falcon-j1 control-plane RUNNING but 0/4",
        ("every node of node pool falcon-j1 is Ready",),
    ),
    "dispatching": (
        no_image,
        "Pending/Dispatching",
        "Node pool ready, submitting K8s Job...; 0/1 pod(s) running; falcon-j1-",
        ("every pod of K8s Job falcon-j1 runs",),
    ),
    "running": (
        limited,
        "Running",
        "Pods running (4/4 active)",
        ("K8s Job falcon-j1 ends, at the latest 2023-11-14T23:14:30Z",),
    ),
    "ending": (ending, "Running", "<none>", (f"{LEFT} Succeeded",)),
    "aborting": (aborting, "Aborting", "", (f"{LEFT} Aborted",)),
    "senseless": (
        senseless,
        "Pending/Thinking",
        "<none>",
        ("its row makes sense: status, reason and outcome as Falcon writes them",),
    ),
}


PHASES = {
    Phase.NEW: ("new",),
    Phase.WAITING: (
        "queued",
        "next",
        "no type",
        "maintenance",
        "unreadable",
        "trouble",
        "back-off",
        "busy",
        "behind busy",
        "too large",
        "cpu",
    ),
    Phase.PROVISIONING: ("provisioning",),
    Phase.WAITING_FOR_NODE: ("nodes",),
    Phase.DISPATCHING: ("dispatching",),
    Phase.RUNNING: ("running",),
    Phase.ENDING: ("ending",),
    Phase.ABORTING: ("aborting",),
    None: ("senseless",),
}
"""In which phase the job of each case is; None: its row makes no sense."""


@pytest.mark.parametrize("name", CASES)
def test_live_job(name: str) -> None:
    """Of a live job the status, plan()'s own message and everything that has to come true are told."""
    build, status, message, goes_on = CASES[name]
    falcon = build()
    found = lines(falcon)
    assert name in PHASES[phase_of(falcon.job("j1"))]
    assert ([status], True) == (found["Status"], found["Message"][0].startswith(message)), found
    first, *others = goes_on
    assert [f"when {first}", *(f"and {other}" for other in others)] == found["Goes on"]


def test_what_can_never_run() -> None:
    """Of a job that the next pass ends nothing is said to let it go on."""
    found = lines(impossible())
    assert ("Goes on" in found, found["Next pass"]) == (
        False,
        ["~ job j1: Pending -> Failed/InvalidSpec (replica is invalid)"],
    )


def test_where_it_goes() -> None:
    """A job that the next pass moves to another cluster is told which."""
    assert ["when the next pass has moved it to the queue of c2"] == lines(moves_on())["Goes on"]


def test_no_pods() -> None:
    """Of pods that are not there yet no empty table is shown."""
    falcon = at("Pending/Dispatching", "2x2")
    assert "POD " not in text(evolve(told(falcon), pods=()), {})


def test_queue_of_no_cluster() -> None:
    """A job that no cluster fits stands in no queue, and one without a TPU neither."""
    assert [["<none>"], ["c1"]] == [lines(build())["Cluster"] for build in (no_type, cpu)]


def test_what_is_there_already() -> None:
    """A job that waits for nothing any more is said to be moved on by the next pass, whatever it stood for."""
    falcon = at("Pending/WaitingForNode")
    falcon.until(lambda: "Dispatching" in str(told(falcon).becomes))
    assert ["when the next pass has moved it on"] == lines(falcon)["Goes on"]
    over = with_workload(Workload(seconds=5))
    over.until(lambda: told(over).status == "Running" and over.job("j1").outcome is None and bool(told(over).next_pass))
    assert ["when the next pass has moved it on"] == lines(over)["Goes on"]


def test_cut_off_is_noted() -> None:
    """A job that cannot be looked at is said to be left alone, and the message says why."""
    found = lines(cut_off())
    assert ["left alone: the state of its Job is unknown"] == found["Note"]
    assert "cluster c1 cannot be read, state unknown" in found["Message"][0]


@pytest.mark.parametrize("state", ["Pending/Provisioning", "Pending/Dispatching", "Running"])
def test_cut_off_goes_on_when_it_is_read(state: str) -> None:
    """Wherever a job stands on a cluster that cannot be read, it goes on no sooner than that can be."""
    falcon = at(state)
    assert "cluster c1 can be read" not in told(falcon).goes_on
    falcon.cut_off("c1")
    falcon.step()
    assert "cluster c1 can be read" == told(falcon).goes_on[-1]


def test_who_is_ahead() -> None:
    """Those ahead are told with their positions, in the order in which they will be picked."""
    explained = told(queued())
    assert ("j0", 2) == (explained.acquiring, explained.position)
    assert [(1, "bob", "j2")] == [(each.position, each.actor, each.job) for each in explained.ahead]
    assert "AHEAD   ACTOR   JOB\n#1      bob     j2" in text(explained, {})


def test_many_ahead() -> None:
    """Of a long queue the first ten are shown, and how many more there are."""
    falcon = Falcon()
    for number in range(14):
        falcon.submit(f"j{number}", created_at=falcon.store.now + number)
    falcon.until_state("j0", "Pending/Provisioning")
    falcon.passes(1)
    shown = text(told(falcon, "j13"), {})
    assert "#10     ann     j10\n... and 2 more" in shown


def test_what_was_tried() -> None:
    """Each attempt is told with its end and the cloud's words, and when the next one comes."""
    falcon = backing_off()
    shown = text(told(falcon), {"c1": "tpu-1"})
    row = ["1", "falcon-j1", "tpu-1", "on-demand", "2023-11-14T22:13:20Z", "2023-11-14T22:14:00Z", "capacity"]
    assert row == shown.splitlines()[-1].split()[:7]
    assert shown.endswith("[GCE_STOCKOUT]: no machines")
    assert ["after 2023-11-14T22:15:00Z"] == lines(falcon)["Next try"]


def test_free_pool_that_another_takes_ends_no_back_off() -> None:
    """A job that backs off is told its time where the next pass gives the pool that fits it to another."""
    later = builders.NOW + 60
    off, first = job("j1", retry_at=later), job("j2", actor="bob")
    turn = Turn("c1", "2x2", "ann", builders.NOW - 9)
    row = free("falcon-free")
    seen = snapshot(off, first, views=(view(live(row)),), pools=(row,), turns=(turn,))
    made = plan(seen)
    assert ["falcon-free"] == [each.takes for each in made.actions if isinstance(each, Change) and each.takes]
    said = explain(off, seen, made, History(now=seen.now, job=off))
    assert (later, f"{moment(later)} comes") == (said.next_try, said.goes_on[0])
    assert f"next try after {moment(later)}" in said.message
    alone = evolve(seen, jobs=(off,))
    assert explain(off, alone, plan(alone), History(now=seen.now, job=off)).next_try is None


def test_running_pods() -> None:
    """Of a running job pods, nodes and log paths are told."""
    falcon = at("Running", "2x2")
    falcon.register(cluster("c1", gcs_bucket="b"))
    made = falcon.step(dry=True)
    (job,) = made.snapshot.jobs
    pod = Pod("falcon-j1-x", "falcon-j1", phase="Running", node="node-1")
    explained = explain(job, made.snapshot, made.plan, kept(falcon, "j1"), pods=[pod])
    row = text(explained, {}).splitlines()[-1].split()
    assert ["falcon-j1-x", "Running", "node-1", "gs://b/logs/j1/falcon-j1-x.log"] == row
    unread = explain(job, made.snapshot, made.plan, kept(falcon, "j1"), pods_problem="no route")
    assert "Pods:       could not be read: no route" in text(unread, {})


def spoilt() -> Falcon:
    """A spec that can never run."""
    falcon = Falcon()
    falcon.submit("j1", "{}")
    return falcon


def refused_pool() -> Falcon:
    """A pool that can never be made."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("gke.create_node_pool", error=SimError("INVALID_ARGUMENT", "odd", 400), times=None))
    falcon.submit("j1")
    return falcon


def slow_pool() -> Falcon:
    """A pool that is not RUNNING in time."""
    falcon = Falcon()
    falcon.sim.tempo.create_seconds = 9000
    falcon.submit("j1")
    return falcon


def refused_work() -> Falcon:
    """A Job that Kubernetes refuses."""
    falcon = Falcon()
    falcon.sim.faults.add(Fault("kube.create.jobs", error=REFUSED, times=None))
    falcon.submit("j1")
    return falcon


def with_workload(does: Workload, **columns: Any) -> Falcon:
    """A job that does this."""
    falcon = Falcon()
    falcon.sim.default_workload = does
    falcon.submit("j1", **columns)
    return falcon


def aborted() -> Falcon:
    """A job that upstream ends at once."""
    falcon = Falcon()
    falcon.submit("j1")
    falcon.step()
    falcon.store.set_status("j1", "Aborting")
    return falcon


ENDS: dict[str, tuple[Callable[[], Falcon], str]] = {
    "Succeeded": (lambda: with_workload(Workload(seconds=5)), "<none>"),
    "Failed/InvalidSpec": (spoilt, "Invalid spec: image"),
    "Failed/NodePoolFailed": (refused_pool, "node pool could not be created: "),
    "Failed/NodePoolTimeout": (slow_pool, "node pool creation timed out (40m)"),
    "Failed/JobSubmitFailed": (refused_work, "K8s Job could not be submitted: "),
    "Failed/JobFailed": (lambda: with_workload(OUT_OF_MEMORY), "Pod terminated: OOMKilled (exit code 137)"),
    "Failed/Timeout": (lambda: with_workload(NEVER_ENDS, timeout_seconds=60), "Job timed out (60s)"),
    "Aborted": (aborted, "Aborted by user"),
}


@pytest.mark.parametrize("state", ENDS)
def test_ended_job(state: str) -> None:
    """Of a job that is over the end, its message and the whole story are told, and nothing to wait for."""
    build, message = ENDS[state]
    falcon = build()
    falcon.settle(seconds=20000)
    found, shown = lines(falcon), text(told(falcon), {})
    assert ([state], True) == (found["Status"], found["Message"][0].startswith(message)), found
    assert set(found) <= {"Job", "Actor", "Status", "Since", "Cluster", "Message", "Logs"}
    assert falcon.story("j1") == [line.split(" -> ")[1].split()[0] for line in shown.splitlines() if " -> " in line]


def test_every_phase_and_reason() -> None:
    """The cases above cover every phase, and every standing that contract.md 3 knows: none is without a text."""
    assert set(Phase) - {Phase.TERMINAL} == set(PHASES) - {None}
    assert set(CASES) == {name for names in PHASES.values() for name in names}
    standings = {status for _, status, *_ in CASES.values()} | set(ENDS)
    told_reasons = {reason for status, _, reason in (each.partition("/") for each in standings) if reason}
    assert set(Reason) == told_reasons - {"Thinking"}
    assert set(Status) == {each.partition("/")[0] for each in standings}
    pairs = {phase_of(row(status, reason)): f"{status}/{reason}" for status, reason in PHASE if reason}
    assert set(pairs.values()) <= standings


def row(status: str, reason: str | None, outcome: str | None = None) -> Job:
    """Return a row of an attempt that stands so."""
    columns: dict[str, Any] = {
        "attempt": 1,
        "node_pool_name": "falcon-j1",
        "cluster_id": "c1",
        "topology": "2x2",
        "outcome": outcome,
    }
    return job("j1", f"{status}/{reason}" if reason else status, **columns)


STANDING = {phase: (status, reason) for (status, reason), phase in PHASE.items() if reason != ""} | {
    Phase.RUNNING: ("Running", None)
}
BECOMES = {
    Outcome.SUCCEEDED: "Succeeded",
    Outcome.JOB_FAILED: "Failed/JobFailed",
    Outcome.JOB_SUBMIT_FAILED: "Failed/JobSubmitFailed",
    Outcome.TIMEOUT: "Failed/Timeout",
    Outcome.LOST: "Pending/Waiting",
    Outcome.YIELD: "Pending/Waiting",
}
NOTED = sorted(
    {
        (phase.value, RULES[index][1].word)
        for (phase, *_), index in TABLE.items()
        if isinstance(phase, Phase) and RULES[index][1].verb is Verb.NOTE
    }
)
"""Every outcome that the machine writes, and the phase in which it does."""


@pytest.mark.parametrize(("phase", "outcome"), NOTED)
def test_every_ending(phase: str, outcome: str) -> None:
    """Whatever outcome is written in whatever phase, explain says what the job becomes when all is released."""
    status, reason = STANDING[Phase(phase)]
    ending = row(status, reason, outcome)
    assert Phase.ENDING is phase_of(ending)
    world = snapshot(ending, views=(view(live(pool(ending)), work(ending)),), pools=(pool(ending),))
    shown = text(explain(ending, world, plan(world), History(world.now, ending)), {})
    assert ("Status:     " + (f"{status}/{reason}" if reason else status)) in shown.splitlines()
    assert f"Goes on:    when {LEFT} {BECOMES[Outcome(outcome)]}" in shown.splitlines()


def test_every_outcome_is_noted() -> None:
    """The cases of endings cover every outcome there is."""
    assert set(Outcome) == {outcome for _, outcome in NOTED} == set(BECOMES)


def test_aborting_from_everywhere() -> None:
    """Upstream's Aborting leaves the reason of before in the row: it is not shown."""
    for reason in (None, *(reason for _, reason in STANDING.values())):
        aborting = row("Aborting", reason)
        world = snapshot(aborting, views=(view(),))
        shown = text(explain(aborting, world, plan(world), History(world.now, aborting)), {}).splitlines()
        assert "Status:     Aborting" in shown
        assert f"Goes on:    when {LEFT} Aborted" in shown


def test_failures_count() -> None:
    """How many pools have failed, and how many may, is told; so are runs lost with their nodes."""
    assert ["1 of 3 pools that may fail"] == lines(backing_off())["Failures"]
    lost = evolve(row("Pending", "Waiting"), losses=1, task=task(max_retries=2))
    world = snapshot(lost, views=(view(),))
    shown = text(explain(lost, world, plan(world), History(world.now, lost)), {})
    assert "Failures:   1 runs lost with their nodes; 2 may be" in shown.splitlines()


def test_logs_of_an_ended_job() -> None:
    """Where the logs of a run stand is told after its end too; of a job that never ran there are none."""
    falcon = with_workload(Workload(seconds=5))
    falcon.register(cluster("c1", gcs_bucket="b"))
    falcon.settle()
    assert ["gs://b/logs/j1/*.log"] == lines(falcon)["Logs"]
    never = aborted()
    never.register(cluster("c1", gcs_bucket="b"))
    never.settle()
    assert "Logs" not in lines(never)


def test_deleted_row() -> None:
    """Of a job whose row upstream deleted the end and the story are still told."""
    falcon = with_workload(Workload(seconds=5))
    falcon.settle()
    falcon.store.delete_row("j1")
    found = lines(falcon)
    assert (["Succeeded"], ["the row of this job was deleted"]) == (found["Status"], found["Note"])


WAITS = {("Pending", None), ("Pending", "Waiting"), ("Pending", "ClusterBusy")}
TOPOLOGIES = ("2x2", "4x4", "2x4")
MODES = ("on-demand", "on-demand", "flex-start", "reservation", "")


def random_queues(seed: int) -> Falcon:
    """Return a world after a while: clusters, queues, actors, priorities, pools that fail, a reservation."""
    chance = random.Random(seed)
    falcon = Falcon(cluster("c1", default_reservation="r"), cluster("c2"))
    falcon.sim.add_reservation("p", ZONE, "r", FOUR_HOSTS, chance.choice((0, 1, 4)))
    falcon.sim.default_workload = Workload(seconds=chance.choice((20, 300)))
    if chance.random() < 0.4:
        falcon.sim.gke.doom(Doom(message="[GCE_STOCKOUT]: no machines", condition="GCE_STOCKOUT"), times=2)
    for number in range(chance.randrange(2, 12)):
        task = spec(chance.choice(TOPOLOGIES), mode=chance.choice(MODES))
        actor, priority = chance.choice(("ann", "bob", "carol")), chance.choice((0, 0, 5))
        falcon.submit(f"j{number}", task, actor=actor, priority=priority, created_at=falcon.store.now + number)
    falcon.passes(chance.randrange(16))
    if chance.random() < 0.2:
        falcon.register(cluster("c2", status=ClusterStatus.MAINTENANCE))
    return falcon


@pytest.mark.parametrize("block", range(10))
def test_random_queues(block: int) -> None:
    """In 200 random queues the next pass leaves every waiting job where explain said, with its message (P108)."""
    explained_jobs = 0
    for seed in range(block * 20, block * 20 + 20):
        falcon = random_queues(seed)
        looked = falcon.step(dry=True)
        said = [told(falcon, job.id, looked) for job in falcon.rows() if (job.status, job.reason) in WAITS]
        falcon.step()
        for each in said:
            agrees(each, falcon)
        explained_jobs += len(said)
    assert explained_jobs > 20


def agrees(said: Explanation, falcon: Falcon) -> None:
    """Hold an explanation against the world after the next pass."""
    row = falcon.job(said.job)
    assert (said.becomes, said.message) == (falcon.state(row.id), row.message)
    assert (falcon.state(row.id) == "Pending/Provisioning") == (
        "the next pass takes it out of its queue" in said.goes_on
    )
    stays = said.cluster == row.cluster_id and row.reason in ("Waiting", "ClusterBusy")
    if stays and said.acquiring:
        assert falcon.holder(row.topology or "", row.cluster_id or "") in (said.acquiring, None)
    if stays and "reservation has" not in said.message:
        assert ("next try after" in said.message) == (said.next_try is not None), said
    if stays and "Queue position" in said.message:
        assert f"Queue position #{said.position}, {len(said.ahead)} job(s) ahead" in said.message
