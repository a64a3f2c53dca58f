"""Rows about several ranks, by torch: what a gather passes back, weights, labels, micro-batches.

The ranks are played in one process: each has leaves of its own, and what they gather is one graph.
"""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

Gather = Callable[[list[Tensor], int], Tensor]


def gathered(shares: list[Tensor], rank: int) -> Tensor:
    """A gather through which gradients flow back to every rank."""
    return torch.cat(shares)


def infonce(x: Tensor, y: Tensor, keys_x: Tensor, keys_y: Tensor, scale: Tensor, labels: Tensor) -> Tensor:
    return (F.cross_entropy(scale * x @ keys_y.T, labels) + F.cross_entropy(scale * y @ keys_x.T, labels)) / 2


def full_batch(x: Tensor, y: Tensor, log_scale: Tensor) -> Tensor:
    return infonce(x, y, x, y, log_scale.exp(), torch.arange(len(x)))


def gather_detached_global(x: Tensor, y: Tensor) -> Tensor:
    return shares_of_full(x, y, gathered, times=1.0)


loss_times_world = gather_detached_global


def shares_of_full(x: Tensor, y: Tensor, gather: Gather, times: float) -> Tensor:
    """Averaged gradients of an encoder (a factor of x) and of log_scale over the full batch's: [2]."""
    ranks = len(x)
    encoders = torch.ones(ranks, dtype=x.dtype, requires_grad=True)
    log_scales = torch.zeros(ranks, dtype=x.dtype, requires_grad=True)
    features = [encoders[r] * x[r : r + 1] for r in range(ranks)]
    losses = [full_batch(gather(features, r), y, log_scales[r]) for r in range(ranks)]
    ours = torch.autograd.grad(times * torch.stack(losses).sum(), [encoders, log_scales])
    encoder, log_scale = (torch.tensor(v, dtype=x.dtype, requires_grad=True) for v in (1.0, 0.0))
    full = torch.autograd.grad(full_batch(encoder * x, y, log_scale), [encoder, log_scale])
    return torch.stack([grad.mean() / whole for grad, whole in zip(ours, full, strict=True)])


def gather_detached_local(x: Tensor, y: Tensor) -> Tensor:
    return cosine_with_full(x, y, gathered)


def cosine_with_full(x: Tensor, y: Tensor, gather: Gather) -> Tensor:
    """Cosine between the features' gradient under each rank's own loss, averaged, and the full batch's."""
    ranks = len(x)
    xs, ys = ([row.clone().requires_grad_() for row in torch.split(side, 1)] for side in (x, y))
    one = torch.ones((), dtype=x.dtype)
    losses = [infonce(xs[r], ys[r], gather(xs, r), gather(ys, r), one, torch.tensor([r])) / ranks for r in range(ranks)]
    ours = torch.autograd.grad(torch.stack(losses).sum(), [*xs, *ys])
    whole = [x.clone().requires_grad_(), y.clone().requires_grad_()]
    full = torch.autograd.grad(full_batch(whole[0], whole[1], torch.zeros_like(one)), whole)
    return F.cosine_similarity(torch.cat(ours).flatten(), torch.cat(full).flatten(), dim=0)


def gather_own_slice(features: Tensor, weights: Tensor) -> Tensor:
    return wanted(features, weights, gathered)


def wanted(features: Tensor, weights: Tensor, gather: Gather) -> Tensor:
    """The gradient of each rank's feature when rank r weighs the sum of all by weights[r]."""
    shares = [share.clone().requires_grad_() for share in torch.split(features, 1)]
    losses = [weight * gather(shares, rank).sum() for rank, weight in enumerate(weights)]
    return torch.cat(torch.autograd.grad(torch.stack(losses).sum(), shares))


def labels_without_offset(rank: Tensor, rows: Tensor) -> Tensor:
    return torch.arange(int(rank * rows), int((rank + 1) * rows))


def microbatch_without_negatives(x: Tensor, y: Tensor) -> Tensor:
    log_scale = torch.zeros((), dtype=x.dtype, requires_grad=True)
    pairs = zip(torch.split(x, 1), torch.split(y, 1), strict=True)
    loss = torch.stack([full_batch(own_x, own_y, log_scale) for own_x, own_y in pairs]).mean()
    return torch.stack([loss, *torch.autograd.grad(loss, log_scale)])


def cached_last_only(x: Tensor, sizes: Tensor) -> Tensor:
    return torch.stack([cached(x, int(size), first=0) for size in sizes])


def cached(x: Tensor, size: int, first: int) -> Tensor:
    """Dw by two passes: features without a graph, then micro-batches from number `first` on with their gradients."""
    w = torch.ones((), dtype=x.dtype, requires_grad=True)
    features = (w.detach() * x).requires_grad_()
    (passed,) = torch.autograd.grad(0.5 * features.sum().square(), features)
    for part, grad in list(zip(torch.split(x, size), torch.split(passed, size), strict=True))[first:]:
        torch.autograd.backward((w * part * grad).sum())
    assert w.grad is not None
    return w.grad


def uneven_equal_weight(rows: Tensor) -> Tensor:
    return rows.double() * len(rows) / rows.sum()


def temperature_without_exp(log_scale: Tensor) -> Tensor:
    return log_scale.exp()


def ranks_diverge(p: Tensor, g: Tensor, lr: Tensor) -> Tensor:
    return p - lr * g.mean().expand_as(g)
