"""The faulty rows: what people really computed, each in the module of its theme. The table says what is wrong with it.

A row without a faulty function answers with the table's wrong number.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from . import (
    torch_faults_labels,
    torch_faults_layers,
    torch_faults_lora,
    torch_faults_losses,
    torch_faults_ranks,
    torch_faults_training,
)
from .table import THEMES, Row

MODULES = {
    "layers": torch_faults_layers,
    "training": torch_faults_training,
    "labels": torch_faults_labels,
    "losses": torch_faults_losses,
    "lora": torch_faults_lora,
    "ranks": torch_faults_ranks,
}


def __getattr__(name: str) -> Callable[..., Any]:
    """The fault of the row of that name."""
    for theme, rows in THEMES.items():
        for row in rows:
            if row.name == name:
                fault: Callable[..., Any] = getattr(MODULES[theme], name, partial(published, row))
                return fault
    raise AttributeError(name)


def published(row: Row, **_: Tensor) -> Tensor:
    """The wrong number, in the dtype of the right one."""
    right = torch.tensor(row.right)
    return torch.tensor(row.wrong, dtype=torch.float64 if right.is_floating_point() else right.dtype)
