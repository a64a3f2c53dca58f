"""L2 normalisation of rows.

forward   n = √(Σ_j x_j²),  u = x / n
backward  dx = (du − u (u·du)) / n      what remains of du after the part along u
shapes    x, u, du, dx [..., d]
saved     u, n [..., 1]
source    the Jacobian (I − u uᵀ)/n of x/‖x‖; no epsilon, unlike torch.nn.functional.normalize (max(n, 1e-12))
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Saved(NamedTuple):
    """What the backward pass reads."""

    u: Array  # [..., d]
    n: Array  # [..., 1]


def forward(x: Array) -> tuple[Array, Saved]:
    """Scale every row to length 1. ValueError for a row of zeros: it has no direction."""
    unit = _power_of_two(x.real)  # [..., 1]
    scaled = x / unit  # exact, and its square can neither underflow nor overflow
    length = np.sqrt(np.sum(scaled * scaled, axis=-1, keepdims=True))
    return scaled / length, Saved(scaled / length, length * unit)


def backward(du: Array, saved: Saved) -> Array:
    """Gradient of x: orthogonal to u, row by row."""
    u, n = saved
    along: Array = u * np.sum(u * du, axis=-1, keepdims=True)
    return (du - along) / n


def _power_of_two(x: Array) -> Array:
    """Largest power of two up to the largest magnitude of each row."""
    largest = np.max(np.maximum(x, -x), axis=-1, keepdims=True)
    if np.any(largest == 0):
        raise ValueError("a row of zeros has no direction")
    _, exponent = np.frexp(largest)
    unit: Array = np.ldexp(np.ones_like(largest), exponent - 1)
    return unit
