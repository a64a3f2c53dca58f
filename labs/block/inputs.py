"""The lab's inputs: what both sides start from."""

import math

import numpy as np

from labs.block.config import Config
from labs.core.inputs import Draw
from labs.core.lab import Array, Arrays

GROUPED = (4, 2)  # query and key/value heads: with one of these, or as many as of those, nothing can be mixed up
UNSUPERVISED = -100  # torch's ignore_index; any negative label means the same to the reference


def inputs(config: Config, draw: Draw) -> Arrays:
    """Arrays by name, all float64 but the labels.

    x [B,T,d], labels [B,T] int64 and weights [B,T] (unequal, so the upstream gradient is); the parameters: gamma_1
    and gamma_2 [d], w_q [d,d], w_k and w_v [d,G·D], w_o [d,d], w_gate and w_up [d,f], w_down [f,d], w_head [d,V]; and
    when there is training, data/x [N,T,d], data/labels and data/weights [N,T] for the stochastic run. With extras,
    grouped/q and grouped/upstream [B,4,T,D], grouped/k and grouped/v [B,2,T,D]: attention without a layer.
    """
    arrays = {**_sequences(config, draw, "", config.batch), **_parameters(config, draw)}
    if config.x:
        arrays["x"] = np.tile(np.array(config.x), (config.batch, 1, 1))
    if config.steps:
        arrays |= _sequences(config, draw, "data/", config.samples)
    if config.extras:
        arrays |= _grouped(config, draw)
    return arrays


def _grouped(config: Config, draw: Draw) -> Arrays:
    queries, shared = GROUPED
    heads = {"q": queries, "k": shared, "v": shared, "upstream": queries}
    rest = (config.positions, config.hidden // config.heads)
    return {f"grouped/{name}": draw.normal(f"grouped/{name}", (config.batch, n, *rest)) for name, n in heads.items()}


def _sequences(config: Config, draw: Draw, prefix: str, count: int) -> Arrays:
    rows = (count, config.positions)
    labels = draw.integers(f"{prefix}labels", rows, config.vocabulary)
    labels[:, : -1 if config.supervised == "last" else 1] = UNSUPERVISED
    return {
        f"{prefix}x": draw.normal(f"{prefix}x", (*rows, config.hidden)),
        f"{prefix}labels": labels,
        f"{prefix}weights": draw.uniform(f"{prefix}weights", rows, 0.5, 2.0),
    }


def _parameters(config: Config, draw: Draw) -> Arrays:
    """Uniform, because a large model has too many for the twelve draws of a normal value."""
    d, f = config.hidden, config.ffn
    kv = d // config.heads * config.kv_heads
    shapes = {
        "w_q": (d, d),
        "w_k": (d, kv),
        "w_v": (d, kv),
        "w_o": (d, d),
        "w_gate": (d, f),
        "w_up": (d, f),
        "w_down": (f, d),
        "w_head": (d, config.vocabulary),
    }
    gammas = {name: draw.uniform(name, (d,), 0.5, 1.5) for name in ("gamma_1", "gamma_2")}
    return {**gammas, **{name: _matrix(draw, name, shape) for name, shape in shapes.items()}}


def _matrix(draw: Draw, name: str, shape: tuple[int, int]) -> Array:
    """Variance 1/rows, so that a product keeps the size of its operand."""
    bound = math.sqrt(3.0 / shape[0])
    return draw.uniform(name, shape, -bound, bound)
