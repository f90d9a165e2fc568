"""
Worlds that nobody thought of: whole snapshots, most of them such as passes meet, some that no pass should ever leave.

1. Everything is drawn job by job, so that rows and clouds are about each other; then comes what belongs to nobody.
2. Times are drawn around the bounds that decide.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from attrs import evolve
from builders import EN, NOW, ZONE, cluster, job, labels, pool, task, work
from hypothesis import strategies as st

from falcon_rm.core import names
from falcon_rm.core.live import (
    Condition,
    ContainerState,
    KubeEvent,
    LivePool,
    LiveWork,
    Operation,
    Pod,
    Reservation,
)
from falcon_rm.core.model import (
    Cluster,
    ClusterView,
    Failure,
    Fault,
    InvalidSpec,
    Job,
    Pool,
    Slot,
    Snapshot,
    Submission,
    TaskSpec,
    Turn,
)
from falcon_rm.core.room import reservation_path
from falcon_rm.core.scene import ACQUIRING, phase_of, work_name
from falcon_rm.core.words import CPU_TOPOLOGY, ClusterStatus, ErrorKind, Mode, Outcome, PoolState, PoolStatus

T = TypeVar("T")

AGO = st.sampled_from([0.0, 1.0, 59.0, 61.0, 121.0, 599.0, 601.0, 901.0, 1801.0, 2401.0, 21601.0, -60.0])
TIME = AGO.map(lambda seconds: NOW - seconds)
PERHAPS = st.none() | TIME
TEXTS = st.sampled_from(
    [
        "",
        "GCE_STOCKOUT: no more v6e",
        "Reservation does not have enough resources for the request",
        "quota 'TPUS_PER_PROJECT' exceeded",
        'Required "container.nodePools.create" permission(s)',
        "reservation r not found",
        "something nobody has seen",
        "many\nlines\tand \x00 half \ud800",
        "长" * 3000,
    ]
)
FAULTS = st.none() | st.builds(Fault, st.sampled_from(ErrorKind), TEXTS, TIME)
TASKS: st.SearchStrategy[TaskSpec | InvalidSpec] = st.sampled_from(
    [
        task(),
        task(mode=None),
        task(mode=Mode.FLEX_START, max_retries=1),
        task(mode=Mode.RESERVATION),
        task("4x4", max_retries=2),
        task("4x4", mode=None, exp_id="e", owner="Ann B."),
        task("2x4", machine="ct6e-standard-4t"),
        task("2x4", machine="ct6e-standard-8t", unknown_fields=("x",)),
        task("2x2x2", "v7x", mode=None),
        task("2x2x1", "v7x", mode=Mode.RESERVATION),
        task("2x2x1", "v4"),
        task(CPU_TOPOLOGY),
        InvalidSpec("image", "", "a name"),
    ]
)
IDS = ("j1", "j-2", "J3", "ünï", "a" * 64, "habcdefghijklm", "j7", "j8")
ACTORS = st.sampled_from(["ann", "bob", "carol"])
STATES = st.sampled_from(
    [
        ("Pending", None),
        ("Pending", "Waiting"),
        ("Pending", "Waiting"),
        ("Pending", "ClusterBusy"),
        ("Pending", "Provisioning"),
        ("Pending", "Provisioning"),
        ("Pending", "WaitingForNode"),
        ("Pending", "Dispatching"),
        ("Running", None),
        ("Running", None),
        ("Aborting", None),
        ("Aborting", "Provisioning"),
        ("Succeeded", None),
        ("Weird", None),
    ]
)
CONDITIONS = st.sampled_from(
    [
        {},
        {},
        {},
        {"Complete": Condition(status=True)},
        {"Complete": Condition(status=False)},
        {"SuccessCriteriaMet": Condition(status=True), "Complete": Condition(status=True)},
        {"FailureTarget": Condition(status=True, reason="PodFailurePolicy")},
        {"Failed": Condition(status=True, reason="PodFailurePolicy", message="a node went")},
        {"Failed": Condition(status=True, reason="BackoffLimitExceeded", message="Job has reached the limit")},
    ]
)
PODS = (
    Pod("", "", phase="Running", node="n"),
    Pod("", "", phase="Running", node="n"),
    Pod("", "", phase="Succeeded", node="n"),
    Pod("", "", phase="Running", node="n", deleting=True, disrupted="EvictionByEvictionAPI"),
    Pod("", "", unschedulable="0/4 nodes are available"),
    Pod("", ""),
    Pod("", "", node="n", containers=(ContainerState("task", "waiting", "ImagePullBackOff", "长" * 2000),)),
    Pod("", "", node="n", containers=(ContainerState("fuse", "terminated", "StartError", "", 128, init=True),)),
    Pod("", "", node="n", containers=(ContainerState("task", "waiting", "PodInitializing"),)),
    Pod("", "", phase="Failed", reason="UnexpectedAdmissionError", message="no\nchips"),
    Pod(
        "",
        "",
        phase="Failed",
        containers=(ContainerState("task", "terminated", "Error", "x", 1, "2026-01-01T00:01:00Z"),),
    ),
    Pod(
        "",
        "",
        phase="Failed",
        containers=(ContainerState("task", "terminated", "OOMKilled", "", 137, "2026-01-01T00:01:00Z"),),
    ),
    Pod("", "", phase="Failed", containers=(ContainerState("task", "terminated", "Error", "", 143),)),
)
SOME_PODS = st.lists(st.sampled_from(PODS), max_size=4)
CLUSTERS = (
    cluster("c1"),
    cluster("c2", default_reservation="r"),
    cluster("c3", default_reservation="projects/p/reservations/r"),
    cluster("c4", "v7x", default_reservation="r7"),
)
CLUSTER_IDS = st.sampled_from([*(row.id for row in CLUSTERS), "c1", "c1", "c2"])


SERVED = st.sets(st.tuples(CLUSTER_IDS, st.sampled_from(["2x2", "4x4"]), ACTORS), max_size=3)
ENDS = st.sampled_from(["capacity", "quota", "full", "nodes", "broken", "cluster", "lost"])
FAILURE = st.builds(Failure, st.sampled_from(IDS), CLUSTER_IDS, ENDS, TIME, TEXTS)
FAILURES = st.lists(FAILURE, max_size=3)
TROUBLES = st.lists(FAILURE, max_size=1)
SOME_IDS = st.lists(st.sampled_from(IDS), unique=True, max_size=6)
SHAPED = TASKS.filter(lambda asked: isinstance(asked, TaskSpec) and asked.shape is not None)


@cache
def below(count: int) -> st.SearchStrategy[int]:
    """Return the numbers from 0 on, that many; made once, since making strategies is what takes time."""
    return st.integers(0, count - 1)


def pick(draw: st.DrawFn, values: Sequence[T]) -> T:
    """Draw one of some values, the first ones being the simplest."""
    return values[draw(below(len(values)))]


def rarely(draw: st.DrawFn, times: int) -> bool:
    """Draw True once in so many times."""
    return draw(below(times)) == times - 1


def jobs(draw: st.DrawFn, job_id: str) -> Job:
    """Draw a row of `job`: mostly one that its state explains, sometimes with a field of another story."""
    asked, (status, reason) = draw(TASKS), draw(STATES)
    outcome = pick(draw, tuple(Outcome)) if status in ("Running", "Pending") and rarely(draw, 4) else None
    row = job(job_id, f"{status}/{reason}" if reason else status, asked, outcome=outcome)
    if row.cluster_id is None and not (status == "Pending" and reason is None):
        row = evolve(row, topology=asked.topology if isinstance(asked, TaskSpec) else None)
    columns: dict[str, Any] = {
        "actor": draw(ACTORS),
        "created_at": draw(TIME),
        "priority": pick(draw, [0, 0, 5]),
        "version": draw(below(4)),
        "pool_failures": draw(below(3)),
        "losses": draw(below(2)),
        "timeout_seconds": pick(draw, [None, 60, 3600]),
        "retry_at": draw(st.none() | PERHAPS),
        "message": pick(draw, [None, "", "old"]),
    }
    if row.cluster_id is not None:
        columns["cluster_id"] = draw(CLUSTER_IDS)
        columns["attempt"] = attempt = max(row.attempt, draw(below(3)))
        if row.node_pool_name and not rarely(draw, 6):
            columns["node_pool_name"] = names.cloud_name(job_id, max(attempt, 1))
        columns |= {"provisioning_at": draw(PERHAPS), "reason_since": draw(PERHAPS)}
        if phase_of(row) in ACQUIRING or status == "Aborting":
            columns |= {"dispatched_at": draw(PERHAPS), "job_uid": pick(draw, [None, None, f"uid-{job_id}"])}
    return evolve(row, **columns)


def ledger_rows(draw: st.DrawFn, of: Job) -> Pool:
    """Draw the ledger row of the pool that a job names: mostly leased to it."""
    holder = pick(draw, [of.id] * 9 + [None, None, "j1", "missing", "ended"])
    state = PoolState.ACTIVE if holder else pick(draw, tuple(PoolState))
    stages = draw(below(5))
    first = draw(AGO)
    columns: dict[str, Any] = {
        name: NOW - first if index < stages else None
        for index, name in enumerate(("requested_at", "seen_at", "up_at", "ready_at"))
    }
    row = pool(of, lease=holder, leased_at=draw(TIME), idle_at=None if holder else draw(TIME), state=state, **columns)
    mode = pick(draw, [row.mode, row.mode, *Mode])
    reservation = pick(draw, ["projects/p/reservations/r", None]) if mode is Mode.RESERVATION else None
    return evolve(row, mode=mode, reservation=reservation, error=draw(FAULTS), found=rarely(draw, 10))


def listed(draw: st.DrawFn, of: Pool) -> LivePool:
    """Draw the pool of a ledger row as GKE shows it: of every status, sometimes not ours."""
    instance = pick(draw, ["i", "i", "i", "i", "another"])
    return LivePool(
        name=of.name,
        status=pick(draw, [PoolStatus.RUNNING] * 6 + [*PoolStatus]),
        labels=labels(of.cluster_id, of.job_id, of.attempt, instance),
        machine_type=of.machine_type,
        topology=of.topology if of.hosts > 1 else "",
        hosts=of.hosts,
        mode=of.mode,
        reservation=of.reservation,
        errors=pick(draw, [(), (), ("GCE_STOCKOUT",), ("odd", "words")]),
    )


def works(draw: st.DrawFn, of: Job) -> tuple[LiveWork, tuple[Pod, ...]]:
    """Draw a Kubernetes Job of some attempt and its pods."""
    attempt = pick(draw, [of.attempt, of.attempt, of.attempt, of.attempt + 1, 1])
    hosts = of.task.hosts if isinstance(of.task, TaskSpec) else 1
    counts: dict[str, Any] = pick(
        draw, [{}, {}, {"active": 0, "ready": 0}, {"ready": 0}, {"succeeded": 1, "active": 0}]
    )
    uid = pick(draw, [f"uid-{of.id}", f"uid-{of.id}", "other"])
    made = work(
        evolve(of, attempt=max(attempt, 1)),
        draw(CONDITIONS),
        uid=uid,
        deleting=rarely(draw, 5),
        suspended=rarely(draw, 5),
    )
    kinds = draw(SOME_PODS)[:hosts]
    pods = [evolve(kind, name=f"{made.name}-{index}", work=made.name) for index, kind in enumerate(kinds)]
    return evolve(made, **counts), tuple(pods)


def views(draw: st.DrawFn, of: Cluster, rows: list[Job], ledger: list[Pool], room: Reservation) -> ClusterView:
    """Draw what a pass read of a cluster: all, nothing, or a part; often not the pods of a Job."""
    of = evolve(of, status=pick(draw, [ClusterStatus.ACTIVE] * 7 + [*ClusterStatus]))
    pools = [
        listed(draw, row) for row in ledger if row.cluster_id == of.id and rarely(draw, 6) == (row.seen_at is None)
    ]
    drawn = [works(draw, row) for row in rows if row.cluster_id == of.id and row.attempt and not rarely(draw, 3)]
    made = {each.name: (each, pods) for each, pods in drawn}
    looked = frozenset(name for name in made if not rarely(draw, 4))
    operations = [
        Operation(
            name=f"op-{row.name}-{draw(below(2))}",
            target=f"{of.path}/nodePools/{row.name}",
            done=rarely(draw, 2),
            started=pick(draw, ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"]),
            error=draw(st.none() | TEXTS),
        )
        for row in ledger
        if row.cluster_id == of.id and rarely(draw, 3)
    ]
    whole = ClusterView(
        cluster=of,
        zone=pick(draw, [ZONE] * 9 + [None]),
        pools=tuple(pools),
        operations=tuple({operation.name: operation for operation in operations}.values()),
        works=tuple(each for each, _ in made.values()),
        looked_at=looked,
        pods=tuple(each for name in made for each in made[name][1] if name in looked),
        events=tuple(events(draw, name) for name in sorted(looked)),
        ready_nodes={
            each.name: each.hosts - draw(below(each.hosts + 1)) * rarely(draw, 3)
            for each in pools
            if not rarely(draw, 6)
        },
        reservation=pick(draw, [room, room, None]) if reservation_path(of) == room.path else None,
    )
    cut: dict[str, Any] = pick(draw, [{}] * 9 + [{"pods": None}, {"works": None}, {"pools": None, "works": None}])
    if rarely(draw, 9):
        cut["events"] = None
    problem = "no answer" if cut else pick(draw, [None] * 9 + ["no zone"])
    return evolve(whole, problem=problem, health=pick(draw, [problem, None]), **cut)


def events(draw: st.DrawFn, name: str) -> KubeEvent:
    """Draw a Warning about a Job or its first pod."""
    return KubeEvent(
        pick(draw, [name, f"{name}-0"]), pick(draw, ["FailedMount", "FailedCreate", "BackOff"]), draw(TEXTS)
    )


def slots(draw: st.DrawFn, rows: list[Job]) -> tuple[Slot, ...]:
    """Draw the slots: mostly held by the job that acquires there, else free, stale, or not there yet."""
    found: dict[tuple[str, str], Slot] = {}
    for row in rows:
        if not row.cluster_id or not row.topology or row.topology == CPU_TOPOLOGY or rarely(draw, 7):
            continue
        key = (row.cluster_id, row.topology)
        acquires = phase_of(row) in ACQUIRING
        holder = pick(draw, [row.id if acquires else None] * 5 + ["missing", "j1"])
        if key not in found or acquires:
            found[key] = Slot(*key, holder, NOW - 50 if holder else None)
    return tuple(found.values())


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw a whole snapshot."""
    ids = draw(SOME_IDS)
    rows = [jobs(draw, job_id) for job_id in ids]
    shaped = [row for row in rows if isinstance(row.task, TaskSpec) and row.task.shape]
    ledger = {
        (row.cluster_id, row.name): row
        for of in shaped
        if of.node_pool_name and not rarely(draw, 8)
        for row in [ledger_rows(draw, of)]
    }
    for index in range(draw(below(5))):
        made_for = job(f"old{index}", "Pending/Provisioning", draw(SHAPED), cluster_id=draw(CLUSTER_IDS))
        extra = ledger_rows(draw, made_for)
        ledger[extra.cluster_id, extra.name] = extra
    used = draw(below(10))
    room = Reservation("projects/p/reservations/r", rarely(draw, 2) or True, "vm", 8, used)
    listable = [*ledger.values(), *(unknown_pools(draw, index) for index in range(draw(below(3))))]
    return Snapshot(
        now=NOW,
        instance="i",
        bounds=evolve(EN, language=pick(draw, ["zh", "en"])),
        jobs=tuple(rows),
        views=tuple(views(draw, each, rows, listable, room) for each in CLUSTERS if not rarely(draw, 10)),
        pools=tuple(ledger.values()),
        submissions=tuple(submissions(draw, row) for row in rows if row.attempt and not rarely(draw, 2)),
        slots=slots(draw, rows),
        turns=tuple(Turn(*key, draw(TIME)) for key in sorted(draw(SERVED))),
        failures=tuple(draw(FAILURES)),
        troubles=tuple(draw(TROUBLES)),
        later=pick(draw, [{}, {"ended": "Failed"}, {"ended": "Succeeded", "missing": "Running"}, None]),
    )


def unknown_pools(draw: st.DrawFn, index: int) -> Pool:
    """Draw a pool that GKE lists and no ledger row knows."""
    return pool(job(f"lost{index}", work=draw(SHAPED), cluster_id=draw(CLUSTER_IDS)))


def submissions(draw: st.DrawFn, of: Job) -> Submission:
    """Draw what the ledger keeps of a job's Kubernetes Job."""
    resumed_at, stop_at = pick(draw, [None, NOW - 900]), pick(draw, [None, None, NOW - 10, NOW - 1000])
    return Submission(
        of.cluster_id or "", work_name(of), of.id, of.attempt, NOW - 1000, resumed_at, stop_at, draw(FAULTS)
    )
