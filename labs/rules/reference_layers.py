"""Rows about layers, by the kernels: norms, attention, gates, residual paths, and what a loss passes down to them."""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

from typing import Any

import numpy as np

from labs.core.lab import Array
from labs.kernels import attention, cross_entropy, linear, rms_norm, softmax, swiglu


def rms_constant_r(x: Array, gamma: Array, dy: Array) -> Array:
    _, saved = rms_norm.forward(x, gamma, eps=0.0)
    return rms_norm.backward(dy, saved).dx


def rms_weight_gradient_missing(x: Array, gamma: Array, dy: Array) -> Array:
    _, saved = rms_norm.forward(x, gamma, eps=0.0)
    return rms_norm.backward(dy, saved).dgamma


def rms_offset(x: Array, gamma: Array) -> Array:
    return rms_norm.forward(x, gamma, eps=0.0)[0]


def rows_from_first_axis(dy: Array, width: Array) -> Array:
    x = np.ones((*dy.shape, int(width)), dy.dtype)  # [2, 3, 4]
    _, saved = rms_norm.forward(x, x[0, 0], eps=0.0)
    return rms_norm.backward(np.broadcast_to(dy[..., None], x.shape), saved).dgamma


def scale_missing(q: Array, k: Array, v: Array) -> Any:
    keys = np.stack([np.full_like(q, k), np.zeros_like(q)])  # the second key is orthogonal to everything
    return attention.forward(q[None, None], keys[None], v[None, :, None])[0][0, 0, 0]


def causal_off(v: Array) -> Array:
    return averages(v, attention.causal(v.size, v.size))


def causal_top_left(v: Array, queries: Array) -> Array:
    return averages(v, attention.causal(int(queries), v.size))


def causal_bottom_right(v: Array, queries: Array) -> Array:
    return averages(v, attention.causal(int(queries), v.size, offset=v.size - int(queries)))


def averages(v: Array, visible: attention.Mask) -> Array:
    """Attention of queries that are all 0: the average of the visible values. v [S], visible [T, S] -> [T]."""
    q = np.zeros((1, len(visible), 1), v.dtype)
    k = np.zeros((1, v.size, 1), v.dtype)
    return attention.forward(q, k, v[None, :, None], visible)[0][0, :, 0]


def masked_row_nan(q: Array, k: Array, v: Array) -> Array:
    y, saved = attention.forward(
        q.reshape(1, 1, 1), k[None, :, None], v[None, :, None], np.zeros((1, v.size), np.bool_)
    )
    return np.concatenate([y.ravel(), attention.backward(np.ones_like(y), saved).dq.ravel()])


def softmax_backward_no_sum(s: Array, dp: Array) -> Array:
    _, saved = softmax.forward(s)
    ds = softmax.backward(dp, saved)
    return np.append(ds, np.sum(ds))


def silu_derivative(a: Array) -> Array:
    one = np.ones_like(a)
    _, saved = swiglu.forward(a, one)
    return swiglu.backward(one, saved).da


def residual_dropped(x: Array, w: Array) -> Any:
    return x + w * x


def residual_gradient_dropped(x: Array, w: Array) -> Any:
    return np.ones_like(x) + w


def upstream_ignored(x: Array, w: Array, labels: Array, upstream: Array) -> Array:
    logits, saved = linear.forward(x[:, None], w[None, :])
    # The kernel's loss is a weighted mean; the weighted sum is their total times that.
    _, choice = cross_entropy.forward(logits, labels, upstream)
    dlogits = cross_entropy.backward(np.sum(upstream), choice)
    return linear.backward(dlogits, saved).dw.ravel()
