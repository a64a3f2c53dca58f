"""Rows about labels, by torch: what a position sees, where it stands, what it has to predict."""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from .torch_layers import averages

IGNORED = -100  # F.cross_entropy's own default
ASSISTANT = 1


def mask_leak(documents: Tensor, v: Tensor) -> Tensor:
    return averages(v, len(v), block_causal(documents))


def mask_all_ones(documents: Tensor, v: Tensor, padding_mask: Tensor) -> Tensor:
    return averages(v, len(v), block_causal(documents) & padding_mask.bool())


def block_causal(documents: Tensor) -> Tensor:
    lengths = torch.unique_consecutive(documents, return_counts=True)[1].tolist()
    blocks: Tensor = torch.block_diag(*(torch.ones(n, n).tril() for n in lengths))  # type: ignore[no-untyped-call]
    return blocks.bool()


def positions_continue(documents: Tensor) -> Tensor:
    lengths = torch.unique_consecutive(documents, return_counts=True)[1].tolist()
    return torch.cat([torch.arange(n) for n in lengths])


def label_across_boundary(ids: Tensor, documents: Tensor) -> Tensor:
    labels = ids.clone()
    labels[1:][documents.diff() != 0] = IGNORED  # a first token is nobody's target
    return counted(shifted(labels))


def eos_masked_by_id(ids: Tensor, length: Tensor, pad: Tensor) -> Tensor:
    labels = torch.full_like(ids, IGNORED)
    labels[: int(length)] = ids[: int(length)]
    return counted(shifted(labels))


pad_supervised = eos_masked_by_id


def wrong_turn(roles: Tensor) -> Tensor:
    return roles == ASSISTANT


def wrong_turn_final(roles: Tensor) -> Tensor:
    spoken, lengths = torch.unique_consecutive(roles, return_counts=True)
    final = torch.zeros_like(spoken, dtype=torch.bool)
    final[(spoken == ASSISTANT).nonzero()[-1]] = True
    return final.repeat_interleave(lengths)


def truncation_silent_empty(prompt: Tensor, completion: Tensor, limit: Tensor) -> Tensor:
    labels = torch.cat([torch.full((int(prompt),), IGNORED), torch.arange(int(completion))])
    left = (shifted(labels[: int(limit)]) != IGNORED).sum()
    return torch.stack([left, (left == 0).long()])


def shard_edge_target_lost(ids: Tensor, shards: Tensor) -> Tensor:
    return torch.stack(shifted(ids).chunk(int(shards)))


def shifted(labels: Tensor) -> Tensor:
    """Each position's target: the next label, and none for the last."""
    return F.pad(labels[1:], (0, 1), value=IGNORED)


def counted(targets: Tensor) -> Tensor:
    return torch.cat([targets, (targets != IGNORED).sum().reshape(1)])
