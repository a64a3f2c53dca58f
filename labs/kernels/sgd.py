"""Plain stochastic gradient descent: no momentum, no decay.

forward   p ← p − lr · dp
shapes    p, dp of one shape; lr scalar
source    Robbins & Monro 1951
"""

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


def step(p: Array, dp: Array, lr: float) -> Array:
    """The parameter after one update; the argument is left as it was."""
    return p - lr * dp
