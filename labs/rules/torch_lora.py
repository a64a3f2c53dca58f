"""Rows about low-rank branches, by torch: scale, first steps, merging, requantisation."""
# ruff: noqa: D103 (a row's function takes what the row has, and is described by its entry in the table)

import math

import torch
from torch import Tensor

QMAX = 7  # of 4 bits


def alpha_without_rank(alpha: Tensor, rank: Tensor) -> Tensor:
    return alpha / rank


def rs_scale_confused(alpha: Tensor, rank: Tensor) -> Tensor:
    return torch.stack([alpha / rank, alpha / math.sqrt(rank)])


def both_zero(x: Tensor, target: Tensor, a: Tensor, lr: Tensor) -> Tensor:
    return first_gradients(x, target, a, lr)


def first_gradients(x: Tensor, target: Tensor, a: Tensor, lr: Tensor) -> Tensor:
    """DB of the first step and dA of the second, with B = 0 at the start."""
    leaves = (a.clone().requires_grad_(), torch.zeros_like(a, requires_grad=True))
    found = [descend(0.5 * (x * leaves[0] * leaves[1] - target).square(), leaves, lr) for _ in range(2)]
    return torch.stack([found[0][1], found[1][0]])


def descend(loss: Tensor, leaves: tuple[Tensor, ...], lr: Tensor) -> tuple[Tensor, ...]:
    """One SGD step in place; its gradients."""
    grads = torch.autograd.grad(loss, leaves)
    with torch.no_grad():
        for leaf, grad in zip(leaves, grads, strict=True):
            leaf.sub_(lr * grad)
    return grads


def both_random(x: Tensor, w: Tensor, a: Tensor, b_drawn: Tensor) -> Tensor:
    return x * w + (x * a) * torch.zeros_like(b_drawn)


def branch_severed(x: Tensor, w: Tensor, a: Tensor, b: Tensor) -> Tensor:
    leaves = [leaf.requires_grad_() for leaf in (x, a, b)]
    torch.autograd.backward(x * w + (x * a) * b)
    return torch.tensor([reached(leaf) for leaf in leaves[1:]])


def reached(leaf: Tensor) -> bool:
    return leaf.grad is not None and bool(leaf.grad != 0)


def input_gradient_missing(x: Tensor, w: Tensor, a: Tensor, b: Tensor, s: Tensor) -> Tensor:
    x.requires_grad_()
    return torch.autograd.grad(x * w + s * (x * a) * b, x)[0]


def base_trained(x: Tensor, w: Tensor, a: Tensor, b: Tensor, lr: Tensor) -> Tensor:
    return after_step(x, w, a, b, lr, trainable=(a, b))


def after_step(x: Tensor, w: Tensor, a: Tensor, b: Tensor, lr: Tensor, trainable: tuple[Tensor, ...]) -> Tensor:
    """The base after one SGD step on what is trainable."""
    leaves = tuple(leaf.requires_grad_() for leaf in trainable)
    descend(x * w + (x * a) * b, leaves, lr)
    return w


def merge_without_scale(w: Tensor, a: Tensor, b: Tensor, s: Tensor) -> Tensor:
    return w + s * (a @ b)


merge_transposed = merge_without_scale
merge_twice = merge_without_scale


def unmerge_uncast(w: Tensor, delta: Tensor) -> Tensor:
    low = delta.to(torch.bfloat16)
    merged = w.to(torch.bfloat16) + low
    return torch.stack([merged, merged - low]).double()


def requantize_wrong_base(w: Tensor, delta: Tensor) -> Tensor:
    return on_grid(w)[0] + delta


def requantize_loses_delta(w: Tensor, delta: Tensor) -> Tensor:
    before = on_grid(w)
    after = on_grid(before + first(delta, w))
    return torch.stack([after[0], (after - before)[0] / delta])


def on_grid(w: Tensor) -> Tensor:
    """The nearest multiples of max|w|/7."""
    scale = w.abs().max() / QMAX
    return (w / scale).round() * scale


def first(delta: Tensor, w: Tensor) -> Tensor:
    """An adapter that moves the first weight alone."""
    return torch.cat([delta.reshape(1), torch.zeros_like(w[1:])])


def group_axis(w: Tensor) -> Tensor:
    return w.abs().amax(0) / QMAX
