"""Half the squared distance to a target, a weighted mean over rows.

forward   L = Σ_i w_i Σ_j (y_ij − t_ij)² / (2 Σ_i w_i)
backward  dy_ij = dL · w_i (y_ij − t_ij) / Σ w;  the target is a constant
shapes    y, t, dy [..., k]; w [...] real, > 0 in total; L scalar
saved     the gradient for dL = 1
source    the derivative of a square
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Saved(NamedTuple):
    """What the backward pass reads."""

    unit: Array  # [..., k]


def forward(y: Array, target: Array, weights: Array) -> tuple[Array, Saved]:
    """The loss."""
    error = y - target
    unit = (weights / np.sum(weights))[..., None] * error  # [..., k]
    return np.sum(unit * error) / 2, Saved(unit)


def backward(dloss: Any, saved: Saved) -> Array:
    """The gradient of y."""
    dy: Array = dloss * saved.unit
    return dy
