"""The lab's inputs: the operands of the rows that are computed, as the table has them."""

import numpy as np

from labs.core.inputs import Draw
from labs.core.lab import Arrays

from .config import Config
from .table import THEMES


def inputs(config: Config, draw: Draw) -> Arrays:
    """Operands by ROW.OPERAND: float64, int64 or bool, with as many axes as the table has brackets."""
    rows = [row for theme, some in THEMES.items() if config.theme in ("all", theme) for row in some]
    return {f"{row.name}.{name}": np.array(value) for row in rows for name, value in row.given.items()}
