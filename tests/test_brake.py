"""
The brake on sweeping in the world (proof.md R14), beside the table's own tests in core/test_sweep.py.

1. Every boundary: of 0 to 40 pools, and Jobs, of ours one less than the limit, the limit, and one more are orphans.
2. What stands in the cloud is looked at, not what was planned: braked means that nothing is gone.
"""

from collections.abc import Callable, Mapping

import pytest
from attrs import evolve
from cloudsim.direct_kube import POOL_LABEL, DirectKubernetes
from cloudsim.errors import SimError
from cloudsim.faults import Fault
from cloudsim.tempo import Tempo
from cloudsim.workload import NEVER_ENDS
from legitimate import problems
from world import Falcon, cluster, spec
from world_acts import make_pool, own_labels

from falcon_rm.core import names
from falcon_rm.core.model import Bounds
from falcon_rm.core.words import CPU_TOPOLOGY, Mode, PoolState
from falcon_rm.loop import Pass

MOST_PASSES = 8
SIZES = range(41)
CPU = {"image": "busybox:1.36", "command": "true", "device_type": "cpu"}


def boundaries(size: int) -> list[int]:
    """Return how many of so many are orphans: about the limit, as far as there are so many."""
    limit = max(3, size * 3 // 10)
    return [count for count in (limit - 1, limit, limit + 1) if count <= size]


def with_pools(size: int, orphans: int) -> Falcon:
    """Return a world in which jobs run on so many pools, and the rows of some of them are gone."""
    falcon = Falcon(tempo=Tempo(concurrent_operations=100))
    falcon.sim.default_workload = NEVER_ENDS
    for number in range(size):
        run(falcon, f"j{number:02}", make_pool(falcon, f"j{number:02}", "1x1"), spec("1x1"))
    falcon.advance(120)
    forget(falcon, orphans)
    return falcon


def with_works(size: int, orphans: int) -> Falcon:
    """Return a world in which so many jobs run without pools, and the rows of some of them are gone."""
    falcon = Falcon()
    falcon.sim.default_workload = NEVER_ENDS
    for number in range(size):
        run(falcon, f"j{number:02}", None, CPU)
    falcon.advance(120)
    forget(falcon, orphans)
    return falcon


def run(falcon: Falcon, job_id: str, pool: str | None, task: Mapping[str, object]) -> None:
    """Let a job run as earlier passes would have left it."""
    labels = own_labels(falcon, job_id)
    container = {"name": "task", "image": "busybox:1.36"}
    pinned = {"nodeSelector": {POOL_LABEL: pool}} if pool else {}
    pods = {"restartPolicy": "Never", "containers": [container], **pinned}
    template = {"metadata": {"labels": labels}, "spec": pods}
    metadata = {"name": names.cloud_name(job_id, 1), "labels": labels, "annotations": {names.JOB_ID: job_id}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    uid = DirectKubernetes(falcon.sim.kube(falcon.clusters["c1"].path)).submit(body, None)
    now = falcon.store.now
    columns = {"node_pool_name": pool, "supply_mode": Mode.ON_DEMAND} if pool else {}
    falcon.submit(
        job_id, task, status="Running", cluster_id="c1", topology="1x1" if pool else CPU_TOPOLOGY, attempt=1,
        job_uid=uid, queued_at=now, provisioning_at=now, dispatched_at=now, started_at=now, **columns,
    )  # fmt: skip
    if pool:
        row = falcon.store.pools["c1", pool]
        falcon.store.pools["c1", pool] = evolve(row, lease=job_id, leased_at=now, idle_at=None)


def forget(falcon: Falcon, orphans: int) -> None:
    """Delete the rows of the first jobs."""
    for number in range(orphans):
        falcon.store.delete_row(f"j{number:02}")


def held(falcon: Falcon) -> tuple[list[str], list[str]]:
    """Return what the cloud holds of ours."""
    return sorted(falcon.pools()), falcon.works()


def sweep(falcon: Falcon) -> Pass:
    """Make passes until two in a row make no progress and everything that was deleted is gone; return the last one."""
    idle = 0
    for _ in range(MOST_PASSES):
        made = falcon.step()
        idle = 0 if made.progress else idle + 1
        if idle == 2:
            break
        if idle:
            falcon.advance(120)
    return made


@pytest.mark.parametrize("build", [with_pools, with_works], ids=["pools", "works"])
@pytest.mark.parametrize("allowed", [False, True], ids=["held", "allowed"])
def test_every_boundary(build: Callable[[int, int], Falcon], allowed: bool, proof: Callable[[int, int], None]) -> None:
    """Up to the limit the orphans go and only they; above it nothing at all does, unless mass deletion is allowed."""
    cases = [(size, orphans) for size in SIZES for orphans in boundaries(size)]
    executed, built = 0, {size: build(size, 0) for size in SIZES}
    for size, orphans in cases:
        falcon = built[size].fork()
        forget(falcon, orphans)
        falcon.bounds = Bounds(language="en", allow_mass_delete=allowed)
        before = held(falcon)
        made = sweep(falcon)
        holds = orphans > max(3, size * 3 // 10) and not allowed
        gone = {names.cloud_name(f"j{number:02}", 1) for number in range(0 if holds else orphans)}
        expected = tuple([name for name in kind if name not in gone] for kind in before)
        assert (holds, expected) == (made.plan.brake is not None, held(falcon)), f"{orphans} of {size}"
        leased = [pool for pool in falcon.pool_rows() if pool.lease and pool.state is PoolState.ACTIVE]
        assert len(before[0]) == len(leased) + len(gone & set(before[0]))
        executed += 1
    proof(len(cases), executed)


def test_empty_table_of_jobs() -> None:
    """Somebody emptied `job`: nothing that runs is touched, however many passes are made, and nothing is entered."""
    falcon = with_pools(10, 10)
    before = held(falcon)
    made = sweep(falcon)
    assert (10, before) == (made.plan.brake and made.plan.brake.pools, held(falcon))
    falcon.bounds = Bounds(language="en", allow_mass_delete=True)
    sweep(falcon)
    assert (([], []), []) == (held(falcon), problems(falcon))


def test_wrong_database() -> None:
    """A database that never knew the cloud, with an instance of its own, counts what it sees and touches nothing."""
    falcon = with_pools(10, 10)
    before = held(falcon)
    for table in (falcon.store.pools, falcon.store.works, falcon.store.slots, falcon.store.leases):
        table.clear()
    falcon.store.instance = "another"
    made = sweep(falcon)
    assert (before, {"c1": 10}, {}) == (held(falcon), made.plan.foreign, falcon.store.pools)


def test_older_database_of_the_same_instance() -> None:
    """A backup that knows no job and no pool enters what it sees as found: what runs there lives on."""
    falcon = with_pools(10, 10)
    before = held(falcon)
    falcon.store.pools.clear()
    made = sweep(falcon)
    assert (before, 10) == (held(falcon), made.plan.brake and made.plan.brake.works)
    assert all(pool.found for pool in falcon.pool_rows())


def test_pools_of_another_instance_do_not_count() -> None:
    """Thirty pools of others raise no limit: four orphans among our four are held."""
    falcon = with_pools(4, 4)
    labels = own_labels(falcon, "x") | {names.INSTANCE: "another"}
    for number in range(30):
        config = {"machineType": "ct6e-standard-1t", "labels": labels}
        pool = {"name": f"falcon-x{number}", "initialNodeCount": 1, "config": config}
        falcon.sim.gke.create_by_hand(falcon.clusters["c1"].path, pool)
    before = held(falcon)
    made = sweep(falcon)
    assert (before, 4, 3) == (held(falcon), made.plan.brake and made.plan.brake.pools, _limit(made))
    assert {"c1": 30} == made.plan.foreign


def _limit(made: Pass) -> int | None:
    return made.plan.brake.pool_limit if made.plan.brake else None


@pytest.mark.parametrize("call", ["gke.list_node_pools", "kube.list.jobs"])
def test_cluster_that_is_not_read_counts_for_nothing(call: str) -> None:
    """What is not known is neither an orphan nor a pool of ours: the other cluster's limit is its own."""
    falcon = Falcon(cluster("c1"), cluster("c2"), tempo=Tempo(concurrent_operations=100))
    falcon.sim.default_workload = NEVER_ENDS
    for number in range(10):
        run(falcon, f"j{number:02}", make_pool(falcon, f"j{number:02}", "1x1"), spec("1x1"))
    falcon.advance(120)
    forget(falcon, 3)
    away = SimError("UNAVAILABLE", "The service is currently unavailable.", 503)
    fault = falcon.sim.faults.add(Fault(call, error=away, times=None, where=lambda asked: "/c1" in asked.target))
    before = held(falcon)
    made = sweep(falcon)
    assert (before, None, ("c1",)) == (held(falcon), made.plan.brake, made.unread)
    falcon.sim.faults.remove(fault)
    sweep(falcon)
    assert 7 == len(falcon.pools())


def test_free_pools_of_committed_releases_go_while_the_brake_holds() -> None:
    """What was given up by a transaction is no orphan."""
    falcon = with_pools(10, 4)
    falcon.store.pools["c1", "falcon-j09"] = evolve(
        falcon.store.pools["c1", "falcon-j09"], lease=None, state=PoolState.DELETING, idle_at=falcon.store.now
    )
    falcon.store.edit_job("j09", status="Failed", reason="JobFailed")
    made = sweep(falcon)
    assert made.plan.brake is not None
    assert "falcon-j09" not in falcon.pools() and 9 == len(falcon.pools())


def test_brake_is_told() -> None:
    """The pass says in one line what is held and what lifts it; the log line of the pass is an error with that text."""
    falcon = with_pools(10, 4)
    made = falcon.step()
    assert made.plan.brake is not None
    assert (
        "sweep held: 4 orphaned pools (limit 3), 4 orphaned Jobs (limit 3); check that this is the right database, "
        "then run-once --allow-mass-delete"
    ) == made.plan.brake.text
