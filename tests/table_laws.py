"""
On what grounds each step may be taken: the decision table read from the other side.

1. The table says what wins in a situation; this says, for every step, in which situations it may stand at all.
2. Where something is not known only WAIT has grounds, beside the scheduler's steps.
"""

from collections.abc import Mapping

from falcon_rm.core.machine import Chance, Phase, PoolSeen, Situation, Step, Timing, Verb, WorkSeen

F, P, W, T = Phase, PoolSeen, WorkSeen, Timing

LEAVE, ACQUIRE, STARTED = {F.ENDING, F.ABORTING}, {F.PROVISIONING, F.WAITING_FOR_NODE}, {F.DISPATCHING, F.RUNNING}
BEFORE_END = ACQUIRE | STARTED
BEFORE_RUN = ACQUIRE | {F.DISPATCHING}
USABLE = {P.CREATING, P.UP, P.EMPTY, P.READY}
NODELESS = {P.UP, P.EMPTY}
UNMADE = {P.ABSENT, P.PUT_OFF, P.HIDDEN, P.CREATING}
VANISHED = {P.LOST, P.TAKEN, P.ABSENT, P.PUT_OFF}
FAILED = VANISHED | {P.BROKEN, P.HIDDEN, P.STOPPING}
HELD = USABLE | FAILED | {P.FULL, P.REFUSED, P.TROUBLE}
OWNS_NONE = {P.NONE, P.UNNEEDED}
LISTED = {W.UNRECORDED, W.PREPARED, W.STARTING, W.STUCK, W.RUNNING, W.STOPPING}
LOSES = LISTED - {W.RUNNING}
ENDED = {W.SUCCEEDED, W.FAILED_APP, W.FAILED_INFRA}
NOT_THERE = {W.ABSENT, W.GONE, W.REFUSED, W.DENIED}
UNSEEN = {W.ABSENT, W.SUCCEEDED, W.FAILED_APP}  # before Provisioning ends there is no Job
UP_OR_OVER = {W.RUNNING, W.SUCCEEDED, W.FAILED_APP}
PASSED = {T.LATE, T.OVERDUE}
YES, NO = {True}, {False}
BETTER, CONTESTED = {Chance.BETTER}, {Chance.CONTESTED}
CALM = {Chance.NONE, Chance.CONTESTED}

Grounds = Mapping[str, set[object]]


def case(**facts: object) -> Grounds:
    """Return grounds: for each fact that is named, what it may be."""
    return {name: set(wanted) if isinstance(wanted, set) else {wanted} for name, wanted in facts.items()}


ASKED: Mapping[str, object] = {"phase": F.PROVISIONING}
SENT: Mapping[str, object] = {"phase": {F.WAITING_FOR_NODE, F.DISPATCHING}, "work": W.ABSENT}


GROUNDS: dict[tuple[Verb, str], tuple[Grounds, ...]] = {
    (Verb.WAIT, ""): (
        case(phase=F.TERMINAL),
        case(phase=LEAVE, work=W.STOPPING),
        case(phase=LEAVE, pool=P.LEAVING, timing={T.ON_TIME, T.LATE}, work=NOT_THERE | ENDED),
        case(phase=F.RUNNING, work=W.RUNNING, timing=T.ON_TIME),
        case(phase=F.RUNNING, work=LISTED - {W.PREPARED}, timing=T.ON_TIME, pool=set(P) - VANISHED),
        case(phase=F.DISPATCHING, work={W.STARTING, W.STOPPING}, timing=T.ON_TIME, pool=set(P) - VANISHED),
        case(phase=BEFORE_RUN, pool=P.STOPPING, work=LISTED | UNSEEN, timing=T.ON_TIME),
        case(phase=F.WAITING_FOR_NODE, pool={P.UP, P.CREATING}, work=LISTED | {W.ABSENT}),
        case(phase=F.WAITING_FOR_NODE, pool=P.EMPTY, work=LISTED - {W.UNRECORDED, W.PREPARED}),
        case(phase=F.PROVISIONING, pool={P.HIDDEN, P.CREATING}, timing=T.ON_TIME, chance=CALM),
    ),
    (Verb.PLACE, ""): (case(phase=F.NEW),),
    (Verb.QUEUE, ""): (case(phase=F.WAITING),),
    (Verb.CREATE, ""): (
        case(phase=F.PROVISIONING, pool={P.ABSENT, P.PUT_OFF}, work=UNSEEN, timing=T.ON_TIME, chance=CALM),
    ),
    (Verb.TAKE, ""): (
        case(phase=F.PROVISIONING, pool=NODELESS | UNMADE, chance=BETTER),
        case(phase=F.WAITING_FOR_NODE, pool=NODELESS, work=W.ABSENT, chance=BETTER),
    ),
    (Verb.SUBMIT, ""): (
        case(phase=F.DISPATCHING, work=W.UNRECORDED, timing=T.ON_TIME),
        case(phase=F.DISPATCHING, pool={P.READY, P.UNNEEDED}, work=W.ABSENT),
        case(phase=F.WAITING_FOR_NODE, pool=P.EMPTY, work={W.ABSENT, W.UNRECORDED}),
    ),
    (Verb.RESUME, ""): (
        case(phase=STARTED, work=W.PREPARED, timing=T.ON_TIME, pool=set(P) - VANISHED),
        case(phase=F.WAITING_FOR_NODE, pool=P.EMPTY, work=W.PREPARED),
    ),
    (Verb.STOP, ""): (
        case(phase=LEAVE, work=LISTED - {W.STOPPING}, timing=T.ON_TIME),
        case(phase=LEAVE, work=LISTED - {W.STOPPING}, timing=T.LATE, pool=OWNS_NONE | {P.LEAVING}),
    ),
    (Verb.RELEASE, ""): (case(phase=LEAVE, pool=USABLE, work=NOT_THERE | ENDED),),
    (Verb.DISCARD, ""): (
        case(phase=LEAVE, pool=HELD, work=LISTED, timing=PASSED),
        case(phase=LEAVE, pool=HELD - USABLE, work=NOT_THERE | ENDED),
    ),
    (Verb.CLEAN, ""): (
        case(phase=LEAVE, pool=OWNS_NONE, work=ENDED, timing={T.ON_TIME, T.LATE}),
        case(phase=LEAVE, pool=P.LEAVING, work=ENDED, timing=T.OVERDUE),
    ),
    **{
        (verb, ""): (
            case(phase=phase, pool=OWNS_NONE, work=NOT_THERE),
            case(phase=phase, pool=P.LEAVING, work=NOT_THERE | LISTED, timing=T.OVERDUE),
            case(phase=phase, pool=OWNS_NONE, work=LISTED | ENDED, timing=T.OVERDUE),
        )
        for verb, phase in ((Verb.FINISH, F.ENDING), (Verb.ABORTED, F.ABORTING))
    },
    (Verb.GO, "WaitingForNode"): (
        case(phase=F.PROVISIONING, pool=NODELESS, chance=CALM),
        case(phase=F.DISPATCHING, pool=NODELESS | {P.CREATING}, work=W.ABSENT),
    ),
    (Verb.GO, "Dispatching"): (
        case(phase=ACQUIRE, pool=P.READY),
        case(phase=F.WAITING_FOR_NODE, work=UP_OR_OVER),
    ),
    (Verb.GO, "Running"): (case(phase=F.DISPATCHING, work=UP_OR_OVER),),
    (Verb.BACK, "failed"): (case(**ASKED, pool=FAILED, left=YES), case(**SENT, pool=FAILED, left=YES)),
    (Verb.BACK, "full"): (case(**ASKED, pool=P.FULL), case(**SENT, pool=P.FULL)),
    (Verb.BACK, "cluster"): (case(**ASKED, pool=P.TROUBLE), case(**SENT, pool=P.TROUBLE)),
    (Verb.BACK, "busy"): (case(**ASKED, pool=P.PUT_OFF, timing=PASSED, chance=CALM),),
    (Verb.BACK, "nodes"): (
        case(phase=F.WAITING_FOR_NODE, pool=NODELESS, work=W.ABSENT, timing=PASSED, chance=CONTESTED),
    ),
    (Verb.BACK, "bare"): (case(phase=BEFORE_RUN, pool=OWNS_NONE | {P.LEAVING}),),
    (Verb.FAIL, "NodePoolTimeout"): (
        case(phase=F.PROVISIONING, pool=UNMADE - {P.PUT_OFF}, timing=PASSED, chance=CALM),
    ),
    (Verb.FAIL, "NodePoolFailed"): (
        case(**ASKED, pool=P.REFUSED),
        case(**ASKED, pool=FAILED, left=NO),
        case(**SENT, pool=P.REFUSED),
        case(**SENT, pool=FAILED, left=NO),
    ),
    (Verb.NOTE, "Succeeded"): (case(phase=F.RUNNING, work=W.SUCCEEDED),),
    (Verb.NOTE, "JobFailed"): (
        case(phase=F.RUNNING, work={W.FAILED_APP, W.ABSENT}),
        case(phase=F.DISPATCHING, work=W.STUCK, timing=T.ON_TIME),
        case(phase=BEFORE_END, work=W.FAILED_INFRA, left=NO),
        case(phase=BEFORE_END, work=LOSES | {W.GONE}, pool=VANISHED, left=NO),
        case(phase=F.RUNNING, work=W.RUNNING, pool=VANISHED, left=NO, timing=PASSED),
        case(phase=F.PROVISIONING, work=W.RUNNING, pool=VANISHED, left=NO),
        case(phase=BEFORE_END, work=W.GONE, pool=set(P) - VANISHED),
        case(phase=F.WAITING_FOR_NODE, work=LISTED, left=NO, pool=set(P) - USABLE - {P.STOPPING}),
        case(phase=F.WAITING_FOR_NODE, work=LISTED, left=NO, pool=P.STOPPING, timing=PASSED),
    ),
    (Verb.NOTE, "Timeout"): (case(phase=STARTED, work=LISTED, timing=PASSED),),
    (Verb.NOTE, "JobSubmitFailed"): (case(phase=BEFORE_END, work=W.REFUSED),),
    (Verb.NOTE, "Lost"): (
        case(phase=BEFORE_END, work=W.FAILED_INFRA, left=YES),
        case(phase=BEFORE_END, work=LOSES | {W.GONE}, pool=VANISHED, left=YES),
        case(phase=F.RUNNING, work=W.RUNNING, pool=VANISHED, left=YES, timing=PASSED),
        case(phase=F.PROVISIONING, work=W.RUNNING, pool=VANISHED, left=YES),
        case(phase=F.WAITING_FOR_NODE, work=LISTED, left=YES, pool=set(P) - USABLE - {P.STOPPING}),
        case(phase=F.WAITING_FOR_NODE, work=LISTED, left=YES, pool=P.STOPPING, timing=PASSED),
    ),
    (Verb.NOTE, "Yield"): (
        case(phase=BEFORE_END, work=W.DENIED),
        case(phase=F.WAITING_FOR_NODE, pool=NODELESS, work=LISTED, timing=PASSED, chance=CONTESTED),
    ),
}
"""For each step, the situations in which it may stand: any of its grounds, all facts of it."""


def is_lawful(situation: Situation, step: Step) -> bool:
    """Return whether a step has grounds in a situation."""
    blind = situation.pool is P.UNKNOWN or situation.work is W.UNKNOWN
    if blind and situation.phase not in (F.NEW, F.WAITING):
        return step.verb is Verb.WAIT
    grounds = GROUNDS.get((step.verb, str(getattr(step.word, "value", step.word))), ())
    return any(all(getattr(situation, name) in wanted for name, wanted in facts.items()) for facts in grounds)
