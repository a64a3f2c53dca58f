"""What the torch side of the lab is made of: the units that people replace, and that a fault replaces.

A part is a plain function. X is [..., d], W [d, k], A [d, r], B [r, k]; labels and weights have X's leading axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labs.core.setting import part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import Tensor


def _part(doc: str) -> Any:
    return part(doc)


@dataclass(frozen=True)
class Parts:
    """The callables of one torch side; `lab run --swap NAME=FILE.py:FUNCTION` replaces one by the user's."""

    scale: Callable[[float, int, str], float] = part("(alpha, rank, scaling) -> the factor s of the branch")
    initialize_a: Callable[[Tensor, Tensor, str, float], Tensor] = part(
        "(uniform [d,r] on [0,1), normal [d,r], kind, std) -> A at the start; kind is kaiming or gaussian"
    )
    initialize_b: Callable[[Tensor], Tensor] = part("(normal [r,k]) -> B at the start: zero, whatever the draws say")
    framework_kaiming: Callable[[int, int], Tensor] = part("(d, r) -> A [d,r] by the framework's own initialiser")

    linear: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor] = part("(X, W, A, B, s) -> XW + s(XA)B")
    linear_detached: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor] = part(
        "(X, W, A, B, s) -> the same value; X gets no gradient through the branch"
    )
    branch: Callable[[Tensor, Tensor, Tensor], Tensor] = part("(X, A, B) -> (XA)B, the cheap way for few rows")
    branch_product: Callable[[Tensor, Tensor, Tensor], Tensor] = part("(X, A, B) -> X(AB), the other way")

    cross_entropy: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = part(
        "(Y, head [k,C], labels, weights) -> scalar: weighted mean over rows"
    )
    squared_error: Callable[[Tensor, Tensor, Tensor], Tensor] = part(
        "(Y, target, weights) -> scalar: half the weighted mean over rows of squared distances"
    )

    trainable: Callable[[], tuple[str, ...]] = part("() -> names that the optimizer may move: base, lora_a, lora_b")
    step: Callable[[Tensor, Tensor, float], None] = part(
        "(parameter, gradient, lr): one SGD step, in place, under a no_grad of its own"
    )
    save: Callable[[Mapping[str, Tensor], Path], None] = part("(factors, path): leave a checkpoint")
    load: Callable[[Path], dict[str, Tensor]] = part("(path) -> the factors of a checkpoint, with the bits saved")

    merge: Callable[[Tensor, Tensor, Tensor, float], Tensor] = part("(W, A, B, s) -> W + sAB, in W's dtype")
    unmerge: Callable[[Tensor, Tensor, Tensor, float], Tensor] = part("(merged, A, B, s) -> W again, in its dtype")
    quantize: Callable[[Tensor, int, int], tuple[Tensor, Tensor]] = part(
        "(W, bits, group) -> codes [d,k] int8, scales [d/group,k]: symmetric absmax along d, ties to even"
    )
    dequantize: Callable[[Tensor, Tensor, int], Tensor] = part("(codes, scales, group) -> W as the codes have it")
    merge_quantized: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor] = part(
        "(original W, dequantised W, A, B, s) -> bfloat16 weight; A and B were trained on the dequantised one"
    )
    survival: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = part(
        "(before, stored, after, change) -> scalar: share of the change that the weight in use (after) has kept"
    )
