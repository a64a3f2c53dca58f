"""Rotary position embedding, pairing the halves: element i turns with element i + D/2, as in Llama.

forward   θ_i = base^(−2i/D), φ = position · θ_i;  for x = [a | b], the two halves of a row:
          y = [a cos φ − b sin φ | b cos φ + a sin φ]
backward  rotation by −φ: dx = [da cos φ + db sin φ | db cos φ − da sin φ], the halves of dy being da and db
shapes    x, y [..., T, D], D even; positions integer [T], or [B, T] for x [B, H, T, D]; any ids, in any order
saved     cos, sin, broadcastable to [..., T, D/2]
source    Su et al. 2021, "RoFormer", eq. 34, in the half-split order of Llama (the paper pairs neighbours)
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Saved(NamedTuple):
    """What the backward pass reads."""

    cos: Array  # [T, D/2] or [B, 1, T, D/2]
    sin: Array


def forward(x: Array, positions: NDArray[np.integer[Any]], base: float = 10000.0) -> tuple[Array, Saved]:
    """Rotate every pair of every row by its position. ValueError when D is odd."""
    angle = _angles(positions, x.shape[-1], base, x.real.dtype)
    saved = Saved(np.cos(angle), np.sin(angle))
    return _rotate(x, saved.cos, saved.sin), saved


def backward(dy: Array, saved: Saved) -> Array:
    """Rotate back: the transpose of a rotation."""
    return _rotate(dy, saved.cos, -saved.sin)


def _angles(positions: NDArray[np.integer[Any]], width: int, base: float, real: np.dtype[Any]) -> Array:
    if width % 2:
        raise ValueError(f"a row of {width} elements has no two equal halves")
    exponent = np.arange(0, width, 2).astype(real) / width
    theta = real.type(base) ** -exponent  # [D/2]; in x's precision, never complex: the angle is no input
    angle: Array = positions.astype(real)[..., None] * theta  # [..., T, D/2]
    return angle if positions.ndim == 1 else angle[..., None, :, :]  # one axis more, for the heads


def _rotate(x: Array, cos: Array, sin: Array) -> Array:
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
