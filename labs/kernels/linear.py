"""Linear map of row vectors, with any number of leading axes.

forward   y = x w + b
backward  dx = dy wᵀ,  dw = Σ_rows xᵀ dy,  db = Σ_rows dy
shapes    x, dx [..., d]; w, dw [d, k]; b, db [k]; y, dy [..., k]
saved     x, w
source    the chain rule on y_ik = Σ_j x_ij w_jk + b_k; w and b serve every row, so their gradients add up over rows
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Saved(NamedTuple):
    """What the backward pass reads."""

    x: Array  # [..., d]
    w: Array  # [d, k]


class Grads(NamedTuple):
    """Gradients in the order of forward's arguments; without a bias the last one is to be ignored."""

    dx: Array
    dw: Array
    db: Array


def forward(x: Array, w: Array, b: Array | None = None) -> tuple[Array, Saved]:
    """The projected rows, plus a bias where one is given."""
    y = x @ w  # [..., k]
    return (y if b is None else y + b), Saved(x, w)


def backward(dy: Array, saved: Saved) -> Grads:
    """Gradients of the rows, the matrix and the bias."""
    x, w = saved
    return Grads(dx=dy @ w.T, dw=rows(x).T @ rows(dy), db=np.sum(rows(dy), axis=0))


def rows(x: Array) -> Array:
    """Every leading axis folded into one: [..., d] becomes [n, d]."""
    return x.reshape(-1, x.shape[-1])
