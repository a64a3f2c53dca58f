"""The reference: the value of every row from the kernels, in the precision of its operands.

Each theme of the table has a module, each of its rows a function of the row's name there, which takes the row's
operands by name.
"""

from types import ModuleType

import numpy as np

from labs.core.lab import Array, Arrays

from . import (
    reference_labels,
    reference_layers,
    reference_lora,
    reference_losses,
    reference_ranks,
    reference_training,
)
from .config import Config
from .table import THEMES, Row

MODULES = {
    "layers": reference_layers,
    "training": reference_training,
    "labels": reference_labels,
    "losses": reference_losses,
    "lora": reference_lora,
    "ranks": reference_ranks,
}


def reference(config: Config, inputs: Arrays) -> Arrays:
    """The kernels' value of each row, twice: what torch gives and the number in the table are held against it."""
    items: Arrays = {}
    for theme, rows in THEMES.items():
        for row in rows if config.theme in ("all", theme) else ():
            value = _value(MODULES[theme], row, inputs)
            items |= {f"{row.name}/torch": value, f"{row.name}/literal": value}
    return items


def _value(module: ModuleType, row: Row, inputs: Arrays) -> Array:
    operands = {name: inputs[f"{row.name}.{name}"] for name in row.given}
    return np.asarray(getattr(module, row.name)(**operands))
