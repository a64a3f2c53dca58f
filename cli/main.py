"""The `lab` command: start what takes longest, then understand the command line and do as it says."""

from __future__ import annotations

import os
import sys

from cli.early import Early

TYPE_CHECKING = False  # typing is slow to import, and torch is waiting
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` and return its exit code; without any, this process's, which then ends here.

    Ending by oneself spares Python's clean-up of modules and objects, a tenth of a run. Whatever has to be closed or
    written was closed and written by then.
    """
    code = _main(list(sys.argv[1:] if arguments is None else arguments))
    if arguments is None:
        for stream in (sys.stdout, sys.stderr):
            try:  # noqa: SIM105 - contextlib is slow to import
                stream.flush()
            except (AttributeError, OSError, ValueError):  # not there, gone, closed
                pass
        os._exit(code)
    return code


def _main(words: list[str]) -> int:
    try:
        early = Early(words)
        try:
            from cli.app import perform

            return perform(words, early)
        finally:
            early.close()
    except KeyboardInterrupt:  # while importing or closing; in between, `perform` says it
        return INTERRUPTED
