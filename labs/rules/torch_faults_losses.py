"""Faults of the rows about losses."""
# ruff: noqa: D103 (a fault ignores what it should not; the table describes it)

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from . import torch_losses as right


def label_double_shift(ids: Tensor, logit: Tensor, vocabulary: Tensor) -> Tensor:
    collated = ids[1:]
    return F.cross_entropy(right.oracle(ids, logit, vocabulary)[:-2], collated[1:])


def zero_labels_nan(logits: Tensor, label: Tensor) -> Tensor:
    logits.requires_grad_()
    loss = F.cross_entropy(logits[None], label[None], reduction="sum") / (label != -100).sum()  # noqa: PLR2004
    return torch.cat([loss.reshape(1), torch.zeros_like(logits)])


def zero_labels_constant(logits: Tensor, label: Tensor) -> bool:
    return torch.zeros((), dtype=logits.dtype).requires_grad


def count_unshifted(ids: Tensor, losses: Tensor) -> Tensor:
    return losses.sum() / ids.numel()


def mean_of_means(first: Tensor, second: Tensor) -> Tensor:
    return torch.stack([first.mean(), second.mean()]).mean()


mean_of_rank_means = mean_of_means


def accumulation_not_divided(g: Tensor) -> Tensor:
    return right.accumulated(g, [1] * len(g))


def last_window_divided_by_k(g: Tensor, window: Tensor) -> Tensor:
    return right.accumulated(torch.split(g, int(window))[-1], [int(window)] * len(g))


def chunked_cross_entropy(logits: Tensor, tokens: Tensor, chunk: Tensor) -> Tensor:
    return torch.stack(right.chunks(logits, tokens, chunk, "mean")).sum()
