"""stdout carries the result, stderr the talk."""

import errno
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from labs.core.errors import CannotComplete

DEFAULT_COLUMNS = 80

Format = Literal["terminal", "json", "markdown"]  # what stdout can carry


@dataclass(frozen=True)
class Look:
    """How text is shown: `width` in columns (None: a pipe, never cut or wrapped), and whether colour is welcome."""

    width: int | None
    colour: bool


def look(stream: TextIO, environ: Mapping[str, str]) -> Look:
    """What `stream` can show: its width and colour when it is a terminal; NO_COLOR and TERM=dumb are obeyed."""
    if not is_open(stream) or not stream.isatty():
        return Look(width=None, colour=False)
    plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
    return Look(width=shutil.get_terminal_size((DEFAULT_COLUMNS, 24)).columns, colour=not plain)


def is_open(stream: TextIO | None) -> bool:
    """False for a stream that the caller closed before we were started (`>&-`)."""
    return stream is not None and not stream.closed


def emit(text: str) -> None:
    """Write the result to stdout. A reader that has gone away, or never was, does not change the exit code.

    Raises CannotComplete when stdout can't take it, such as a file on a full disk.
    """
    if not is_open(sys.stdout):
        return
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except OSError as error:
        # the interpreter flushes stdout once more when it exits, and must not fail there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno not in (errno.EPIPE, errno.EBADF):
            raise CannotComplete(f"stdout: {error.strerror}") from error


def printable(value: Any, keep: str = "") -> Any:
    """The same value with every control character in its texts shown as an escape, but for those in `keep`."""
    if isinstance(value, str):
        return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in value)
    if isinstance(value, dict):
        return {key: printable(inner, keep) for key, inner in value.items()}
    return [printable(inner, keep) for inner in value] if isinstance(value, list) else value


def say(text: str) -> None:
    """Write one line of talk to stderr; a closed stderr is no reason to stop."""
    if not is_open(sys.stderr):
        return
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        pass


@dataclass(frozen=True)
class Progress:
    """Where a run is: one line that is overwritten on a terminal, plain lines elsewhere, nothing when quiet."""

    stream: TextIO
    quiet: bool

    def __call__(self, step: str) -> None:
        """Show `step`."""
        if not self.quiet and is_open(self.stream):
            self._write(f"\r\x1b[K{step}" if self.stream.isatty() else f"{step}\n")

    def clear(self) -> None:
        """Take the line away, so that the result starts on an empty one."""
        if not self.quiet and is_open(self.stream) and self.stream.isatty():
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            pass
