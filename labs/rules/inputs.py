"""The lab's inputs: the operands of the rows that are computed, as the table has them."""

from fnmatch import fnmatchcase

import numpy as np

from labs.core.inputs import Draw
from labs.core.lab import Arrays

from .config import Config
from .table import ROWS


def inputs(config: Config, draw: Draw) -> Arrays:  # noqa: ARG001 (nothing is drawn: every seed has the same table)
    """Operands by ROW/OPERAND: float64, int64 or bool, with as many axes as the table has brackets."""
    rows = [row for row in ROWS if fnmatchcase(row.name, config.rows)]
    return {f"{row.name}/{name}": np.array(value) for row in rows for name, value in row.given.items()}
