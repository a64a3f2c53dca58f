"""One AdamW update: decay apart from the gradient, moments with bias correction.

update    t = step + 1
          m = β1 m + (1−β1) g,  v = β2 v + (1−β2) g²
          m̂ = m / (1−β1^t),  v̂ = v / (1−β2^t)
          p ← p (1 − lr·wd) − lr m̂ / (√v̂ + eps)      eps outside the correction, decay not in g
shapes    p, g, m, v all alike, any
state     exp_avg (m), exp_avg_sq (v), step (updates done so far)
source    Loshchilov & Hutter 2019, algorithm 2 with the learning rate in front of the decay, as torch.optim.AdamW has
          it; the moments and the place of eps: Kingma & Ba 2015, algorithm 1
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class State(NamedTuple):
    """What an update leaves for the next, and a checkpoint has to hold."""

    exp_avg: Array
    exp_avg_sq: Array
    step: int


def start(p: Array) -> State:
    """State before the first update."""
    return State(np.zeros_like(p), np.zeros_like(p), 0)


def update(
    p: Array,
    g: Array,
    state: State,
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> tuple[Array, State]:
    """Parameter and state after one step; nothing is changed in place."""
    beta1, beta2 = (p.real.dtype.type(beta) for beta in betas)  # β^t in p's own precision
    step = state.step + 1
    m = beta1 * state.exp_avg + (1 - beta1) * g
    v = beta2 * state.exp_avg_sq + (1 - beta2) * (g * g)
    m_hat = m / (1 - beta1**step)
    v_hat = v / (1 - beta2**step)
    decayed = p * (1 - lr * weight_decay)
    return decayed - lr * m_hat / (np.sqrt(v_hat) + eps), State(m, v, step)
