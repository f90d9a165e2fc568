"""
A controller taken apart at every call: what it has heard so far is its whole state.

1. A controller is frozen: the answers of its look at the world, then its plan, the action it is at and that action's
   answers. One step makes one call on a world and returns the controller after it; the world may be any.
2. Nothing is kept between two steps but that value: the product's own code runs again on the answers heard before, and
   stops where it asks for more. It is deterministic, so this is the same process going on; and a look that heard all
   the same before (Mind) comes to the same plan.
3. Calls that answer the same in every world here (how to reach a cluster) are no steps.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import define, evolve, field, frozen
from cloudsim.direct import DirectClouds
from world import Falcon, Inline

from falcon_rm.apply import Applier
from falcon_rm.core.actions import Action
from falcon_rm.core.live import ClusterInfo
from falcon_rm.core.model import Cluster
from falcon_rm.core.plan import plan
from falcon_rm.core.words import CloudError
from falcon_rm.observe import observe

CONSTANT = frozenset({"get_cluster", "close"})
SECONDS = 30.0


class Pause(BaseException):
    """The controller asks for more than it may hear in this step."""


@frozen
class Heard:
    """What one call answered, or the cloud's error."""

    call: str
    answer: Any = None
    error: CloudError | None = None
    text: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "text", f"{self.call} {self.answer!r} {self.error!r}")


Question = tuple[object, ...]
"""A port, a call of it, and what the call is given."""
Answers = dict[Question, Heard]
"""What a world that stands still answered."""


@frozen
class Look:
    """A whole look at a world: all that was heard, and what is to be done."""

    heard: tuple[Heard, ...]
    wanted: tuple[Action, ...]


@define(eq=False)
class Mind:
    """
    What a controller does that has heard so much: it asks, or it knows what it wants.

    A look whose answers were all heard before needs no run of the product's code.
    """

    question: Question | None = None
    wanted: tuple[Action, ...] | None = None
    after: dict[str, "Mind"] = field(factory=dict)  # by the text of the answer

    def learn(self, questions: Sequence[Question], look: Look) -> None:
        """Keep what was asked in a look, and what came of it."""
        mind = self
        for question, heard in zip(questions, look.heard, strict=True):
            mind.question = question
            mind = mind.after.setdefault(heard.text, Mind())
        mind.wanted = look.wanted

    def recall(self, heard: Sequence[Heard], known: Answers) -> Look | None:
        """Return the look of a controller that heard so much, at a world that answers like this; None: not known."""
        mind: Mind | None = self
        told = list(heard)
        for each in heard:
            mind = mind and mind.after.get(each.text)
        while mind is not None and mind.wanted is None:
            answer = known.get(mind.question) if mind.question else None
            if answer is None:
                return None
            told.append(answer)
            mind = mind.after.get(answer.text)
        return None if mind is None or mind.wanted is None else Look(tuple(told), mind.wanted)


@frozen(eq=False)
class Controller:
    """One process somewhere in a pass; a new one is at its beginning."""

    heard: tuple[Heard, ...] = ()
    actions: tuple[Action, ...] | None = None  # None: it still looks

    @property
    def idle(self) -> bool:
        """Whether it is between two passes."""
        return self.actions is None and not self.heard

    def key(self) -> str:
        """Return a text that is equal for controllers that will do the same."""
        return repr((self.actions, [heard.text for heard in self.heard]))

    def step(self, falcon: Falcon) -> "Controller":
        """Make the next call on a world; return the controller that heard its answer."""
        ear = Ear(self.heard)
        try:
            if self.actions is None:
                return _before(_plan(falcon, ear))
            Applier(ear.port(falcon.store, "store"), EarClouds(falcon, ear)).apply(self.actions[0])
        except Pause:
            return evolve(self, heard=tuple(ear.heard))
        return _before(self.actions[1:])

    def looks(self, falcon: Falcon, known: Answers, mind: Mind) -> Iterator["Controller"]:
        """
        Yield the controller after each further call of its look at a world, up to the plan.

        Args:
            falcon: the world.
            known: what that world answered so far.
            mind: what controllers did so far.
        """
        if self.actions is not None:
            return
        look = mind.recall(self.heard, known)
        if look is None:
            ear = Ear(self.heard, most=None, known=known)
            wanted = _plan(falcon, ear)
            look = Look(tuple(ear.heard), wanted)
            mind.learn(ear.questions, look)
        for count in range(len(self.heard) + 1, len(look.heard)):
            yield Controller(look.heard[:count])
        if look.wanted:  # with nothing to do it is as if it had not looked
            yield Controller(actions=look.wanted)


def _plan(falcon: Falcon, ear: "Ear") -> tuple[Action, ...]:
    """Look at a world through an ear; return what to do about it."""
    store: Any = ear.port(falcon.store, "store")
    wanted = plan(observe(store, EarClouds(falcon, ear), falcon.bounds, seconds=SECONDS, readers=Inline))
    return (*wanted.notes, *wanted.actions)


def _before(actions: tuple[Action, ...]) -> Controller:
    return Controller(actions=actions) if actions else Controller()


class Ear:
    """
    Answers from memory; at *most* so many calls more (None: all) are made for real, and the next one is too much.

    What is *known* of a world that stands still is not asked again.
    """

    def __init__(self, heard: tuple[Heard, ...], most: int | None = 1, known: Answers | None = None) -> None:
        self.heard = list(heard)
        self.questions: list[Question] = []
        self._known = known
        self._place = 0
        self._most = None if most is None else len(heard) + most

    def hear(self, port: str, name: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Return what a call answers."""
        if self._place == self._most:
            raise Pause
        question = (port, name, *(each if each.__hash__ else tuple(each) for each in arguments))
        if self._place == len(self.heard):
            self.heard.append(self._ask(question, name, lambda: function(*arguments, **named)))
        self.questions.append(question)
        found = self.heard[self._place]
        assert name == found.call, "the product asked another question after the same answers"
        self._place += 1
        if found.error is not None:
            raise found.error.with_traceback(None)
        return found.answer

    def _ask(self, question: Question, name: str, call: Callable[[], Any]) -> Heard:
        if self._known is None:
            return _answer(name, call)
        if question not in self._known:
            self._known[question] = _answer(name, call)
        return self._known[question]

    def port(self, port: Any, name: str) -> Any:
        """Return a port whose calls are heard here, by its name."""
        return EarPort(port, name, self)


def _answer(name: str, call: Callable[[], Any]) -> Heard:
    try:
        return Heard(name, call())
    except CloudError as error:
        return Heard(name, error=error)


class EarPort:
    """Any port, its calls heard."""

    def __init__(self, port: Any, name: str, ear: Ear) -> None:
        self._port = port
        self._name = name
        self._ear = ear

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name in CONSTANT:
            return found
        return lambda *arguments, **named: self._ear.hear(self._name, name, found, *arguments, **named)


class EarClouds:
    """The simulated clouds, their calls heard."""

    def __init__(self, falcon: Falcon, ear: Ear) -> None:
        self._clouds = DirectClouds(falcon.sim)
        self._ear = ear
        self.gke = ear.port(self._clouds.gke, "gke")
        self.compute = ear.port(self._clouds.compute, "compute")

    def kubernetes(self, cluster: Cluster, info: ClusterInfo) -> Any:
        """Return one cluster's Kubernetes."""
        return self._ear.port(self._clouds.kubernetes(cluster, info), cluster.id)

    def close(self) -> None:
        """Nothing is open."""
