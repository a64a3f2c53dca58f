"""Rows about several ranks, by the kernels: what a gather passes back, weights, labels, micro-batches.

A rank has one pair, so features [N, D] have one row a rank. The encoder of x is a factor w = 1: its gradient is dx · x.
"""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

from typing import Any

import numpy as np

from labs.core.lab import Array
from labs.kernels import infonce, sgd


def gather_detached_global(x: Array, y: Array) -> Array:
    full = _grads(x, y, slice(None))
    dx = full.dx + full.dkeys_x  # [N, D]
    ranks = len(x)
    # Every rank computes the same loss, and the gather's backward adds up what all of them want of a slice.
    averaged = np.mean([ranks * np.sum(dx[rank] * x[rank]) for rank in range(ranks)])
    temperature = np.mean([full.dlog_scale for _ in range(ranks)])
    return np.stack([averaged / np.sum(dx * x), temperature / full.dlog_scale])


loss_times_world = gather_detached_global


def gather_detached_local(x: Array, y: Array) -> Any:
    full = _grads(x, y, slice(None))
    dx = np.zeros_like(x)
    dy = np.zeros_like(y)
    for rank in range(len(x)):
        own = slice(rank, rank + 1)
        local = _grads(x, y, own)
        dx += local.dkeys_x  # what this rank's loss wants of everybody's keys
        dy += local.dkeys_y
        dx[own] += local.dx
        dy[own] += local.dy
    averaged = np.concatenate([dx, dy]) / len(x)
    return _cosine(averaged, np.concatenate([full.dx + full.dkeys_x, full.dy + full.dkeys_y]))


def gather_own_slice(features: Array, weights: Array) -> Array:
    upstream = np.repeat(weights[:, None], features.size, axis=1)  # [rank, slice]
    summed: Array = np.sum(upstream, axis=0)
    return summed


def labels_without_offset(rank: Array, rows: Array) -> Array:
    first = int(rank * rows)
    return np.arange(first, first + int(rows))


def microbatch_without_negatives(x: Array, y: Array) -> Array:
    passes = [_forward(x[i : i + 1], y[i : i + 1], slice(None)) for i in range(len(x))]
    temperatures = [infonce.backward(1.0, saved).dlog_scale for _, saved in passes]
    return np.stack([np.mean([loss for loss, _ in passes]), np.mean(temperatures)])


def cached_last_only(x: Array, sizes: Array) -> Array:
    wanted = np.full_like(x, np.sum(x))  # of each feature w x, w = 1, under half the square of their sum
    parts = [np.arange(0, x.size, size) for size in sizes]
    return np.stack([np.sum(np.add.reduceat(wanted * x, starts)) for starts in parts])


def uneven_equal_weight(rows: Array) -> Array:
    weights: Array = rows * rows.size / np.sum(rows)
    return weights


def temperature_without_exp(log_scale: Array) -> Any:
    return np.exp(log_scale)


def ranks_diverge(p: Array, g: Array, lr: Array) -> Array:
    return np.stack([sgd.step(p, np.asarray(np.mean(g)), float(lr)) for _ in g])


def _forward(x: Array, y: Array, rows: slice) -> tuple[Array, infonce.Saved]:
    """Loss of some rows against every row, at a temperature of 1."""
    log_scale = np.zeros((), x.dtype)
    return infonce.forward(x[rows], y[rows], x, y, log_scale, np.arange(len(x))[rows])


def _grads(x: Array, y: Array, rows: slice) -> infonce.Grads:
    return infonce.backward(1.0, _forward(x, y, rows)[1])


def _cosine(a: Array, b: Array) -> Any:
    return np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))
