"""`lab verify`: does a bundle still say what its arrays say?"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from cli import options
from cli.columns import fitted
from cli.output import emit, look


def verify(
    bundle: options.Bundle,
) -> Callable[[], int]:
    """Check a bundle's hashes, then judge again from its stored arrays."""
    return lambda: _verify(bundle)


def _verify(bundle: Path) -> int:
    from labs.core.verify import verify as check  # imports NumPy

    found = check(bundle)
    count = len(found.problems)
    verdict = f"{bundle}: {count} problem{'s' if count > 1 else ''}" if count else f"{bundle}: verified"
    emit("\n".join(fitted([*found.problems, f"{verdict} · {found.summary}"], look(sys.stdout, os.environ))))
    return 1 if count else 0
