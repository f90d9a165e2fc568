"""
Simulated time: what falls due when, and a thread that lets time pass.

1. Things due at one moment happen in the order in which they were asked for.
2. Only bound methods, module functions and values stand in the queue, so that a world can be copied with it.
"""

import heapq
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import define, field

if TYPE_CHECKING:
    from cloudsim.world import World

STEP_SECONDS = 0.02


@define(slots=False, eq=False)
class Agenda:
    """What will happen, by time."""

    due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = field(factory=list)
    count: int = 0

    def add(self, at: float, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Let *act* happen at a time."""
        self.count += 1
        heapq.heappush(self.due, (at, self.count, act, arguments))

    def pop(self, until: float) -> tuple[float, Callable[..., None], tuple[Any, ...]] | None:
        """Return and remove what is due next, if it is due by *until*."""
        if not self.due or self.due[0][0] > until:
            return None
        at, _, act, arguments = heapq.heappop(self.due)
        return at, act, arguments

    def next_at(self) -> float | None:
        """Return when something is due next."""
        return self.due[0][0] if self.due else None


class Driver:
    """Moves a world's clock along with the real one, *speed* times as fast."""

    def __init__(self, world: "World", speed: float = 1.0) -> None:
        self.world = world
        self.speed = speed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cloudsim-clock", daemon=True)

    def start(self) -> None:
        """Let time pass."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the clock; returns when it stands."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stopped.wait(STEP_SECONDS):
            now = time.monotonic()
            self.world.advance((now - last) * self.speed)
            last = now
