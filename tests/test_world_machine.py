"""
One machine with every rule and every monkey, searched by Hypothesis (proof.md 8).

1. The laws hold after every rule; those about a step are held against each step of Falcon's.
2. teardown always runs: faults and people rest, and within the budget the world is that of proof.md 3.
3. The search looks for worlds that need many passes to come to their end.
"""

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from random import Random
from typing import Any

from attrs import evolve
from cloudsim.direct import DirectClouds
from cloudsim.gke_pools import Doom
from cloudsim.workload import NEVER_ENDS, NEVER_PULLS, OUT_OF_MEMORY, Workload
from hypothesis import HealthCheck, settings, target
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule
from interruptions import controller
from laws import check, check_step, mark
from lives import Life
from monkeys import GENTLE, HANDS, let
from seam import Crash, Seam, SeamClouds, Strike, Through
from world import Inline, spec

from falcon_rm.core.words import CloudError, ClusterStatus
from falcon_rm.loop import Pass, one_pass
from falcon_rm.ports import StoreDown

MOST_JOBS = 6  # crowds are in lives.py
SEEDS = st.integers(0, 2**16)
SHAPES = st.sampled_from([("v6e", "2x2"), ("v6e", "4x4"), ("v6e", "1x1"), ("v7x", "2x2x1")])
MODES = st.sampled_from(["on-demand", "flex-start", "reservation"])
STOCKOUT = "GCE_STOCKOUT: the zone does not have enough resources available"
CREATES = {
    "well": None,
    "no capacity": Doom(message=STOCKOUT, condition="GCE_STOCKOUT"),
    "nothing left": Doom(message="Quota 'TPUS' exceeded", leaves="nothing"),
    "never possible": Doom(message="invalid target size"),
    "full": Doom(message="Reservation does not have enough resources"),
}
PODS = {
    "end": Workload(seconds=20),
    "fail": Workload(seconds=20, exit_code=3),
    "out of memory": OUT_OF_MEMORY,
    "never start": NEVER_PULLS,
    "never end": NEVER_ENDS,
    "lose a node": Workload(seconds=30, attempts={1: Workload(seconds=None, lose_node_after=20)}),
}


class Machine(RuleBasedStateMachine):
    """Everything that may happen to a world, in any order."""

    jobs = Bundle("jobs")
    count = 0

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        """Draw the clusters, their reservation and quota, and how the clouds behave."""
        self.life = Life(seed)
        self.falcon, self.by_hand = self.life.falcon, self.life.by_hand
        self.other: Iterator[None] = controller(self.falcon)
        self.passes = 0
        step = self.falcon.step

        def counted(**more: Any) -> Pass:
            self.passes += 1
            return step(**more)

        self.falcon.step = counted  # type: ignore[method-assign]

    @precondition(lambda self: self.count < MOST_JOBS)
    @rule(target=jobs, shape=SHAPES, mode=MODES, retries=st.integers(0, 2), who=st.sampled_from(["ann", "bob"]))
    def submit(self, shape: tuple[str, str], mode: str, retries: int, who: str) -> str:
        """Insert a job."""
        self.count += 1
        tpu_type, topology = shape
        given = "on-demand" if mode == "reservation" and topology in ("1x1", "2x2x1") else mode
        task = spec(topology, tpu_type, mode=given, max_retries=retries)
        self.falcon.submit(f"j{self.count}", task, actor=who, timeout_seconds=3600)
        return f"j{self.count}"

    @rule(job=jobs)
    def abort(self, job: str) -> None:
        """Ask for the end of a job that is not over."""
        row = self.falcon.store.jobs.get(job)
        if row is not None and row.status in ("Pending", "Running"):
            self.falcon.store.set_status(job, "Aborting")

    @rule(job=consumes(jobs))
    def delete_row(self, job: str) -> None:
        """Delete a row, whatever its state."""
        if job in self.falcon.store.jobs:
            self.falcon.store.delete_row(job)

    @rule(at=st.none() | st.integers(0, 30), strike=st.sampled_from(Strike))
    def reconcile(self, at: int | None, strike: Strike) -> None:
        """Make a pass, whole or struck by a fault at one of its calls."""
        before, seam, made = mark(self.falcon), Seam(at, strike), None
        with suppress(Crash, StoreDown):
            made = one_pass(
                store=lambda: nullcontext(Through(self.falcon.store, seam)),
                clouds=lambda: SeamClouds(DirectClouds(self.falcon.sim), seam),
                bounds=self.falcon.bounds,
                pass_seconds=60,
                readers=Inline,
            )
        if not self.by_hand:
            check_step(before, self.falcon, made if at is None else None)

    @rule()
    def second_controller_step(self) -> None:
        """Let another process look at the world, or carry out one action of its plan, however old."""
        with suppress(CloudError):
            next(self.other)

    @rule(choice=st.sampled_from(sorted(CREATES)), seconds=st.sampled_from([10.0, 60.0, 400.0]))
    def gke_progress(self, choice: str, seconds: float) -> None:
        """Say how the next create goes, and let the clouds work."""
        doom = CREATES[choice]
        if doom is not None:
            self.falcon.sim.gke.doom(doom)
        self.falcon.advance(seconds)

    @rule(choice=st.sampled_from(sorted(PODS)), seconds=st.sampled_from([1.0, 10.0, 100.0]))
    def kube_progress(self, choice: str, seconds: float) -> None:
        """Say what pods that come do, and let the clouds work."""
        self.falcon.sim.default_workload = PODS[choice]
        self.falcon.advance(seconds)

    @rule(kind=st.sampled_from([*GENTLE, *HANDS]), seed=SEEDS)
    def monkey(self, kind: Any, seed: int) -> None:
        """Let somebody do something to what is there."""
        touched = let(self.falcon, kind, Random(seed))
        if touched:
            self.by_hand.add(touched)

    @rule(place=st.integers(0, 2), status=st.sampled_from(ClusterStatus))
    def cluster(self, place: int, status: ClusterStatus) -> None:
        """Let an operator change a cluster's status."""
        row = self.life.rows[place % len(self.life.rows)]
        self.falcon.store.add_cluster(evolve(self.falcon.store.clusters[row.id], status=status))

    @rule(seconds=st.sampled_from([0.5, 10.0, 130.0, 700.0, 4000.0]))
    def tick(self, seconds: float) -> None:
        """Let time pass."""
        self.falcon.advance(seconds)

    @invariant()
    def laws(self) -> None:
        """S1 to S11 of a world."""
        check(self.falcon, self.by_hand)

    def teardown(self) -> None:
        """Let everything rest: every job comes to its end, nothing is left, nothing is planned."""
        if not hasattr(self, "falcon"):
            return
        before = self.passes
        self.life.play(())
        target((self.passes - before) / max(1, self.count), label="passes to rest, a job")


TestMachine = Machine.TestCase
TestMachine.settings = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
