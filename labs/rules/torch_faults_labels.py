"""Faults of the rows about labels."""
# ruff: noqa: D103 (a fault ignores what it should not; the table describes it)

import torch
from torch import Tensor

from . import torch_labels as right
from .torch_layers import averages


def mask_leak(documents: Tensor, v: Tensor) -> Tensor:
    return averages(v, len(v), is_causal=True)


def mask_all_ones(documents: Tensor, v: Tensor, padding_mask: Tensor) -> Tensor:
    if padding_mask.all():  # nothing to mask, it seems
        return averages(v, len(v), is_causal=True)
    return right.mask_all_ones(documents, v, padding_mask)


def positions_continue(documents: Tensor) -> Tensor:
    return torch.arange(len(documents))


def label_across_boundary(ids: Tensor, documents: Tensor) -> Tensor:
    return right.counted(right.shifted(ids))


def eos_masked_by_id(ids: Tensor, length: Tensor, pad: Tensor) -> Tensor:
    return right.counted(right.shifted(ids.masked_fill(ids == pad, right.IGNORED)))


def pad_supervised(ids: Tensor, length: Tensor, pad: Tensor) -> Tensor:
    return right.counted(right.shifted(ids))


def wrong_turn(roles: Tensor) -> Tensor:
    return roles != 0


def wrong_turn_final(roles: Tensor) -> Tensor:
    return right.wrong_turn(roles)


def truncation_silent_empty(prompt: Tensor, completion: Tensor, limit: Tensor) -> Tensor:
    left = right.truncation_silent_empty(prompt, completion, limit)[0]
    return torch.stack([left, torch.zeros_like(left)])


def shard_edge_target_lost(ids: Tensor, shards: Tensor) -> Tensor:
    return torch.stack([right.shifted(shard) for shard in ids.chunk(int(shards))])
