"""The parts of the torch side, in plain torch. Signatures and meanings are in parts.py."""
# ruff: noqa: D103 (a docstring each would repeat parts.py)

import math
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor
from torch.optim.adamw import adamw  # the functions: constructing torch.optim.AdamW would import the compiler
from torch.optim.sgd import sgd as torch_sgd

from labs.block.parts import Parts

UNSUPERVISED = -100  # the label that cross_entropy passes over


def norm(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    return F.rms_norm(x, gamma.shape, gamma, epsilon)


def linear(x: Tensor, w: Tensor) -> Tensor:
    return x @ w


def rope(x: Tensor, positions: Tensor, base: float) -> Tensor:
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = positions.to(x.dtype).unsqueeze(-1) * frequencies  # [T, D/2]
    cos, sin = torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ repeat_heads(k, q).transpose(-2, -1) / math.sqrt(q.shape[-1])


def causal(positions: int) -> Tensor:
    return torch.ones(positions, positions, dtype=torch.bool).tril()


def softmax(values: Tensor, visible: Tensor) -> Tensor:
    # Finite where -inf would make a row without a visible key NaN; such a row is cleared by the second mask.
    filled = values.masked_fill(~visible, torch.finfo(values.dtype).min)
    return filled.softmax(-1).masked_fill(~visible, 0.0)


def mix(probs: Tensor, v: Tensor) -> Tensor:
    return probs @ repeat_heads(v, probs)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, repeat_heads(k, q), repeat_heads(v, q), is_causal=True)


def repeat_heads(shared: Tensor, like: Tensor) -> Tensor:
    """[B,G,T,D] -> [B,H,T,D]: query head h reads key/value head h // (H/G)."""
    times = like.shape[1] // shared.shape[1]
    return shared if times == 1 else shared.repeat_interleave(times, dim=1)


def residual(x: Tensor, branch: Tensor) -> Tensor:
    return x + branch


def gate(gates: Tensor, up: Tensor) -> Tensor:
    return F.silu(gates) * up


def loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    losses = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none", ignore_index=UNSUPERVISED)
    counted = weights.flatten() * (labels.flatten() != UNSUPERVISED)
    return (losses * counted).sum() / counted.sum()


def sgd(parameter: Tensor, gradient: Tensor, lr: float) -> None:
    with torch.no_grad():
        torch_sgd(
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


def optimizer(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    steps: list[Tensor],
    *,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    weight_decay: float,
) -> None:
    with torch.no_grad():
        adamw(
            params,
            grads,
            exp_avgs,
            exp_avg_sqs,
            [],
            steps,
            foreach=False,
            amsgrad=False,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            eps=epsilon,
            weight_decay=weight_decay,
            maximize=False,
        )


def dropout(x: Tensor, share: float) -> Tensor:
    return F.dropout(x, share, training=True)


def shuffle(n: int) -> Tensor:
    return torch.randperm(n)


def save(state: dict[str, Any], path: Path) -> None:
    torch.save(state, path)


def load(path: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(path, weights_only=True)
    return state


PARTS = Parts(
    norm=norm,
    linear=linear,
    rope=rope,
    scores=scores,
    causal=causal,
    softmax=softmax,
    mix=mix,
    attention=attention,
    residual=residual,
    gate=gate,
    loss=loss,
    sgd=sgd,
    optimizer=optimizer,
    dropout=dropout,
    shuffle=shuffle,
    save=save,
    load=load,
)
