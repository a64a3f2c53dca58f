"""The lab's inputs: what both sides start from."""

import math
from itertools import accumulate

import numpy as np

from labs.core.inputs import Draw
from labs.core.lab import Array, Arrays
from labs.packing.config import Config


def inputs(config: Config, draw: Draw) -> Arrays:
    """Arrays by name: ids int64, the rest float64.

    tokens [sum of lengths]: every document behind the other, uncut, each ending in end-of-sequence; conversation: one
    id a role; prompted [limit + completion]; embedding [V,d], w_q, w_k, w_v [d,H·D], w_o [H·D,d], head [d,V];
    probe [N,V], N the tokens that truncation leaves: an upstream gradient of the logits; nudge [N,d]: what a witness
    moves the embedded input by, not read otherwise.
    """
    d, v, wide = config.d_model, config.vocabulary, config.heads * config.head_dim
    tokens = _words(config, draw, "tokens", sum(config.lengths))
    tokens[[end - 1 for end in accumulate(config.lengths)]] = config.pad_id
    kept = sum(min(length, config.limit) for length in config.lengths)
    return {
        "tokens": tokens,
        "conversation": _words(config, draw, "conversation", len(config.roles)),
        "prompted": _words(config, draw, "prompted", config.limit + config.completion),
        "embedding": draw.normal("embedding", (v, d)),
        **{name: draw.normal(name, (d, wide), 1 / math.sqrt(d)) for name in ("w_q", "w_k", "w_v")},
        "w_o": draw.normal("w_o", (wide, d), 1 / math.sqrt(wide)),
        "head": draw.normal("head", (d, v), 1 / math.sqrt(d)),
        "probe": draw.normal("probe", (kept, v)),
        "nudge": draw.normal("nudge", (kept, d)),
    }


def _words(config: Config, draw: Draw, name: str, count: int) -> Array:
    """Ids of ordinary tokens: any but the one that padding and end-of-sequence share.

    Neighbours differ: between tokens with equal values attention has no gradient.
    """
    ordinary = config.vocabulary - 1
    ids = np.cumsum(1 + draw.integers(name, (count,), ordinary - 1)) % ordinary
    return np.where(ids >= config.pad_id, ids + 1, ids)
