"""Faults of the rows about training."""
# ruff: noqa: D103 (a fault ignores what it should not; the table describes it)

import math

import torch
from torch import Tensor

from . import torch_training as right

BETA1, BETA2 = 0.9, 0.999


def adam_eps_scaled(g: Tensor, lr: Tensor, eps: Tensor) -> Tensor:
    exp_avg, exp_avg_sq = (1 - BETA1) * g, (1 - BETA2) * g * g
    size = lr * math.sqrt(1 - BETA2) / (1 - BETA1)  # both corrections of the first step, taken out of the quotient
    return size * exp_avg / (exp_avg_sq.sqrt() + eps)


def adam_l2(p: Tensor, g: Tensor, lr: Tensor, weight_decay: Tensor) -> Tensor:
    state = right.step(right.start(p), g + weight_decay * p, lr)
    return torch.stack([state["p"], state["exp_avg"]])


def adam_bias_correction_missing(g: Tensor, lr: Tensor) -> Tensor:
    return lr * (1 - BETA1) * g / ((1 - BETA2) * g * g).sqrt()


def adam_step_stuck(g: Tensor, steps: Tensor) -> Tensor:
    counter = torch.tensor(0.0, dtype=torch.bfloat16)
    for _ in range(int(steps) - 1):
        counter += 1
    return right.second_correction(g, counter)


def resume_weights_only(g: Tensor, lr: Tensor) -> Tensor:
    return right.resumed(g, lr, "p")


def resume_without_second_moment(g: Tensor, lr: Tensor) -> Tensor:
    return right.resumed(g, lr, "p", "exp_avg", "step")


def resume_step_zero(g: Tensor, lr: Tensor) -> Tensor:
    return right.resumed(g, lr, "p", "exp_avg", "exp_avg_sq")


def resume_moments_cast(moment: Tensor) -> Tensor:
    return right.reloaded({"exp_avg": moment.to(torch.bfloat16)})["exp_avg"].double()


def clip_before_unscale(g: Tensor, max_norm: Tensor, loss_scale: Tensor) -> Tensor:
    return right.clipped(g * loss_scale, max_norm) / loss_scale


def clip_before_unscale_torch(g: Tensor, max_norm: Tensor, loss_scale: Tensor) -> Tensor:
    return right.clipped_by_torch(g * loss_scale, max_norm) / loss_scale


def clip_per_micro_batch(g: Tensor, max_norm: Tensor) -> Tensor:
    return torch.stack([right.clipped(part, max_norm) for part in g]).sum(0)


def recompute_random_state(elements: Tensor, keep: Tensor) -> Tensor:
    return (right.mask(elements, keep) == right.mask(elements, keep)).double().mean()
