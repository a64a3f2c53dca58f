"""The torch side's only stage: the rows' values and the table's numbers, and what torch itself does at the edges.

As on the other side, each theme has a module and each row a function of its name there; autograd differentiates.
"""

from typing import Any

import torch
from torch import Tensor

from labs.core.place import Place

from . import torch_labels, torch_layers, torch_lora, torch_losses, torch_ranks, torch_training
from .config import Config
from .parts import Parts
from .table import THEMES, Row
from .torch_facts import FACTS

# Imported once, before processes are forked: nothing but definitions.
PRELOAD = ("labs.rules.torch_impl", "labs.rules.torch_faults")

MODULES = {
    "layers": torch_layers,
    "training": torch_training,
    "labels": torch_labels,
    "losses": torch_losses,
    "lora": torch_lora,
    "ranks": torch_ranks,
}

PARTS = Parts(**{row.name: getattr(MODULES[theme], row.name) for theme, rows in THEMES.items() for row in rows})


def rows(config: Config, inputs: dict[str, Tensor], parts: Any, place: Place) -> dict[str, Any]:
    """Each row's value as torch has it, and as the table has it; and what this torch does where versions differ."""
    items: dict[str, Any] = {f"facts/{name}": fact() for name, fact in FACTS.items()}
    for theme, some in THEMES.items():
        for row in some if config.theme in ("all", theme) else ():
            operands = {name: inputs[f"{row.name}.{name}"] for name in row.given}
            items |= {f"{row.name}/torch": getattr(parts, row.name)(**operands), f"{row.name}/literal": literal(row)}
    return items


STAGES = {"rows": rows}


def literal(row: Row) -> Tensor:
    """The number in the table, in the precision of a Python float."""
    return torch.tensor(row.right, dtype=None if _whole(row.right) else torch.float64)


def _whole(value: object) -> bool:
    """Whether it is made of integers or booleans, for which torch has the right dtype of its own."""
    return all(map(_whole, value)) if isinstance(value, tuple) else isinstance(value, int)
