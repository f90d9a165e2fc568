"""
One pass, and passes for ever.

1. Nothing is kept between two passes: store and clouds are opened for one and thrown away.
2. A pass that made progress is followed at once by another, a bounded number of times; else the interval is waited out.
3. A pass has a deadline: what it did not get to, the next one does. A cluster that lets one call hang gets no other of
   its kind in that pass: the others' jobs lose no more than that, and what starts is not held up by what stops.
4. SIGTERM lets the current action end for some seconds, then the process leaves hard (stop.py): an abandoned call is an
   unknown outcome like any other.
5. No error leaves the loop: a database that is away costs passes, nothing else.
6. Whoever watches is handed each pass, or the error that ended it; nothing is decided by that.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from itertools import count

from attrs import frozen

from falcon_rm.apply import Applier, Result
from falcon_rm.core.actions import CALLS, Action, Note, ResumeWork, SubmitWork
from falcon_rm.core.model import Bounds, Snapshot
from falcon_rm.core.plan import Plan, plan
from falcon_rm.core.words import ClusterStatus, ErrorKind
from falcon_rm.observe import Readers, SideBySide, observe
from falcon_rm.ports import Clouds, Store, StoreDown
from falcon_rm.stop import Stop
from falcon_rm.telemetry import PassLog, log

CHAIN = 100
"""Passes that may follow each other at once before the interval is waited out all the same."""

PATIENCE_SECONDS = 5.0
"""A call that took longer and stayed without an answer is the last of its cluster, and of its kind, in this pass."""

Way = tuple[str, str]
OpenStore = Callable[[], AbstractContextManager[Store]]
OpenClouds = Callable[[], Clouds]


@frozen
class Acted:
    """One action that was carried out, and how it went."""

    action: Action
    result: Result | None  # None: it failed in a way that nobody foresaw
    error: ErrorKind | None = None  # of the cloud, if it refused


@frozen
class Pass:
    """What one pass saw, wanted and achieved."""

    snapshot: Snapshot
    plan: Plan
    unread: tuple[str, ...] = ()  # names of clusters that should have been read whole
    acted: tuple[Acted, ...] = ()
    seconds: tuple[float, float, float] = (0, 0, 0)  # to observe, to plan and to apply

    @property
    def progress(self) -> bool:
        """Whether something moved, so that another pass may follow at once."""
        return any(each.result in (Result.DONE, Result.REFUSED) for each in self.acted)


Watch = Callable[[Pass | Exception], None]


def one_pass(
    *,
    store: OpenStore,
    clouds: OpenClouds,
    bounds: Bounds,
    pass_seconds: float,
    dry: bool = False,
    approves: Callable[[Plan], bool] = lambda _: True,
    number: str = "1",
    stopping: Callable[[], bool] = lambda: False,
    readers: Readers = SideBySide,
) -> Pass:
    """
    Observe, plan and (unless *dry*, or the plan is not approved) apply once.

    Raises:
        StoreDown: the database failed; what was written until then stands.
    """
    began = time.monotonic()
    with store() as opened, closing(clouds()) as cloud:
        snapshot = observe(opened, cloud, bounds, seconds=pass_seconds / 2, readers=readers)
        observed = time.monotonic()
        wanted = plan(snapshot)
        planned = time.monotonic()
        unread = tuple(
            view.cluster.name
            for view in snapshot.views
            if view.problem and view.cluster.status is not ClusterStatus.OFFLINE
        )
        if dry or not approves(wanted):
            return Pass(snapshot, wanted, unread=unread)
        lines = PassLog(
            number,
            actors={job.id: job.actor for job in snapshot.jobs},
            clusters={view.cluster.id: view.cluster.name for view in snapshot.views},
        )
        acted = carry_out(
            wanted, opened, cloud, lines, goes_on=lambda: not stopping() and time.monotonic() - began <= pass_seconds
        )
    ended = time.monotonic()
    lines.ended(
        actions=len(wanted.actions),
        unread=unread,
        brake=wanted.brake.text if wanted.brake else None,
        seconds=ended - began,
    )
    return Pass(snapshot, wanted, unread, acted, (observed - began, planned - observed, ended - planned))


def carry_out(
    wanted: Plan, store: Store, clouds: Clouds, lines: PassLog, *, goes_on: Callable[[], bool] = lambda: True
) -> tuple[Acted, ...]:
    """
    Apply what a plan wants, one action after the other, for as long as it *goes_on*; return how each went.

    Raises:
        StoreDown: the database failed; what was written until then stands.
    """
    applier, acted, silent = Applier(store, clouds), list[Acted](), set[Way]()
    for action in (*wanted.notes, *wanted.actions):
        if not goes_on():
            break
        way = _way(action)
        if way in silent:
            continue
        asked = time.monotonic()
        done = _act(applier, action, lines)
        if not isinstance(action, Note):
            acted.append(done)
        hung = done.error is ErrorKind.UNKNOWN and time.monotonic() - asked > PATIENCE_SECONDS
        if way and hung:
            silent.add(way)
    return tuple(acted)


def _way(action: Action) -> Way | None:
    """Return which way a call to the clouds goes; None of what goes to the database alone."""
    if not isinstance(action, CALLS):
        return None
    starts = isinstance(action, SubmitWork | ResumeWork)
    return action.cluster.id, "start" if starts else type(action).__name__


def _act(applier: Applier, action: Action, lines: PassLog) -> Acted:
    """Carry out one action, write its line, and return how it went."""
    started = time.monotonic()
    try:
        result = applier.apply(action)
    except StoreDown:
        raise
    except Exception:  # noqa: BLE001 - one action is fenced off: the others go on, the next pass looks again
        log().exception("Failed at an action", action=repr(action)[:500])
        return Acted(action, None)
    error = applier.error
    if result is not Result.TOLD:
        err = f"{error.kind}: {error.text}" if error else None
        lines.acted(action, result=result.value, seconds=time.monotonic() - started, err=err)
    return Acted(action, result, error.kind if error else None)


def run(
    *,
    store: OpenStore,
    clouds: OpenClouds,
    bounds: Bounds,
    interval: float,
    pass_seconds: float,
    stop: Stop,
    watch: Watch,
) -> None:
    """Make passes until asked to stop; log what fails and go on."""
    chained = 0
    for number in count(1):
        if stop():
            break
        made: Pass | Exception
        try:
            made = one_pass(
                store=store,
                clouds=clouds,
                bounds=bounds,
                pass_seconds=pass_seconds,
                number=str(number),
                stopping=stop,
            )
        except StoreDown as error:
            made = error
            log().error("Could not use the database", err=str(error))
        except Exception as error:  # noqa: BLE001 - one pass is fenced off: the next one starts from nothing
            made = error
            log().exception("Gave a pass up")
        try:
            watch(made)
        except Exception:  # noqa: BLE001 - whoever watches is fenced off: passes go on unseen
            log().exception("Could not tell of a pass")
        progress = isinstance(made, Pass) and made.progress
        chained = chained + 1 if progress else 0
        if not progress or chained >= CHAIN:
            chained = 0
            stop.wait(interval)
    log().info("Stopped")
