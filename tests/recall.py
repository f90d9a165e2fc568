"""
What a state of the world answers to those who look, kept: it stands still meanwhile, so it is asked each thing once.

1. Kept is what the pass was told that keeps the world too, with the calls that each question came to. A question is
   asked anew if a fault would strike one of these.
2. Nothing is kept of what comes after the look, nor while something is set up that strikes a counted number of times.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from cloudsim.direct import DirectClouds
from cloudsim.faults import Call
from cloudsim.world import World
from strikes import Site

from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.model import Cluster
from falcon_rm.core.words import CloudError
from falcon_rm.ports import Kubernetes

if TYPE_CHECKING:
    from striking import Seam

Question = tuple[object, ...]
Told = tuple[Site, tuple[str, tuple[Any, ...]], Call | None]
"""One call of a pass: its place, and how the database or a cloud was asked."""


@frozen
class Answer:
    """What a question was answered, with a value or an error, and the calls it came to."""

    calls: tuple[Told, ...]
    value: Any = None
    error: CloudError | None = None


@define
class Answers:
    """What one state answered."""

    known: dict[Question, Answer] = field(factory=dict)


def is_steady(world: World) -> bool:
    """Return whether to ask twice is to hear the same: no fault is set up that strikes so many times."""
    return all(fault.times is None and not fault.skip for fault in world.faults.set_up)


class Recalling:
    """The clouds of a world behind a seam, asked only what the seam's answers lack."""

    def __init__(self, world: World, seam: "Seam") -> None:
        self._clouds = DirectClouds(world)
        self._seam = seam
        self.gke: Any = Asked(self._clouds.gke, "gke", seam)
        self.compute: Any = Asked(self._clouds.compute, "compute", seam)

    def kubernetes(self, cluster: Cluster, info: ClusterInfo) -> Kubernetes:
        """Return one cluster's Kubernetes."""
        asked: Any = Asked(self._clouds.kubernetes(cluster, info), cluster.id, self._seam)
        return asked  # type: ignore[no-any-return]

    def close(self) -> None:
        """Nothing is open."""


class Asked:
    """One port of a cloud, whose methods recall."""

    def __init__(self, port: object, name: str, seam: "Seam") -> None:
        self._port = port
        self._name = name
        self._seam = seam

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._port, method)
        if self._seam.looked is not None:
            return found
        return lambda *arguments: recalled(self._seam, (self._name, method), found, arguments)


def recalled(seam: "Seam", about: Question, ask: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return what is known, or else ask; raise the error that was the answer."""
    question = (*about, *(each if each.__hash__ else tuple(each) for each in arguments))
    known, begins = seam.answers.known.get(question), len(seam.sites)
    if known is not None and not seam.strikes_in(begins, begins + len(known.calls)):
        seam.pass_again(known.calls)
        if known.error is not None:
            raise type(known.error)(known.error.kind, known.error.text)
        return known.value
    try:
        value = ask(*arguments)
    except CloudError as error:
        _keep(seam, begins, question, error=type(error)(error.kind, error.text))
        raise
    _keep(seam, begins, question, value=value)
    return value


def _keep(seam: "Seam", begins: int, question: Question, value: Any = None, error: CloudError | None = None) -> None:
    if seam.keeps and not seam.strikes_in(begins, len(seam.sites)):
        calls = zip(seam.sites[begins:], seam.written[begins:], seam.calls[begins:], strict=True)
        seam.answers.known[question] = Answer(tuple(calls), value, error)
