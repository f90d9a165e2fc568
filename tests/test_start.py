"""What `run` waits for at its start: again and again, with a line for each try, and not for ever."""

import io
import json
from collections.abc import Callable

import pytest

from falcon_rm.ports import Refused, StoreDown
from falcon_rm.start import awaited
from falcon_rm.stop import Stop
from falcon_rm.telemetry import configure


def failing(times: int) -> Callable[[], str]:
    """Return what fails so many times before it answers."""
    left = iter(range(times))

    def ask() -> str:
        for number in left:
            raise StoreDown(f"refused {number}")
        return "answer"

    return ask


def test_it_is_asked_until_it_answers(kept_log: None) -> None:
    """Each try that failed is one warning that says what is missing, why, and how long it is still waited for."""
    stream = io.StringIO()
    configure("json", stream=stream)
    assert "answer" == awaited("the database", failing(2), failure=StoreDown, stop=Stop(), seconds=30, pause=0)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    told = [(line["severity"], line["waitsFor"], line["err"], line["secondsLeft"]) for line in lines]
    assert [("WARNING", "the database", f"refused {number}", 30) for number in range(2)] == told


def test_it_is_not_asked_for_ever(kept_log: None) -> None:
    """After the bound the error names what did not come, the bound and the last answer."""
    configure("json", stream=io.StringIO())
    with pytest.raises(Refused, match=r"^the database did not come within 0.05 s: refused \d+$"):
        awaited("the database", failing(10**6), failure=StoreDown, stop=Stop(), seconds=0.05, pause=0.01)


def test_other_errors_are_not_waited_out() -> None:
    """What is no sign of a missing thing ends the wait at once."""
    with pytest.raises(StoreDown, match="refused 0"):
        awaited("a credential", failing(1), failure=KeyError, stop=Stop())


def test_a_signal_ends_the_wait() -> None:
    """Who is asked to stop asks no more."""
    stop = Stop()
    stop._asked.set()
    assert awaited("the database", failing(10**6), failure=StoreDown, stop=stop) is None
