"""What Prometheus is told of a pass: samples of small snapshots and of worlds that run."""

from collections import Counter
from typing import Any

import pytest
from attrs import evolve
from builders import NOW, free, job, live, pool, room, snapshot, task, unread, view, work
from builders import cluster as row
from cloudsim.workload import NEVER_ENDS, Workload
from world import ZONE, Falcon, cluster, spec

from falcon_rm.apply import Result
from falcon_rm.core.actions import FreeSlot
from falcon_rm.core.model import ClusterView, InvalidSpec, Snapshot
from falcon_rm.core.plan import plan
from falcon_rm.core.words import ClusterStatus, ErrorKind, PoolStatus
from falcon_rm.loop import Acted, Pass
from falcon_rm.metrics import COUNTERS, FAILED_STARTS, GAUGES, HISTOGRAMS, Sample, Values, happened
from falcon_rm.ports import StoreDown


def made(world: Snapshot) -> Pass:
    """Return the pass that sees this and does nothing."""
    return Pass(world, plan(world))


def gauges(done: Pass) -> dict[str, Values]:
    """Return every gauge that has samples."""
    read = {gauge.name: dict(gauge.read(done)) for gauge in GAUGES}
    return {name: values for name, values in read.items() if values}


def gauge(name: str, done: Pass) -> Values:
    """Return the samples of one gauge that are not 0."""
    return {labels: value for labels, value in gauges(done).get(name, {}).items() if value}


def run(falcon: Falcon, passes: int) -> Counter[tuple[str, ...]]:
    """Make passes, and return how far each counter moved, and how many times were taken: (name, *labels) -> number."""
    moved = Counter[tuple[str, ...]]()
    for _ in range(passes):
        done = falcon.step()
        moved.update((sample.name, *sample.labels) for sample in happened(done))
        if not done.progress:
            falcon.wait()
    return moved


def test_queues() -> None:
    """Depth, the longest wait and the slot's time are told by queue; a free slot has no time."""
    world = snapshot(
        job("j1", queued_at=NOW - 70),
        job("j2", queued_at=NOW - 30),
        job("j3", "Pending/Provisioning"),
        job("j4", "Pending/Waiting", task("4x4"), queued_at=NOW - 5),
        job("new", "Pending", created_at=NOW - 9),
    )
    done = made(world)
    assert {("c1", "2x2"): 2, ("c1", "4x4"): 1, ("", "2x2"): 1} == gauge("falcon_queue_depth", done)
    assert {("c1", "2x2"): 70, ("c1", "4x4"): 5, ("", "2x2"): 9} == gauge("falcon_oldest_waiting_seconds", done)
    assert {("c1", "2x2"): 50} == gauges(done)["falcon_slot_held_seconds"]


def test_a_pool_that_is_made() -> None:
    """The oldest pool that was asked for and is not up has an age; one that is up or not read has none."""
    older, newer = (
        evolve(pool(job(name, "Pending/Provisioning")), requested_at=NOW - age, up_at=None)
        for name, age in (("j1", 90), ("j2", 20))
    )
    up = evolve(pool(job("j3", "Running")), requested_at=NOW - 500, up_at=NOW - 400)
    told = gauges(made(snapshot(pools=(older, newer, up))))
    assert {("c1", "2x2", "on-demand"): 90} == told["falcon_pool_creating_seconds"]
    assert "falcon_pool_creating_seconds" not in gauges(made(snapshot(pools=(up,))))
    assert "falcon_pool_creating_seconds" not in gauges(made(snapshot(views=(unread(),), pools=(older,))))


def test_jobs() -> None:
    """Jobs are counted by words of the contract; what is no such word is one "other"."""
    odd = job("odd", "Dreaming/Deeply")
    world = snapshot(job("j1"), job("j2", "Running"), odd, job("bad", work=InvalidSpec("image", "", "text")))
    expected = {("Pending", "Waiting"): 2, ("Running", ""): 1, ("other", "other"): 1}
    assert expected == gauge("falcon_jobs", made(world))
    assert {("c1", "2x2"): 1} == gauge("falcon_running_jobs", made(world))


def test_pools_and_chips() -> None:
    """Chips stand where their pool's holder stands; a pool of strangers counts as foreign."""
    acquiring, running, over = job("j1", "Pending/Provisioning"), job("j2", "Running"), job("j3", "Aborting")
    pools = (pool(acquiring), pool(running), pool(over), free("falcon-free"))
    listed = [live(each) for each in pools]
    listed[0] = evolve(listed[0], status=PoolStatus.PROVISIONING)
    stranger = evolve(listed[0], name="falcon-theirs", labels={})
    done = made(snapshot(acquiring, running, over, views=(view(*listed, stranger),), pools=pools))
    expected = {("c1", "busy"): 4, ("c1", "acquiring"): 4, ("c1", "idle"): 4, ("c1", "releasing"): 4}
    assert expected == gauge("falcon_chips", done)
    running_pools = {("c1", "2x2", "PROVISIONING", "on-demand"): 1, ("c1", "2x2", "RUNNING", "on-demand"): 3}
    assert running_pools == gauge("falcon_pools", done)
    assert {("c1",): 1} == gauge("falcon_foreign_pools", done)


@pytest.mark.parametrize(
    "seen", [unread(), view(works=None, pods=None, problem="Kubernetes: 503"), view(pools=None, problem="GKE: 503")]
)
def test_what_was_not_read_is_not_told(seen: ClusterView) -> None:
    """A cluster that was not read whole is down, and its pools, chips and orphans are missing, not 0 (P107)."""
    held = job("j1", "Running")
    well = view(live(pool(held)), work(held), reservation=room(4, 3))
    names = ("falcon_pools", "falcon_chips", "falcon_orphans", "falcon_reservation_size")
    told = gauges(made(snapshot(held, views=(well,), pools=(pool(held),))))
    assert all(("c1" in {labels[0] for labels in told[name]}) for name in names)
    assert {("c1",): 1} == told["falcon_cluster_up"]
    told = gauges(made(snapshot(held, views=(seen,), pools=(pool(held),))))
    assert [] == [name for name in names if name in told]
    assert {("c1",): 0} == told["falcon_cluster_up"]
    assert 1 == told["falcon_jobs"]["Running", ""]


def test_offline_cluster() -> None:
    """A cluster that is not read on purpose is neither up nor down."""
    away = unread(row(status=ClusterStatus.OFFLINE), "offline")
    assert "falcon_cluster_up" not in gauges(made(snapshot(views=(away,))))


def test_brake() -> None:
    """While the brake holds, what it holds is counted, and nothing is told by cluster."""
    gone = [job(f"j{number}", "Running") for number in range(4)]
    pools = tuple(pool(each) for each in gone)
    seen = view(*map(live, pools), *map(work, gone))
    few = gauges(made(snapshot(views=(view(live(pools[0]), work(gone[0])),), pools=pools[:1])))
    assert {("c1", "pool"): 1, ("c1", "work"): 1} == few["falcon_orphans"]
    assert {(): 0} == few["falcon_sweep_braked"]
    many = gauges(made(snapshot(views=(seen,), pools=pools)))
    assert "falcon_orphans" not in many
    assert {("pool",): 4, ("work",): 4} == many["falcon_orphans_held"]
    assert {(): 1} == many["falcon_sweep_braked"]


def test_series_do_not_grow_with_jobs() -> None:
    """Ten thousand jobs of a thousand actors are as many series as ten (P107)."""

    def series(count: int) -> dict[str, set[tuple[str, ...]]]:
        jobs = [job(f"j{number}", actor=f"actor-{number % 1000}") for number in range(count)]
        done = Pass(snapshot(*jobs), plan(snapshot(jobs[0])))
        return {name: set(values) for name, values in gauges(done).items()}

    assert series(10) == series(10_000)


def test_passes_by_result() -> None:
    """A pass counts as done or unread, one that broke off as the database's fault or another's."""
    world = snapshot(views=(unread(),))
    ends: list[Pass | Exception] = [
        made(snapshot()), Pass(world, plan(world), unread=("c1",)), StoreDown("gone"), ValueError("odd"),
    ]  # fmt: skip
    results = [[sample.labels[0] for sample in happened(end) if sample.name == "falcon_passes_total"] for end in ends]
    assert [["done"], ["unread"], ["no-database"], ["failed"]] == results
    assert Sample("falcon_unknown_reads_total", ("c1", "pools")) in happened(ends[1])


def test_actions() -> None:
    """An action counts by its kind and result; a lost race is a stale write, a refusal an error of its class."""
    action = FreeSlot("c1", "2x2", "j1")
    acted = (Acted(action, Result.LOST), Acted(action, None), Acted(action, Result.BUSY, ErrorKind.UNKNOWN))
    samples = list(happened(Pass(snapshot(), plan(snapshot()), acted=acted)))
    for expected in (
        Sample("falcon_actions_total", ("FreeSlot", "lost")),
        Sample("falcon_stale_writes_total", ()),
        Sample("falcon_actions_total", ("FreeSlot", "failed")),
        Sample("falcon_api_errors_total", ("FreeSlot", "unknown")),
    ):
        assert 1 == samples.count(expected)


def test_a_life() -> None:
    """A job that runs well is one start, one time to acquire and one to run."""
    falcon = Falcon()
    falcon.sim.default_workload = Workload(seconds=30)
    falcon.submit("j1")
    moved = run(falcon, 60)
    assert "Succeeded" == falcon.state("j1")
    assert 1 == moved["falcon_acquire_seconds", "started"]
    assert 1 == moved[("falcon_dispatch_latency_seconds",)]
    assert 1 == moved["falcon_jobs_ended_total", "Succeeded", ""]
    assert 1 == moved["falcon_run_seconds", "Succeeded"]
    assert 0 == sum(count for (name, *_), count in moved.items() if name == "falcon_failed_starts_total")


def test_a_start_that_fails() -> None:
    """A start that fails is counted, with its time, beside those that came to run (P107)."""
    falcon = Falcon()
    falcon.sim.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", 0)
    falcon.submit("j1", spec("4x4"))
    moved = Counter[tuple[str, ...]]()
    while not moved["falcon_acquire_seconds", "failed"]:
        moved += run(falcon, 1)
    assert 1 == moved["falcon_failed_starts_total", "capacity"]
    assert 0 == moved["falcon_acquire_seconds", "started"]


def test_unreachable_cluster() -> None:
    """What is told of a cluster is missing while it cannot be reached, and of the other one is not (P107)."""
    falcon = Falcon(cluster("c1"), cluster("c2"))
    falcon.sim.default_workload = NEVER_ENDS
    falcon.submit("j1")
    falcon.until_state("j1", "Running")
    assert {("c1", "busy"): 4} == gauge("falcon_chips", falcon.step())
    falcon.cut_off("c1")
    told = gauges(falcon.step())
    assert {"c2"} == {name for name, _ in told["falcon_chips"]}
    assert {("c1",): 0, ("c2",): 1} == told["falcon_cluster_up"]
    assert "falcon_pools" not in told


def test_labels_are_declared() -> None:
    """Every sample of a busy life has a family with as many labels, and no label holds a job or an actor."""
    falcon = Falcon()
    falcon.sim.default_workload = Workload(seconds=30, exit_code=3)
    falcon.submit("j-secret", actor="ann-secret")
    labels: dict[str, tuple[str, ...]] = {each.name: each.labels for each in (*COUNTERS, *HISTOGRAMS)}
    seen: list[Any] = []
    for _ in range(60):
        done = falcon.step()
        seen += [(sample.name, sample.labels) for sample in happened(done)]
        for each in GAUGES:
            seen += [(each.name, key) for key in each.read(done)]
            labels[each.name] = each.labels
        falcon.wait()
    assert [] == [(name, key) for name, key in seen if len(labels[name]) != len(key) or "secret" in str(key)]


def test_failed_starts_are_words() -> None:
    """The reasons of failed starts are a closed set without doubles."""
    assert len(set(FAILED_STARTS)) == len(FAILED_STARTS)
    assert {"capacity", "nodes", "lost", "broken", "NodePoolTimeout"} <= set(FAILED_STARTS)
