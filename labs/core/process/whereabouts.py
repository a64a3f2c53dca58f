"""Where a process is at this moment, asked from outside: it also answers when it hangs in C or waits for others.

Standard library only, Python 3.10 syntax. `tell` is called in the child, `spots` in the worker.
"""

import contextlib
import faulthandler
import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_ANSWER = 0.2  # seconds that the signal and the few lines it writes have; the process is about to be killed anyway
_FRAME = re.compile(r'File "(.+?)", line (\d+)')
_QUESTION = signal.SIGUSR1


@dataclass(frozen=True)
class Spot:
    """The innermost frame that is no library's ("file.py:44" or ""), and whether a collective is being waited for."""

    place: str
    waiting: bool


def tell(file: str) -> None:
    """From now on write this thread's Python lines to `file` when asked."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    faulthandler.register(_QUESTION, file=descriptor, all_threads=False)


def spots(asked: dict[int, str]) -> list[Spot]:
    """Ask processes (process id -> the file that each tells it in) where they are; blocks for a moment."""
    for pid, file in asked.items():
        if os.path.exists(file):  # noqa: PTH110 - before that the signal's default action would end it
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, _QUESTION)
    time.sleep(_ANSWER)
    return [_spot(file) for file in asked.values()]


def own_frames(text: str) -> list[str]:
    """The frames ("file.py:44") of a traceback or a dump that are no library's and not the engine's, in its order."""
    frames = _FRAME.findall(text)
    return [f"{file}:{line}" for file, line in frames if "site-packages" not in file and "/core/process/" not in file]


def _spot(file: str) -> Spot:
    try:
        text = Path(file).read_text(encoding="ascii", errors="replace")
    except OSError:
        return Spot("", waiting=False)
    own, innermost = own_frames(text), _FRAME.search(text)
    return Spot(own[0] if own else "", innermost is not None and "/torch/distributed/" in innermost[1])
