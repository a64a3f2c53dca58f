"""The `lab` command: start what takes longest, then understand the command line and do as it says."""

from __future__ import annotations

import sys

from cli.early import Early

TYPE_CHECKING = False  # typing is slow to import, and torch is waiting
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line `arguments` (default: this process's) and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        early = Early(words)
        try:
            from cli.app import perform

            return perform(words, early)
        finally:
            early.close()
    except KeyboardInterrupt:  # while importing or closing; in between, `perform` says it
        return INTERRUPTED
