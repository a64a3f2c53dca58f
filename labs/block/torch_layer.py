"""The layer and its head in torch: every intermediate by name, so that autograd keeps a gradient at each."""

from collections.abc import Callable

import torch
from torch import Tensor

from labs.block.config import Config
from labs.block.parts import Parts

Tensors = dict[str, Tensor]
Drop = Callable[[Tensor], Tensor]

PARAMETERS = ("gamma_1", "gamma_2", "w_q", "w_k", "w_v", "w_o", "w_gate", "w_up", "w_down", "w_head")


def layer(config: Config, parts: Parts, p: Tensors, x: Tensor, drop: Drop | None = None) -> Tensors:
    """Intermediates from x [B,T,d] to the layer's output residual_2; `drop` acts on the gated features."""
    t: Tensors = {}
    t["normed_1"] = parts.norm(x, p["gamma_1"], config.epsilon)
    for name, heads in (("q", config.heads), ("k", config.kv_heads), ("v", config.kv_heads)):
        rows = parts.linear(t["normed_1"], p[f"w_{name}"])
        t[name] = rows.reshape(*rows.shape[:2], heads, -1).transpose(1, 2)  # [B,heads,T,D]
    q, k = _turned(config, parts, t)
    t["scores"] = parts.scores(q, k)
    t["probs"] = parts.softmax(t["scores"], parts.causal(x.shape[1]))
    t["heads"] = parts.mix(t["probs"], t["v"])
    t["attended"] = parts.linear(t["heads"].transpose(1, 2).flatten(2), p["w_o"])
    t["residual_1"] = parts.residual(x, t["attended"])
    t["normed_2"] = parts.norm(t["residual_1"], p["gamma_2"], config.epsilon)
    t["gate"] = parts.linear(t["normed_2"], p["w_gate"])
    t["up"] = parts.linear(t["normed_2"], p["w_up"])
    t["gated"] = parts.gate(t["gate"], t["up"])
    t["down"] = parts.linear(drop(t["gated"]) if drop else t["gated"], p["w_down"])
    t["residual_2"] = parts.residual(t["residual_1"], t["down"])
    return t


def objective(config: Config, parts: Parts, p: Tensors, output: Tensor, labels: Tensor, weights: Tensor) -> Tensors:
    """Logits and losses of the layer's output."""
    logits = parts.linear(output, p["w_head"])
    mean_loss = parts.loss(logits, labels, weights)
    return {"logits": logits, "mean_loss": mean_loss, "loss": config.loss_scale * mean_loss}


def operands(t: Tensors) -> tuple[Tensor, Tensor, Tensor]:
    """What attention itself is given: queries, keys (turned, where there is a rotation) and values."""
    return t.get("q_turned", t["q"]), t.get("k_turned", t["k"]), t["v"]


def _turned(config: Config, parts: Parts, t: Tensors) -> tuple[Tensor, Tensor]:
    if config.rope:
        positions = torch.arange(t["q"].shape[-2])
        t["q_turned"] = parts.rope(t["q"], positions, config.rope_base)
        t["k_turned"] = parts.rope(t["k"], positions, config.rope_base)
    return operands(t)[:2]
