"""The SwiGLU gate: SiLU of one projection times another. The three projections around it are `linear`.

forward   z = a σ(a) ⊙ b
backward  da = dz ⊙ b ⊙ (σ(a) + a σ(a)(1 − σ(a)));  db = dz ⊙ a σ(a)
shapes    all [..., f]
saved     a, b, σ(a)
source    Shazeer 2020, "GLU Variants Improve Transformer", eq. 6, with β = 1
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Saved(NamedTuple):
    """What the backward pass reads."""

    a: Array
    b: Array
    sigma: Array


class Grads(NamedTuple):
    """Gradients in the order of forward's arguments."""

    da: Array
    db: Array


def sigmoid(a: Array) -> Array:
    """1/(1 + exp(−a)), by the sign of the real part, so that exp never sees a large positive number."""
    positive = a.real >= 0
    e = np.exp(np.where(positive, -a, a))  # |e| <= 1
    return np.where(positive, 1.0, e) / (1.0 + e)


def forward(a: Array, b: Array) -> tuple[Array, Saved]:
    """Gate b by a: a is the gate's projection, b the other."""
    sigma = sigmoid(a)
    return a * sigma * b, Saved(a, b, sigma)


def backward(dz: Array, saved: Saved) -> Grads:
    """Gradients of both projections."""
    a, b, sigma = saved
    silu = a * sigma
    slope = sigma + silu * (1.0 - sigma)  # the product rule on a σ(a)
    return Grads(da=dz * b * slope, db=dz * silu)
