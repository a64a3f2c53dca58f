"""Embedding: rows of a table, by id.

forward   y_t = table[ids_t]
backward  dtable_i = Σ over the t with ids_t = i of dy_t: a repeated id adds up, an unused row is 0
shapes    table, dtable [V, D]; ids integer [...]; y, dy [..., D]
saved     ids, V
source    a product with one-hot rows (Bengio et al. 2003, the matrix C), whose transpose is the scatter-add
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Saved(NamedTuple):
    """What the backward pass reads."""

    ids: NDArray[np.integer[Any]]  # [...]
    vocabulary: int


def forward(table: Array, ids: NDArray[np.integer[Any]]) -> tuple[Array, Saved]:
    """Look the rows up. ValueError for an id outside the table: NumPy would count a negative one from the end."""
    outside = ids[(ids < 0) | (ids >= len(table))]
    if outside.size:
        raise ValueError(f"id {outside[0]}: expected 0 <= id < {len(table)}")
    return table[ids], Saved(ids, len(table))


def backward(dy: Array, saved: Saved) -> Array:
    """Gradient of the table. `dtable[ids] += dy` would keep only the last of a repeated id."""
    dtable = np.zeros((saved.vocabulary, dy.shape[-1]), dtype=dy.dtype)
    np.add.at(dtable, saved.ids, dy)
    return dtable
