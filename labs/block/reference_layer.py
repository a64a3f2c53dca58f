"""The layer and its head by hand: every intermediate forward, the gradient at every intermediate backward."""

from typing import Any, NamedTuple

import numpy as np

from labs.block.config import Config
from labs.core.lab import Array, Arrays
from labs.kernels import attention, cross_entropy, linear, rms_norm, rope, swiglu


class Saved(NamedTuple):
    """What the backward pass reads: what each kernel saved, in the order of the forward pass."""

    norm_1: rms_norm.Saved
    q: linear.Saved
    k: linear.Saved
    v: linear.Saved
    turned: rope.Saved | None
    heads: attention.Saved
    out: linear.Saved
    norm_2: rms_norm.Saved
    gate: linear.Saved
    up: linear.Saved
    gated: swiglu.Saved
    down: linear.Saved
    head: linear.Saved
    loss: cross_entropy.Saved


def forward(config: Config, arrays: Arrays) -> tuple[Arrays, Saved]:
    """Every intermediate by name, from x, labels, weights and the parameters in `arrays`."""
    x, width = arrays["x"], config.hidden // config.heads
    normed_1, norm_1 = rms_norm.forward(x, arrays["gamma_1"], config.epsilon)  # [B,T,d]
    rows, maps = zip(*(linear.forward(normed_1, arrays[w]) for w in ("w_q", "w_k", "w_v")), strict=True)
    q, k, v = (_split(row, width) for row in rows)  # [B,H,T,D], [B,G,T,D] twice
    turned_q, turned_k, turned = _turn(config, q, k)
    heads, mixing = attention.forward(turned_q, turned_k, v, attention.causal(config.positions, config.positions))
    attended, out = linear.forward(_join(heads), arrays["w_o"])
    residual_1 = x + attended
    normed_2, norm_2 = rms_norm.forward(residual_1, arrays["gamma_2"], config.epsilon)
    gate, gate_map = linear.forward(normed_2, arrays["w_gate"])  # [B,T,f]
    up, up_map = linear.forward(normed_2, arrays["w_up"])
    gated, gating = swiglu.forward(gate, up)
    down, down_map = linear.forward(gated, arrays["w_down"])  # [B,T,d]
    residual_2 = residual_1 + down
    logits, head = linear.forward(residual_2, arrays["w_head"])  # [B,T,V]
    mean_loss, choice = cross_entropy.forward(logits, arrays["labels"], arrays["weights"])
    items = {
        "normed_1": normed_1,
        "q": q,
        "k": k,
        "v": v,
        **({"q_turned": turned_q, "k_turned": turned_k} if config.rope else {}),
        "scores": mixing.s,
        "probs": mixing.p,
        "heads": heads,
        "attended": attended,
        "residual_1": residual_1,
        "normed_2": normed_2,
        "gate": gate,
        "up": up,
        "gated": gated,
        "down": down,
        "residual_2": residual_2,
        "logits": logits,
        "mean_loss": mean_loss,
        "loss": config.loss_scale * mean_loss,
    }
    saved = Saved(norm_1, *maps, turned, mixing, out, norm_2, gate_map, up_map, gating, down_map, head, choice)
    return items, saved


def backward(config: Config, saved: Saved) -> Arrays:
    """Gradient of the loss at every intermediate, at every parameter and at x."""
    dmean = np.asarray(config.loss_scale, dtype=saved.norm_1.x.dtype)
    head = linear.backward(cross_entropy.backward(dmean, saved.loss), saved.head)
    above, dresidual_2 = _feed_forward(head.dx, saved)
    below, dx = _attention(config, above["residual_1"], saved)
    return {
        "x": dx,
        **below,
        **above,
        "residual_2": dresidual_2,
        "w_head": head.dw,
        "logits": dmean * saved.loss.unit,
        "mean_loss": dmean,
    }


def _feed_forward(dresidual_2: Array, saved: Saved) -> tuple[Arrays, Array]:
    """From the layer's output back to the sum after attention: through the branch, and past it."""
    down = linear.backward(dresidual_2, saved.down)
    gated = swiglu.backward(down.dx, saved.gated)
    gate, up = linear.backward(gated.da, saved.gate), linear.backward(gated.db, saved.up)
    dnormed_2 = gate.dx + up.dx  # read twice
    norm_2 = rms_norm.backward(dnormed_2, saved.norm_2)
    grads = {
        "residual_1": dresidual_2 + norm_2.dx,
        "gamma_2": norm_2.dgamma,
        "normed_2": dnormed_2,
        "w_gate": gate.dw,
        "gate": gated.da,
        "w_up": up.dw,
        "up": gated.db,
        "gated": down.dx,
        "w_down": down.dw,
        "down": dresidual_2,
    }
    return grads, dresidual_2


def _attention(config: Config, dresidual_1: Array, saved: Saved) -> tuple[Arrays, Array]:
    """From the sum after attention back to x: through the branch, and past it."""
    out = linear.backward(dresidual_1, saved.out)
    dheads = _split(out.dx, config.hidden // config.heads)
    heads = attention.backward(dheads, saved.heads)
    dq, dk = (heads.dq, heads.dk) if saved.turned is None else _turn_back(heads, saved.turned)
    q, k, v = (
        linear.backward(_join(d), to) for d, to in zip((dq, dk, heads.dv), (saved.q, saved.k, saved.v), strict=True)
    )
    dnormed_1 = q.dx + k.dx + v.dx  # read three times
    norm_1 = rms_norm.backward(dnormed_1, saved.norm_1)
    grads = {
        "gamma_1": norm_1.dgamma,
        "normed_1": dnormed_1,
        **{"w_q": q.dw, "q": dq, "w_k": k.dw, "k": dk, "w_v": v.dw, "v": heads.dv},
        **({} if saved.turned is None else {"q_turned": heads.dq, "k_turned": heads.dk}),
        "scores": heads.ds,
        "probs": heads.dp,
        "heads": dheads,
        "w_o": out.dw,
        "attended": dresidual_1,
    }
    return grads, dresidual_1 + norm_1.dx


def _turn(config: Config, q: Array, k: Array) -> tuple[Array, Array, rope.Saved | None]:
    if not config.rope:
        return q, k, None
    positions = np.arange(config.positions)
    turned_q, saved = rope.forward(q, positions, config.rope_base)
    return turned_q, rope.forward(k, positions, config.rope_base)[0], saved  # one rotation serves both


def _turn_back(heads: attention.Grads, saved: rope.Saved) -> tuple[Array, Array]:
    return rope.backward(heads.dq, saved), rope.backward(heads.dk, saved)


def _split(rows: Array, width: int) -> Array:
    """[B,T,n·D] -> [B,n,T,D], a view."""
    return rows.reshape(*rows.shape[:-1], -1, width).swapaxes(-3, -2)


def _join(heads: Array) -> Array:
    """[B,n,T,D] -> [B,T,n·D]."""
    *lead, _, positions, _ = heads.shape
    joined: Array = heads.swapaxes(-3, -2).reshape(*lead, positions, -1)
    return joined


def loss(config: Config, arrays: Arrays, held: Arrays) -> Any:
    """The scalar that every gradient is a gradient of; all inputs are on its path."""
    return forward(config, arrays)[0]["loss"]
