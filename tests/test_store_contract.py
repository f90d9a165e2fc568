"""What every store promises, asked of the one in memory and of the one on each real server."""

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve
from database_servers import servers
from history import START, Audit, Event, Lease
from memory_store import MemoryStore
from mysql_store import SteeredStore

from falcon_rm.cloud.rows import BACKS_OFF, FAILURES_KEPT
from falcon_rm.core.actions import (
    NOW,
    Change,
    CreatePool,
    EndLease,
    EnsureSlot,
    EnterPool,
    FreeSlot,
    GiveUp,
    MarkPool,
    Note,
    RecordHealth,
    ResumeWork,
    RetirePool,
    SubmitWork,
)
from falcon_rm.core.model import Cluster, Failure, Fault, InvalidSpec, Pool, Slot, Submission, TaskSpec, Turn
from falcon_rm.core.names import label_value
from falcon_rm.core.words import ClusterStatus, ErrorKind, Mode, PoolState, Status

Store = MemoryStore | SteeredStore

SPEC: dict[str, object] = {"image": "busybox", "device_type": "cpu"}
CLUSTER = Cluster("c1", "alpha", "project-1", "us-central1", "v7x", gcs_bucket="b", zone="us-central1-a", endpoint="ip")
POOL = Pool("c1", "falcon-j1", "j1", 1, "v7x", "2x2x1", "tpu7x-standard-4t", 1, 4, Mode.ON_DEMAND)
PENDING, WAITING = Status.PENDING, "Waiting"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask every question of the store in memory and of each server."""
    if "store" in metafunc.fixturenames:
        metafunc.parametrize("database_server", ["memory", *servers()], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, database_server: str) -> Iterator[Store]:
    """A fresh store of either kind, its clock at START."""
    if database_server == "memory":
        yield MemoryStore()
        return
    steered = SteeredStore.under(request.getfixturevalue("roles"))
    yield steered
    steered.close_all()


def claim(job_id: str = "j1", version: int = 0, *, pool: Pool | None = POOL, **more: Any) -> Change:
    """Return the claim of a free slot, with a pool to be made."""
    fields: dict[str, Any] = {
        "cluster_id": "c1",
        "topology": "2x2x1",
        "takes_slot": "ann",
        "makes": pool,
        "attempt": 1,
        "exp_id": "exp",
        "owner": "own",
        "columns": {"attempt": 1, "node_pool_name": f"falcon-{job_id}", "provisioning_at": NOW},
        **more,
    }
    return Change(job_id, version, PENDING, WAITING, PENDING, "Provisioning", "picked", **fields)


def claimed(store: Store) -> None:
    """Bring j1 to Provisioning, with slot and pool."""
    store.insert_job("j1", SPEC, reason=WAITING, cluster_id="c1", topology="2x2x1")
    store.ensure_slot(EnsureSlot("c1", "2x2x1"))
    assert store.commit(claim())


def test_attempt_whose_name_was_borne_before_is_passed_over(store: Store) -> None:
    """A row that was deleted and inserted anew finds its old name taken: nothing is claimed, the next one is next."""
    claimed(store)
    store.delete_row("j1")
    store.insert_job("j1", SPEC, reason=WAITING, cluster_id="c1", topology="2x2x1")
    assert store.commit(claim()) is False
    row = store.row("j1")
    assert (1, 1, "Waiting") == (row.attempt, row.version, row.reason)


def test_attempt_whose_name_a_found_pool_bore_is_passed_over(store: Store) -> None:
    """The row of a pool that was found has of a job's id what a label can spell: that is the job too."""
    store.enter_pool(EnterPool(evolve(POOL, job_id=label_value("J 1"))))
    store.insert_job("J 1", SPEC, reason=WAITING, cluster_id="c1", topology="2x2x1")
    store.ensure_slot(EnsureSlot("c1", "2x2x1"))
    assert store.commit(claim("J 1")) is False
    row = store.row("J 1")
    assert (1, 1, "Waiting") == (row.attempt, row.version, row.reason)


def give_back(ended: str = "capacity", *, keep: bool = False, version: int = 1, **more: Any) -> Change:
    """Return the way of j1 back to Waiting."""
    fields: dict[str, Any] = {
        "cluster_id": "c1",
        "topology": "2x2x1",
        "frees_slot": True,
        "gives_up": GiveUp("falcon-j1", keep, ended, (ErrorKind.CAPACITY, "no more")),
        **more,
    }
    return Change("j1", version, PENDING, "Provisioning", PENDING, WAITING, "failed", **fields)


def create(pool: Pool = POOL, job_id: str = "j1") -> CreatePool:
    """Return the call that makes a pool."""
    return CreatePool(CLUSTER, "us-central1-a", pool, job_id, {}, {}, 600)


def submit(version: int = 1, status: str = PENDING, *, dispatched: bool = True) -> SubmitWork:
    """Return the call that submits j1's Job."""
    return SubmitWork(CLUSTER, "j1", version, status, 1, "falcon-j1", {}, None, dispatched)


def ledger(store: Store) -> tuple[Pool, ...]:
    """Return j1's ledger row, whatever its state."""
    return store.pools_named("c1", ["falcon-j1"])


# Reading.


def test_reads_live_rows_whole(store: Store) -> None:
    """Each live row comes back with its columns and its spec parsed, in the order of ids."""
    columns: dict[str, Any] = {
        "name": "n", "priority": 7, "timeout_seconds": 60, "artifact_path": "a/b", "reason": "Waiting",
        "message": "队列", "cluster_id": "c1", "topology": "2x2x1", "node_pool_name": "p", "job_uid": "u",
        "supply_mode": "on-demand", "attempt": 3, "pool_failures": 1, "losses": 2, "outcome": "Lost",
        "retry_at": START + 1.25, "queued_at": START + 2, "provisioning_at": START + 3,
        "dispatched_at": START + 4, "started_at": START + 5,
        "finished_at": START + 6, "aborted_at": START + 7, "version": 9,
    }  # fmt: skip
    store.insert_job("j2", SPEC, actor="bob")
    store.insert_job("j1", SPEC, **columns)
    first, second = store.read().jobs
    assert columns == {name: getattr(first, name) for name in columns}
    assert ("j1", "ann", "Pending", START, True) == (
        first.id, first.actor, first.status, first.created_at, isinstance(first.task, TaskSpec)
    )  # fmt: skip
    assert ("j2", "bob", 0, None, None) == (second.id, second.actor, second.version, second.reason, second.cluster_id)


@pytest.mark.parametrize("status", [*Status, "Nonsense"])
def test_reads_what_is_not_terminal(store: Store, status: str) -> None:
    """A status that nobody knows is read like a live one; only terminal rows are left out."""
    store.insert_job("j1", SPEC, status=status)
    terminal = {"Succeeded", "Failed", "Aborted"}
    assert (() if status in terminal else (status,)) == tuple(job.status for job in store.read().jobs)


@pytest.mark.parametrize("spec", ["not json", "[]", "{}", '{"image": 3}', "null", ""])
def test_a_bad_spec_is_a_value(store: Store, spec: str) -> None:
    """A row whose spec can never run is read beside all others (P98)."""
    store.insert_job("j1", spec)
    store.insert_job("j2", SPEC)
    bad, good = store.read().jobs
    assert (InvalidSpec, TaskSpec) == (type(bad.task), type(good.task))


def test_reads_an_empty_database(store: Store) -> None:
    """With nothing in the tables there is a time and an instance id, the same each time."""
    rows = store.read()
    assert (START, (), (), {}, (), (), (), (), (), ()) == (
        rows.now, rows.jobs, rows.clusters, rows.health, rows.pools, rows.submissions, rows.slots, rows.turns,
        rows.failures, rows.troubles,
    )  # fmt: skip
    assert (True, rows.instance) == (rows.instance.isalnum(), store.read().instance)


def test_reads_clusters_and_health(store: Store) -> None:
    """Clusters come by name with all their columns, and beside them what was known last."""
    other = evolve(CLUSTER, id="c2", name="Alpha", status=ClusterStatus.MAINTENANCE, zone=None, endpoint=None)
    store.add_cluster(CLUSTER)
    store.add_cluster(other)
    assert store.record_health(RecordHealth("c1", "gone\nfor good", "us-central1-a"))
    assert store.record_health(RecordHealth("c2", "x", None))
    assert store.record_health(RecordHealth("c2", None, "us-central1-b"))
    rows = store.read()
    assert (other, CLUSTER) == rows.clusters
    assert {"c1": ("gone for good", "us-central1-a"), "c2": (None, "us-central1-b")} == rows.health


def test_statuses_of_rows_that_exist(store: Store) -> None:
    """Ids that have no row are missing from the answer; terminal rows are in it."""
    store.insert_job("j1", SPEC)
    store.insert_job("j2", SPEC, status="Failed")
    assert {"j1": "Pending", "j2": "Failed"} == store.statuses({"j1", "j2", "j3"})
    assert {} == store.statuses(())


def test_keys_that_differ_in_case_are_two(store: Store) -> None:
    """Ids, queues and actors are compared byte by byte (P97)."""
    for job_id, actor, cluster in (("j1", "ann", "c1"), ("J1", "Ann", "C1")):
        store.insert_job(job_id, SPEC, actor=actor, reason=WAITING, cluster_id=cluster, topology="2x2x1")
        store.ensure_slot(EnsureSlot(cluster, "2x2x1"))
        pool = evolve(POOL, cluster_id=cluster, name=f"falcon-{job_id}")
        assert store.commit(claim(job_id, pool=pool, cluster_id=cluster, takes_slot=actor))
    rows = store.read()
    assert {("c1", "j1"), ("C1", "J1")} == {(slot.cluster_id, slot.holder) for slot in rows.slots}
    assert {("c1", "ann"), ("C1", "Ann")} == {(turn.cluster_id, turn.actor) for turn in rows.turns}
    assert {"j1": "Pending", "J1": "Pending"} == store.statuses(["j1", "J1"])


# A Change.


def test_a_claim_writes_everything(store: Store) -> None:
    """A claim writes row, slot, turn, ledger, lease, event and audit together."""
    claimed(store)
    rows = store.read()
    (job,) = rows.jobs
    assert ("Pending", "Provisioning", 1, 1, "falcon-j1", START) == (
        job.status, job.reason, job.version, job.attempt, job.node_pool_name, job.provisioning_at
    )  # fmt: skip
    assert (Slot("c1", "2x2x1", "j1", START),) == rows.slots
    assert (Turn("c1", "2x2x1", "ann", START),) == rows.turns
    assert (evolve(POOL, lease="j1", leased_at=START),) == rows.pools
    assert (Lease("c1", "falcon-j1", "j1", 1, "ann", "exp", "own", "on-demand", None, START),) == store.lease_rows()
    event = Event(
        "j1", START, "Pending", "Waiting", "Pending", "Provisioning", "picked", None, "c1", "falcon-j1", 1
    )  # fmt: skip
    assert (event,) == store.event_rows()
    assert (Audit(START, "pool created", "pool/c1/falcon-j1", "for j1, attempt 1"),) == store.audit_rows()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda store: store.edit_job("j2", version=5),
        lambda store: store.set_status("j2", "Aborting"),
        lambda store: store.delete_row("j2"),
        lambda store: store.commit(claim(pool=None)),
        lambda store: store.enter_pool(EnterPool(POOL)),
    ],
    ids=["version", "status", "deleted", "slot taken", "name taken"],
)
def test_a_lost_claim_changes_nothing(store: Store, spoil: Any) -> None:
    """Version, status, row, slot and pool name must all be as they were read (P85, P88, P89)."""
    for job_id in ("j1", "j2"):
        store.insert_job(job_id, SPEC, reason=WAITING, cluster_id="c1", topology="2x2x1")
    store.ensure_slot(EnsureSlot("c1", "2x2x1"))
    spoil(store)
    before = (store.read(), store.lease_rows(), store.event_rows(), store.audit_rows())
    assert not store.commit(claim("j2", pool=POOL))
    assert before == (store.read(), store.lease_rows(), store.event_rows(), store.audit_rows())


def test_a_claim_needs_the_slot_row(store: Store) -> None:
    """A slot that is not there is not free (P89)."""
    store.insert_job("j1", SPEC, reason=WAITING, cluster_id="c1", topology="2x2x1")
    assert not store.commit(claim())
    assert ((), (), 0) == (store.read().slots, store.read().pools, store.row("j1").version)


def test_an_abort_is_never_overwritten(store: Store) -> None:
    """Upstream's Aborting leaves the version alone, and still stands (P85)."""
    claimed(store)
    store.set_status("j1", "Aborting")
    running = Change("j1", 1, PENDING, "Provisioning", "Running", None, "runs", columns={"started_at": NOW})
    assert not store.commit(running)
    assert ("Aborting", 1, START, None) == (
        store.row("j1").status, store.row("j1").version, store.row("j1").aborting_at, store.row("j1").started_at
    )  # fmt: skip


def test_giving_up_a_broken_pool(store: Store) -> None:
    """Slot, lease and pool go together; the ledger and the history keep why."""
    claimed(store)
    store.now = START + 60
    assert store.commit(give_back(columns={"retry_at": START + 120.5, "node_pool_name": None, "pool_failures": 1}))
    rows = store.read()
    (job,) = rows.jobs
    assert (2, WAITING, START + 120.5, None, 1) == (
        job.version, job.reason, job.retry_at, job.node_pool_name, job.pool_failures
    )  # fmt: skip
    assert (Slot("c1", "2x2x1"),) == rows.slots
    fault = Fault(ErrorKind.CAPACITY, "no more", START + 60)
    assert (evolve(POOL, state=PoolState.DELETING, idle_at=START + 60, error=fault),) == rows.pools
    (lease,) = store.lease_rows()
    assert (START, START + 60, "capacity", "no more") == (lease.from_at, lease.until_at, lease.ended, lease.ended_text)
    assert (Failure("j1", "c1", "capacity", START + 60, "no more"),) == rows.failures
    assert ("Provisioning", WAITING, "falcon-j1") == (
        store.event_rows()[1].from_reason, store.event_rows()[1].to_reason, store.event_rows()[1].pool
    )  # fmt: skip


def test_a_released_pool_stays_free_and_is_taken(store: Store) -> None:
    """A kept pool keeps the job it was made for; its next holder has a lease of its own."""
    claimed(store)
    assert store.commit(give_back("released", keep=True, gives_up=GiveUp("falcon-j1", True, "released")))
    store.insert_job("j2", SPEC, actor="bob", reason=WAITING, cluster_id="c1", topology="2x2x1")
    store.now = START + 5
    take = claim("j2", pool=None, takes="falcon-j1", takes_slot="bob", attempt=4, exp_id="", owner="")
    assert store.commit(take)
    assert (evolve(POOL, lease="j2", leased_at=START + 5),) == ledger(store)
    first, second = store.lease_rows()
    assert ("j1", START, "released") == (first.job_id, first.until_at, first.ended)
    assert Lease("c1", "falcon-j1", "j2", 4, "bob", "", "", "on-demand", None, START + 5) == second
    assert () == store.read().failures


@pytest.mark.parametrize("state", ["leased", "Deleting", "found", "missing"])
def test_only_a_free_pool_is_taken(store: Store, state: str) -> None:
    """A pool that is leased, going, found or not there is nobody's to take."""
    store.insert_job("j2", SPEC, reason=WAITING, cluster_id="c1", topology="2x2x1")
    if state == "leased":
        claimed(store)
        store.commit(give_back(gives_up=None))
    elif state != "missing":
        store.enter_pool(EnterPool(evolve(POOL, found=state == "found")))
        store.ensure_slot(EnsureSlot("c1", "2x2x1"))
    if state == "Deleting":
        store.retire_pool(RetirePool("c1", "falcon-j1", PoolState.ACTIVE, PoolState.DELETING, "nobody"))
    before = (store.read(), store.lease_rows())
    assert not store.commit(claim("j2", pool=None, takes="falcon-j1"))
    assert before == (store.read(), store.lease_rows())


def test_taking_a_better_pool_gives_up_ones_own(store: Store) -> None:
    """One transaction ends a lease and begins another; the slot stays."""
    claimed(store)
    better = evolve(POOL, name="falcon-j0", job_id="j0")
    store.enter_pool(EnterPool(better))
    change = Change(
        "j1", 1, PENDING, "Provisioning", PENDING, "Provisioning", "further along", cluster_id="c1", topology="2x2x1",
        takes="falcon-j0", gives_up=GiveUp("falcon-j1", False, "better"), columns={"node_pool_name": "falcon-j0"},
        attempt=1,
    )  # fmt: skip
    assert store.commit(change)
    old, new = sorted(store.read().pools, key=lambda pool: pool.job_id, reverse=True)
    assert ((None, PoolState.DELETING), ("j1", PoolState.ACTIVE)) == ((old.lease, old.state), (new.lease, new.state))
    assert [("falcon-j1", "better"), ("falcon-j0", None)] == [(lease.pool, lease.ended) for lease in store.lease_rows()]
    assert ("j1", 1) == (store.read().slots[0].holder, len(store.event_rows()))


def test_a_lease_of_another_is_not_given_up(store: Store) -> None:
    """Giving up what one does not hold loses the whole Change."""
    claimed(store)
    assert not store.commit(give_back(gives_up=GiveUp("falcon-other", False, "capacity")))
    assert (1, "j1") == (store.row("j1").version, store.read().slots[0].holder)


def test_a_slot_of_another_is_left_alone(store: Store) -> None:
    """Freeing a slot that another job holds frees nothing, and hinders nothing."""
    claimed(store)
    store.insert_job("j2", SPEC, reason="Provisioning", cluster_id="c1", topology="2x2x1")
    back = Change(
        "j2", 0, PENDING, "Provisioning", PENDING, WAITING, "", cluster_id="c1", topology="2x2x1", frees_slot=True
    )
    assert store.commit(back)
    assert ("j1", WAITING) == (store.read().slots[0].holder, store.row("j2").reason)


@pytest.mark.parametrize(
    ("to_status", "to_reason", "events"),
    [("Pending", "Provisioning", 1), ("Pending", "WaitingForNode", 2), ("Running", None, 2), ("Failed", "Timeout", 2)],
)
def test_an_event_for_each_change_of_status_or_reason(
    store: Store, to_status: str, to_reason: str | None, events: int
) -> None:
    """A row of history stands for each change, and for nothing else (P99)."""
    claimed(store)
    assert store.commit(Change("j1", 1, PENDING, "Provisioning", to_status, to_reason, "why", message="m"))
    assert (events, 2, "m") == (len(store.event_rows()), store.row("j1").version, store.row("j1").message)
    assert (to_status, to_reason) == (store.event_rows()[-1].to_status, store.event_rows()[-1].to_reason)


def test_a_message_is_one_bounded_line(store: Store) -> None:
    """Whatever a message holds, what is stored is one line of at most 4,096 bytes (P93)."""
    store.insert_job("j1", SPEC, reason=WAITING, message="before")
    text = "a\x00b\ud800\n\U0001f680" + "长" * 5000 + "end"
    assert store.commit(Change("j1", 0, PENDING, WAITING, "Failed", "JobFailed", "w\nhy", message=text))
    message = store.row("j1").message or ""
    assert (True, True, True) == (
        message.startswith("a b\\ud800 \U0001f680"),
        message.endswith("end"),
        len(message.encode()) <= 4096,
    )
    assert (message, "w hy") == (store.event_rows()[0].message, store.event_rows()[0].why)


def test_no_message_leaves_the_old_one(store: Store) -> None:
    """None means untouched, the empty text means empty."""
    store.insert_job("j1", SPEC, reason=WAITING, message="before")
    assert store.commit(Change("j1", 0, PENDING, WAITING, PENDING, "ClusterBusy", ""))
    assert "before" == store.row("j1").message
    assert store.commit(Change("j1", 1, PENDING, "ClusterBusy", PENDING, WAITING, "", message=""))
    assert "" == store.row("j1").message


def test_a_change_writes_only_its_own_columns(store: Store) -> None:
    """A column that is upstream's is an error of the caller, and nothing is written."""
    store.insert_job("j1", SPEC, reason=WAITING)
    with pytest.raises(ValueError, match="priority"):
        store.commit(Change("j1", 0, PENDING, WAITING, PENDING, WAITING, "", columns={"priority": 3}))
    assert (0, 0) == (store.row("j1").version, store.row("j1").priority)


def test_since_when_a_cluster_is_busy(store: Store) -> None:
    """A job in ClusterBusy comes with the time of its last event; others come without."""
    for job_id in ("j1", "j2"):
        store.insert_job(job_id, SPEC)
        assert store.commit(Change(job_id, 0, PENDING, None, PENDING, WAITING, ""))
    store.now = START + 10
    assert store.commit(Change("j1", 1, PENDING, WAITING, PENDING, "ClusterBusy", ""))
    store.now = START + 20
    assert store.commit(Change("j1", 2, PENDING, "ClusterBusy", PENDING, "ClusterBusy", "", message="still"))
    assert [START + 10, None] == [job.reason_since for job in store.read().jobs]


# Slots and turns.


def test_a_slot_is_made_once(store: Store) -> None:
    """Making a queue's row again leaves its holder (P89)."""
    claimed(store)
    assert store.ensure_slot(EnsureSlot("c1", "2x2x1"))
    assert (Slot("c1", "2x2x1", "j1", START),) == store.read().slots


@pytest.mark.parametrize(
    ("columns", "freed"),
    [
        ({}, False),
        ({"reason": "WaitingForNode"}, False),
        ({"reason": "Dispatching"}, False),
        ({"reason": WAITING}, True),
        ({"status": "Running", "reason": None}, True),
        ({"status": "Aborting"}, True),
        ({"outcome": "Lost"}, True),
        ({"cluster_id": "c2"}, True),
        ({"topology": "2x2x2"}, True),
    ],
)
def test_a_slot_is_freed_when_its_holder_does_not_acquire(store: Store, columns: dict[str, Any], freed: bool) -> None:
    """The holder is looked at again in the transaction that frees."""
    claimed(store)
    store.edit_job("j1", **columns)
    assert freed == store.free_slot(FreeSlot("c1", "2x2x1", "j1"))
    assert (None if freed else "j1") == store.read().slots[0].holder


def test_a_slot_is_freed_of_a_missing_job_only_by_name(store: Store) -> None:
    """A slot that has another holder by now is left alone."""
    claimed(store)
    store.delete_row("j1")
    assert not store.free_slot(FreeSlot("c1", "2x2x1", "j0"))
    assert store.free_slot(FreeSlot("c1", "2x2x1", "j1"))
    assert not store.free_slot(FreeSlot("c1", "2x2x1", "j1"))


def test_turns_of_queues_with_live_jobs(store: Store) -> None:
    """Turns are remembered for ever and read for the queues that somebody waits in."""
    claimed(store)
    store.now = START + 9
    store.commit(give_back(gives_up=None))
    assert store.commit(claim(version=2, pool=None, takes_slot="bob"))
    turns = {(turn.actor, turn.served_at) for turn in store.read().turns}
    assert {("ann", START), ("bob", START + 9)} == turns
    store.set_status("j1", "Aborted")
    assert () == store.read().turns


# The ledger.


@pytest.mark.parametrize("found", [False, True])
def test_a_pool_without_a_row_is_entered_once(store: Store, found: bool) -> None:
    """It is nobody's, seen and idle from now on."""
    pool = evolve(POOL, found=found, lease="j9", requested_at=START - 5)
    assert store.enter_pool(EnterPool(pool))
    assert not store.enter_pool(EnterPool(pool))
    assert (evolve(POOL, found=found, seen_at=START, idle_at=START),) == store.read().pools
    assert ["pool found"] == [audit.kind for audit in store.audit_rows()]


def test_first_times_stay_the_first(store: Store) -> None:
    """Each mark is written once."""
    claimed(store)
    assert store.mark_pool(MarkPool("c1", "falcon-j1", seen=True))
    store.now = START + 5
    assert store.mark_pool(MarkPool("c1", "falcon-j1", seen=True, up=True))
    assert store.mark_pool(MarkPool("c1", "falcon-j1", ready=True))
    assert not store.mark_pool(MarkPool("c1", "falcon-j1", seen=True, up=True, ready=True))
    assert not store.mark_pool(MarkPool("c1", "falcon-j1"))
    assert not store.mark_pool(MarkPool("c1", "falcon-j2", seen=True))
    (pool,) = ledger(store)
    assert (START, START + 5, START + 5) == (pool.seen_at, pool.up_at, pool.ready_at)


@pytest.mark.parametrize("from_state", PoolState)
@pytest.mark.parametrize("to_state", PoolState)
def test_a_ledger_row_only_moves_on(store: Store, from_state: PoolState, to_state: PoolState) -> None:
    """Active, Deleting, Deleted: never back, and never from a state that is not the row's."""
    store.enter_pool(EnterPool(evolve(POOL, state=from_state)))
    order = list(PoolState)
    on = order.index(to_state) > order.index(from_state)
    for wrong in PoolState:
        if wrong is not from_state:
            assert not store.retire_pool(RetirePool("c1", "falcon-j1", wrong, to_state, "why"))
    assert on == store.retire_pool(RetirePool("c1", "falcon-j1", from_state, to_state, "why"))
    assert (to_state if on else from_state) == ledger(store)[0].state
    assert (to_state is not PoolState.DELETED or not on) == (
        len(store.read().pools) == (from_state is not PoolState.DELETED)
    )


def test_a_leased_pool_is_not_retired(store: Store) -> None:
    """Only a pool that nobody holds goes."""
    claimed(store)
    assert not store.retire_pool(RetirePool("c1", "falcon-j1", PoolState.ACTIVE, PoolState.DELETING, "why"))
    assert (evolve(POOL, lease="j1", leased_at=START),) == ledger(store)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("over", ["deleted", "terminal"])
def test_the_lease_of_a_job_that_is_over_ends(store: Store, keep: bool, over: str) -> None:
    """What a missing or terminal job holds becomes free, or goes."""
    claimed(store)
    action = EndLease("c1", "falcon-j1", "j1", keep, "row is gone")
    assert not store.end_lease(action)
    if over == "deleted":
        store.delete_row("j1")
    else:
        store.set_status("j1", "Failed")
    assert not store.end_lease(evolve(action, job_id="j2"))
    assert store.end_lease(action)
    assert not store.end_lease(action)
    state = PoolState.ACTIVE if keep else PoolState.DELETING
    assert (evolve(POOL, state=state, idle_at=START),) == ledger(store)
    assert [("orphan", START)] == [(lease.ended, lease.until_at) for lease in store.lease_rows()]
    assert Audit(START, "lease ended", "pool/c1/falcon-j1", "j1: row is gone") == store.audit_rows()[-1]


def test_a_create_is_written_before_it_is_asked(store: Store) -> None:
    """Only for the holder of an Active row, and again with each try, but never by who knows nothing of the last one."""
    claimed(store)
    assert store.pool_requested(create())
    store.now = START + 3
    assert not store.pool_requested(create())
    (asked,) = ledger(store)
    assert store.pool_requested(evolve(create(), pool=asked))
    assert START + 3 == ledger(store)[0].requested_at
    assert not store.pool_requested(evolve(create(job_id="j2"), pool=asked))
    assert store.mark_pool(MarkPool("c1", "falcon-j1", seen=True))
    assert not store.pool_requested(evolve(create(), pool=asked))
    store.commit(give_back())
    assert not store.pool_requested(create())


@pytest.mark.parametrize("kind", ErrorKind)
def test_what_a_create_answers_is_kept(store: Store, kind: ErrorKind) -> None:
    """An error that had no effect for sure takes the request back; success clears the error."""
    claimed(store)
    store.pool_requested(create())
    assert store.pool_answered(create(), (kind.value, "their\nwords"))
    (pool,) = ledger(store)
    asked = START if kind in (ErrorKind.EXISTS, ErrorKind.UNKNOWN) else None
    assert (Fault(kind, "their words", START), asked) == (pool.error, pool.requested_at)
    assert store.pool_answered(create(), None)
    assert (None, asked) == (ledger(store)[0].error, ledger(store)[0].requested_at)


def test_what_a_delete_answers_is_kept_when_new(store: Store) -> None:
    """The same words again are no news, so that the time is the first one's."""
    store.enter_pool(EnterPool(evolve(POOL, state=PoolState.DELETING)))
    assert store.delete_answered("c1", "falcon-j1", ("busy", "wait"))
    store.now = START + 1
    assert not store.delete_answered("c1", "falcon-j1", ("busy", "wait"))
    assert Fault(ErrorKind.BUSY, "wait", START) == ledger(store)[0].error
    assert store.delete_answered("c1", "falcon-j1", ("cluster", "wait"))
    assert Fault(ErrorKind.CLUSTER, "wait", START + 1) == ledger(store)[0].error


# Submissions.


def test_a_submission_from_request_to_uid(store: Store) -> None:
    """It is written before the call, keeps its first time, and the UID comes with the next version."""
    claimed(store)
    assert store.work_requested(submit())
    store.now = START + 2
    assert store.work_requested(submit())
    assert store.work_refused(submit(), ("permanent", "webhook\ndenied"))
    refused = Submission(
        "c1", "falcon-j1", "j1", 1, START, error=Fault(ErrorKind.PERMANENT, "webhook denied", START + 2)
    )
    assert (refused,) == store.read().submissions
    assert store.work_submitted(submit(), "uid-1")
    assert (Submission("c1", "falcon-j1", "j1", 1, START),) == store.read().submissions
    assert ("uid-1", 2, START + 2) == (store.row("j1").job_uid, store.row("j1").version, store.row("j1").dispatched_at)
    assert 1 == len(store.event_rows())


def test_a_submission_that_was_dispatched_before(store: Store) -> None:
    """Finishing a submit that was cut short leaves the time of the dispatch."""
    claimed(store)
    store.work_requested(submit())
    assert store.work_submitted(submit(dispatched=False), "uid-1")
    assert ("uid-1", None) == (store.row("j1").job_uid, store.row("j1").dispatched_at)


def test_a_submission_after_an_abort_is_lost(store: Store) -> None:
    """Version and status guard both writes (P85)."""
    claimed(store)
    assert store.work_requested(submit())
    store.set_status("j1", "Aborting")
    assert not store.work_submitted(submit(), "uid-1")
    assert not store.work_requested(submit())
    assert not store.work_submitted(submit(version=7, status="Aborting"), "uid-1")
    assert (None, 1) == (store.row("j1").job_uid, store.row("j1").version)


def test_when_a_submission_was_let_go(store: Store) -> None:
    """The first time stays, an error before it is over; without a row there is nothing to write."""
    claimed(store)
    resume = ResumeWork(CLUSTER, "j1", 1, "falcon-j1", "uid-1")
    assert not store.work_resumed(resume)
    store.work_requested(submit())
    assert store.work_refused(resume, ("unknown", "timed out"))
    assert store.work_resumed(resume)
    store.now = START + 1
    assert not store.work_resumed(resume)
    assert (Submission("c1", "falcon-j1", "j1", 1, START, resumed_at=START),) == store.read().submissions


def test_when_a_submission_was_first_asked_to_go(store: Store) -> None:
    """The first time stays; without a row there is nothing to write."""
    claimed(store)
    assert not store.work_stopping("c1", "falcon-j1")
    store.work_requested(submit())
    assert store.work_stopping("c1", "falcon-j1")
    store.now = START + 1
    assert not store.work_stopping("c1", "falcon-j1")
    assert START == store.read().submissions[0].stop_at


def test_submissions_of_current_attempts(store: Store) -> None:
    """An older attempt's submission, and that of a job that is over, are not read."""
    claimed(store)
    store.work_requested(submit())
    store.edit_job("j1", attempt=2)
    assert () == store.read().submissions
    store.edit_job("j1", attempt=1, status="Failed")
    assert () == store.read().submissions


# History.


@pytest.mark.parametrize("ended", [*BACKS_OFF, "released", "better", "yield"])
def test_failures_are_leases_that_back_off(store: Store, ended: str) -> None:
    """Other ends of a lease count for no back-off, nor does anything once the job is not Pending."""
    claimed(store)
    store.commit(give_back(ended, gives_up=GiveUp("falcon-j1", False, ended)))
    assert ((Failure("j1", "c1", ended, START),) if ended in BACKS_OFF else ()) == store.read().failures
    store.edit_job("j1", status="Running")
    assert () == store.read().failures


def test_failures_are_bounded(store: Store) -> None:
    """Of a job and cluster only the newest failures are read."""
    claimed(store)
    for attempt in range(1, FAILURES_KEPT + 3):
        store.now = START + attempt
        name = f"falcon-j1-{attempt}"
        store.commit(
            give_back(version=2 * attempt - 1, gives_up=GiveUp(name if attempt > 1 else "falcon-j1", False, "full"))
        )
        pool = evolve(POOL, name=f"falcon-j1-{attempt + 1}")
        assert store.commit(claim(version=2 * attempt, pool=pool))
    expected = [START + attempt for attempt in range(3, FAILURES_KEPT + 3)]
    assert expected == sorted(failure.at for failure in store.read().failures)


def test_troubles_of_clusters(store: Store) -> None:
    """A cluster's own trouble is read for a day, whoever met it, the newest first."""
    claimed(store)
    store.work_requested(submit())
    store.work_refused(submit(), ("cluster", "API off"))
    store.now = START + 5
    store.commit(give_back(gives_up=GiveUp("falcon-j1", False, "cluster", (ErrorKind.CLUSTER, "no right"))))
    store.delete_row("j1")
    expected = (
        Failure("j1", "c1", "cluster", START + 5, "no right"),
        Failure("j1", "c1", "cluster", START, "API off"),
    )
    assert expected == store.read().troubles
    store.now = START + 86_402
    assert expected[:1] == store.read().troubles


def test_a_note_is_written_once(store: Store) -> None:
    """The same kind, subject and text stand once, whoever writes them."""
    assert store.note(Note("unknown field", "job/j1", "colour"))
    assert not store.note(Note("unknown field", "job/j1", "colour"))
    assert store.note(Note("unknown field", "job/j1", "shape"))
    assert store.note(Note("unknown field", "job/j2", "colour"))
    expected = [("job/j1", "colour"), ("job/j1", "shape"), ("job/j2", "colour")]
    assert expected == [(audit.subject, audit.text) for audit in store.audit_rows()]
