"""Symmetric InfoNCE of paired features, with a learnable log-temperature.

forward   c = exp(log_scale);  S = c x keys_yᵀ,  R = c y keys_xᵀ
          loss = ½ mean_i(−log softmax(S_i)[labels_i]) + ½ mean_i(−log softmax(R_i)[labels_i])
backward  dS = dloss (softmax(S) − onehot(labels)) / 2n, dR alike
          dx = c dS keys_y,  dkeys_y = c dSᵀ x;  dy = c dR keys_x,  dkeys_x = c dRᵀ y
          dlog_scale = Σ dS ⊙ S + Σ dR ⊙ R      because dS/dlog_scale = S
shapes    x, y [n, D] the local rows; keys_x, keys_y [N, D] everything they are compared with; labels integer [n], the
          key that is each row's partner (rank offset + row); log_scale and loss []
saved     x, y, keys_x, keys_y, c, S and R [n, N], and what cross_entropy saved of each
use       one global batch: keys_x = x, keys_y = y, n = N, and the gradient of x is dx + dkeys_x
source    Radford et al. 2021 (CLIP), figure 3; van den Oord et al. 2018, eq. 4
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labs.kernels import cross_entropy

Array: TypeAlias = NDArray[Any]
Labels: TypeAlias = NDArray[np.int64]


class Saved(NamedTuple):
    """What the backward pass reads."""

    x: Array  # [n, D]
    y: Array
    keys_x: Array  # [N, D]
    keys_y: Array
    scale: Array  # [] the exponential of log_scale
    s: Array  # [n, N] logits of x against keys_y
    r: Array  # [n, N] logits of y against keys_x
    s_rows: cross_entropy.Saved
    r_rows: cross_entropy.Saved


class Grads(NamedTuple):
    """Gradients in the order of forward's arguments."""

    dx: Array  # [n, D]
    dy: Array
    dkeys_x: Array  # [N, D]
    dkeys_y: Array
    dlog_scale: Array  # []


def forward(x: Array, y: Array, keys_x: Array, keys_y: Array, log_scale: Array, labels: Labels) -> tuple[Array, Saved]:
    """Mean of both directions. ValueError for a label that names no key: cross_entropy would leave that row out."""
    wrong = labels[(labels < 0) | (labels >= len(keys_x))]
    if wrong.size:
        raise ValueError(f"label {wrong[0]}: expected 0 <= label < {len(keys_x)}")
    scale = np.asarray(np.exp(log_scale))
    s, r = scale * (x @ keys_y.T), scale * (y @ keys_x.T)  # [n, N]
    loss_s, s_rows = cross_entropy.forward(s, labels)
    loss_r, r_rows = cross_entropy.forward(r, labels)
    return np.asarray((loss_s + loss_r) / 2), Saved(x, y, keys_x, keys_y, scale, s, r, s_rows, r_rows)


def backward(dloss: Array | float, saved: Saved) -> Grads:
    """Gradients of the local rows, of the keys and of the log-temperature, each path by itself."""
    ds = cross_entropy.backward(dloss / 2, saved.s_rows)  # [n, N]
    dr = cross_entropy.backward(dloss / 2, saved.r_rows)
    return Grads(
        dx=saved.scale * (ds @ saved.keys_y),
        dy=saved.scale * (dr @ saved.keys_x),
        dkeys_x=saved.scale * (dr.T @ saved.y),
        dkeys_y=saved.scale * (ds.T @ saved.x),
        dlog_scale=np.asarray(np.sum(ds * saved.s) + np.sum(dr * saved.r)),
    )
