"""The small causal model by hand: embedding, one attention layer with rotary positions and a residual, head."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labs.core.lab import Array, Arrays
from labs.kernels import attention, cross_entropy, embedding, linear, rope
from labs.packing.config import Config

PARAMETERS = ("embedding", "w_q", "w_k", "w_v", "w_o", "head")


class Pass(NamedTuple):
    """One sequence through the model, and what its backward pass reads. Heads come first inside: [H, T, D]."""

    logits: Array  # [T, V]
    q: Array  # [T, H, D] rotated
    k: Array  # [T, H, D] rotated
    embedded: embedding.Saved
    projected: tuple[linear.Saved, linear.Saved, linear.Saved]
    turned: tuple[rope.Saved, rope.Saved]
    attended: attention.Saved
    merged: linear.Saved
    read: linear.Saved


def forward(
    config: Config,
    arrays: Arrays,
    ids: Array,
    positions: NDArray[np.int64],
    visible: NDArray[np.bool_],
    nudge: Array | float = 0.0,
) -> Pass:
    """Logits of one sequence [T]; `visible` [T,T] says which keys a query sees, `nudge` [T,d] is added to the input."""
    x, embedded = embedding.forward(arrays["embedding"], ids)
    x = x + nudge  # [T, d]
    (q, k, v), projected = zip(*(linear.forward(x, arrays[name]) for name in ("w_q", "w_k", "w_v")), strict=True)
    q, turned_q = rope.forward(_split(q, config.heads), positions, config.rope_base)  # [H, T, D]
    k, turned_k = rope.forward(_split(k, config.heads), positions, config.rope_base)
    y, attended = attention.forward(q, k, _split(v, config.heads), visible)
    mixed, merged = linear.forward(_merge(y), arrays["w_o"])
    logits, read = linear.forward(x + mixed, arrays["head"])  # [T, V]
    turned = (turned_q, turned_k)
    return Pass(logits, _tokens_first(q), _tokens_first(k), embedded, projected, turned, attended, merged, read)


def backward(dlogits: Array, run: Pass) -> Arrays:
    """Gradients of every parameter, and of the embedded input as "x" [T,d]."""
    heads = run.attended.q.shape[0]
    dh, dhead, _ = linear.backward(dlogits, run.read)
    dy, dw_o, _ = linear.backward(dh, run.merged)
    dq, dk, dv, _, _ = attention.backward(_split(dy, heads), run.attended)
    unturned = (rope.backward(dq, run.turned[0]), rope.backward(dk, run.turned[1]), dv)
    into = [linear.backward(_merge(g), saved) for g, saved in zip(unturned, run.projected, strict=True)]
    dx = dh + into[0].dx + into[1].dx + into[2].dx  # the residual, and the three projections
    dw_q, dw_k, dw_v = (grads.dw for grads in into)
    dembedding = embedding.backward(dx, run.embedded)
    return {"embedding": dembedding, "w_q": dw_q, "w_k": dw_k, "w_v": dw_v, "w_o": dw_o, "head": dhead, "x": dx}


def objective(runs: Sequence[Pass], targets: Sequence[Array], weights: Sequence[Array]) -> tuple[Any, Arrays]:
    """The loss sum of w_t l_t over every supervised token of these sequences, and its gradients.

    targets, weights: [T] for each sequence. Parameter gradients add up, those of the embedded inputs are joined [N,d].
    """
    losses, parts = [], []
    for run, y, w in zip(runs, targets, weights, strict=True):
        mean, choice = cross_entropy.forward(run.logits, y, w)
        mass = np.sum(np.where(y >= 0, w, 0))  # the kernel divides by it
        losses.append(mass * mean)
        parts.append(backward(cross_entropy.backward(mass, choice), run))
    grads: Arrays = {name: np.sum([part[name] for part in parts], axis=0) for name in PARAMETERS}
    return sum(losses), {**grads, "x": np.concatenate([part["x"] for part in parts])}


def _split(x: Array, heads: int) -> Array:
    """[T, H·D] -> [H, T, D]."""
    return np.swapaxes(x.reshape(len(x), heads, -1), 0, 1)


def _merge(x: Array) -> Array:
    """[H, T, D] -> [T, H·D]."""
    return _tokens_first(x).reshape(x.shape[1], -1)


def _tokens_first(x: Array) -> Array:
    """[H, T, D] -> [T, H, D]."""
    return np.swapaxes(x, 0, 1)
