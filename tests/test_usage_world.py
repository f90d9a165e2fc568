"""Chip-hours over a long run: what the ledger accounts for is what the simulated cloud has on record."""

import random
from collections import Counter
from contextlib import nullcontext

import pytest
from cloudsim.direct import DirectClouds
from cloudsim.tempo import Tempo
from cloudsim.values import Json
from cloudsim.workload import NEVER_PULLS, OUT_OF_MEMORY, Workload
from seam import Crash, Seam, SeamClouds, Strike, Through
from world import ZONE, Falcon, cluster, spec

from falcon_rm.core.model import Bounds
from falcon_rm.core.usage import KEYS, Use, account, all_stretches, span
from falcon_rm.loop import one_pass

JOBS, INTERVAL = 1000, 30.0
CLUSTERS = (cluster("c1", default_reservation="r"), cluster("c2"), cluster("c3", "v7x"), cluster("c4", "v7x"))
SHAPES = (
    ("v6e", "1x1"), ("v6e", "2x2"), ("v6e", "2x4"), ("v7x", "1x1x1"), ("v7x", "2x2x1"), ("v7x", "2x2x2"),
)  # fmt: skip
MODES = ("on-demand", "on-demand", "flex-start")
ACTORS = ("ann", "bob", "carol", "dan", "eve")
TEMPO = Tempo(create_seconds=12, node_seconds=4, flex_seconds=8, create_flex_seconds=4, delete_seconds=15)


class Run:
    """A seeded run: upstream submits and aborts, containers fail, Falcon is killed and started again."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.falcon = Falcon(*CLUSTERS, bounds=Bounds(language="en", pod_start_image=60), tempo=TEMPO)
        self.falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", 16)
        self.submitted = self.crashes = 0

    def submit(self) -> None:
        """Insert a job of a random kind."""
        chance, self.submitted = self.chance, self.submitted + 1
        job_id, (tpu_type, topology) = f"j{self.submitted}", chance.choice(SHAPES)
        mode = "" if (tpu_type, topology) == ("v6e", "2x2") else chance.choice(MODES)
        self.falcon.sim.scripts_by_job_id[job_id] = chance.choice(
            (Workload(seconds=5), Workload(seconds=15), Workload(seconds=40), Workload(exit_code=3), OUT_OF_MEMORY)
            if chance.random() < 0.97
            else (NEVER_PULLS,)
        )
        task = spec(topology, tpu_type, mode, exp_id=chance.choice(("", "e1", "e2")))
        self.falcon.submit(job_id, task, actor=chance.choice(ACTORS), timeout_seconds=3600)

    def people(self) -> None:
        """Let upstream submit some jobs and, now and then, abort one or delete its row."""
        for _ in range(min(self.chance.randrange(36), JOBS - self.submitted)):
            self.submit()
        live = [job.id for job in self.falcon.rows() if job.status in ("Pending", "Running")]
        for job_id in self.chance.sample(live, min(len(live), self.chance.randrange(3))):
            self.falcon.store.set_status(job_id, "Aborting")
        over = [job.id for job in self.falcon.rows() if job.status in ("Succeeded", "Failed", "Aborted")]
        for job_id in over[:30]:
            self.falcon.store.delete_row(job_id)

    def tick(self) -> None:
        """Make passes until one has nothing to do; some are killed, and the next process begins at once."""
        while True:
            if self.chance.random() < 0.15:
                self._killed()
            if not self.falcon.step().progress:
                break
        self.falcon.advance(INTERVAL)

    def records(self) -> list[Json]:
        """Return the cloud's own record of Falcon's pools."""
        return [each for each in self.falcon.sim.gke.pools.records if each["name"].startswith("falcon-")]

    def _killed(self) -> None:
        seam = Seam(self.chance.randrange(15, 60), self.chance.choice((Strike.CRASH_BEFORE, Strike.CRASH_AFTER)))
        try:
            one_pass(
                store=lambda: nullcontext(Through(self.falcon.store, seam)),
                clouds=lambda: SeamClouds(DirectClouds(self.falcon.sim), seam),
                bounds=self.falcon.bounds,
                pass_seconds=60,
            )
        except Crash:
            self.crashes += 1


@pytest.fixture(scope="module")
def run() -> Run:
    """A run of JOBS jobs, to its end; GKE forgets operations sooner, since each list of them takes its time."""
    made = Run(7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloudsim.gke.REMEMBERED_SECONDS", 60)
        while made.submitted < JOBS or not made.falcon.is_over() or made.falcon.leftovers():
            made.people()
            made.tick()
            made.falcon.sim.calls.clear()
    return made


def test_the_run_is_what_it_should_be(run: Run) -> None:
    """It has pools handed on, aborts, crashes, and rows of jobs that upstream deleted."""
    lives = run.falcon.store.lives()
    ended = Counter(event.to_status for event in run.falcon.store.event_rows())
    assert sum(len(life.leases) > 1 for life in lives) > 100
    assert min(ended["Aborted"], ended["Failed"], run.crashes) > 20
    assert len(run.falcon.rows()) < 100


def test_every_pool_counts_as_long_as_the_cloud_had_it(run: Run) -> None:
    """
    Each pool counts from its create to the first full list that lacks it, to the second, by the cloud's own record.

    The pool itself was gone at most one interval before that list.
    """
    paths = {row.path: row.name for row in CLUSTERS}
    records = run.records()
    expected = {(paths[each["path"]], each["name"]): (each["began"], each["missed"]) for each in records}
    now = run.falcon.store.now
    assert expected == {
        (life.cluster, life.pool): found for life in run.falcon.store.lives() if (found := span(life, now))
    }
    late = [each["missed"] - each["gone"] for each in records]
    assert (True, True) == (min(late) >= 0, max(late) <= INTERVAL)


@pytest.mark.parametrize("by", [(), *((name,) for name in KEYS), ("actor", "day"), tuple(KEYS)], ids="-".join)
def test_the_sum_is_the_clouds(run: Run, by: tuple[str, ...]) -> None:
    """By whatever chip-hours are counted, their sum is the cloud's own record of its pools, to the second."""
    records = run.records()
    rows = account(run.falcon.store.lives(), run.falcon.store.now, by)
    total = sum(row.total for row in rows)
    assert abs(total - sum(each["chips"] * (each["missed"] - each["began"]) for each in records)) < 1
    assert min(min(row.chip_seconds.values()) for row in rows) >= 0


def test_busy_time_is_the_jobs_own(run: Run) -> None:
    """What is busy is what jobs spent from Running to their lease's end; each use has its share."""
    began: dict[str, float] = {}
    for event in run.falcon.store.event_rows():
        if (event.from_status, event.to_status) == ("Pending", "Running"):
            began[event.job_id] = event.at
    ended = {lease.job_id: lease.until_at for lease in run.falcon.store.lease_rows() if lease.job_id in began}
    expected = sum((ended[job_id] or 0) - at for job_id, at in began.items())
    found = dict.fromkeys(Use, 0.0)
    for stretch in all_stretches(run.falcon.store.lives(), run.falcon.store.now):
        found[stretch.use] += stretch.seconds
    assert abs(expected - found[Use.BUSY]) < 1
    assert min(found.values()) > 0
