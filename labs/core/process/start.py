"""How a child of the framework process comes to life: a fork of it, or an interpreter of its own.

Standard library only (torch arrives with the child's own module), Python 3.10 syntax.
"""

import json
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterable

from labs.core.process.crew import Seat
from labs.core.process.interpreter import command
from labs.core.process.jobs import plain


def forked(seat: Seat, private: Iterable[int]) -> tuple[int, socket.socket]:
    """Fork a child for a seat: (process id, our end of its line). Raises OSError when there is no room for one."""
    from labs.core.process.torch_child import run  # noqa: PLC0415 - imports torch, which the worker does with care

    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for descriptor in (*private, ours.fileno()):
            os.close(descriptor)
        run(seat, theirs)
    theirs.close()
    return pid, ours


def spawned(seat: Seat, scratch: str) -> tuple[int, socket.socket]:
    """The same in an interpreter of its own: slower by an import of torch, same results."""
    ours, theirs = socket.socketpair()
    with theirs, tempfile.TemporaryFile() as order:
        order.write(json.dumps({**vars(seat), "job": plain(seat.job)}).encode("ascii"))
        order.seek(0)
        line = os.dup(theirs.fileno())
        os.set_inheritable(line, True)  # noqa: FBT003
        try:
            words = command(sys.executable, line, scratch, "seat")
            actions = [(os.POSIX_SPAWN_DUP2, order.fileno(), 0)]
            pid = os.posix_spawn(sys.executable, words, os.environ, file_actions=actions)
        finally:
            os.close(line)
    return pid, ours
