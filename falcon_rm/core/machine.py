"""
What one job needs next, in every situation that a pass can meet.

1. Every decision about a job is a row of RULES; no other code takes one. PLACE and QUEUE hand over to schedule.py.
2. Nothing here does I/O, reads a clock or remembers an earlier pass.
3. Unknown is not absent: the rules marked 3 stand before any that acts.
4. A Job is made suspended, and let go when its uid is in the row: one that comes too late, or that no row knows, never
   runs.
5. The outcome is in the row before anything of an attempt is stopped or released: only ENDING and ABORTING stop and
   release, and an attempt enters ENDING by a note.
6. Rules are ordered, the first that matches wins. The table is total: a gap is an import error.

What can be seen of a pool and of a Kubernetes Job is worked out in situation.py; how a step becomes an action stands in
steps.py.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import product

from attrs import frozen

from falcon_rm.core.words import Outcome, Reason


class Fact(Enum):
    """A closed set of things that can be seen. Members hash by identity: the table is looked up often."""

    __hash__ = object.__hash__


class Phase(Fact):
    """Where the job stands, read off (status, reason, outcome)."""

    NEW = "new"
    WAITING = "waiting"  # Waiting or ClusterBusy: owns nothing
    PROVISIONING = "provisioning"
    WAITING_FOR_NODE = "waiting-for-node"
    DISPATCHING = "dispatching"
    RUNNING = "running"
    ENDING = "ending"  # has an outcome
    ABORTING = "aborting"
    TERMINAL = "terminal"


class PoolSeen(Fact):
    """What this pass knows of the job's node pool."""

    UNNEEDED = "unneeded"  # a CPU job
    NONE = "none"  # it has none, or what it had is gone, free or another's
    UNKNOWN = "unknown"  # a read failed, or a word nobody knows
    HIDDEN = "hidden"  # asked for moments ago, not listed yet
    ABSENT = "absent"  # a complete list lacks it and no create is under way
    PUT_OFF = "put-off"  # the same, and GKE, busy with something else, refused it for now
    LOST = "lost"  # was listed once, is not any more; or its lease is another's
    CREATING = "creating"
    UP = "up"  # control plane says RUNNING, nodes missing
    EMPTY = "empty"  # the same of flex-start: its nodes come only for pending pods
    READY = "ready"  # every node Ready
    BROKEN = "broken"  # failed for want of capacity, quota, or for a reason nobody knows
    FULL = "full"  # failed: the reservation has no room
    REFUSED = "refused"  # failed: the request can never work
    TROUBLE = "trouble"  # failed: the cluster's own trouble
    STOPPING = "stopping"  # being deleted by others while the job holds it
    TAKEN = "taken"  # the name belongs to something that is not ours
    LEAVING = "leaving"  # given up, Deleting, not gone yet


class WorkSeen(Fact):
    """What this pass knows of the Kubernetes Job of the current attempt."""

    UNKNOWN = "unknown"
    ABSENT = "absent"  # never seen
    GONE = "gone"  # its uid is in the row, a complete list lacks it
    UNRECORDED = "unrecorded"  # there, but its uid is not in the row yet
    PREPARED = "prepared"  # there, suspended as it was made, its uid in the row
    STARTING = "starting"  # some pods do not run yet
    STUCK = "stuck"  # the same, past the deadline of what holds them up
    RUNNING = "running"  # every pod runs
    SUCCEEDED = "succeeded"
    FAILED_APP = "failed-app"
    FAILED_INFRA = "failed-infra"  # lost with its node, or rejected by it
    STOPPING = "stopping"  # being deleted, or pods of it are left
    REFUSED = "refused"  # Kubernetes refused it for good
    DENIED = "denied"  # Falcon lacks a right there: the cluster's own trouble


class Timing(Fact):
    """
    The bound of this phase: creation; node wait, until the Job is submitted; run time; in ENDING and ABORTING the
    stop's, then the release's.
    """

    ON_TIME = "on-time"
    LATE = "late"
    OVERDUE = "overdue"  # only ENDING and ABORTING: the release has been stuck too long


class Chance(Fact):
    """What the neighbours mean for a job that acquires."""

    NONE = "none"
    BETTER = "better"  # a free fitting pool is further along than its own
    CONTESTED = "contested"  # a job of another topology waits in this cluster


class Verb(Enum):
    """What a step does; steps.py has one function for each."""

    WAIT = "wait"
    PLACE = "place"  # parse, choose a cluster
    QUEUE = "queue"  # the scheduler decides
    CREATE = "create the pool"
    TAKE = "take the better pool, give up its own"
    SUBMIT = "submit the Job, suspended"
    RESUME = "let the Job go"
    STOP = "stop the work"
    RELEASE = "release the pool: to a waiting job that fits, else delete"
    DISCARD = "give the pool up for deletion"
    CLEAN = "delete the ended Job"
    FINISH = "write the status that the outcome names"
    ABORTED = "write Aborted"
    GO = "go on to"
    BACK = "back to Waiting:"
    FAIL = "end as Failed:"
    NOTE = "note the outcome"


@frozen
class Step:
    """One step of one job, at most one a pass. *word* is the reason, outcome or cause that the verb needs."""

    verb: Verb
    word: str = ""

    def __str__(self) -> str:
        return f"{self.verb.value} {self.word}".strip()


@frozen
class Situation:
    """One case of the table."""

    phase: Phase
    pool: PoolSeen
    work: WorkSeen
    timing: Timing
    left: bool  # one more failure is allowed: of pools while acquiring, of runs while running
    chance: Chance


F, P, W, T, C = Phase, PoolSeen, WorkSeen, Timing, Chance

WAIT, PLACE, QUEUE, CREATE, TAKE, SUBMIT, RESUME = (
    Step(v) for v in (Verb.WAIT, Verb.PLACE, Verb.QUEUE, Verb.CREATE, Verb.TAKE, Verb.SUBMIT, Verb.RESUME)
)
STOP, RELEASE, DISCARD, CLEAN, FINISH, ABORTED = (
    Step(v) for v in (Verb.STOP, Verb.RELEASE, Verb.DISCARD, Verb.CLEAN, Verb.FINISH, Verb.ABORTED)
)
TO_NODES, TO_DISPATCHING = Step(Verb.GO, Reason.WAITING_FOR_NODE), Step(Verb.GO, Reason.DISPATCHING)
TO_RUNNING = Step(Verb.GO, "Running")
BACK_FAILED = Step(Verb.BACK, "failed")  # retry_at, one pool failure counted
BACK_FULL = Step(Verb.BACK, "full")  # retry_at, shows ClusterBusy, nothing counted
BACK_BUSY = Step(Verb.BACK, "busy")  # retry_at, nothing counted
BACK_TROUBLE = Step(Verb.BACK, "cluster")  # the cluster is no candidate for a while, nothing counted
BACK_NODES = Step(Verb.BACK, "nodes")  # retry_at, nothing counted
BACK_BARE = Step(Verb.BACK, "bare")  # an impossible row: acquiring, but holding nothing
POOL_TIMEOUT, POOL_FAILED = Step(Verb.FAIL, Reason.NODE_POOL_TIMEOUT), Step(Verb.FAIL, Reason.NODE_POOL_FAILED)
SUCCEEDED, JOB_FAILED, TIMED_OUT = (
    Step(Verb.NOTE, o) for o in (Outcome.SUCCEEDED, Outcome.JOB_FAILED, Outcome.TIMEOUT)
)
SUBMIT_FAILED, LOST, YIELD = (Step(Verb.NOTE, o) for o in (Outcome.JOB_SUBMIT_FAILED, Outcome.LOST, Outcome.YIELD))

ANY = None
LEAVE = {F.ENDING, F.ABORTING}
ACQUIRE = {F.PROVISIONING, F.WAITING_FOR_NODE}
STARTED = {F.DISPATCHING, F.RUNNING}
USABLE = {P.CREATING, P.UP, P.EMPTY, P.READY}
SPENT = {P.ABSENT, P.PUT_OFF, P.HIDDEN, P.LOST, P.BROKEN, P.FULL, P.REFUSED, P.TROUBLE, P.STOPPING, P.TAKEN}
HELD = USABLE | SPENT
SETTLED = {P.NONE, P.UNNEEDED}
VANISHED = {P.LOST, P.TAKEN, P.ABSENT, P.PUT_OFF}
MISSING = {P.LOST, P.TAKEN, P.BROKEN, P.ABSENT, P.PUT_OFF, P.HIDDEN, P.STOPPING}
ALIVE = {W.UNRECORDED, W.PREPARED, W.STARTING, W.STUCK, W.RUNNING}
ENDED = {W.SUCCEEDED, W.FAILED_APP, W.FAILED_INFRA}
NOTHING = {W.ABSENT, W.GONE, W.REFUSED, W.DENIED}
PASSED = {T.LATE, T.OVERDUE}

Pattern = tuple[object, ...]

RULES: tuple[tuple[Pattern, Step], ...] = (
    # phase                pool             work                 timing     left   chance
    ((F.TERMINAL,          ANY,             ANY,                 ANY,       ANY,   ANY),          WAIT),
    ((F.NEW,               ANY,             ANY,                 ANY,       ANY,   ANY),          PLACE),
    ((F.WAITING,           ANY,             ANY,                 ANY,       ANY,   ANY),          QUEUE),
    ((ANY,                 P.UNKNOWN,       ANY,                 ANY,       ANY,   ANY),          WAIT),  # 3
    ((ANY,                 ANY,             W.UNKNOWN,           ANY,       ANY,   ANY),          WAIT),  # 3
    # Ending and Aborting: stop the work, release the pool, delete the Job, write the end.
    ((LEAVE,               HELD,            ALIVE | {W.STOPPING}, PASSED,   ANY,   ANY),          DISCARD),
    ((F.ENDING,            ANY,             ALIVE | {W.STOPPING}, T.OVERDUE, ANY,  ANY),          FINISH),
    ((F.ABORTING,          ANY,             ALIVE | {W.STOPPING}, T.OVERDUE, ANY,  ANY),          ABORTED),
    ((LEAVE,               ANY,             ALIVE,               ANY,       ANY,   ANY),          STOP),
    ((LEAVE,               ANY,             W.STOPPING,          ANY,       ANY,   ANY),          WAIT),
    ((LEAVE,               USABLE,          ANY,                 ANY,       ANY,   ANY),          RELEASE),
    ((LEAVE,               SPENT,           ANY,                 ANY,       ANY,   ANY),          DISCARD),
    ((LEAVE,               P.LEAVING,       ANY,                 {T.ON_TIME, T.LATE}, ANY, ANY),  WAIT),
    ((F.ENDING,            SETTLED,         ENDED,               T.OVERDUE, ANY,   ANY),          FINISH),
    ((F.ABORTING,          SETTLED,         ENDED,               T.OVERDUE, ANY,   ANY),          ABORTED),
    ((LEAVE,               ANY,             ENDED,               ANY,       ANY,   ANY),          CLEAN),
    ((F.ENDING,            ANY,             NOTHING,             ANY,       ANY,   ANY),          FINISH),
    ((F.ABORTING,          ANY,             NOTHING,             ANY,       ANY,   ANY),          ABORTED),
    # A Job that was seen decides before its pool does: while every pod runs, a list that lacks the pool ends nothing.
    ((F.RUNNING,           ANY,             W.SUCCEEDED,         ANY,       ANY,   ANY),          SUCCEEDED),
    ((F.RUNNING,           ANY,             W.FAILED_APP,        ANY,       ANY,   ANY),          JOB_FAILED),
    ((F.DISPATCHING,       ANY,             {W.SUCCEEDED, W.FAILED_APP, W.RUNNING}, ANY, ANY, ANY), TO_RUNNING),
    ((F.WAITING_FOR_NODE,  ANY,             {W.SUCCEEDED, W.FAILED_APP, W.RUNNING}, ANY, ANY, ANY), TO_DISPATCHING),
    ((STARTED | ACQUIRE,   ANY,             W.FAILED_INFRA,      ANY,       True,  ANY),          LOST),
    ((STARTED | ACQUIRE,   ANY,             W.FAILED_INFRA,      ANY,       False, ANY),          JOB_FAILED),
    ((F.RUNNING,           VANISHED,        W.RUNNING,           T.ON_TIME, ANY,   ANY),          WAIT),
    ((STARTED | ACQUIRE,   VANISHED,        ALIVE | {W.STOPPING, W.GONE}, ANY, True, ANY),        LOST),
    ((STARTED | ACQUIRE,   VANISHED,        ALIVE | {W.STOPPING, W.GONE}, ANY, False, ANY),       JOB_FAILED),
    ((STARTED | ACQUIRE,   ANY,             W.GONE,              ANY,       ANY,   ANY),          JOB_FAILED),
    ((STARTED | ACQUIRE,   ANY,             W.REFUSED,           ANY,       ANY,   ANY),          SUBMIT_FAILED),
    ((STARTED | ACQUIRE,   ANY,             W.DENIED,            ANY,       ANY,   ANY),          YIELD),
    ((STARTED,             ANY,             ALIVE | {W.STOPPING}, PASSED,   ANY,   ANY),          TIMED_OUT),
    ((F.DISPATCHING,       ANY,             W.STUCK,             ANY,       ANY,   ANY),          JOB_FAILED),
    ((STARTED,             ANY,             W.PREPARED,          ANY,       ANY,   ANY),          RESUME),
    ((F.RUNNING,           ANY,             ALIVE | {W.STOPPING}, ANY,      ANY,   ANY),          WAIT),
    ((F.RUNNING,           ANY,             W.ABSENT,            ANY,       ANY,   ANY),          JOB_FAILED),
    ((F.DISPATCHING,       ANY,             W.UNRECORDED,        ANY,       ANY,   ANY),          SUBMIT),
    ((F.DISPATCHING,       ANY,             {W.STARTING, W.STOPPING}, ANY,  ANY,   ANY),          WAIT),
    ((F.DISPATCHING,       {P.READY, P.UNNEEDED}, W.ABSENT,      ANY,       ANY,   ANY),          SUBMIT),
    ((F.DISPATCHING,       {P.UP, P.EMPTY, P.CREATING}, W.ABSENT, ANY,      ANY,   ANY),          TO_NODES),
    # Acquiring: the pool decides.
    ((F.WAITING_FOR_NODE,  P.READY,         ANY,                 ANY,       ANY,   ANY),          TO_DISPATCHING),
    ((F.PROVISIONING,      P.READY,         ANY,                 ANY,       ANY,   ANY),          TO_DISPATCHING),
    ((F.PROVISIONING,      {P.UP, P.EMPTY}, ANY,                 ANY,       ANY,   C.BETTER),     TAKE),
    ((F.PROVISIONING,      {P.UP, P.EMPTY}, ANY,                 ANY,       ANY,   ANY),          TO_NODES),
    ((F.WAITING_FOR_NODE,  {P.UP, P.EMPTY}, W.ABSENT,            ANY,       ANY,   C.BETTER),     TAKE),
    ((F.WAITING_FOR_NODE,  {P.UP, P.EMPTY}, W.ABSENT,            PASSED,    ANY,   C.CONTESTED),  BACK_NODES),
    ((F.WAITING_FOR_NODE,  {P.UP, P.EMPTY}, ALIVE | {W.STOPPING}, PASSED,   ANY,   C.CONTESTED),  YIELD),
    ((F.WAITING_FOR_NODE,  P.EMPTY,         {W.ABSENT, W.UNRECORDED}, ANY,  ANY,   ANY),          SUBMIT),
    ((F.WAITING_FOR_NODE,  P.EMPTY,         W.PREPARED,          ANY,       ANY,   ANY),          RESUME),
    ((F.WAITING_FOR_NODE,  {P.UP, P.EMPTY, P.CREATING}, ANY,     ANY,       ANY,   ANY),          WAIT),
    ((F.PROVISIONING,      {P.ABSENT, P.PUT_OFF, P.HIDDEN, P.CREATING}, ANY, ANY, ANY, C.BETTER), TAKE),
    ((F.PROVISIONING,      P.PUT_OFF,       ANY,                 PASSED,    ANY,   ANY),          BACK_BUSY),
    ((F.PROVISIONING,      {P.ABSENT, P.HIDDEN, P.CREATING}, ANY, PASSED,   ANY,   ANY),          POOL_TIMEOUT),
    ((F.PROVISIONING,      {P.ABSENT, P.PUT_OFF}, ANY,           ANY,       ANY,   ANY),          CREATE),
    ((F.PROVISIONING,      {P.HIDDEN, P.CREATING}, ANY,          ANY,       ANY,   ANY),          WAIT),
    ((ACQUIRE | {F.DISPATCHING}, P.STOPPING, ANY,                T.ON_TIME, ANY,   ANY),          WAIT),
    ((F.WAITING_FOR_NODE,  ANY,             ALIVE | {W.STOPPING}, ANY,      True,  ANY),          LOST),
    ((F.WAITING_FOR_NODE,  ANY,             ALIVE | {W.STOPPING}, ANY,      False, ANY),          JOB_FAILED),
    ((ANY,                 P.FULL,          ANY,                 ANY,       ANY,   ANY),          BACK_FULL),
    ((ANY,                 P.TROUBLE,       ANY,                 ANY,       ANY,   ANY),          BACK_TROUBLE),
    ((ANY,                 P.REFUSED,       ANY,                 ANY,       ANY,   ANY),          POOL_FAILED),
    ((ANY,                 {P.NONE, P.UNNEEDED, P.LEAVING}, ANY, ANY,       ANY,   ANY),          BACK_BARE),
    ((ANY,                 MISSING,         ANY,                 ANY,       True,  ANY),          BACK_FAILED),
    ((ANY,                 MISSING,         ANY,                 ANY,       False, ANY),          POOL_FAILED),
)  # fmt: skip

DOMAIN: tuple[tuple[object, ...], ...] = (tuple(F), tuple(P), tuple(W), tuple(T), (True, False), tuple(C))


def _cases(pattern: Pattern) -> Iterator[tuple[object, ...]]:
    """Expand a pattern into the situations it covers."""
    columns = zip(pattern, DOMAIN, strict=True)
    return product(
        *(domain if want is ANY else tuple(want) if isinstance(want, set) else (want,) for want, domain in columns)
    )


def expand(rules: tuple[tuple[Pattern, Step], ...]) -> dict[tuple[object, ...], int]:
    """
    Return for every situation the index of the rule that wins.

    Raises:
        ValueError: a situation is covered by no rule.
    """
    table: dict[tuple[object, ...], int] = {}
    for index in reversed(range(len(rules))):
        table.update(dict.fromkeys(_cases(rules[index][0]), index))
    missing = next((case for case in product(*DOMAIN) if case not in table), None)
    if missing:
        raise ValueError(f"no rule for {' '.join(str(fact) for fact in missing)}")
    return table


TABLE = expand(RULES)


def decide(situation: Situation) -> Step:
    """Return the step of the rule that wins."""
    s = situation
    return RULES[TABLE[s.phase, s.pool, s.work, s.timing, s.left, s.chance]][1]


def fold() -> list[tuple[str, str, int]]:
    """Return (pattern, step, situations it wins) for each rule, in order: the table made readable."""
    wins = [0] * len(RULES)
    for index in TABLE.values():
        wins[index] += 1
    return [(_readable(pattern), str(step), wins[i]) for i, (pattern, step) in enumerate(RULES)]


def _readable(pattern: Pattern) -> str:
    return " ".join(
        _cell(want, domain).ljust(width) for want, domain, width in zip(pattern, DOMAIN, _WIDTHS, strict=True)
    )


def _cell(want: object, domain: tuple[object, ...]) -> str:
    if want is ANY:
        return "-"
    chosen = [fact for fact in domain if (fact in want if isinstance(want, set) else fact is want)]
    return "|".join(fact.value if isinstance(fact, Fact) else str(fact).lower() for fact in chosen)


_WIDTHS = (17, 24, 32, 13, 6, 9)
