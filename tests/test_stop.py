"""SIGTERM as a condition: it is heard wherever it comes, also while the main thread holds the locks it would need."""

import subprocess
import sys

PROGRAM = """
import os, signal
from falcon_rm.stop import Stop

stop = Stop()
stop.listen()
with stop._asked._cond:  # the very lock that telling the main thread needs
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000):
        pass
stop.wait(5)
print(stop())
"""


def test_signal_is_heard_while_a_lock_is_held() -> None:
    """A signal that comes while the main thread holds the condition's lock neither hangs nor is lost."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=False)
    assert (0, "True\n", "") == (ran.returncode, ran.stdout, ran.stderr)
