"""The adapters and the simulated cloud's doors, end to end: what is asked in each mode is taken and read back."""

from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve
from cloudsim.metadata import PROJECT
from cloudsim.server import CloudSim
from cloudsim.tempo import brisk
from cloudsim.world import World
from cloudsim_fixtures import Serve
from test_gke import action
from test_kube import HEADLESS, MANIFEST

from falcon_rm.cloud.clouds import GoogleClouds
from falcon_rm.cloud.credential import Credential
from falcon_rm.core.live import Reservation
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import CloudError, ErrorKind, Mode, PoolStatus
from falcon_rm.ports import Kubernetes

ZONE = "us-central1-c"
CLUSTER = Cluster(id="c-1", name="c1", project=PROJECT, location="us-central1", tpu_type="v7x")
SINGLE: dict[str, Any] = {"cluster": CLUSTER, "reservation": "big"}
MULTI: dict[str, Any] = {**SINGLE, "topology": "2x2x2", "hosts": 2}


@pytest.fixture
def sim(serve: Serve) -> CloudSim:
    """A world with one cluster and a reservation, behind doors; its clock stands."""
    world = World(seed=1, tempo=brisk())
    world.add_cluster(CLUSTER.path, [ZONE])
    world.add_reservation(PROJECT, ZONE, "big", "tpu7x-standard-4t", 4, in_use=1)
    return serve(world)


@pytest.fixture
def clouds(sim: CloudSim) -> Iterator[GoogleClouds]:
    """The clouds of one pass, as the command line makes them."""
    there, own = sim.environment(), Credential()
    made = GoogleClouds(
        credential=lambda: own,
        gke_endpoint=there["FALCON_GKE_ENDPOINT"],
        compute_endpoint=there["FALCON_COMPUTE_ENDPOINT"],
    )
    yield made
    made.close()


@pytest.fixture(params=["ip", "dns"])
def kubernetes(clouds: GoogleClouds, request: pytest.FixtureRequest) -> Kubernetes:
    """The cluster's Kubernetes at each kind of endpoint."""
    cluster = evolve(CLUSTER, endpoint=request.param)
    return clouds.kubernetes(cluster, clouds.gke.get_cluster(cluster))


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("shape", [SINGLE, MULTI], ids=["single", "multi"])
def test_pool_of_each_mode(clouds: GoogleClouds, sim: CloudSim, mode: Mode, shape: dict[str, Any]) -> None:
    """A pool of each mode is taken, comes up, is read back as asked for, and goes again."""
    wanted = action(mode, **shape)
    if wanted.policy:
        clouds.compute.ensure_policy(
            project=PROJECT, region="us-central1", name=wanted.policy, topology=wanted.pool.topology
        )
    clouds.gke.create_pool(wanted)
    sim.world.advance(3600)
    (pool,) = [pool for pool in clouds.gke.list_pools(CLUSTER) if pool.name == wanted.pool.name]
    topology = wanted.pool.topology if wanted.pool.hosts > 1 else ""
    assert (PoolStatus.RUNNING, mode, wanted.pool.hosts, topology) == (
        pool.status,
        pool.mode,
        pool.hosts,
        pool.topology,
    )
    assert [None] == [operation.error for operation in clouds.gke.list_operations(PROJECT, "us-central1")]
    clouds.gke.delete_pool(CLUSTER, wanted.pool.name)
    sim.world.advance(3600)
    assert wanted.pool.name not in {pool.name for pool in clouds.gke.list_pools(CLUSTER)}
    clouds.gke.delete_pool(CLUSTER, wanted.pool.name)


def test_pool_that_is_there(clouds: GoogleClouds, sim: CloudSim) -> None:
    """The same name again is told to exist."""
    clouds.gke.create_pool(action(**SINGLE))
    sim.world.advance(3600)
    with pytest.raises(CloudError) as caught:
        clouds.gke.create_pool(action(**SINGLE))
    assert ErrorKind.EXISTS == caught.value.kind


def test_cluster_that_is_not_there(clouds: GoogleClouds) -> None:
    """A cluster that GKE does not know is unknown to a read."""
    other = evolve(CLUSTER, gke_name="other")
    with pytest.raises(CloudError) as caught:
        clouds.gke.list_pools(other)
    assert ErrorKind.UNKNOWN == caught.value.kind


def test_reservation(clouds: GoogleClouds) -> None:
    """A reservation is found and counted."""
    expected = Reservation(f"projects/{PROJECT}/reservations/big", True, "vm", 4, 1, "tpu7x-standard-4t")
    assert (ZONE,) == clouds.compute.find_reservation(PROJECT, "big")
    assert () == clouds.compute.find_reservation(PROJECT, "small")
    assert expected == clouds.compute.get_reservation(PROJECT, ZONE, "big")


def test_work_of_one_attempt(kubernetes: Kubernetes, sim: CloudSim) -> None:
    """A Job is submitted twice with one result, listed with its pods, and gone with them after its delete."""
    uid = kubernetes.submit(MANIFEST, HEADLESS)
    assert uid == kubernetes.submit(MANIFEST, HEADLESS)
    kubernetes.resume_work("falcon-j1", uid)
    sim.world.advance(5)
    assert [("falcon-j1", uid)] == [(work.name, work.uid) for work in kubernetes.list_works("managed-by=falcon")]
    assert ["falcon-j1"] * 2 == [pod.work for pod in kubernetes.list_pods("job-name=falcon-j1")]
    kubernetes.delete_work("falcon-j1", "another")
    assert 1 == len(kubernetes.list_works("managed-by=falcon"))
    kubernetes.delete_work("falcon-j1", uid)
    sim.world.advance(600)
    assert ((), ()) == (kubernetes.list_works("managed-by=falcon"), kubernetes.list_pods("job-name=falcon-j1"))
    kubernetes.delete_work("falcon-j1", uid)


def test_tokens_that_end(kubernetes: Kubernetes, clouds: GoogleClouds, sim: CloudSim) -> None:
    """Every cloud goes on after every token handed out has ended (P100)."""
    for _ in range(2):
        sim.premises.tokens.expire()
        assert () == kubernetes.list_works("managed-by=falcon")
        sim.premises.tokens.expire()
        assert ["default-pool"] == [pool.name for pool in clouds.gke.list_pools(CLUSTER)]
        sim.premises.tokens.expire()
        assert (ZONE,) == clouds.compute.find_reservation(PROJECT, "big")
