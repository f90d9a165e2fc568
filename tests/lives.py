"""
Seeded lives: a world, the script of what happens to it, and how it must end (proof.md R7).

1. One integer draws all of it. A step carries its own chance and takes what it acts on from the world as it then is, so
   that a script stays one when steps are taken out of it.
2. While the script runs the laws hold after every step. Then faults and people rest, and within the budget every job is
   over, nothing of ours is left, and the plan is and stays empty.
3. A violation names seed, step, law, the shrunk script and the command that plays it again.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from hashlib import sha256
from random import Random
from typing import Literal

from attrs import evolve, frozen
from cloudsim.direct import DirectClouds
from cloudsim.errors import KubeError, SimError
from cloudsim.faults import Fault
from cloudsim.tempo import Tempo
from cloudsim.workload import NEVER_PULLS, OUT_OF_MEMORY, Workload
from laws import check
from legitimate import problems, stays_at_rest
from monkeys import GENTLE, HANDS, let, one
from seam import Crash, Seam, SeamClouds, Strike, Through
from world import INTERVAL, ZONE, Falcon, Inline, cluster, spec

from falcon_rm.apply import Applier
from falcon_rm.core.model import Bounds, TaskSpec
from falcon_rm.core.names import cloud_name
from falcon_rm.core.plan import plan
from falcon_rm.core.words import CloudError
from falcon_rm.loop import one_pass
from falcon_rm.observe import observe
from falcon_rm.ports import StoreDown

CLUSTERS = (cluster("c1", default_reservation="r"), cluster("c2"), cluster("c3", "v7x"))
MACHINES = ("ct6e-standard-1t", "ct6e-standard-4t", "tpu7x-standard-4t")
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
CALLS = ("gke.*", "gke.create_node_pool", "gke.delete_node_pool", "compute.*", "kube.*", "kube.create.jobs")
WHEN: tuple[Literal["before", "after", "hang", "stale", "partial"], ...] = (
    "before", "after", "hang", "hang", "stale", "partial",
)  # fmt: skip
QUIET_SECONDS = 48 * 3600
RESTING_PASSES = 5
OPERATION_SECONDS = 7200  # no operation in the clouds takes longer
SHRINKINGS = 150


@frozen
class Step:
    """One thing that happens, and how long nothing happens then."""

    kind: str
    chance: int
    seconds: float


KINDS: Mapping[str, int] = {
    "submit": 10, "pass": 80, "crash": 16, "overtaken": 10, "fault": 12, "rest": 6, "capacity": 3,
    **{monkey.__name__: 1 for monkey in GENTLE}, "back": 6, **{monkey.__name__: 1 for monkey in HANDS},
}  # fmt: skip
"""What can happen -> how often, beside the others."""
MONKEYS = {monkey.__name__: monkey for monkey in (*GENTLE, *HANDS)}
PAUSES = (0, 0, INTERVAL, INTERVAL, INTERVAL, 60, 600)


class Violation(AssertionError):
    """A law was broken, or the end was not reached."""


def script(seed: int, ticks: int) -> tuple[Step, ...]:
    """Return what happens in the life of a seed."""
    chance = Random(seed)
    kinds = chance.choices(list(KINDS), list(KINDS.values()), k=ticks)
    return tuple(Step(kind, chance.randrange(2**31), chance.choice(PAUSES)) for kind in kinds)


class Life:
    """The world of one seed."""

    def __init__(self, seed: int, jobs: int = 12) -> None:
        self.chance = Random(f"world {seed}")
        self.most = self.chance.randint(1, jobs)
        self.rows = CLUSTERS[: self.chance.randint(1, 3)]
        tempo = Tempo(
            concurrent_operations=self.chance.choice((1, 5)),
            visibility_seconds=self.chance.choice((0, 0, 45)),
            failed_pools_recover=self.chance.choice((True, False)),
        )
        self.falcon = Falcon(*self.rows, bounds=Bounds(language="en", pod_start_image=300), tempo=tempo)
        self.falcon.sim.add_reservation("p", ZONE, "r", "ct6e-standard-4t", self.chance.choice((0, 4, 5)))
        if self.chance.random() < 0.3:
            self.falcon.sim.set_quota("p", self.chance.choice(MACHINES), 16, late=self.chance.choice((True, False)))
        self.count = 0
        self.by_hand: set[str] = set()

    def play(self, steps: Sequence[Step]) -> None:
        """Let a script happen, then quiet; raise Violation where a law breaks."""
        for number, step in enumerate(steps):
            try:
                self._happen(step)
                self._check()
            except AssertionError as error:
                raise Violation(f"step {number}, {step.kind}: {error}") from error
            self.falcon.advance(step.seconds)
        try:
            self._rest()
        except AssertionError as error:
            raise Violation(f"in the quiet phase: {error}") from error

    def trace(self) -> str:
        """Return a hash of everything that happened: each effect in the clouds, each event, each row."""
        told = (
            [(call.name, call.target, call.at) for call in self.falcon.sim.effects],
            self.falcon.store.event_rows(),
            sorted(self.falcon.store.jobs.items()),
        )
        return sha256(repr(told).encode()).hexdigest()

    def _check(self) -> None:
        """Hold the laws against the world; calls that were looked at once need no second look."""
        check(self.falcon, self.by_hand)
        self.falcon.sim.calls.clear()

    def _happen(self, step: Step) -> None:
        chance = Random(step.chance)
        if step.kind in MONKEYS:
            touched = let(self.falcon, MONKEYS[step.kind], chance)
            self.by_hand |= {touched} if touched else set()
            return
        act: Callable[[Random], None] = getattr(self, f"_{step.kind}")
        with suppress(Crash, StoreDown):
            act(chance)

    # --- upstream and the clouds

    def _submit(self, chance: Random) -> None:
        """Insert a job of a random kind."""
        if self.count >= self.most:
            return
        self.count += 1
        tpu_type, topology = one(chance, SHAPES)
        mode = one(chance, MODES)
        if mode in ("reservation", "") and (tpu_type == "v7x" or topology == "1x1"):
            mode = "flex-start" if topology == "1x1" else "on-demand"
        does = one(
            chance,
            (
                Workload(seconds=one(chance, (5, 60, 600))),
                Workload(seconds=20, exit_code=3),
                OUT_OF_MEMORY,
                NEVER_PULLS,
                Workload(seconds=30, attempts={1: Workload(seconds=None, lose_node_after=20)}),
            ),
        )
        job_id = f"j{self.count}"
        self.falcon.sim.scripts_by_job_id[job_id] = does
        task = spec(topology, tpu_type, mode=mode, max_retries=chance.randrange(3))
        if chance.random() < 0.1:
            task = {"image": "i", "device_type": "cpu", "command": "true"}
        self.falcon.submit(
            job_id, task, actor=one(chance, ACTORS), priority=one(chance, (0, 0, 5)), timeout_seconds=3600
        )

    def _capacity(self, chance: Random) -> None:
        """Let a kind of machine run out, or come back."""
        left = one(chance, (0, 4, None, None))
        self.falcon.sim.set_capacity(ZONE, one(chance, ("on-demand", "flex-start")), one(chance, MACHINES), left)

    def _fault(self, chance: Random) -> None:
        """Let one call of a kind go wrong."""
        call, when = one(chance, CALLS), one(chance, WHEN)
        error = AWAY if call.startswith("kube") else one(chance, ERRORS)
        later = one(chance, (None, 5.0, 300.0)) if when == "hang" else None
        self.falcon.sim.faults.add(
            Fault(call, when=when, error=error, skip=chance.randrange(4), effect=chance.random() < 0.5, later=later)
        )

    def _rest(self, chance: Random | None = None) -> None:
        """Take all faults away; and, for good, put everything in order and wait for the end."""
        self.falcon.sim.faults.clear()
        if chance is not None:
            return
        falcon = self.falcon
        for row in self.rows:
            falcon.store.add_cluster(row)
        for mode in ("on-demand", "flex-start"):
            for machine in MACHINES:
                falcon.sim.set_capacity(ZONE, mode, machine, None)
                falcon.sim.set_quota("p", machine, None)
        falcon.sim.compute.set_reservation("p", ZONE, "r", count=5)
        falcon.bounds = evolve(falcon.bounds, allow_mass_delete=True)
        self._settle(QUIET_SECONDS)
        falcon.advance(OPERATION_SECONDS)
        self._settle(QUIET_SECONDS)
        if not self.by_hand:
            stays_at_rest(falcon, RESTING_PASSES)

    def _settle(self, seconds: float) -> None:
        """Make passes until one finds everything over, and nothing to do."""
        falcon, limit = self.falcon, self.falcon.store.now + seconds
        while True:
            made = falcon.step()
            self._check()
            if self._is_over() and not self._problems() and not made.plan.actions:
                return
            assert falcon.store.now < limit, f"{falcon.describe()}\n{self._problems()}"
            falcon.go_on(made)

    def _is_over(self) -> bool:
        """Return whether every job is over, or asks for what no cluster has."""
        types = {row.tpu_type for row in self.rows}
        return all(
            job.status in ("Succeeded", "Failed", "Aborted")
            or (isinstance(job.task, TaskSpec) and job.task.tpu_type not in (None, *types))
            for job in self.falcon.rows()
            if job.id not in self.by_hand
        )

    def _problems(self) -> list[str]:
        """Return what is wrong, but for jobs whose rows somebody wrote by hand."""
        excused = {word for job_id in self.by_hand for word in (job_id, cloud_name(job_id, 1))}
        return [text for text in problems(self.falcon) if not excused & set(text.split())]

    # --- controllers

    def _pass(self, chance: Random) -> None:
        """Make a whole pass."""
        self.falcon.step()

    def _crash(self, chance: Random) -> None:
        """Make a pass that one fault strikes, a crash among them."""
        seam = Seam(chance.randrange(40), one(chance, tuple(Strike)))
        one_pass(
            store=lambda: nullcontext(Through(self.falcon.store, seam)),
            clouds=lambda: SeamClouds(DirectClouds(self.falcon.sim), seam),
            bounds=self.falcon.bounds,
            pass_seconds=60,
            readers=Inline,
        )

    def _overtaken(self, chance: Random) -> None:
        """Plan, let another controller make passes and time go by, then carry the old plan out all the same."""
        falcon, clouds = self.falcon, DirectClouds(self.falcon.sim)
        old = plan(observe(falcon.store, clouds, falcon.bounds, seconds=30, readers=Inline))
        for _ in range(chance.randrange(1, 6)):
            falcon.step()
        falcon.advance(one(chance, (0, 10, 300)))
        applier = Applier(falcon.store, clouds)
        for action in old.actions:
            with suppress(CloudError):
                applier.apply(action)


def play(seed: int, ticks: int, jobs: int = 12) -> Life:
    """Play the life of a seed; a violation names the shrunk script."""
    steps, life = script(seed, ticks), Life(seed, jobs)
    try:
        life.play(steps)
    except Violation as violation:
        small, last = shrink(seed, steps, jobs, violation)
        lines = "\n".join(f"  {step}" for step in small)
        raise Violation(
            f"seed {seed}, {ticks} ticks: {violation}\nshrunk to {len(small)} steps: {last}\n{lines}\n"
            f"hack/soak --seed {seed} --ticks {ticks} --jobs {jobs}"
        ) from violation
    return life


def shrink(seed: int, steps: Sequence[Step], jobs: int, why: Violation) -> tuple[Sequence[Step], Violation]:
    """Return a shorter script that still breaks a law, and how it breaks it."""
    size, tries = len(steps) // 2, 0
    while size and tries < SHRINKINGS:
        start = 0
        while start < len(steps) and tries < SHRINKINGS:
            shorter, tries = (*steps[:start], *steps[start + size :]), tries + 1
            try:
                Life(seed, jobs).play(shorter)
            except Violation as violation:
                steps, why = shorter, violation
            else:
                start += size
        size //= 2
    return steps, why
