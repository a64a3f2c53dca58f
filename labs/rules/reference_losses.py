"""Rows about losses, by the kernels: which label a logit meets, and what the sum is divided by."""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

from typing import Any

import numpy as np

from labs.core.lab import Array
from labs.kernels import cross_entropy, labels


def label_double_shift(ids: Array, logit: Array, vocabulary: Array) -> Array:
    targets = labels.targets(ids).astype(np.int64)
    hit = np.arange(int(vocabulary)) == targets[:, None]  # [T, V]
    return cross_entropy.forward(np.where(hit, logit, 0), targets)[0]


def zero_labels_nan(logits: Array, label: Array) -> Array:
    loss, saved = cross_entropy.forward(logits, label)
    return np.append(loss, cross_entropy.backward(1, saved))


def zero_labels_constant(logits: Array, label: Array) -> np.bool_:
    _, saved = cross_entropy.forward(logits, label)
    return np.bool_(cross_entropy.backward(1, saved).shape == logits.shape)


def count_unshifted(ids: Array, losses: Array) -> Any:
    return np.sum(losses) / labels.count(labels.targets(ids))


def mean_of_means(first: Array, second: Array) -> Any:
    return (np.sum(first) + np.sum(second)) / (first.size + second.size)


def mean_of_rank_means(first: Array, second: Array) -> Any:
    ranks, count = (first, second), first.size + second.size
    return np.mean([np.sum(losses) * len(ranks) / count for losses in ranks])


def accumulation_not_divided(g: Array) -> Any:
    return np.sum(g / g.size)


def last_window_divided_by_k(g: Array, window: Array) -> Any:
    left = g.size % window or window  # a full window where the count divides
    return np.sum(g[-left:]) / left


def chunked_cross_entropy(logits: Array, tokens: Array, chunk: Array) -> Any:
    starts = range(0, int(tokens), int(chunk))
    lengths = [min(int(chunk), int(tokens) - start) for start in starts]
    rows = [(np.tile(logits, (length, 1)), np.zeros(length, np.int64)) for length in lengths]
    means = [cross_entropy.forward(*row)[0] for row in rows]
    return sum(mean * length for mean, length in zip(means, lengths, strict=True)) / tokens
