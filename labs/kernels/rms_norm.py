"""RMSNorm over the last axis, without centring and without bias.

forward   r = (mean_j x_j² + eps)^(-1/2),  y = x ⊙ gamma · r
backward  v = dy ⊙ gamma
          dx = r v − (r³/d) x Σ_j v_j x_j      the second term is r's own dependence on x
          dgamma = Σ_rows dy ⊙ x r
shapes    x, y, dy, dx [..., d]; gamma, dgamma [d]
saved     x, gamma, r [..., 1]
source    Zhang & Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4, with eps inside the root as in Llama
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class Saved(NamedTuple):
    """What the backward pass reads."""

    x: Array  # [..., d]
    gamma: Array  # [d]
    r: Array  # [..., 1]


class Grads(NamedTuple):
    """Gradients in the order of forward's arguments."""

    dx: Array  # [..., d]
    dgamma: Array  # [d]


def forward(x: Array, gamma: Array, eps: float) -> tuple[Array, Saved]:
    """Scale every row of x to root mean square 1 (up to eps), then by gamma."""
    mean_square = np.mean(x * x, axis=-1, keepdims=True)  # [..., 1]; x*x, not |x|², so that the complex step survives
    r = 1.0 / np.sqrt(mean_square + eps)
    return x * gamma * r, Saved(x, gamma, r)


def backward(dy: Array, saved: Saved) -> Grads:
    """Gradients of x and gamma from the gradient of y."""
    x, gamma, r = saved
    v = dy * gamma
    direct = r * v
    through_r = (r * r * r / x.shape[-1]) * x * np.sum(v * x, axis=-1, keepdims=True)
    rows = tuple(range(x.ndim - 1))
    return Grads(dx=direct - through_r, dgamma=np.sum(dy * x * r, axis=rows))
