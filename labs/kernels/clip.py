"""Clipping of gradients by their common norm.

formula   N = √(Σ over all tensors and elements of g²),  c = min(1, max_norm / (N + added)),  g ← c g
          added = 0 is the formula of the paper; torch.nn.utils.clip_grad_norm_ has added = 1e-6
shapes    any; the norm is one number over all tensors
source    Pascanu, Mikolov & Bengio 2013, algorithm 1
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

TORCH_ADDED = 1e-6


class Clipped(NamedTuple):
    """The scaled gradients, the norm before, and the factor between them."""

    grads: tuple[Array, ...]
    norm: Array  # []
    factor: Array  # []


def clip(grads: Sequence[Array], max_norm: float, added: float = 0.0) -> Clipped:
    """Scale all gradients by one factor, so that their common norm is at most max_norm. A NaN gradient stays NaN."""
    norm = np.asarray(np.sqrt(sum(np.sum(g * g) for g in grads)))
    inside = (norm + added).real <= max_norm  # also keeps a norm of 0 from dividing
    factor = np.ones_like(norm) if inside else np.asarray(max_norm / (norm + added))
    return Clipped(tuple(g * factor for g in grads), norm, factor)
