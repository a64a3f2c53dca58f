"""Rows about losses, by torch: which label a logit meets, and what the sum is divided by."""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor


def label_double_shift(ids: Tensor, logit: Tensor, vocabulary: Tensor) -> Tensor:
    return F.cross_entropy(oracle(ids, logit, vocabulary)[:-1], ids[1:])


def oracle(ids: Tensor, logit: Tensor, vocabulary: Tensor) -> Tensor:
    """Logits [T, V] of a model that knows the next token; its last row knows nothing."""
    known = F.one_hot(ids[1:], int(vocabulary)) * logit
    return F.pad(known, (0, 0, 0, 1))


def zero_labels_nan(logits: Tensor, label: Tensor) -> Tensor:
    logits.requires_grad_()
    loss = connected(logits, label)
    return torch.cat([loss.reshape(1), *torch.autograd.grad(loss, logits)])


def zero_labels_constant(logits: Tensor, label: Tensor) -> bool:
    return connected(logits.requires_grad_(), label).requires_grad


def connected(logits: Tensor, label: Tensor) -> Tensor:
    """The sum over the labels there are, by their number or 1."""
    total = F.cross_entropy(logits[None], label[None], reduction="sum")
    return total / (label != -100).sum().clamp(min=1)  # noqa: PLR2004 (F.cross_entropy's own default)


def count_unshifted(ids: Tensor, losses: Tensor) -> Tensor:
    return losses.sum() / ids[1:].numel()


def mean_of_means(first: Tensor, second: Tensor) -> Tensor:
    return torch.cat([first, second]).mean()


def mean_of_rank_means(first: Tensor, second: Tensor) -> Tensor:
    ranks = [first, second]
    count = sum(losses.numel() for losses in ranks)
    return torch.stack([losses.sum() * len(ranks) / count for losses in ranks]).mean()


def accumulation_not_divided(g: Tensor) -> Tensor:
    return accumulated(g, [len(g)] * len(g))


def last_window_divided_by_k(g: Tensor, window: Tensor) -> Tensor:
    windows = torch.split(g, int(window))
    return accumulated(windows[-1], [len(windows[-1])] * len(windows[-1]))


def accumulated(g: Tensor, divisors: list[int]) -> Tensor:
    """What .grad holds after a backward pass for each micro-batch's loss, g times a parameter, over its divisor."""
    parameter = torch.zeros((), dtype=g.dtype, requires_grad=True)
    for slope, divisor in zip(g, divisors, strict=True):
        torch.autograd.backward(slope * parameter / divisor)
    assert parameter.grad is not None
    return parameter.grad


def chunked_cross_entropy(logits: Tensor, tokens: Tensor, chunk: Tensor) -> Tensor:
    return torch.stack(chunks(logits, tokens, chunk, "sum")).sum() / tokens


def chunks(logits: Tensor, tokens: Tensor, chunk: Tensor, reduction: str) -> list[Tensor]:
    rows = torch.split(logits.expand(int(tokens), -1), int(chunk))
    return [F.cross_entropy(part, torch.zeros(len(part), dtype=torch.int64), reduction=reduction) for part in rows]
