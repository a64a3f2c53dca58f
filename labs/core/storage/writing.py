"""What the disk refuses becomes one sentence that names the path."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labs.core.errors import CannotComplete


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError of the block (full, read-only, a file in the way) into CannotComplete naming `path`."""
    try:
        yield
    except OSError as error:
        raise CannotComplete(f"{path}: can't be written: {error.strerror or error}") from error
