"""`lab list`: what there is to run."""

import os
import sys
from collections.abc import Callable

from cli.columns import fitted
from cli.output import emit, look


def list_configs() -> Callable[[], int]:
    """List the shipped configs and their labs, one line each."""
    return _list


def _list() -> int:
    from labs.core.registry import shipped

    rows = [(name, entry.lab, entry.title) for name, entry in sorted(shipped().items())]
    names, labs = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
    lines = [f"{name:<{names}}  {lab:<{labs}}  {title}".rstrip() for name, lab, title in rows]
    emit("\n".join(fitted(lines, look(sys.stdout, os.environ))))
    return 0


def complete_config(incomplete: str) -> list[str]:
    """The shipped names that start with what the shell has so far."""
    from labs.core.registry import shipped

    return [name for name in sorted(shipped()) if name.startswith(incomplete)]
