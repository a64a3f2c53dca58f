"""What the torch side of the lab is made of: one function a row, which a fault or `lab run --swap ROW=…` replaces."""

from dataclasses import make_dataclass

from labs.core.setting import part

from .table import ROWS


def _signature(right: object) -> str:
    return str(right) if not isinstance(right, tuple) else f"({', '.join(map(_signature, right))})"


Parts = make_dataclass(
    "Parts",
    [(row.name, f"({', '.join(row.given)}) -> {_signature(row.right)}", part(row.rule)) for row in ROWS],
    frozen=True,
)
Parts.__module__ = __name__  # before Python 3.12 it would be `types`
Parts.__doc__ = (
    "One torch side: each callable takes its row's operands by name, as tensors, and returns the row's value."
)
