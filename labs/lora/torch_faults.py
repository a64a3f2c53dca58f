"""The faulty parts: what people really wrote. controls.py says what is wrong with each and where it was seen."""
# ruff: noqa: D103 (what is wrong with each is in controls.py)

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labs.lora import torch_parts as right


def alpha_itself(alpha: float, rank: int, scaling: str) -> float:
    return alpha


def zeros_a(uniform: Tensor, normal: Tensor, kind: str, std: float) -> Tensor:
    return torch.zeros_like(uniform)


def normal_b(normal: Tensor) -> Tensor:
    return normal


def kaiming_by_rank(uniform: Tensor, normal: Tensor, kind: str, std: float) -> Tensor:
    bound = 1.0 / math.sqrt(uniform.shape[1])
    return uniform * (2.0 * bound) - bound if kind == "kaiming" else normal * std


def kaiming_on_our_layout(d_in: int, rank: int) -> Tensor:
    return torch.nn.init.kaiming_uniform_(torch.empty(d_in, rank, dtype=torch.float64), a=math.sqrt(5))


def kaiming_left_zero(d_in: int, rank: int) -> Tensor:
    return torch.zeros(d_in, rank, dtype=torch.float64)


def linear_severed(x: Tensor, w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return x @ w + s * ((x @ lora_a.detach()) @ lora_b.detach())


def linear_input_detached(x: Tensor, w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return x @ w + s * ((x.detach() @ lora_a) @ lora_b)


def linear_input_attached(x: Tensor, w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return x @ w + s * ((x @ lora_a) @ lora_b)


class _Unscaled(torch.autograd.Function):
    """A hand-written kernel whose backward forgets the scale of dA."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
        ctx.save_for_backward(x, lora_a, lora_b)
        ctx.s = s
        return s * ((x @ lora_a) @ lora_b)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, lora_a, lora_b = ctx.saved_tensors
        g = grad @ lora_b.T
        da = x.flatten(0, -2).T @ g.flatten(0, -2)
        db = ctx.s * ((x @ lora_a).flatten(0, -2).T @ grad.flatten(0, -2))
        return ctx.s * (g @ lora_a.T), da, db, None


def linear_backward_unscaled(x: Tensor, w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    branch: Tensor = _Unscaled.apply(x, lora_a, lora_b, s)  # type: ignore[no-untyped-call]
    return x @ w + branch


def cross_entropy_unweighted(y: Tensor, head: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    return right.cross_entropy(y, head, labels, torch.ones_like(weights))


def squared_error_unweighted(y: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    return right.squared_error(y, target, torch.ones_like(weights))


def everything_trainable() -> tuple[str, ...]:
    return ("base", "lora_a", "lora_b")


def save_as_float32(factors: Mapping[str, Tensor], path: Path) -> None:
    torch.save({name: factor.float() for name, factor in factors.items()}, path)


def load_as_float64(path: Path) -> dict[str, Tensor]:
    return {name: factor.double() for name, factor in right.load(path).items()}


def merge_unscaled(w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return right.merge(w, lora_a, lora_b, 1.0)


def merge_transposed(w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return w + (s * (lora_a @ lora_b)).T.to(w.dtype)


def merge_twice(w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return right.merge(right.merge(w, lora_a, lora_b, s), lora_a, lora_b, s)


def unmerge_uncast(merged: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return merged - s * (lora_a @ lora_b)


def merge_into_original(original: Tensor, dequantized: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return right.merge(original.to(torch.bfloat16), lora_a, lora_b, s)


def survival_as_merged(before: Tensor, stored: Tensor, after: Tensor, change: Tensor) -> Tensor:
    return right.survival(before, stored, stored, change)


def quantize_half_up(w: Tensor, bits: int, group: int) -> tuple[Tensor, Tensor]:
    _, scales = right.quantize(w, bits, group)
    steps = scales.masked_fill(scales == 0, 1.0).repeat_interleave(group, 0)
    return (w / steps + 0.5).floor().to(torch.int8), scales


def quantize_other_axis(w: Tensor, bits: int, group: int) -> tuple[Tensor, Tensor]:
    codes, scales = right.quantize(w.T.contiguous(), bits, group)
    return codes.T, scales.T


def dequantize_other_axis(codes: Tensor, scales: Tensor, group: int) -> Tensor:
    return right.dequantize(codes.T, scales.T, group).T


def branch_as_product(x: Tensor, lora_a: Tensor, lora_b: Tensor) -> Tensor:
    return right.branch_product(x, lora_a, lora_b)


def product_as_branch(x: Tensor, lora_a: Tensor, lora_b: Tensor) -> Tensor:
    return right.branch(x, lora_a, lora_b)


def branch_in_float32(x: Tensor, lora_a: Tensor, lora_b: Tensor) -> Tensor:
    return right.branch(x.float(), lora_a.float(), lora_b.float()).double()


def product_in_float32(x: Tensor, lora_a: Tensor, lora_b: Tensor) -> Tensor:
    return right.branch_product(x.float(), lora_a.float(), lora_b.float()).double()
