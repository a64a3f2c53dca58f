"""What the disk refuses becomes one sentence that names the path."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labs.core.errors import CannotComplete

LEAST = 4096  # bytes: no file system gives away less


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError of the block (full, read-only, a file in the way) into CannotComplete naming `path`."""
    try:
        yield
    except OSError as error:
        raise CannotComplete(f"{path}: can't be written: {error.strerror or error}") from error


def refuse_full(folder: Path) -> None:
    """Raise CannotComplete when nothing more can be written below a folder: what failed there says nothing else."""
    found = os.statvfs(folder)
    spaceless = found.f_blocks and found.f_bavail * found.f_frsize < LEAST
    if spaceless or (found.f_files and not found.f_favail):  # some report neither, as 0 of 0
        raise CannotComplete(f"{folder}: can't be written: {os.strerror(errno.ENOSPC)}")
