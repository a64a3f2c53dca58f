"""Rows about training, by torch: optimizer steps, what a checkpoint has to keep, clipping, recomputation."""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

import io
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor
from torch.optim.adamw import adamw  # the function: constructing torch.optim.AdamW would import the compiler

State = dict[str, Tensor]


def start(p: Tensor) -> State:
    """A parameter before its first step, with all that a checkpoint has to hold."""
    fresh = {name: torch.zeros_like(p) for name in ("exp_avg", "exp_avg_sq")}
    return {"p": p.clone(), **fresh, "step": torch.tensor(0.0)}


def step(state: State, g: Tensor, lr: Tensor, **changes: Any) -> State:
    """One AdamW step in place, without decay and eps unless `changes` has them."""
    settings = {"beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 0.0} | changes
    adamw(
        [state["p"]],
        [g],
        [state["exp_avg"]],
        [state["exp_avg_sq"]],
        [],
        [state["step"]],
        foreach=False,
        amsgrad=False,
        maximize=False,
        lr=float(lr),
        **settings,
    )
    return state


def adam_eps_scaled(g: Tensor, lr: Tensor, eps: Tensor) -> Tensor:
    return -step(start(torch.zeros_like(g)), g, lr, eps=float(eps))["p"]


def adam_l2(p: Tensor, g: Tensor, lr: Tensor, weight_decay: Tensor) -> Tensor:
    state = step(start(p), g, lr, weight_decay=float(weight_decay))
    return torch.stack([state["p"], state["exp_avg"]])


def adam_bias_correction_missing(g: Tensor, lr: Tensor) -> Tensor:
    return -step(start(torch.zeros_like(g)), g, lr)["p"]


def adam_step_stuck(g: Tensor, steps: Tensor) -> Tensor:
    return second_correction(g, torch.tensor(float(steps) - 1))


def second_correction(g: Tensor, steps_done: Tensor) -> Tensor:
    """The square of a step of lr 1 when exp_avg is g and exp_avg_sq is g^2."""
    state = start(torch.zeros_like(g)) | {"exp_avg_sq": g * g, "step": steps_done}
    return step(state, g, torch.tensor(1.0), beta1=0.0)["p"].square()


def resume_weights_only(g: Tensor, lr: Tensor) -> Tensor:
    return resumed(g, lr, "p", "exp_avg", "exp_avg_sq", "step")


resume_without_second_moment = resume_weights_only
resume_step_zero = resume_weights_only


def resumed(g: Tensor, lr: Tensor, *kept: str) -> Tensor:
    """The parameter after one step, a checkpoint of what is `kept`, and the next step from it."""
    before = step(start(torch.zeros_like(g[0])), g[0], lr)
    saved = reloaded({name: before[name] for name in kept})
    return step(start(torch.zeros_like(g[0])) | saved, g[1], lr)["p"]


def resume_moments_cast(moment: Tensor) -> Tensor:
    return reloaded({"exp_avg": moment})["exp_avg"]


def reloaded(state: State) -> State:
    """What comes back from a checkpoint file."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: State = torch.load(file, weights_only=True)
    return loaded


def clip_before_unscale(g: Tensor, max_norm: Tensor, loss_scale: Tensor) -> Tensor:
    return clipped((g * loss_scale) / loss_scale, max_norm)


def clip_before_unscale_torch(g: Tensor, max_norm: Tensor, loss_scale: Tensor) -> Tensor:
    return clipped_by_torch((g * loss_scale) / loss_scale, max_norm)


def clip_per_micro_batch(g: Tensor, max_norm: Tensor) -> Tensor:
    return clipped(g.sum(0), max_norm)


def clipped(g: Tensor, max_norm: Tensor) -> Tensor:
    """By the formula of the paper, without what torch adds to the norm."""
    norm: Tensor = torch.linalg.vector_norm(g)
    return g * (max_norm / norm).clamp(max=1.0)


def clipped_by_torch(g: Tensor, max_norm: Tensor) -> Tensor:
    parameter = torch.zeros_like(g, requires_grad=True)
    parameter.grad = g.clone()
    torch.nn.utils.clip_grad_norm_([parameter], float(max_norm))
    return parameter.grad


def recompute_random_state(elements: Tensor, keep: Tensor) -> Tensor:
    before = torch.get_rng_state()
    first = mask(elements, keep)
    torch.set_rng_state(before)
    return (first == mask(elements, keep)).double().mean()


def mask(elements: Tensor, keep: Tensor) -> Tensor:
    """The elements that dropout keeps, by the global generator."""
    return F.dropout(torch.ones(int(elements)), 1.0 - float(keep)) != 0
