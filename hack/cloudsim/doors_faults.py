"""
Misbehaviour on the wire, set by a test for calls to come.

1. What the cloud answers (errors, no answer at all, stale lists, a proxy's page) is a fault of the world; here is only
   what a network does to an answer that was given.
2. Calls are named as in `faults.py`: gke.<method>, compute.<method>, kube.<verb>.<kind>; `call` may hold wildcards.
"""

import threading
from enum import Enum
from fnmatch import fnmatchcase

from attrs import evolve, frozen


class Wire(Enum):
    """What the wire does."""

    RESET = "reset"  # the connection breaks and the answer is lost
    TRICKLE = "trickle"  # the answer comes a byte a second (HTTP only)


@frozen
class WireFault:
    """
    One fault.

    Args:
        wire: What happens.
        call: The calls it happens to.
        target: A part of what the call is about: a cluster's or project's path or a name in it; "" is any.
        effect: RESET: whether the request had arrived, and took effect.
        times: How often it happens; None is for ever.
    """

    wire: Wire
    call: str = "*"
    target: str = ""
    effect: bool = False
    times: int | None = 1

    @property
    def lost(self) -> bool:
        """Whether the request never arrived."""
        return self.wire is Wire.RESET and not self.effect


class WireFaults:
    """The faults that are set now; the oldest that fits strikes, alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[WireFault] = []

    def add(self, fault: WireFault) -> None:
        """Set a fault."""
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Take all faults away."""
        with self._lock:
            self._faults.clear()

    def take(self, call: str, target: str) -> WireFault | None:
        """Return the fault that strikes this call, counted."""
        with self._lock:
            for place, fault in enumerate(self._faults):
                if fnmatchcase(call, fault.call) and fault.target in target:
                    if fault.times is not None:
                        left = [evolve(fault, times=fault.times - 1)] if fault.times > 1 else []
                        self._faults[place : place + 1] = left
                    return fault
        return None
