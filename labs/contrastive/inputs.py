"""The lab's inputs: what both sides start from."""

import math

import numpy as np

from labs.contrastive.config import Config
from labs.core.inputs import Draw
from labs.core.lab import Arrays


def inputs(config: Config, draw: Draw) -> Arrays:
    """Arrays by name, all float64 but the ids.

    x_a [N,d_a] and x_b [N,d_b]: row i of one belongs to row i of the other, rank 0 has the first rows; w_a [d_a,D],
    w_b [d_b,D], log_scale []: the parameters; ids [N] int64: a permutation that tells whose row is where; upstream
    [N,D] and rank_weights [W]: what a gather is tested with, no two ranks alike.
    """
    n, d = config.batch, config.d
    return {
        "x_a": draw.normal("x_a", (n, config.d_a)),
        "x_b": draw.normal("x_b", (n, config.d_b)),
        "w_a": draw.normal("w_a", (config.d_a, d), 1 / math.sqrt(config.d_a)),
        "w_b": draw.normal("w_b", (config.d_b, d), 1 / math.sqrt(config.d_b)),
        "log_scale": np.array(config.log_scale),
        "ids": draw.permutation("ids", n),
        "upstream": draw.normal("upstream", (n, d)),
        "rank_weights": draw.uniform("rank_weights", (config.world_size,), 1.0, 10.0),
    }
