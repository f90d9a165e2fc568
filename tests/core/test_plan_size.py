"""What plan() reads of the rows grows with their number, not with its square: counted, not timed (R16)."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import asdict, evolve
from crowds import jobs_that_lack_room, new_cpu_jobs

from falcon_rm.core.model import Job, Pool, Snapshot
from falcon_rm.core.plan import plan

CLUSTERS, FEW = 5, 60


class Counted:
    """A row that counts how often its fields are read."""

    reads = 0

    def __getattribute__(self, name: str) -> Any:
        Counted.reads += 1
        return super().__getattribute__(name)


class CountedJob(Counted, Job):
    """A job that counts."""


class CountedPool(Counted, Pool):
    """A pool that counts."""


def reads(of: Snapshot) -> int:
    """Return how often plan() reads fields of rows that count."""
    Counted.reads = 0
    assert plan(of).actions
    return Counted.reads


CROWDS: dict[str, Callable[[int], Snapshot]] = {
    "new jobs without a TPU": lambda jobs: new_cpu_jobs(jobs, CLUSTERS),
    "jobs that lack room": lambda jobs: jobs_that_lack_room(jobs, CLUSTERS),
    "jobs that never fit": lambda jobs: jobs_that_lack_room(jobs, CLUSTERS, machines=0),
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_twice_the_jobs_are_twice_the_work(crowd: str) -> None:
    """No job is compared with every other for each cluster it could go to."""

    def of_jobs(number: int) -> int:
        made = CROWDS[crowd](number)
        return reads(evolve(made, jobs=tuple(CountedJob(**asdict(job, recurse=False)) for job in made.jobs)))

    few, many = of_jobs(FEW), of_jobs(2 * FEW)
    assert few < many <= 2.1 * few


def test_pools_are_read_as_often_however_many_jobs_wait() -> None:
    """What pools of ours take from a reservation is summed once a pass."""

    def of_pools(jobs: int) -> int:
        made = jobs_that_lack_room(jobs, CLUSTERS, pools=20)
        return reads(evolve(made, pools=tuple(CountedPool(**asdict(pool, recurse=False)) for pool in made.pools)))

    assert 0 < of_pools(FEW) == of_pools(2 * FEW)
