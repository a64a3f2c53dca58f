"""Rows about labels, by the kernels: what a position sees, where it stands, what it has to predict."""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

import numpy as np

from labs.core.lab import Array
from labs.kernels import attention, labels

from .reference_layers import averages

ASSISTANT = 1


def mask_leak(documents: Array, v: Array) -> Array:
    return averages(v, attention.causal(v.size, v.size) & attention.same_document(documents, documents))


def mask_all_ones(documents: Array, v: Array, padding_mask: Array) -> Array:
    packed = attention.causal(v.size, v.size) & attention.same_document(documents, documents)
    return averages(v, packed & (padding_mask != 0))


def positions_continue(documents: Array) -> Array:
    return labels.positions(documents)


def label_across_boundary(ids: Array, documents: Array) -> Array:
    return _counted(labels.targets(ids, documents))


def eos_masked_by_id(ids: Array, length: Array, pad: Array) -> Array:
    return _counted(labels.targets(ids, supervised=np.arange(ids.size) < length))


pad_supervised = eos_masked_by_id


def wrong_turn(roles: Array) -> Array:
    spoken: Array = roles == ASSISTANT
    return spoken


def wrong_turn_final(roles: Array) -> Array:
    return labels.final_turn(roles, ASSISTANT)


def truncation_silent_empty(prompt: Array, completion: Array, limit: Array) -> Array:
    row = np.arange(int(prompt + completion))
    left = labels.count(labels.targets(row[:limit], supervised=row[:limit] >= prompt))
    return np.array([left, left == 0])


def shard_edge_target_lost(ids: Array, shards: Array) -> Array:
    return labels.targets(ids).reshape(int(shards), -1)


def _counted(targets: Array) -> Array:
    return np.append(targets, labels.count(targets))
