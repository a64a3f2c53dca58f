"""What the torch side of the lab is made of: the units that people replace, and that a fault replaces.

A part is a plain function. B sequences, T positions, d hidden, H query heads of width D, G key/value heads, f features,
V vocabulary. A state is {"param", "exp_avg", "exp_avg_sq", "step": {name: tensor}, "done": int, "rng": uint8 tensor,
"order": int64 tensor, "position": int}: tensors and plain numbers, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labs.core.setting import part

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from torch import Tensor


@dataclass(frozen=True)
class Parts:
    """The callables of one torch side; `lab run --swap NAME=FILE.py:FUNCTION` replaces one by the user's."""

    norm: Callable[[Tensor, Tensor, float], Tensor] = part(
        "(x [B,T,d], gamma [d], epsilon) -> x gamma / sqrt(mean x^2 + epsilon)"
    )
    linear: Callable[[Tensor, Tensor], Tensor] = part("(x [B,T,d], W [d,k]) -> x W")
    rope: Callable[[Tensor, Tensor, float], Tensor] = part(
        "(x [B,n,T,D], positions [T], base) -> each row turned, element i with element i + D/2"
    )
    scores: Callable[[Tensor, Tensor], Tensor] = part(
        "(q [B,H,T,D], k [B,G,T,D]) -> q k^T / sqrt(D) [B,H,T,T], before the mask"
    )
    causal: Callable[[int], Tensor] = part("(T) -> [T,T] bool, True where a query (row) sees a key (column)")
    softmax: Callable[[Tensor, Tensor], Tensor] = part(
        "(scores [B,H,T,T], visible [T,T]) -> probabilities; a query that sees nothing has zeros"
    )
    mix: Callable[[Tensor, Tensor], Tensor] = part("(probs [B,H,T,T], v [B,G,T,D]) -> [B,H,T,D]")
    attention: Callable[[Tensor, Tensor, Tensor], Tensor] = part(
        "(q [B,H,T,D], k, v [B,G,T,D]) -> [B,H,T,D]: scores over sqrt(D), causal mask, softmax and mix as one operation"
    )
    residual: Callable[[Tensor, Tensor], Tensor] = part("(x, branch) -> x + branch [B,T,d]")
    gate: Callable[[Tensor, Tensor], Tensor] = part("(gate [B,T,f], up [B,T,f]) -> silu(gate) up [B,T,f]")
    loss: Callable[[Tensor, Tensor, Tensor], Tensor] = part(
        "(logits [B,T,V], labels, weights [B,T]) -> scalar, weighted mean over labels but -100"
    )
    sgd: Callable[[Tensor, Tensor, float], None] = part(
        "(parameter, gradient, lr): one step of gradient descent, in place"
    )
    optimizer: Callable[..., None] = part(
        "(params, grads, exp_avgs, exp_avg_sqs, steps, *, lr, beta1, beta2, epsilon, weight_decay): "
        "one AdamW update of the tensors in these lists, in place; steps are float32 counts of updates done"
    )
    dropout: Callable[[Tensor, float], Tensor] = part(
        "(x, share) -> x with that share of elements zero, the others scaled up"
    )
    shuffle: Callable[[int], Tensor] = part("(n) -> a random order of 0 … n-1")
    save: Callable[[dict[str, Any], Path], None] = part("(state, path): leave a checkpoint")
    load: Callable[[Path], dict[str, Any]] = part("(path) -> the state of a checkpoint, with the bits saved")
