"""Processes that end when the process that started them is gone, however it went.

Standard library only, Python 3.10 syntax. On Linux the kernel sends the signal; elsewhere the worker notices the end of
its standard input once torch is imported, and ends its process group then.
"""

import ctypes
import os
import select
import sys

_PR_SET_PDEATHSIG = 1


def bind(signal_number: int) -> None:
    """Ask the kernel for `signal_number` on the death of the parent *thread*."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)


def hung_up(descriptor: int) -> bool:
    """Whether the other end of a pipe is closed already (the parent may have died before `bind` was called)."""
    poll = select.poll()
    poll.register(descriptor, 0)  # hang-up is reported whatever is asked for
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def orphaned(parent: int) -> bool:
    """Whether the process that forked this one is gone."""
    return os.getppid() != parent
