"""The direct door meets the product's ports on a world: same requests, same meaning of errors, no sockets."""

from typing import Any

import pytest
from cloudsim.direct import DirectClouds
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault
from cloudsim.workload import NEVER_ENDS
from cloudsim.world import World
from simulated import NAMESPACE, PATH, PROJECT, REGION, ZONE, a_job, a_world

from falcon_rm.core.actions import CreatePool
from falcon_rm.core.model import Cluster, Pool
from falcon_rm.core.names import ATTEMPT, JOB_ID
from falcon_rm.core.shapes import shape
from falcon_rm.core.words import CloudError, ErrorKind, Mode, PoolStatus
from falcon_rm.ports import Clouds, Kubernetes

CLUSTER = Cluster(id="c1", name="c1", project=PROJECT, location=REGION, tpu_type="v6e")
SELECTOR = "falcon.io/instance=i"


def asked(
    mode: Mode = Mode.ON_DEMAND, *, tpu: str = "v6e", topology: str = "4x4", policy: str | None = None
) -> CreatePool:
    """Return a pool to ask for."""
    made = shape(tpu, topology)
    pool = Pool(
        cluster_id="c1",
        name="falcon-j1",
        job_id="j1",
        attempt=1,
        tpu_type=tpu,
        topology=topology,
        machine_type=made.machine_type,
        hosts=made.hosts,
        chips=made.chips,
        mode=mode,
        reservation="projects/p/reservations/r" if mode is Mode.RESERVATION else None,
    )
    labels = {"falcon.io/instance": "i"}
    return CreatePool(CLUSTER, ZONE, pool, "j1", labels, {"managed-by": "falcon"}, idle_seconds=600, policy=policy)


def manifest(pods: int = 4) -> dict[str, Any]:
    """Return a Job as Falcon labels it."""
    job = a_job(pods=pods)
    job["metadata"]["labels"] = {JOB_ID: "j1", ATTEMPT: "1", "falcon.io/instance": "i"}
    job["spec"]["template"]["metadata"]["labels"] |= {"falcon.io/instance": "i"}
    return job


def service() -> dict[str, Any]:
    """Return the Service of that Job."""
    return {"metadata": {"name": "falcon-j1", "namespace": NAMESPACE}, "spec": {"clusterIP": "None"}}


def doors(world: World) -> tuple[Clouds, Kubernetes]:
    """Return the ports."""
    clouds: Clouds = DirectClouds(world)
    return clouds, clouds.kubernetes(CLUSTER, clouds.gke.get_cluster(CLUSTER))


def kind_of(act: Any, *arguments: Any, **named: Any) -> ErrorKind:
    """Return the kind of error that a call answers."""
    with pytest.raises(CloudError) as caught:
        act(*arguments, **named)
    return caught.value.kind


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(("tpu", "topology"), [("v6e", "4x4"), ("v6e", "2x2"), ("v7x", "2x2x2"), ("v5p", "2x2x1")])
def test_every_mode_and_shape_is_accepted_and_read_back(mode: Mode, tpu: str, topology: str) -> None:
    """The product's own request makes a pool, and reads back as what was asked for."""
    world = a_world()
    clouds, _ = doors(world)
    action = asked(mode, tpu=tpu, topology=topology, policy="w" if tpu == "v7x" else None)
    world.add_reservation(PROJECT, ZONE, "r", action.pool.machine_type, 8)
    if action.policy and action.pool.hosts > 1:
        clouds.compute.ensure_policy(project=PROJECT, region=REGION, name="w", topology=topology)
    clouds.gke.create_pool(action)
    world.advance(100)
    live = next(pool for pool in clouds.gke.list_pools(CLUSTER) if pool.name == "falcon-j1")
    assert (live.status, live.mode, live.hosts) == (PoolStatus.RUNNING, mode, action.pool.hosts)
    assert live.topology == (topology if action.pool.hosts > 1 else "")
    assert live.labels == {"falcon.io/instance": "i"}
    (operation,) = clouds.gke.list_operations(PROJECT, REGION)
    assert (operation.done, operation.error, operation.target.endswith(f"{PATH}/nodePools/falcon-j1")) == (
        True,
        None,
        True,
    )


def test_errors_mean_what_the_tables_say() -> None:
    """Full, quota, busy, exists, gone, and a hang is unknown whether or not it had an effect."""
    world = a_world()
    clouds, _ = doors(world)
    world.add_reservation(PROJECT, ZONE, "r", "ct6e-standard-4t", 8, in_use=8)
    assert kind_of(clouds.gke.create_pool, asked(Mode.RESERVATION)) is ErrorKind.FULL
    world.set_quota(PROJECT, "ct6e-standard-4t", 0)
    assert kind_of(clouds.gke.create_pool, asked()) is ErrorKind.QUOTA
    world.set_quota(PROJECT, "ct6e-standard-4t", None)
    world.faults.add(Fault("gke.create_node_pool", "hang", effect=True))
    assert kind_of(clouds.gke.create_pool, asked()) is ErrorKind.UNKNOWN
    assert kind_of(clouds.gke.create_pool, asked()) is ErrorKind.EXISTS
    assert kind_of(clouds.gke.delete_pool, CLUSTER, "falcon-j1") is ErrorKind.BUSY
    clouds.gke.delete_pool(CLUSTER, "falcon-nobody")
    world.faults.add(Fault("gke.list_node_pools", error=SimError("UNAVAILABLE", "no")))
    assert kind_of(clouds.gke.list_pools, CLUSTER) is ErrorKind.UNKNOWN
    world.faults.add(Fault("gke.list_operations", "partial"))
    assert kind_of(clouds.gke.list_operations, PROJECT, REGION) is ErrorKind.UNKNOWN


def test_a_stockout_is_read_from_operation_and_pool() -> None:
    """The text stands in both."""
    world = a_world()
    clouds, _ = doors(world)
    world.set_capacity(ZONE, "on-demand", "ct6e-standard-4t", 0)
    clouds.gke.create_pool(asked())
    world.advance(2200)
    (operation,) = clouds.gke.list_operations(PROJECT, REGION)
    live = next(pool for pool in clouds.gke.list_pools(CLUSTER) if pool.name == "falcon-j1")
    assert live.status is PoolStatus.ERROR
    assert "GCE_STOCKOUT" in str(operation.error)
    assert any("GCE_STOCKOUT" in text for text in live.errors)


def test_reservations_are_found_and_counted() -> None:
    """VMs of a specific one, chips of an aggregate one, and a missing one is gone."""
    world = a_world()
    clouds, _ = doors(world)
    world.add_reservation(PROJECT, ZONE, "r", "ct6e-standard-4t", 8, in_use=3)
    world.add_reservation(PROJECT, ZONE, "all", "tpu7x-standard-4t", 64, in_use=16, aggregate=True)
    one = clouds.compute.get_reservation(PROJECT, ZONE, "r")
    assert (one.unit, one.total, one.used, one.machine_type) == ("vm", 8, 3, "ct6e-standard-4t")
    two = clouds.compute.get_reservation(PROJECT, ZONE, "all")
    assert (two.unit, two.total, two.used, two.machine_type) == ("chip", 64, 16, None)
    assert clouds.compute.find_reservation(PROJECT, "r") == (ZONE,)
    assert clouds.compute.find_reservation(PROJECT, "x") == ()
    assert kind_of(clouds.compute.get_reservation, PROJECT, ZONE, "x") is ErrorKind.GONE


def test_a_policy_of_that_name_with_other_content_is_permanent() -> None:
    """P40: made once, fine the second time, refused with another topology."""
    clouds, _ = doors(a_world())
    place = {"project": PROJECT, "region": REGION, "name": "w"}
    clouds.compute.ensure_policy(**place, topology="2x2x2")
    clouds.compute.ensure_policy(**place, topology="2x2x2")
    assert kind_of(clouds.compute.ensure_policy, **place, topology="4x4x4") is ErrorKind.PERMANENT


def test_a_job_is_submitted_seen_and_deleted() -> None:
    """Namespace and account are made; Job, pods, nodes and events read as values; the Service goes with the Job."""
    world = World()
    world.add_cluster(PATH, [ZONE])
    clouds, kube = doors(world)
    world.default_workload = NEVER_ENDS
    clouds.gke.create_pool(asked())
    world.advance(80)
    uid = kube.submit(manifest(), service())
    assert kube.submit(manifest(), service()) == uid
    kube.resume_work("falcon-j1", uid)
    world.advance(5)
    (work,) = kube.list_works(SELECTOR)
    assert (work.uid, work.active, work.ready, work.pool) == (uid, 4, 4, "falcon-j1")
    pods = kube.list_pods(SELECTOR)
    assert [(pod.work, pod.phase, pod.containers[0].state) for pod in pods] == [("falcon-j1", "Running", "running")] * 4
    assert set(kube.list_ready_nodes(["falcon-j1"]).values()) == {"falcon-j1"}
    kube.delete_work("falcon-j1", "another")
    assert len(kube.list_works(SELECTOR)) == 1
    kube.delete_work("falcon-j1", uid)
    assert (kube.list_works(SELECTOR), [pod.deleting for pod in kube.list_pods(SELECTOR)]) == ((), [False] * 4)
    world.advance(10)
    assert (kube.list_pods(SELECTOR), world.kube(PATH).list("services", NAMESPACE)["items"]) == ((), [])
    kube.delete_work("falcon-j1", uid)


def test_pods_that_no_node_takes_are_explained() -> None:
    """Unschedulable stands in the pod and in an event."""
    world = a_world()
    _, kube = doors(world)
    kube.submit(manifest(), service())
    world.advance(2)
    assert all("nodes are available" in str(pod.unschedulable) for pod in kube.list_pods(SELECTOR))
    assert {event.reason for event in kube.list_events(["falcon-j1"])} == {"FailedScheduling"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KubeError(403, "Forbidden", 'admission webhook "w" denied the request: no'), ErrorKind.PERMANENT),
        (KubeError(400, "", 'admission webhook "w" denied the request: no'), ErrorKind.PERMANENT),
        (KubeError(503, "ServiceUnavailable", "no"), ErrorKind.UNKNOWN),
        (KubeError(502, "", "", raw="<html>bad gateway</html>"), ErrorKind.UNKNOWN),
        (KubeError(403, "Forbidden", 'User "system:anonymous" cannot create resource'), ErrorKind.UNKNOWN),
    ],
)
def test_refusals_of_a_submit(error: KubeError, kind: ErrorKind) -> None:
    """For good or for now."""
    world = a_world()
    _, kube = doors(world)
    world.faults.add(Fault("kube.create.jobs", error=error))
    assert kind_of(kube.submit, manifest(), None) is kind


def test_a_job_of_another_attempt_is_in_the_way() -> None:
    """P59: ours is taken for submitted, another's is not."""
    world = a_world()
    _, kube = doors(world)
    other = manifest()
    other["metadata"]["labels"][ATTEMPT] = "2"
    kube.submit(other, None)
    assert kind_of(kube.submit, manifest(), None) is ErrorKind.PERMANENT


def test_a_list_that_expires_is_begun_again_once() -> None:
    """P102: a second time it is unknown."""
    world = a_world()
    _, kube = doors(world)
    kube.submit(manifest(), None)
    expired = KubeError(410, "Expired", "The provided continue parameter is too old")
    world.faults.add(Fault("kube.list.jobs", error=expired))
    assert len(kube.list_works(SELECTOR)) == 1
    world.faults.add(Fault("kube.list.jobs", error=expired, times=2))
    assert kind_of(kube.list_works, SELECTOR) is ErrorKind.UNKNOWN


def test_a_cluster_without_the_endpoint_asked_for_is_in_trouble() -> None:
    """No DNS endpoint: CLUSTER."""
    clouds, _ = doors(a_world())
    dns = Cluster(id="c1", name="c1", project=PROJECT, location=REGION, tpu_type="v6e", endpoint="dns")
    assert kind_of(clouds.kubernetes, dns, clouds.gke.get_cluster(dns)) is ErrorKind.CLUSTER
