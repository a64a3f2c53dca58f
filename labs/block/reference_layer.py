"""The layer and its head by hand: every intermediate forward, the gradient at every intermediate backward."""

from typing import Any, NamedTuple

import numpy as np

from labs.block.config import Config
from labs.core.lab import Array, Arrays
from labs.kernels import attention, cross_entropy, linear, rms_norm, rope, swiglu


class Attention(NamedTuple):
    """What the backward pass of the first branch reads."""

    norm: rms_norm.Saved
    q: linear.Saved
    k: linear.Saved
    v: linear.Saved
    turned: rope.Saved | None
    heads: attention.Saved
    out: linear.Saved


class FeedForward(NamedTuple):
    """What the backward pass of the second branch reads."""

    norm: rms_norm.Saved
    gate: linear.Saved
    up: linear.Saved
    gated: swiglu.Saved
    down: linear.Saved


class Saved(NamedTuple):
    """What the backward pass reads, in the order of the forward pass."""

    attention: Attention
    feed_forward: FeedForward
    head: linear.Saved
    loss: cross_entropy.Saved


def forward(config: Config, arrays: Arrays) -> tuple[Arrays, Saved]:
    """Every intermediate by name, from x, labels, weights and the parameters in `arrays`."""
    first, attended = _attend(config, arrays)
    second, transformed = _transform(config, arrays, first["residual_1"])
    last, head, choice = _answer(config, arrays, second["residual_2"])
    return {**first, **second, **last}, Saved(attended, transformed, head, choice)


def loss(config: Config, arrays: Arrays, held: Arrays) -> Any:
    """The scalar that every gradient is a gradient of; all inputs are on its path.

    Each branch's intermediates are let go before the next one: a witness holds them in complex numbers.
    """
    residual_1 = _attend(config, arrays)[0]["residual_1"]
    residual_2 = _transform(config, arrays, residual_1)[0]["residual_2"]
    return _answer(config, arrays, residual_2)[0]["loss"]


def backward(config: Config, saved: Saved) -> Arrays:
    """Gradient of the loss at every intermediate, at every parameter and at x."""
    dmean = np.asarray(config.loss_scale, dtype=saved.head.x.dtype)
    dlogits = cross_entropy.backward(dmean, saved.loss)
    head = linear.backward(dlogits, saved.head)
    above = _transform_back(head.dx, saved.feed_forward)
    return {
        **_attend_back(config, above["residual_1"], saved.attention),
        **above,
        "residual_2": head.dx,
        "w_head": head.dw,
        "logits": dlogits,
        "mean_loss": dmean,
    }


def _attend(config: Config, arrays: Arrays) -> tuple[Arrays, Attention]:
    """The first branch, and the sum with x."""
    x, width = arrays["x"], config.hidden // config.heads
    normed, norm = rms_norm.forward(x, arrays["gamma_1"], config.epsilon)  # [B,T,d]
    (q, q_map), (k, k_map), (v, v_map) = (linear.forward(normed, arrays[name]) for name in ("w_q", "w_k", "w_v"))
    q, k, v = _split(q, width), _split(k, width), _split(v, width)  # [B,H,T,D], [B,G,T,D] twice
    q_turned, k_turned, turned = _turn(config, q, k)
    causal = attention.causal(config.positions, config.positions)
    heads, mixed = attention.forward(q_turned, k_turned, v, causal)
    attended, out = linear.forward(_join(heads), arrays["w_o"])
    items = {
        "normed_1": normed,
        "q": q,
        "k": k,
        "v": v,
        **({"q_turned": q_turned, "k_turned": k_turned} if config.rope else {}),
        "scores": mixed.s,
        "probs": mixed.p,
        "heads": heads,
        "attended": attended,
        "residual_1": x + attended,
    }
    return items, Attention(norm, q_map, k_map, v_map, turned, mixed, out)


def _attend_back(config: Config, dresidual_1: Array, saved: Attention) -> Arrays:
    """From the sum after attention back to x: through the branch, and past it."""
    out = linear.backward(dresidual_1, saved.out)
    dheads = _split(out.dx, config.hidden // config.heads)
    mixed = attention.backward(dheads, saved.heads)
    dq, dk = _turn_back(mixed.dq, mixed.dk, saved.turned)
    q, k = linear.backward(_join(dq), saved.q), linear.backward(_join(dk), saved.k)
    v = linear.backward(_join(mixed.dv), saved.v)
    dnormed = q.dx + k.dx + v.dx  # read three times
    norm = rms_norm.backward(dnormed, saved.norm)
    return {
        "x": dresidual_1 + norm.dx,
        "gamma_1": norm.dgamma,
        "normed_1": dnormed,
        "w_q": q.dw,
        "q": dq,
        "w_k": k.dw,
        "k": dk,
        "w_v": v.dw,
        "v": mixed.dv,
        **({"q_turned": mixed.dq, "k_turned": mixed.dk} if config.rope else {}),
        "scores": mixed.ds,
        "probs": mixed.dp,
        "heads": dheads,
        "w_o": out.dw,
        "attended": dresidual_1,
    }


def _transform(config: Config, arrays: Arrays, residual_1: Array) -> tuple[Arrays, FeedForward]:
    """The second branch, and the layer's output."""
    normed, norm = rms_norm.forward(residual_1, arrays["gamma_2"], config.epsilon)
    gate, gate_map = linear.forward(normed, arrays["w_gate"])  # [B,T,f]
    up, up_map = linear.forward(normed, arrays["w_up"])
    gated, gating = swiglu.forward(gate, up)
    down, down_map = linear.forward(gated, arrays["w_down"])  # [B,T,d]
    items = {
        "normed_2": normed,
        "gate": gate,
        "up": up,
        "gated": gated,
        "down": down,
        "residual_2": residual_1 + down,
    }
    return items, FeedForward(norm, gate_map, up_map, gating, down_map)


def _answer(config: Config, arrays: Arrays, output: Array) -> tuple[Arrays, linear.Saved, cross_entropy.Saved]:
    """The head, and the loss of what it says."""
    logits, head = linear.forward(output, arrays["w_head"])  # [B,T,V]
    mean_loss, choice = cross_entropy.forward(logits, arrays["labels"], arrays["weights"])
    return {"logits": logits, "mean_loss": mean_loss, "loss": config.loss_scale * mean_loss}, head, choice


def _transform_back(dresidual_2: Array, saved: FeedForward) -> Arrays:
    """From the layer's output back to the sum after attention: through the branch, and past it."""
    down = linear.backward(dresidual_2, saved.down)
    gated = swiglu.backward(down.dx, saved.gated)
    gate, up = linear.backward(gated.da, saved.gate), linear.backward(gated.db, saved.up)
    dnormed = gate.dx + up.dx  # read twice
    norm = rms_norm.backward(dnormed, saved.norm)
    return {
        "residual_1": dresidual_2 + norm.dx,
        "gamma_2": norm.dgamma,
        "normed_2": dnormed,
        "w_gate": gate.dw,
        "gate": gated.da,
        "w_up": up.dw,
        "up": gated.db,
        "gated": down.dx,
        "w_down": down.dw,
        "down": dresidual_2,
    }


def _turn(config: Config, q: Array, k: Array) -> tuple[Array, Array, rope.Saved | None]:
    if not config.rope:
        return q, k, None
    positions = np.arange(config.positions)
    q_turned, saved = rope.forward(q, positions, config.rope_base)
    return q_turned, rope.forward(k, positions, config.rope_base)[0], saved  # one rotation serves both


def _turn_back(dq: Array, dk: Array, saved: rope.Saved | None) -> tuple[Array, Array]:
    return (dq, dk) if saved is None else (rope.backward(dq, saved), rope.backward(dk, saved))


def _split(rows: Array, width: int) -> Array:
    """[B,T,n·D] -> [B,n,T,D], a view."""
    return rows.reshape(*rows.shape[:-1], -1, width).swapaxes(-3, -2)


def _join(heads: Array) -> Array:
    """[B,n,T,D] -> [B,T,n·D]."""
    *lead, _, positions, _ = heads.shape
    joined: Array = heads.swapaxes(-3, -2).reshape(*lead, positions, -1)
    return joined
