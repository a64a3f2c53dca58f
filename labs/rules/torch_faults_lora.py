"""Faults of the rows about low-rank branches."""
# ruff: noqa: D103 (a fault ignores what it should not; the table describes it)

import torch
from torch import Tensor

from . import torch_lora as right


def alpha_without_rank(alpha: Tensor, rank: Tensor) -> Tensor:
    return alpha


def rs_scale_confused(alpha: Tensor, rank: Tensor) -> Tensor:
    return right.rs_scale_confused(alpha, rank).flip(0)


def both_zero(x: Tensor, target: Tensor, a: Tensor, lr: Tensor) -> Tensor:
    return right.first_gradients(x, target, torch.zeros_like(a), lr)


def both_random(x: Tensor, w: Tensor, a: Tensor, b_drawn: Tensor) -> Tensor:
    return x * w + (x * a) * b_drawn


def branch_severed(x: Tensor, w: Tensor, a: Tensor, b: Tensor) -> Tensor:
    leaves = [leaf.requires_grad_() for leaf in (x, a, b)]
    torch.autograd.backward(x * w + (x * a.detach()) * b.detach())
    return torch.tensor([right.reached(leaf) for leaf in leaves[1:]])


def input_gradient_missing(x: Tensor, w: Tensor, a: Tensor, b: Tensor, s: Tensor) -> Tensor:
    x.requires_grad_()
    return torch.autograd.grad(x * w + s * (x.detach() * a) * b, x)[0]


def base_trained(x: Tensor, w: Tensor, a: Tensor, b: Tensor, lr: Tensor) -> Tensor:
    return right.after_step(x, w, a, b, lr, trainable=(w, a, b))


def merge_without_scale(w: Tensor, a: Tensor, b: Tensor, s: Tensor) -> Tensor:
    return w + a @ b


def merge_transposed(w: Tensor, a: Tensor, b: Tensor, s: Tensor) -> Tensor:
    return w + s * (a @ b).T


def merge_twice(w: Tensor, a: Tensor, b: Tensor, s: Tensor) -> Tensor:
    return right.merge_twice(right.merge_twice(w, a, b, s), a, b, s)


def unmerge_uncast(w: Tensor, delta: Tensor) -> Tensor:
    merged = right.unmerge_uncast(w, delta)[0]
    return torch.stack([merged, w])


def requantize_wrong_base(w: Tensor, delta: Tensor) -> Tensor:
    return w[0] + delta


def requantize_loses_delta(w: Tensor, delta: Tensor) -> Tensor:
    before = right.on_grid(w)
    merged = before + right.first(delta, w)
    return torch.stack([merged[0], (merged - before)[0] / delta])


def group_axis(w: Tensor) -> Tensor:
    return w.abs().amax(1) / right.QMAX
