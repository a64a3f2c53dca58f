"""Starts the framework process, importing next to nothing: what is imported here delays torch's own import.

(subprocess, dataclasses and json together take 40 ms; after the start they cost nothing, because they overlap.)
"""

from __future__ import annotations

import fcntl
import os

from labs.core.process.interpreter import command

TYPE_CHECKING = False  # typing and collections.abc are slow to import, and the start of the process waits for this
if TYPE_CHECKING:
    from collections.abc import Mapping


def ignite(python: str, scratch: str, mode: str, environ: Mapping[str, str]) -> tuple[int, int, int]:
    """Start an interpreter in a session of its own: (process id, its standard input, what it answers on).

    Its output goes to <scratch>/framework.log. Both descriptors are ours to close; the first does not block. Raises
    OSError when there is no such program, or it can't be run.
    """
    listen, orders = _pipe()
    answers, speak = _pipe()
    log = _above_standard(os.open(f"{scratch}/framework.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644))
    os.set_inheritable(speak, True)  # noqa: FBT003
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for source, target in ((listen, 0), (log, 1), (log, 2))]
    try:
        words = command(python, speak, scratch, mode)
        process = os.posix_spawnp(python, words, environ, file_actions=actions, setsid=True)
    except BaseException:
        os.close(orders)
        os.close(answers)
        raise
    finally:
        for theirs in (listen, speak, log):
            os.close(theirs)
    os.set_blocking(orders, False)
    _widen(orders)
    return process, orders, answers


def _widen(pipe: int) -> None:
    """Where a pipe's size can be set, hold all orders of a run: they are read when torch has been imported."""
    try:  # noqa: SIM105 - contextlib is slow to import
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
    except (AttributeError, OSError):  # not Linux, or more than this user may have: the rest is sent later
        pass


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    return _above_standard(read), _above_standard(write)


def _above_standard(descriptor: int) -> int:
    """The same file at a number over 2: a referee that was started with `2>&-` gets pipes down there."""
    if descriptor > 2:  # noqa: PLR2004 - standard error
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved
