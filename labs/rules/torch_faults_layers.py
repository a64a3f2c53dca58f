"""Faults of the rows about layers."""
# ruff: noqa: D103 (a fault ignores what it should not; the table describes it)

import torch
from torch import Tensor

from . import torch_layers as right


def rms_constant_r(x: Tensor, gamma: Tensor, dy: Tensor) -> Tensor:
    return dy * gamma * x.square().mean().rsqrt()


def rms_weight_gradient_missing(x: Tensor, gamma: Tensor, dy: Tensor) -> Tensor:
    return torch.zeros_like(gamma)


def rms_offset(x: Tensor, gamma: Tensor) -> Tensor:
    return right.rms_offset(x, 1 + gamma)


def rows_from_first_axis(dy: Tensor, width: Tensor) -> Tensor:
    normed = torch.ones(dy.numel(), int(width), dtype=dy.dtype)
    return sum((dy.flatten()[row] * normed[row] for row in range(len(dy))), torch.zeros_like(normed[0]))


def scale_missing(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return right.two_keys(q, k, v, scale=1.0)


def causal_off(v: Tensor) -> Tensor:
    return right.averages(v, len(v))


def causal_top_left(v: Tensor, queries: Tensor) -> Tensor:
    return right.causal_bottom_right(v, queries)


def causal_bottom_right(v: Tensor, queries: Tensor) -> Tensor:
    return right.causal_top_left(v, queries)


def masked_row_nan(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q.requires_grad_()
    bias = torch.full_like(k, -torch.inf)
    y = torch.softmax(q * k + bias, -1) @ v
    (dy,) = torch.autograd.grad(y, q)
    return torch.stack([y, dy])


def softmax_backward_no_sum(s: Tensor, dp: Tensor) -> Tensor:
    ds = torch.softmax(s, -1) * dp
    return torch.cat([ds, ds.sum(0, keepdim=True)])


def silu_derivative(a: Tensor) -> Tensor:
    return a.sigmoid()


def residual_dropped(x: Tensor, w: Tensor) -> Tensor:
    return w * x


def residual_gradient_dropped(x: Tensor, w: Tensor) -> Tensor:
    x.requires_grad_()
    return torch.autograd.grad(x.detach() + w * x, x)[0]


def upstream_ignored(x: Tensor, w: Tensor, labels: Tensor, upstream: Tensor) -> Tensor:
    return right.upstream_ignored(x, w, labels, torch.ones_like(upstream))
