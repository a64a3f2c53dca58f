"""Symmetric InfoNCE of paired features, with a learnable log-temperature.

forward   c = exp(log_scale);  S = c x keys_yᵀ,  R = c y keys_xᵀ
          loss = ½ mean_i(−log softmax(S_i)[labels_i]) + ½ mean_i(−log softmax(R_i)[labels_i])
backward  dS = dloss (softmax(S) − onehot(labels)) / 2n, dR alike
          dx = c dS keys_y,  dkeys_y = c dSᵀ x;  dy = c dR keys_x,  dkeys_x = c dRᵀ y
          dlog_scale = Σ dS ⊙ S + Σ dR ⊙ R      because dS/dlog_scale = S
shapes    x, y [n, D] the local rows; keys_x, keys_y [N, D] everything they are compared with; labels integer [n], the
          key that is each row's partner (rank offset + row); log_scale and loss []
saved     x, y, keys_x, keys_y, c, labels, S and R [n, N], their softmax
use       one global batch: keys_x = x, keys_y = y, n = N, and the gradient of x is dx + dkeys_x
source    Radford et al. 2021 (CLIP), figure 3; van den Oord et al. 2018, eq. 4
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labs.kernels import softmax

Array: TypeAlias = NDArray[Any]
Labels: TypeAlias = NDArray[np.integer[Any]]


class Saved(NamedTuple):
    """What the backward pass reads."""

    x: Array  # [n, D]
    y: Array
    keys_x: Array  # [N, D]
    keys_y: Array
    scale: Array  # [] the exponential of log_scale
    labels: Labels  # [n]
    s: Array  # [n, N] logits of x against keys_y
    r: Array  # [n, N] logits of y against keys_x
    p_s: Array  # [n, N]
    p_r: Array


class Grads(NamedTuple):
    """Gradients in the order of forward's arguments."""

    dx: Array  # [n, D]
    dy: Array
    dkeys_x: Array  # [N, D]
    dkeys_y: Array
    dlog_scale: Array  # []


def forward(x: Array, y: Array, keys_x: Array, keys_y: Array, log_scale: Array, labels: Labels) -> tuple[Array, Saved]:
    """Mean of both directions. ValueError for a label that names no key."""
    wrong = labels[(labels < 0) | (labels >= len(keys_x))]
    if wrong.size:
        raise ValueError(f"label {wrong[0]}: expected 0 <= label < {len(keys_x)}")
    scale = np.asarray(np.exp(log_scale))
    s, r = scale * (x @ keys_y.T), scale * (y @ keys_x.T)  # [n, N]
    p_s, p_r = softmax.forward(s)[0], softmax.forward(r)[0]
    loss = (_mean_loss(s, labels) + _mean_loss(r, labels)) / 2
    return np.asarray(loss), Saved(x, y, keys_x, keys_y, scale, labels, s, r, p_s, p_r)


def backward(dloss: Array, saved: Saved) -> Grads:
    """Gradients of the local rows, of the keys and of the log-temperature, each path by itself."""
    ds = dloss * _less_onehot(saved.p_s, saved.labels) / (2 * len(saved.labels))  # [n, N]
    dr = dloss * _less_onehot(saved.p_r, saved.labels) / (2 * len(saved.labels))
    return Grads(
        dx=saved.scale * (ds @ saved.keys_y),
        dy=saved.scale * (dr @ saved.keys_x),
        dkeys_x=saved.scale * (dr.T @ saved.y),
        dkeys_y=saved.scale * (ds.T @ saved.x),
        dlog_scale=np.asarray(np.sum(ds * saved.s) + np.sum(dr * saved.r)),
    )


def _mean_loss(logits: Array, labels: Labels) -> Array:
    """Mean of log Σ exp(row) − row[label], with the row's maximum taken off before exp."""
    shifted = logits - np.max(logits.real, axis=-1, keepdims=True)
    target = np.take_along_axis(shifted, labels[:, None], axis=-1)[:, 0]
    mean: Array = np.mean(np.log(np.sum(np.exp(shifted), axis=-1)) - target)
    return mean


def _less_onehot(p: Array, labels: Labels) -> Array:
    """P minus 1 at every label."""
    onehot: NDArray[np.bool_] = np.arange(p.shape[-1]) == labels[:, None]
    less: Array = p - onehot
    return less
