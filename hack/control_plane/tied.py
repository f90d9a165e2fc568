"""
Become another program that is ended when the process that started this one ends: `tied.py PARENT PROGRAM ARGUMENT...`.

It is a program of its own, and not something done between fork and exec: after a fork gRPC starts threads anew in the
child, and these end it.
"""

import ctypes
import os
import signal
import sys

DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, linux/prctl.h

if __name__ == "__main__":
    parent, program = int(sys.argv[1]), sys.argv[2]
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(program, sys.argv[2:])
