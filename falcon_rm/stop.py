"""
SIGTERM and SIGINT as a condition that can be waited for, with a hard end if the current call does not return.

1. A signal may come anywhere, also while the main thread holds a lock of this module or of the threading library: the
   handler does nothing, the kernel's byte in a pipe wakes a thread that was there before.
2. That thread needs nothing of the main thread: however a call hangs, the process ends STOP_SECONDS later.
"""

import os
import signal
import threading
import time
from types import FrameType

STOP_SECONDS = 8.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """Whether the process was asked to stop."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def listen(self) -> None:
        """Take the signals over. Call it once, from the main thread."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reading,), name="stop", daemon=True).start()
        for number in SIGNALS:
            signal.signal(number, _heard)

    def __call__(self) -> bool:
        """Return whether the process was asked to stop."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> None:
        """Wait until asked, or for so long."""
        self._asked.wait(seconds)

    def _watch(self, reading: int) -> None:
        while os.read(reading, 1)[0] not in SIGNALS:
            pass
        self._asked.set()
        time.sleep(STOP_SECONDS)
        os._exit(0)


def _heard(_signum: int, _frame: FrameType | None) -> None:
    """Let the call that was interrupted go on; the pipe has the news."""
