"""
How long and how often a cloud is asked.

1. One deadline a call, by this process's own monotonic clock, whatever the socket does (P101, P113).
2. A read that nobody took is tried once more, within the same deadline.
3. A refused credential is renewed once and the call repeated: it was refused before anything was done (P100).
4. A create or delete is never repeated for any other reason: its outcome is looked at first. The libraries' own retries
   are off everywhere.
5. Whatever asks a cloud passes here, so here it is counted.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from attrs import field, frozen
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from falcon_rm.cloud.asked import Name, counted
from falcon_rm.cloud.errors import Unauthenticated, Unavailable
from falcon_rm.core.errors import Call
from falcon_rm.core.words import CloudError, ErrorKind

T = TypeVar("T")

ATTEMPTS = 2

PAUSE_SECONDS = 0.1


class Renewable(Protocol):
    """What can get itself a new token."""

    def renew(self) -> None:
        """Fetch a new token, though the old one looks good."""


@frozen
class Deadline:
    """The moment by which a call has ended, however many requests it takes."""

    seconds: float
    started: float = field(factory=time.monotonic)

    def left(self) -> float:
        """
        Return the seconds left.

        Raises:
            CloudError: UNKNOWN, if none are.
        """
        left = self.started + self.seconds - time.monotonic()
        if left <= 0:
            raise CloudError(ErrorKind.UNKNOWN, f"no answer within {self.seconds:g} s")
        return left


def ask(send: Callable[[], T], *, name: Name, call: Call, credential: Renewable) -> T:
    """
    Return what *send* returns, asked twice at most.

    Args:
        send: One request under its caller's deadline; raises CloudError.
        name: What each request counts as.
        call: What is asked: only a read is repeated because nobody took it.
        credential: Renewed before a request that was refused for it is repeated.
    """

    def worth_repeating(error: BaseException) -> bool:
        return isinstance(error, Unauthenticated) or (call == "read" and isinstance(error, Unavailable))

    def prepare(state: RetryCallState) -> None:
        if state.outcome and isinstance(state.outcome.exception(), Unauthenticated):
            credential.renew()

    policy = Retrying(
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_fixed(PAUSE_SECONDS),
        retry=retry_if_exception(worth_repeating),
        before_sleep=prepare,
        reraise=True,
    )
    return policy(lambda: counted(name, send))


def within(deadline: Deadline, send: Callable[[], T], *, abandon: Callable[[], None] | None = None) -> T:
    """
    Return what *send* returns, or give it up at the deadline.

    The libraries' time-outs are for each read of the socket: a body that trickles in holds them for ever. So *send*
    runs in a thread of its own, which is left behind at the deadline; *abandon* then cuts its connection, so that it
    ends too. The thread is no worker of an executor: those are waited for at the end of the process.

    Raises:
        CloudError: UNKNOWN, at the deadline; whatever *send* raises before it.
    """
    answer: Future[T] = Future()
    threading.Thread(target=_carry, args=(send, answer), name="falcon-call", daemon=True).start()
    try:
        return answer.result(timeout=deadline.left())
    except TimeoutError:
        if answer.done():
            return answer.result()
        if abandon is not None:
            abandon()
        raise CloudError(ErrorKind.UNKNOWN, f"no answer within {deadline.seconds:g} s") from None


def _carry(send: Callable[[], T], answer: "Future[T]") -> None:
    try:
        answer.set_result(send())
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        answer.set_exception(error)
