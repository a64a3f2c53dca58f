"""The lab's inputs: what both sides start from."""

import math

import numpy as np

from labs.core.inputs import Draw
from labs.core.lab import Array, Arrays
from labs.lora.config import Config


def inputs(config: Config, draw: Draw) -> Arrays:
    """Arrays by name, all float64 but the labels.

    x [B,T,d], base [d,k], head [k,C], labels [B,T] int64, weights [B,T] (unequal, so the upstream gradient is), target
    [B,T,k]; lora_a [d,r] and lora_b [r,k], both non-zero: the trained state; init_uniform in [0, 1) and init_normal
    [d,r]: what lora_a is drawn from; init_normal_b [r,k]: there to be ignored, lora_b starts at zero; ties [group,m]:
    drawn from nothing, every number that lies halfway between two codes.
    """
    rows, d, k, r = (config.batch, config.positions), config.d_in, config.d_out, config.rank
    base = draw.normal("base", (d, k), 1 / math.sqrt(d))
    base[-config.group :, 0] = 0.0  # one quantisation group without a largest element
    return {
        "x": draw.normal("x", (*rows, d)),
        "base": base,
        "head": draw.normal("head", (k, config.classes), 1 / math.sqrt(k)),
        "labels": draw.integers("labels", rows, config.classes),
        "weights": draw.uniform("weights", rows, 0.5, 2.0),
        "target": draw.normal("target", (*rows, k)),
        "lora_a": draw.normal("lora_a", (d, r), 1 / math.sqrt(d)),
        "lora_b": draw.normal("lora_b", (r, k), 0.2 / math.sqrt(r)),
        "init_uniform": draw.uniform("init_uniform", (d, r)),
        "init_normal": draw.normal("init_normal", (d, r)),
        "init_normal_b": draw.normal("init_normal_b", (r, k)),
        "ties": ties(config.bits, config.group),
    }


def ties(bits: int, group: int) -> Array:
    """A matrix of one group a column whose scales are exactly 1 and whose quotients are k + 0.5, of both signs.

    The first row is qmax, and so is what fills up the last. m is a multiple of `group`: groups along the other axis, a
    fault that has to be seen, then give wrong codes and no refusal.
    """
    qmax = 2 ** (bits - 1) - 1
    halves = np.arange(qmax) + 0.5
    signed = np.stack([halves, -halves], axis=1).ravel()  # 0.5, -0.5, 1.5, -1.5 ...
    columns = group * math.ceil(signed.size / ((group - 1) * group))
    filled = np.full(group * columns, float(qmax))
    filled[columns : columns + signed.size] = signed
    return filled.reshape(group, columns)
