"""Scaled dot-product attention with grouped key/value heads and a visibility mask.

forward   S = Q Kᵀ / √D,  P = softmax(S over the visible keys),  Y = P V
backward  dP = dY Vᵀ,  dV = Pᵀ dY,  dS = softmax backward,  dQ = dS K / √D,  dK = dSᵀ Q / √D
          dK and dV sum over the query heads that share a key/value head
shapes    q, y [..., H, T, D]; k, v [..., G, S, D], G divides H, query head h reads key/value head h // (H/G)
          s, p [..., H, T, S]; visible boolean [T, S] or [B, T, S], the same for every head
saved     q, k, v, p; s as well, because labs compare it (the backward pass doesn't read it)
source    Vaswani et al. 2017, eq. 1; grouped heads: Ainslie et al. 2023; the gradients: Dao et al. 2022, appendix B.2
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labs.kernels import softmax

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]


class Saved(NamedTuple):
    """What the backward pass reads, and the scores."""

    q: Array  # [..., H, T, D]
    k: Array  # [..., G, S, D]
    v: Array  # [..., G, S, D]
    s: Array  # [..., H, T, S] scaled, before the mask
    p: Array  # [..., H, T, S]


class Grads(NamedTuple):
    """Gradients in the order of forward's arguments, then those of the two intermediates."""

    dq: Array  # [..., H, T, D]
    dk: Array  # [..., G, S, D]
    dv: Array  # [..., G, S, D]
    ds: Array  # [..., H, T, S]
    dp: Array  # [..., H, T, S]


def causal(queries: int, keys: int, offset: int = 0) -> Mask:
    """Key j is visible to query i when j <= i + offset; cached decoding has offset = keys − queries. [T, S]."""
    return np.arange(keys) <= np.arange(queries)[:, None] + offset


def same_document(queries: NDArray[np.int64], keys: NDArray[np.int64]) -> Mask:
    """Block-diagonal visibility from document ids [..., T] and [..., S]: a query sees its own document. [..., T, S]."""
    same: Mask = queries[..., :, None] == keys[..., None, :]
    return same


def forward(q: Array, k: Array, v: Array, visible: Mask | None = None) -> tuple[Array, Saved]:
    """Attention output; a query that sees no key gets 0. ValueError when G does not divide H."""
    groups, keys = k.shape[-3], k.shape[-2]
    rows = _fold(q, groups)  # [..., G, (H/G)T, D]
    s = (rows @ _t(k)).reshape(*q.shape[:-1], keys)  # [..., H, T, S]
    s *= _scale(q)
    p, _ = softmax.forward(s, None if visible is None else visible[..., None, :, :])
    y = (_fold(p, groups) @ v).reshape(*q.shape[:-1], v.shape[-1])  # [..., H, T, D]
    return y, Saved(q, k, v, s, p)


def backward(dy: Array, saved: Saved) -> Grads:
    """Gradients of q, k, v, and of the scores and probabilities on the way."""
    q, k, v, _, p = saved
    groups = k.shape[-3]
    dy_rows = _fold(dy, groups)  # [..., G, (H/G)T, D]
    dp = (dy_rows @ _t(v)).reshape(p.shape)  # [..., H, T, S]
    dv = _t(_fold(p, groups)) @ dy_rows  # [..., G, S, D]; the product over folded rows is the sum over the group
    ds = softmax.backward(dp, softmax.Saved(p))
    ds_rows = _fold(ds, groups) * _scale(q)  # [..., G, (H/G)T, S]
    dq = (ds_rows @ k).reshape(q.shape)
    dk = _t(ds_rows) @ _fold(q, groups)  # [..., G, S, D]
    return Grads(dq, dk, dv, ds, dp)


def _fold(x: Array, groups: int) -> Array:
    """Stack the H/G heads of a group into one taller matrix: [..., H, T, n] -> [..., G, (H/G)T, n]."""
    *lead, heads, rows, width = x.shape
    if heads % groups:
        raise ValueError(f"{heads} query heads, {groups} key/value heads: the second has to divide the first")
    return x.reshape(*lead, groups, heads // groups * rows, width)


def _t(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


def _scale(q: Array) -> Array:
    """1/√D as a scalar of q's own precision, so that longdouble stays longdouble."""
    width = np.asarray(q.shape[-1], dtype=q.real.dtype)
    scale: Array = 1 / np.sqrt(width)
    return scale
