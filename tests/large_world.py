"""
A large world at rest, in memory: clusters with a reservation each that is full, jobs that run for ever, jobs that wait.

It is made by Falcon's own passes, so that it is a world that can be.
"""

from cloudsim.tempo import brisk
from cloudsim.workload import NEVER_ENDS
from world import Falcon, cluster, spec

from falcon_rm.core.model import Bounds

ACTORS = 7
QUIET_PASSES, PAUSE_SECONDS = 5, 1.0
"""Longer than anything takes at this tempo."""


def large_world(*, jobs: int, pools: int, clusters: int) -> Falcon:
    """Return a world in which so many jobs live, as many of them with a pool as there are *pools*."""
    names = [f"c{number:02}" for number in range(clusters)]
    rows = [cluster(name, tpu_type="v7x", default_reservation=f"r-{name}") for name in names]
    falcon = Falcon(*rows, bounds=Bounds(language="en", visibility_grace=1), tempo=brisk())
    falcon.sim.default_workload = NEVER_ENDS
    for name in names:
        path = falcon.clusters[name].path
        falcon.sim.add_reservation(
            project=path.split("/")[1],
            zone=path.split("/")[3],
            name=f"r-{name}",
            machine_type="tpu7x-standard-4t",
            count=pools // clusters,
        )
    for number in range(jobs):
        task = spec("2x2x1", "v7x", mode="reservation")
        falcon.submit(f"job-{number:05}", task, actor=f"actor-{number % ACTORS}")
    settle(falcon)
    return falcon


def settle(falcon: Falcon) -> None:
    """Make passes until several in a row find nothing to do."""
    quiet = 0
    while quiet < QUIET_PASSES:
        made = falcon.step()
        quiet = 0 if made.plan.actions else quiet + 1
        if not made.progress:
            falcon.advance(PAUSE_SECONDS)
