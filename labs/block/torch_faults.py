"""The faulty parts: what people really wrote. controls.py says what is wrong with each and where it was seen."""
# ruff: noqa: D103 (a faulty part has its part's signature; see controls.py)

import math
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from labs.block import torch_parts as right
from labs.block.torch_backward_faults import Dropout, Gate, Loss, Norm, Rope, Softmax


def norm_constant_r(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    return _applied(Norm, x, gamma, epsilon, "constant r")


def norm_rows_from_first_axis(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    return _applied(Norm, x, gamma, epsilon, "rows from the first axis")


def norm_weight_without_gradient(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    return right.norm(x, gamma.detach() + 0.0 * gamma, epsilon)


def norm_offset(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    return right.norm(x, 1.0 + gamma, epsilon)


def softmax_without_row_sum(scores: Tensor, visible: Tensor) -> Tensor:
    return _applied(Softmax, scores, visible)


def softmax_infinite(scores: Tensor, visible: Tensor) -> Tensor:
    return scores.masked_fill(~visible, -math.inf).softmax(-1)


def rope_backward_forward(x: Tensor, positions: Tensor, base: float) -> Tensor:
    return _applied(Rope, x, positions, base)


def rope_neighbours(x: Tensor, positions: Tensor, base: float) -> Tensor:
    # Element 2i with 2i+1: the same rotation of a row whose elements are dealt out to the two halves.
    dealt = torch.cat((x[..., 0::2], x[..., 1::2]), -1)
    return torch.stack(right.rope(dealt, positions, base).chunk(2, -1), -1).flatten(-2)


def gate_sigmoid_derivative(gates: Tensor, up: Tensor) -> Tensor:
    return _applied(Gate, gates, up)


def loss_upstream_ignored(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    return _applied(Loss, logits, labels, weights)


def loss_of_unsupervised(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    return right.loss(logits, labels.clamp(min=0), weights)


def loss_unweighted(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    return right.loss(logits, labels, torch.ones_like(weights))


def scores_unscaled(q: Tensor, k: Tensor) -> Tensor:
    return q @ right.repeat_heads(k, q).transpose(-2, -1)


def scores_tiled(q: Tensor, k: Tensor) -> Tensor:
    return right.scores(q, k.repeat(1, q.shape[1] // k.shape[1], 1, 1))


def mix_tiled(probs: Tensor, v: Tensor) -> Tensor:
    return probs @ v.repeat(1, probs.shape[1] // v.shape[1], 1, 1)


def attention_tiled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    times = q.shape[1] // k.shape[1]
    return right.attention(q, k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1))


def scores_of_detached_prefix(q: Tensor, k: Tensor) -> Tensor:
    return right.scores(q, _first_detached(k))


def mix_of_detached_prefix(probs: Tensor, v: Tensor) -> Tensor:
    return right.mix(probs, _first_detached(v))


def _first_detached(kept: Tensor) -> Tensor:
    return torch.cat((kept[:, :, :1].detach(), kept[:, :, 1:]), 2)


def everything_visible(positions: int) -> Tensor:
    return torch.ones(positions, positions, dtype=torch.bool)


def attention_not_causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, right.repeat_heads(k, q), right.repeat_heads(v, q))


def residual_dropped(x: Tensor, branch: Tensor) -> Tensor:
    return branch


def residual_without_gradient(x: Tensor, branch: Tensor) -> Tensor:
    return x.detach() + branch


def adam_eps_scaled(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    steps: list[Tensor],
    **options: float,
) -> None:
    # eps joins v before the correction: sqrt(correction) m / (sqrt(v) + eps).
    for p, g, m, v, step in zip(params, grads, exp_avgs, exp_avg_sqs, steps, strict=True):
        first, second = _moments(g, m, v, step, options)
        _move(p, m / first / ((v.sqrt() + options["epsilon"]) / math.sqrt(second)), options)


def adam_l2(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    steps: list[Tensor],
    **options: float,
) -> None:
    decayed = [g + options["weight_decay"] * p.detach() for p, g in zip(params, grads, strict=True)]
    right.optimizer(params, decayed, exp_avgs, exp_avg_sqs, steps, **{**options, "weight_decay": 0.0})


def adam_bias_correction_missing(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    steps: list[Tensor],
    **options: float,
) -> None:
    for p, g, m, v, step in zip(params, grads, exp_avgs, exp_avg_sqs, steps, strict=True):
        _moments(g, m, v, step, options)
        _move(p, m / (v.sqrt() + options["epsilon"]), options)


def adam_step_stuck(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    steps: list[Tensor],
    **options: float,
) -> None:
    # 256 + 1 is 256 in bfloat16, for ever; torch adds the 1 itself, so it is given one less.
    for step in steps:
        step.copy_((step.bfloat16() + 1).float() - 1)
    right.optimizer(params, grads, exp_avgs, exp_avg_sqs, steps, **options)


def _moments(g: Tensor, m: Tensor, v: Tensor, step: Tensor, options: dict[str, float]) -> tuple[float, float]:
    """Both moments and the count moved on; returns both bias corrections."""
    step += 1
    m.lerp_(g, 1 - options["beta1"])
    v.mul_(options["beta2"]).addcmul_(g, g, value=1 - options["beta2"])
    return 1 - options["beta1"] ** step.item(), 1 - options["beta2"] ** step.item()


def _move(p: Tensor, update: Tensor, options: dict[str, float]) -> None:
    with torch.no_grad():
        p.mul_(1 - options["lr"] * options["weight_decay"]).sub_(options["lr"] * update)


def dropout_off(x: Tensor, share: float) -> Tensor:
    return F.dropout(x, share, training=False)


def dropout_unscaled(x: Tensor, share: float) -> Tensor:
    return right.dropout(x, share) * (1 - share)


def dropout_redrawn(x: Tensor, share: float) -> Tensor:
    return _applied(Dropout, x, share)


def dropout_seeded(x: Tensor, share: float) -> Tensor:
    torch.default_generator.manual_seed(0)
    return right.dropout(x, share)


def shuffle_off(n: int) -> Tensor:
    return torch.arange(n)


def shuffle_with_replacement(n: int) -> Tensor:
    return torch.randint(n, (n,))


def shuffle_unseeded(n: int) -> Tensor:
    generator = torch.Generator()
    generator.seed()
    return torch.randperm(n, generator=generator)


def save_moments_as_bfloat16(state: dict[str, Any], path: Path) -> None:
    moments = {kind: {n: t.bfloat16() for n, t in state[kind].items()} for kind in ("exp_avg", "exp_avg_sq")}
    right.save({**state, **moments}, path)


def load_moments_as_float64(path: Path) -> dict[str, Any]:
    state = right.load(path)
    moments = {kind: {n: t.double() for n, t in state[kind].items()} for kind in ("exp_avg", "exp_avg_sq")}
    return {**state, **moments}


def save_parameters_as_float32(state: dict[str, Any], path: Path) -> None:
    right.save({**state, "param": {n: t.float() for n, t in state["param"].items()}}, path)


def load_parameters_as_float64(path: Path) -> dict[str, Any]:
    state = right.load(path)
    return {**state, "param": {n: t.double() for n, t in state["param"].items()}}


def load_weights_only(path: Path) -> dict[str, Any]:
    return _cleared(right.load(path), "exp_avg", "exp_avg_sq", "step")


def load_without_second_moment(path: Path) -> dict[str, Any]:
    return _cleared(right.load(path), "exp_avg_sq")


def load_step_zero(path: Path) -> dict[str, Any]:
    return _cleared(right.load(path), "step")


def load_by_position(path: Path) -> dict[str, Any]:
    # The optimizer numbers its parameters; the model that resumes lists them in another order.
    state = right.load(path)
    names = list(state["param"])
    listed = sorted(names, key=lambda name: (state["param"][name].shape, names.index(name) * -1))
    saved = sorted(names, key=lambda name: (state["param"][name].shape, names.index(name)))
    renamed = dict(zip(listed, saved, strict=True))
    moments = {kind: {n: state[kind][renamed[n]].clone() for n in names} for kind in ("exp_avg", "exp_avg_sq")}
    return {**state, **moments}


def load_random_state_lost(path: Path) -> dict[str, Any]:
    return {**right.load(path), "rng": torch.default_generator.manual_seed(1).get_state()}


def load_data_position_lost(path: Path) -> dict[str, Any]:
    return {**right.load(path), "order": torch.arange(0), "position": 0}


def _cleared(state: dict[str, Any], *kinds: str) -> dict[str, Any]:
    return {**state, **{kind: {n: torch.zeros_like(t) for n, t in state[kind].items()} for kind in kinds}}


def _applied(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]
    return result
