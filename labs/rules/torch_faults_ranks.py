"""Faults of the rows about several ranks."""
# ruff: noqa: D103 (a fault ignores what it should not; the table describes it)

import torch
from torch import Tensor

from . import torch_ranks as right


def _detached(shares: list[Tensor], rank: int) -> Tensor:
    """A gather without gradient, the own share put back in."""
    return torch.cat([share if r == rank else share.detach() for r, share in enumerate(shares)])


def gather_detached_global(x: Tensor, y: Tensor) -> Tensor:
    return right.shares_of_full(x, y, _detached, times=1.0)


def loss_times_world(x: Tensor, y: Tensor) -> Tensor:
    return right.shares_of_full(x, y, _detached, times=float(len(x)))


def gather_detached_local(x: Tensor, y: Tensor) -> Tensor:
    return right.cosine_with_full(x, y, _detached)


def gather_own_slice(features: Tensor, weights: Tensor) -> Tensor:
    return right.wanted(features, weights, _detached)


def labels_without_offset(rank: Tensor, rows: Tensor) -> Tensor:
    return torch.arange(int(rows))


def microbatch_without_negatives(x: Tensor, y: Tensor) -> Tensor:
    log_scale = torch.zeros((), dtype=x.dtype, requires_grad=True)
    loss = right.full_batch(x, y, log_scale)
    return torch.stack([loss, *torch.autograd.grad(loss, log_scale)])


def cached_last_only(x: Tensor, sizes: Tensor) -> Tensor:
    return torch.stack([right.cached(x, int(size), first=-1) for size in sizes])


def uneven_equal_weight(rows: Tensor) -> Tensor:
    return torch.ones(len(rows), dtype=torch.float64)


def temperature_without_exp(log_scale: Tensor) -> Tensor:
    return log_scale


def ranks_diverge(p: Tensor, g: Tensor, lr: Tensor) -> Tensor:
    return p - lr * g
