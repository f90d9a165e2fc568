"""
The seam every call passes: it writes the call down, and lets a fault that was set for it strike.

1. A call is logged before anything else happens to it, failed or not; what it changes is logged as an effect.
2. The oldest fault that fits strikes, alone; `times` counts how often it may.
3. "before": the error, no effect. "after": the effect, then the error. "hang": no answer; the effect happens never, at
   once (`effect=True`) or `later` seconds on. "stale": an earlier answer to the same call. "partial": a list cut short.
   "changed": the answer as `change` makes it.
4. Names: gke.<method>, compute.<method>, kube.<verb>.<kind>; a target always begins with project or cluster path.
"""

import copy
import marshal
from collections import deque
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, field, frozen

from cloudsim.errors import Hang, KubeError, SimError
from cloudsim.values import kept

if TYPE_CHECKING:
    from cloudsim.world import World

QUESTIONS = 1000  # to which earlier answers are kept


@frozen
class Call:
    """One call that reached the world."""

    name: str
    target: str
    mutating: bool
    at: float
    arguments: tuple[Any, ...] = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Call":
        return self  # what was asked never changes


class Answer(list[Any]):
    """A list that may be partial: *missing_zones* is what GKE would name there."""

    missing_zones: tuple[str, ...] = ()


@define(slots=False, eq=False)
class Fault:
    """What goes wrong, where, how often. *error* is needed by "before" and "after"."""

    call: str
    when: Literal["before", "after", "hang", "stale", "partial", "changed"] = "before"
    error: SimError | KubeError | None = None
    times: int | None = 1  # None: for ever
    skip: int = 0  # calls that fit and still pass
    where: Callable[[Call], bool] | None = None
    effect: bool = False  # hang: the effect happens at once
    later: float | None = None  # hang: the effect happens so many seconds later
    back: int = 1  # stale: the answer this many answers ago, as far as they reach
    drop: int | None = None  # partial: the one item that is missing; None: the second half
    change: Callable[[Any], Any] | None = None
    struck: int = 0

    def fits(self, call: Call) -> bool:
        """Whether this fault strikes this call; counts the calls it lets pass."""
        if self.times is not None and self.struck >= self.times:
            return False
        if self.call != "*" and not fnmatchcase(call.name, self.call):
            return False
        if self.where is not None and not self.where(call):
            return False
        if self.skip:
            self.skip -= 1
            return False
        return True


@define(slots=False, eq=False)
class Faults:
    """The faults that are set, and what "stale" needs to remember."""

    set_up: list[Fault] = field(factory=list)
    depth: int = 8
    answers: dict[tuple[str, str, str], deque[Any]] = field(factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Faults":
        answers = {key: deque(known, known.maxlen) for key, known in self.answers.items()}
        return Faults(copy.deepcopy(self.set_up, memo), self.depth, answers)

    def add(self, fault: Fault) -> Fault:
        """Set a fault; returns it, so that a test can ask how often it struck."""
        self.set_up.append(fault)
        return fault

    def clear(self) -> None:
        """Let nothing go wrong from now on."""
        self.set_up.clear()

    def cluster_down(self, path: str) -> Fault:
        """Let no call to the Kubernetes API of this cluster be answered, until `clear` or `remove`."""
        return self.add(Fault("kube.*", "hang", times=None, where=Under(path)))

    def remove(self, fault: Fault) -> None:
        """Take one fault back."""
        self.set_up.remove(fault)

    def strike(self, call: Call) -> Fault | None:
        """Return the fault that strikes this call, counted."""
        for fault in self.set_up:
            if fault.fits(call):
                fault.struck += 1
                return fault
        return None

    def remember(self, call: Call, answer: Any) -> None:
        """Keep an answer to a read for a later stale one."""
        if not self.depth:
            return
        key = (call.name, call.target, repr(call.arguments))
        self.answers.setdefault(key, deque(maxlen=self.depth)).append(_kept(answer))
        if len(self.answers) > QUESTIONS:
            del self.answers[next(iter(self.answers))]

    def earlier(self, call: Call, back: int) -> Any | None:
        """Return an earlier answer to the same call, or None if there was none."""
        known = self.answers.get((call.name, call.target, repr(call.arguments)))
        if not known:
            return None
        answer = known[max(0, len(known) - back)]
        return marshal.loads(answer) if isinstance(answer, bytes) else answer


@frozen
class Under:
    """A `where` that holds for calls to one cluster or project."""

    path: str

    def __call__(self, call: Call) -> bool:
        return call.target == self.path or call.target.startswith(self.path + "/")


def pass_seam(world: "World", call: Call, act: Callable[..., Any]) -> Any:
    """Carry out a call under the world's lock, with the fault that was set for it, if any."""
    with world.lock:
        world.calls.append(call)
        fault = world.faults.strike(call)
        if fault is not None:
            return suffer(world, fault, call, act)
        answer = carry_out(world, call, act)
        if not call.mutating:
            world.faults.remember(call, answer)
        return answer


def carry_out(world: "World", call: Call, act: Callable[..., Any]) -> Any:
    """Carry out a call; what changes the world and is not refused is an effect."""
    answer = act(*call.arguments)
    if call.mutating:
        world.effects.append(call)
    return answer


def suffer(world: "World", fault: Fault, call: Call, act: Callable[..., Any]) -> Any:
    """Carry out a call that a fault strikes."""
    if fault.when == "before":
        raise error_of(fault)
    if fault.when == "after":
        attempt(world, call, act)
        raise error_of(fault)
    if fault.when == "hang":
        if fault.effect:
            attempt(world, call, act)
        elif fault.later is not None:
            world.after(fault.later, attempt, world, call, act)
        raise Hang(f"{call.name} {call.target}: no answer")
    if fault.when == "stale":
        old = world.faults.earlier(call, fault.back)
        return act(*call.arguments) if old is None else old
    if fault.change is not None:
        return fault.change(act(*call.arguments))
    return cut(act(*call.arguments), fault.drop)


def attempt(world: "World", call: Call, act: Callable[..., Any]) -> None:
    """Carry out a call nobody waits for any more: a refusal is heard by no one."""
    try:
        carry_out(world, call, act)
    except (SimError, KubeError):
        return


def _kept(answer: Any) -> Any:
    """Return a Kubernetes List as bytes; other answers are nobody's but the caller's, who changes none."""
    return kept(answer) if isinstance(answer, dict) else answer


def error_of(fault: Fault) -> SimError | KubeError:
    """Return the error a fault answers, without its way through earlier worlds: it would keep them all."""
    if fault.error is None:
        raise ValueError(f"fault on {fault.call} has no error")
    return fault.error.with_traceback(None)


def cut(answer: Any, drop: int | None) -> Any:
    """Return a list, or a Kubernetes List, without one item or without its second half."""
    if isinstance(answer, dict):
        return {**answer, "items": list(cut(answer["items"], drop))}
    kept = answer[: len(answer) // 2] if drop is None else answer[:drop] + answer[drop + 1 :]
    short = Answer(kept)
    short.missing_zones = ("some-zone",)
    return short
