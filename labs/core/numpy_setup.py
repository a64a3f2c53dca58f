"""NumPy as the referee wants it, imported before anything else imports it.

One BLAS thread: the same bits on every number of CPUs, and torch keeps a CPU for itself (two threads beside a torch
that computes wait for each other). What can run at the same time is given threads of its own: `stepped`, `judge`.

No huge pages: most memory here is written once, and where a machine has to get it from its host, pages of 2 MB cost
several times as much (docs/decisions/0016-memory-for-one-use.md).
"""

from __future__ import annotations

import os
import sys

WANTED = {"OPENBLAS_NUM_THREADS": "1", "NUMPY_MADVISE_HUGEPAGE": "0"}


def set_up() -> None:
    """Import NumPy that way, as far as the user's environment does not say otherwise, unless it is there already.

    The variables are read once, while it is imported; processes that are started later must not inherit them.
    """
    if "numpy" in sys.modules:
        return
    ours = [name for name in WANTED if name not in os.environ]
    os.environ.update({name: WANTED[name] for name in ours})
    try:
        import numpy as np  # noqa: F401, PLC0415 - for what it reads
    finally:
        for name in ours:
            del os.environ[name]
