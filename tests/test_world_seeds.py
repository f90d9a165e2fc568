"""Seeded lives: clusters, actors, faults, people and two controllers; then quiet, and everything comes to its end."""

import random
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Literal

import pytest
from attrs import evolve
from cloudsim.direct import DirectClouds
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault
from cloudsim.workload import NEVER_PULLS, OUT_OF_MEMORY, Workload
from laws import check
from seam import Crash, Seam, SeamClouds, Strike, Through
from world import INTERVAL, ZONE, Falcon, cluster, spec

from falcon_rm.apply import Applier
from falcon_rm.core.manifest import NAMESPACE
from falcon_rm.core.model import Bounds
from falcon_rm.core.plan import plan
from falcon_rm.core.words import CloudError, ClusterStatus
from falcon_rm.loop import one_pass
from falcon_rm.observe import observe
from falcon_rm.ports import StoreDown

CLUSTERS = (cluster("c1", default_reservation="r"), cluster("c2"), cluster("c3", "v7x"))
SEEDS = range(40)
TICKS = 120
QUIET_SECONDS = 24 * 3600
ACTORS = ("ann", "bob", "carol", "dan")
SHAPES = (("v6e", "2x2"), ("v6e", "4x4"), ("v6e", "1x1"), ("v7x", "2x2x1"), ("v7x", "2x2x2"))
MODES = ("on-demand", "on-demand", "flex-start", "reservation", "")
ERRORS = (
    SimError("UNAVAILABLE", "try again", 503),
    SimError("DEADLINE_EXCEEDED", "late", 504),
    SimError("RESOURCE_EXHAUSTED", "Too many operations: concurrent operations quota 5, please try again later.", 429),
    SimError("NOT_FOUND", "something was not found", 404),
)
AWAY = KubeError(503, "ServiceUnavailable", "no")
CALLS = ("gke.*", "gke.create_node_pool", "gke.delete_node_pool")
WHEN: tuple[Literal["before", "after", "hang"], ...] = ("before", "after", "hang")


class Life:
    """One seeded run: a world, two controllers, and people."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.falcon = Falcon(*CLUSTERS, bounds=Bounds(language="en", pod_start_image=300))
        self.falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 4)
        self.count = 0

    def submit(self) -> None:
        """Insert a job of a random kind."""
        chance, self.count = self.chance, self.count + 1
        job_id = f"j{self.count}"
        tpu_type, topology = chance.choice(SHAPES)
        mode = chance.choice(MODES)
        task = spec(topology, tpu_type, mode="on-demand" if (tpu_type, mode) == ("v7x", "reservation") else mode)
        if (topology, task.get("supply_mode")) in (("1x1", "reservation"), ("1x1", None)):
            task["supply_mode"] = "flex-start"
        does = chance.choice(
            (
                Workload(seconds=chance.choice((5, 60, 600))),
                Workload(seconds=20, exit_code=3),
                OUT_OF_MEMORY,
                NEVER_PULLS,
                Workload(seconds=30, attempts={1: Workload(seconds=None, lose_node_after=20)}),
            )
        )
        self.falcon.sim.scripts_by_job_id[job_id] = does
        task["max_retries"] = chance.choice((0, 1, 2))
        self.falcon.submit(
            job_id, task, actor=chance.choice(ACTORS), priority=chance.choice((0, 0, 5)), timeout_seconds=3600
        )

    def people(self) -> None:
        """Let a person or another program do something."""
        falcon, chance = self.falcon, self.chance
        live = [job for job in falcon.store.jobs.values() if job.status in ("Pending", "Running")]
        row = falcon.store.clusters[chance.choice(("c1", "c2", "c3"))]
        acts: tuple[Callable[[], object], ...] = (
            self.submit,
            self.submit,
            lambda: falcon.store.set_status(chance.choice(live).id, "Aborting"),
            lambda: falcon.store.delete_row(chance.choice(live).id),
            lambda: falcon.sim.gke.delete_by_hand(row.path, chance.choice(falcon.pools(row.id))),
            lambda: falcon.sim.kube(row.path).delete_by_hand("jobs", NAMESPACE, chance.choice(falcon.works(row.id))),
            lambda: falcon.store.add_cluster(evolve(row, status=chance.choice(tuple(ClusterStatus)))),
            lambda: falcon.sim.faults.add(
                Fault(chance.choice(CALLS), when=chance.choice(WHEN), error=chance.choice(ERRORS))
            ),
            lambda: falcon.sim.faults.add(Fault("kube.*", when=chance.choice(WHEN), error=AWAY)),
        )
        with suppress(IndexError, SimError, KubeError):
            chance.choice(acts)()

    def step(self) -> None:
        """Make one pass: whole, cut short by a crash, or on a plan that another controller has overtaken."""
        falcon, chance = self.falcon, self.chance
        kind = chance.choice(("whole", "whole", "crash", "overtaken"))
        with suppress(Crash, StoreDown):
            if kind == "whole":
                falcon.step()
            elif kind == "crash":
                seam = Seam(chance.randrange(40), chance.choice(tuple(Strike)))
                one_pass(
                    store=lambda: nullcontext(Through(falcon.store, seam)),
                    clouds=lambda: SeamClouds(DirectClouds(falcon.sim), seam),
                    bounds=falcon.bounds,
                    pass_seconds=60,
                )
            else:
                self.overtaken()

    def overtaken(self) -> None:
        """Plan, let another controller make passes and time go by, then apply the old plan all the same."""
        falcon, clouds = self.falcon, DirectClouds(self.falcon.sim)
        old = plan(observe(falcon.store, clouds, falcon.bounds, seconds=30))
        for _ in range(self.chance.randrange(1, 6)):
            falcon.step()
        falcon.advance(self.chance.choice((0, 10, 300)))
        applier = Applier(falcon.store, clouds)
        for action in old.actions:
            with suppress(CloudError):
                applier.apply(action)


@pytest.mark.parametrize("seed", SEEDS)
def test_seeded_life_comes_to_its_end(seed: int) -> None:
    """Whatever happened, once faults and people rest every job ends and nothing of ours is left."""
    life = Life(seed)
    falcon = life.falcon
    for _ in range(TICKS):
        if life.chance.random() < 0.3:
            life.people()
        life.step()
        check(falcon)
        falcon.advance(life.chance.choice((0, INTERVAL, INTERVAL, 60, 600)))
    falcon.sim.faults.clear()
    for row in CLUSTERS:
        falcon.store.add_cluster(row)
    falcon.bounds = Bounds(language="en", pod_start_image=300, allow_mass_delete=True)
    falcon.settle(seconds=QUIET_SECONDS)
    assert not [slot for slot in falcon.store.slots.values() if slot.holder]
    falcon.passes(2)
    check(falcon)
    for _ in range(3):
        assert () == falcon.step().plan.actions
        falcon.advance(700)
