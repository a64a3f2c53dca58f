"""Softmax over the last axis, with a mask that says which entries are visible.

forward   p_ij = exp(s_ij − m_i) / Σ_k exp(s_ik − m_i) over the visible k, m_i the largest visible s_ik
          hidden entries are 0; a row without a visible entry is 0
backward  ds_ij = p_ij (dp_ij − Σ_k p_ik dp_ik), hence 0 at hidden entries and in fully masked rows
shapes    s, p, dp, ds [..., n]; visible boolean, broadcastable to s
saved     p
source    the Jacobian diag(p) − p pᵀ (Goodfellow, Bengio & Courville 2016, §6.2.2.3); row maximum taken off as in §4.1
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]


class Saved(NamedTuple):
    """What the backward pass reads."""

    p: Array  # [..., n]


def forward(s: Array, visible: Mask | None = None) -> tuple[Array, Saved]:
    """Probabilities of every row; without a mask everything is visible."""
    seen = np.True_ if visible is None else visible
    # A constant as far as the derivative goes (p does not depend on it), so the real part is enough.
    top = np.max(s.real, axis=-1, keepdims=True, where=seen, initial=-np.inf)  # [..., 1]
    top = np.where(np.isneginf(top), 0, top)  # −inf − (−inf) would be NaN
    p = s - top
    np.copyto(p, 0, where=~seen)  # before exp: a large hidden score must not overflow
    np.exp(p, out=p)
    p *= seen  # exactly 0 where hidden
    total = np.sum(p, axis=-1, keepdims=True)  # ≥ 1, or 0 in a row with nothing visible
    p /= np.where(total.real == 0, 1, total)
    return p, Saved(p)


def backward(dp: Array, saved: Saved) -> Array:
    """Gradient of the scores from the gradient of the probabilities."""
    p = saved.p
    expected: Array = np.sum(p * dp, axis=-1, keepdims=True)  # [..., 1]
    ds: Array = p * (dp - expected)
    return ds
