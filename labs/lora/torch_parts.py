"""The parts of the torch side, in plain torch. Signatures and meanings are in parts.py."""
# ruff: noqa: D103 (a docstring each would repeat parts.py)

import math
from collections.abc import Mapping
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor
from torch.optim.sgd import sgd  # the function: constructing torch.optim.SGD would import the compiler, two seconds

from labs.lora.parts import Parts


def scale(alpha: float, rank: int, scaling: str) -> float:
    return alpha / rank if scaling == "classic" else alpha / math.sqrt(rank)


def initialize_a(uniform: Tensor, normal: Tensor, kind: str, std: float) -> Tensor:
    if kind == "gaussian":
        return normal * std
    bound = 1.0 / math.sqrt(uniform.shape[0])
    return uniform * (2.0 * bound) - bound


def initialize_b(normal: Tensor) -> Tensor:
    return torch.zeros_like(normal)


def framework_kaiming(d_in: int, rank: int) -> Tensor:
    # torch's layout is [out, in]: fan-in is the last axis.
    return torch.nn.init.kaiming_uniform_(torch.empty(rank, d_in, dtype=torch.float64), a=math.sqrt(5)).T


def linear(x: Tensor, w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return x @ w + s * ((x @ lora_a) @ lora_b)


def linear_detached(x: Tensor, w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return x @ w + s * ((x.detach() @ lora_a) @ lora_b)


def cross_entropy(y: Tensor, head: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    logits = y @ head
    losses = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none")
    return (losses * weights.flatten()).sum() / weights.sum()


def squared_error(y: Tensor, target: Tensor, weights: Tensor) -> Tensor:
    distances = (y - target).square().sum(-1)
    return 0.5 * (weights * distances).sum() / weights.sum()


def trainable() -> tuple[str, ...]:
    return ("lora_a", "lora_b")


def step(parameter: Tensor, gradient: Tensor, lr: float) -> None:
    with torch.no_grad():
        sgd(
            [parameter],
            [gradient],
            [None],
            foreach=False,
            lr=lr,
            momentum=0.0,
            dampening=0.0,
            weight_decay=0.0,
            nesterov=False,
            maximize=False,
        )


def save(factors: Mapping[str, Tensor], path: Path) -> None:
    torch.save(dict(factors), path)


def load(path: Path) -> dict[str, Tensor]:
    factors: dict[str, Tensor] = torch.load(path, weights_only=True)
    return factors


def merge(w: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return w + (s * (lora_a @ lora_b)).to(w.dtype)


def unmerge(merged: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    return merged - (s * (lora_a @ lora_b)).to(merged.dtype)


def quantize(w: Tensor, bits: int, group: int) -> tuple[Tensor, Tensor]:
    blocks = w.reshape(-1, group, w.shape[1])
    scales = blocks.abs().amax(1) / (2 ** (bits - 1) - 1)
    codes = (blocks / scales.masked_fill(scales == 0, 1.0).unsqueeze(1)).round()
    return codes.flatten(0, 1).to(torch.int8), scales


def dequantize(codes: Tensor, scales: Tensor, group: int) -> Tensor:
    return codes * scales.repeat_interleave(group, 0)


def merge_quantized(original: Tensor, dequantized: Tensor, lora_a: Tensor, lora_b: Tensor, s: float) -> Tensor:
    del original  # at hand in many a loader; the factors never met it
    return merge(dequantized.to(torch.bfloat16), lora_a, lora_b, s)


def survival(before: Tensor, stored: Tensor, after: Tensor, change: Tensor) -> Tensor:
    del stored  # before the last rounding nothing is lost yet
    return ((after - before) * change).sum() / change.square().sum()


def branch(x: Tensor, lora_a: Tensor, lora_b: Tensor) -> Tensor:
    return (x @ lora_a) @ lora_b


def branch_product(x: Tensor, lora_a: Tensor, lora_b: Tensor) -> Tensor:
    return x @ (lora_a @ lora_b)


PARTS = Parts(
    scale=scale,
    initialize_a=initialize_a,
    initialize_b=initialize_b,
    framework_kaiming=framework_kaiming,
    linear=linear,
    linear_detached=linear_detached,
    cross_entropy=cross_entropy,
    squared_error=squared_error,
    trainable=trainable,
    step=step,
    save=save,
    load=load,
    merge=merge,
    unmerge=unmerge,
    quantize=quantize,
    dequantize=dequantize,
    merge_quantized=merge_quantized,
    survival=survival,
    branch=branch,
    branch_product=branch_product,
)
