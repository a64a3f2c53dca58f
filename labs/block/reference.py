"""The reference: every item of the lab from hand-derived formulas, in the precision of its inputs."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from labs.block.config import Config
from labs.block.reference_layer import backward, forward
from labs.core.lab import Array, Arrays
from labs.kernels import adamw, attention, sgd

PARAMETERS = ("gamma_1", "gamma_2", "w_q", "w_k", "w_v", "w_o", "w_gate", "w_up", "w_down", "w_head")
SIDE, ORDER = 64, 64  # of the square that dropout is given, and of a shuffled order
COINCIDENCES = 12  # of random orders: one on average, distributed nearly as Poisson, and more than 12 once in 10^10


def reference(config: Config, inputs: Arrays) -> Arrays:
    """Every item of the lab, `{name: array}`."""
    values, saved = forward(config, inputs)
    grads, heads = backward(config, saved), saved.attention.heads
    del saved  # of a large model it is a tenth of the memory
    items = {
        **{f"forward/{name}": value for name, value in values.items()},
        **{f"grad/{name}": grad for name, grad in grads.items()},
        **_first(grads),
    }
    if config.extras:
        items |= {**_fused(values, grads), **_padded(heads, grads), **_grouped(inputs), **_causality(values)}
    if config.steps:
        items |= _sgd(config, inputs, grads)
        items |= _training(config, inputs)
        items |= _chance(config, inputs["x"].dtype)
    return {name: np.asarray(value) for name, value in items.items()}  # a scalar is an array without axes


def _fused(values: Arrays, grads: Arrays) -> Arrays:
    """Attention as one operation: nothing new, whatever computes it."""
    q, k = (name if f"{name}_turned" not in grads else f"{name}_turned" for name in ("q", "k"))
    return {
        "fused/heads": values["heads"],
        "fused/grad/q": grads[q],
        "fused/grad/k": grads[k],
        "fused/grad/v": grads["v"],
    }


def _padded(saved: attention.Saved, grads: Arrays) -> Arrays:
    """The first key is padding, so the first query sees nothing: its output and its gradient are 0."""
    q, k, v = saved.q, saved.k, saved.v
    keys = k.shape[-2]
    visible = attention.causal(keys, keys) & (np.arange(keys) > 0)
    heads, padded = attention.forward(q, k, v, visible)
    found = attention.backward(grads["heads"], padded)
    return {
        "padded/probs": padded.p,
        "padded/heads": heads,
        "padded/grad/scores": found.ds,
        "padded/grad/q": found.dq,
        "padded/grad/k": found.dk,
        "padded/grad/v": found.dv,
    }


def _grouped(inputs: Arrays) -> Arrays:
    """Attention where h // (H/G) and h % G name different heads, once for each way to compute it."""
    q, k, v, upstream = (inputs[f"grouped/{name}"] for name in ("q", "k", "v", "upstream"))
    heads, saved = attention.forward(q, k, v, attention.causal(q.shape[-2], k.shape[-2]))
    found = attention.backward(upstream, saved)
    items = {"heads": heads, "grad/q": found.dq, "grad/k": found.dk, "grad/v": found.dv}
    return {f"{prefix}/{name}": value for prefix in ("grouped", "fused/grouped") for name, value in items.items()}


def _causality(values: Arrays) -> Arrays:
    """What the last position is changed to never reaches the outputs before it."""
    earlier = values["residual_2"][:, :-1]
    return {"causality/before": earlier, "causality/after": earlier, "causality/last_changes": np.ones((), bool)}


def _first(grads: Arrays) -> Arrays:
    """The first position has no target, and yet a gradient: as key and value of the later ones."""
    reached = {"x": grads["x"][:, 0], "k": grads["k"][:, :, 0], "v": grads["v"][:, :, 0]}
    return {
        "first/grad/logits": grads["logits"][:, 0],
        **{f"first/reached/{name}": np.asarray(np.any(grad != 0)) for name, grad in reached.items()},
    }


def _sgd(config: Config, inputs: Arrays, grads: Arrays) -> Arrays:
    return {f"sgd/param/{name}": sgd.step(inputs[name], grads[name], config.sgd_lr) for name in PARAMETERS}


def _training(config: Config, inputs: Arrays) -> Arrays:
    """AdamW on the whole batch, all steps; and the steps after the checkpoint once more, as resumed training has them.

    Each quantity is stacked over the steps, [steps, …]; flat means all parameters in one row, in the order of names.
    """
    steps = list(_descend(config, inputs))
    stacked = {name: np.stack([step[name] for step in steps]) for name in steps[0]}
    resumed = {name: stack[config.checkpoint_after :] for name, stack in stacked.items()}
    return {
        **{f"train/{name}": stack for name, stack in stacked.items() if name != "grad"},
        **{f"resume/{name}": stack for name, stack in resumed.items() if not name.startswith("grad/")},
    }


def _descend(config: Config, inputs: Arrays) -> Iterator[Arrays]:
    """Loss and gradients before each update, parameters and optimizer state after it."""
    parameters = {name: inputs[name] for name in PARAMETERS}
    states = {name: adamw.start(p)._replace(step=config.steps_done) for name, p in parameters.items()}
    for _ in range(config.steps):
        values, saved = forward(config, {**inputs, **parameters})
        grads = backward(config, saved)
        for name in PARAMETERS:
            parameters[name], states[name] = _update(config, parameters[name], grads[name], states[name])
        yield {
            "loss": values["loss"],
            "step": np.array([states[name].step for name in PARAMETERS]),
            "grad": _flat(grads),
            **{f"grad/{name}": grads[name] for name in PARAMETERS},
            **{f"param/{name}": parameter for name, parameter in parameters.items()},
            "exp_avg": _flat({name: state.exp_avg for name, state in states.items()}),
            "exp_avg_sq": _flat({name: state.exp_avg_sq for name, state in states.items()}),
        }


def _chance(config: Config, dtype: np.dtype[Any]) -> Arrays:
    """What is certain about dropout and shuffle, and how far the shares of zeros stray: in all, a column, a row."""
    counts = np.array([SIDE * SIDE, *[SIDE] * (2 * SIDE)])
    return {
        "stochastic/dropout/kept": np.full((SIDE, SIDE), 1 / (1 - config.dropout), dtype),
        "stochastic/dropout/bound/excess": _straying(config.dropout, counts).astype(dtype),
        "stochastic/dropout/bound/again": _straying(0.25, counts[[0] * 4]).astype(dtype),
        "stochastic/shuffle/sorted": np.arange(ORDER),
        "stochastic/shuffle/bound": np.asarray(COINCIDENCES),
        "stochastic/shuffle/repeats": np.ones((), bool),
    }


def _straying(share: float, counts: Array) -> Array:
    """Bernstein's bound on abs(share of zeros - share) among so many draws, passed once in 10^9; at share 0, 0.

    The root t of n t^2 / (2 (variance + t/3)) = log(2 * 10^9).
    """
    rarity, variance = np.log(2e9), share * (1 - share)
    bound: Array = (rarity / 3 + np.sqrt((rarity / 3) ** 2 + 2 * counts * variance * rarity)) / counts
    return bound if share else np.zeros_like(bound)


def _flat(arrays: Arrays) -> Array:
    return np.concatenate([arrays[name].ravel() for name in sorted(PARAMETERS)])


def _update(config: Config, p: Array, g: Array, state: adamw.State) -> tuple[Array, adamw.State]:
    return adamw.update(
        p,
        g,
        state,
        lr=config.lr,
        betas=(config.beta1, config.beta2),
        eps=config.adam_epsilon,
        weight_decay=config.weight_decay,
    )
