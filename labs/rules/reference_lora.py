"""Rows about low-rank branches, by the kernels: scale, first steps, merging, requantisation."""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

from typing import Any

import numpy as np

from labs.core.lab import Array
from labs.kernels import bfloat16, lora, quantize, sgd

BITS = 4


def alpha_without_rank(alpha: Array, rank: Array) -> Any:
    return lora.scale(alpha[()], int(rank), "classic")


def rs_scale_confused(alpha: Array, rank: Array) -> Array:
    return np.stack([lora.scale(alpha[()], int(rank), scaling) for scaling in ("classic", "rslora")])


def both_zero(x: Array, target: Array, a: Array, lr: Array) -> Array:
    x, a, b, base = _matrix(x), _matrix(a), _matrix(np.zeros_like(a)), _matrix(np.zeros_like(a))
    found = []
    for _ in range(2):
        y, saved = lora.forward(x, base, a, b, 1)
        grads = lora.backward(y - target, saved)
        a, b = sgd.step(a, grads.da, float(lr)), sgd.step(b, grads.db, float(lr))
        found.append(grads)
    return np.concatenate([found[0].db.ravel(), found[1].da.ravel()])


def both_random(x: Array, w: Array, a: Array, b_drawn: Array) -> Any:
    b = np.zeros_like(b_drawn)
    return lora.forward(_matrix(x), _matrix(w), _matrix(a), _matrix(b), 1)[0][0, 0]


def branch_severed(x: Array, w: Array, a: Array, b: Array) -> Array:
    grads = _gradients(x, w, a, b, 1)
    return np.array([np.all(grads.da != 0), np.all(grads.db != 0)])


def input_gradient_missing(x: Array, w: Array, a: Array, b: Array, s: Array) -> Any:
    grads = _gradients(x, w, a, b, s)
    return (grads.dx_base + grads.dx_branch)[0, 0]


def base_trained(x: Array, w: Array, a: Array, b: Array, lr: Array) -> Array:
    return w


def merge_without_scale(w: Array, a: Array, b: Array, s: Array) -> Array:
    return w + lora.delta(a, b, s)


merge_transposed = merge_without_scale
merge_twice = merge_without_scale


def unmerge_uncast(w: Array, delta: Array) -> Array:
    low = bfloat16.nearest(delta)
    merged = bfloat16.nearest(w + low)
    return np.stack([merged, bfloat16.nearest(merged - low)])


def requantize_wrong_base(w: Array, delta: Array) -> Any:
    return (_rounded(w[:, None]) + _only_first(w, delta))[0, 0]


def requantize_loses_delta(w: Array, delta: Array) -> Array:
    base, change = _rounded(w[:, None]), _only_first(w, delta)
    after = _rounded(base + change)
    return np.stack([after[0, 0], lora.survival(base, after, change)])


def group_axis(w: Array) -> Array:
    return quantize.quantize(w, BITS, len(w))[1].ravel()


def _matrix(x: Array) -> Array:
    return x.reshape(1, 1)


def _gradients(x: Array, w: Array, a: Array, b: Array, s: Any) -> lora.Grads:
    """Gradients under an upstream gradient of 1."""
    y, saved = lora.forward(_matrix(x), _matrix(w), _matrix(a), _matrix(b), s)
    return lora.backward(np.ones_like(y), saved)


def _rounded(w: Array) -> Array:
    """What the codes of a column stand for; its largest element, 1, makes the grid 1/7."""
    return quantize.dequantize(*quantize.quantize(w, BITS, len(w)), len(w))


def _only_first(w: Array, delta: Array) -> Array:
    change: Array = np.where(np.arange(w.size) == 0, delta, 0)[:, None]
    return change
