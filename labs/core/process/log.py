"""What children print, kept within bounds. Standard library only, Python 3.10 syntax.

They write to the file themselves, always at its end (O_APPEND), so the worker can take its middle out while they go on:
the file is cut back to its beginning, its last words are put behind that, and what comes next follows. A limit of the
operating system would not do: it would hold for their arrays too.
"""

import contextlib
import os

LIMIT = 16 << 20  # bytes of a log; looked at now and then, so that a fast printer is above for a moment
KEPT = 8 << 20  # of its beginning, once it was longer
LAST = 1 << 16  # and of its end
_CUT = "\n[cut here: what was printed first and last is kept, because a log has at most {} MiB]\n"


def log_size(log: str) -> int:
    """Bytes in a log by now; 0 where there is none."""
    try:
        return os.stat(log).st_size if log else 0  # noqa: PTH116
    except OSError:
        return 0


def bound(log: str) -> None:
    """Cut a log that has grown too long; what the disk refuses is let be."""
    size = log_size(log)
    if size <= LIMIT:
        return
    with contextlib.suppress(OSError), open(log, "rb") as read, open(log, "ab") as file:  # noqa: PTH123
        read.seek(size - LAST)
        last = read.read(LAST)
        os.truncate(log, KEPT)
        file.write(_CUT.format(LIMIT >> 20).encode() + last)
