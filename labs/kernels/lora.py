"""A low-rank branch beside a base matrix: y = x W + s (x A) B, with s = α/r or α/√r.

forward   h = x A;  y = x W + s h B
backward  g = dy Bᵀ
          dA = s Σ_rows xᵀ g                    never (xᵀ dy) Bᵀ: same value, but a full [d, k] product on the way
          dB = s Σ_rows hᵀ dy
          dx = dy Wᵀ [base] + s g Aᵀ [branch]   two paths leave x, so two terms; a detached branch keeps only the first
          dW = Σ_rows xᵀ dy                     only when the base is trained: `base_gradient`
shapes    x, dx [..., d]; W, dW [d, k]; A, dA [d, r]; B, dB [r, k]; y, dy [..., k]; h, g [..., r]; s scalar
saved     x, W, A, B, s, h
source    Hu et al. 2021 (arXiv 2106.09685), §4.1; α/√r: Kalajdzievski 2023 (arXiv 2312.03732)
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labs.kernels.linear import rows

Array: TypeAlias = NDArray[Any]


class Saved(NamedTuple):
    """What the backward pass reads."""

    x: Array  # [..., d]
    w: Array  # [d, k]
    a: Array  # [d, r]
    b: Array  # [r, k]
    s: Any
    h: Array  # [..., r]


class Grads(NamedTuple):
    """Gradients of both factors, and of x along each of its two paths."""

    da: Array
    db: Array
    dx_base: Array
    dx_branch: Array


def scale(alpha: Any, rank: int, scaling: str) -> Any:
    """α/r ("classic") or α/√r ("rslora"), in the precision of α."""
    return alpha / (rank if scaling == "classic" else np.sqrt(type(alpha)(rank)))


def forward(x: Array, w: Array, a: Array, b: Array, s: Any) -> tuple[Array, Saved]:
    """The base's rows plus the branch's."""
    h = x @ a  # [..., r]
    return x @ w + s * (h @ b), Saved(x, w, a, b, s, h)


def branch(x: Array, a: Array, b: Array, s: Any) -> Array:
    """What the branch adds to the base's output: s (x A) B, [..., k]."""
    addend: Array = s * ((x @ a) @ b)
    return addend


def backward(dy: Array, saved: Saved) -> Grads:
    """Gradients of A, B and x, by the cheap bracketing."""
    x, w, a, b, s, h = saved
    g = dy @ b.T  # [..., r]
    return Grads(
        da=s * (rows(x).T @ rows(g)),
        db=s * (rows(h).T @ rows(dy)),
        dx_base=dy @ w.T,
        dx_branch=s * (g @ a.T),
    )


def base_gradient(dy: Array, saved: Saved) -> Array:
    """The gradient of the base matrix, [d, k]."""
    return rows(saved.x).T @ rows(dy)


def kaiming(uniform: Array) -> Array:
    """A drawn uniformly within ±1/√d from uniforms on [0, 1), [d, r]: the fan-in of A is d, not r.

    That is Kaiming-uniform for the slope √5 of a linear layer (He et al. 2015: bound = √3 · √(2/(1+5)) / √d).
    """
    bound = 1 / np.sqrt(uniform.dtype.type(uniform.shape[0]))
    a: Array = (2 * uniform - 1) * bound
    return a


def delta(a: Array, b: Array, s: Any) -> Array:
    """What merging adds to the base: s A B, [d, k]."""
    change: Array = s * (a @ b)
    return change


def survival(before: Array, after: Array, change: Array) -> Any:
    """⟨after − before, change⟩ / ‖change‖²: the share of an intended change that a lossy step left, a scalar."""
    return np.sum((after - before) * change) / np.sum(change * change)
