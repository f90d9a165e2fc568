"""
What `run` waits for before its first pass: the database, and Google's credential.

1. Each is asked for again and again within a bound of its own; every try that failed is a line of the log.
2. After the bound the process ends and says what was missing: whoever started it starts it anew.
3. A request to stop ends the wait.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from falcon_rm.ports import Refused
from falcon_rm.stop import Stop
from falcon_rm.telemetry import log

T = TypeVar("T")

WAIT_SECONDS, PAUSE_SECONDS = 120, 2


def awaited(
    what: str,
    ask: Callable[[], T],
    *,
    failure: type[Exception],
    stop: Stop,
    seconds: float = WAIT_SECONDS,
    pause: float = PAUSE_SECONDS,
) -> T | None:
    """
    Return what *ask* returns, once it does not fail; None if asked to stop.

    Args:
        what: what is waited for, as the log and the last error call it.
        ask: one bounded try.
        failure: what it raises while the thing is not there.
        stop: whether to give up.
        seconds: how long to go on.
        pause: between two tries.

    Raises:
        Refused: it did not come in time.
    """
    began = time.monotonic()
    while not stop():
        try:
            found = ask()
        except failure as error:
            waited = time.monotonic() - began
            if waited >= seconds:
                raise Refused(f"{what} did not come within {seconds:g} s: {error}") from error
            log().warning("Waited at the start", waitsFor=what, err=str(error), secondsLeft=round(seconds - waited))
            stop.wait(min(pause, seconds - waited))
        else:
            return found
    return None
