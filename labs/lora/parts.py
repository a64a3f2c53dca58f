"""What the torch side of the lab is made of: the units that people replace, and that a fault replaces.

A part is a plain function. X is [..., d], W [d, k], A [d, r], B [r, k]; labels and weights have X's leading axes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import Tensor


@dataclass(frozen=True)
class Parts:
    """The callables of one torch side; `lab run --swap NAME=FILE.py:FUNCTION` replaces one by the user's."""

    scale: Callable[[float, int, str], float] = field(
        metadata={"doc": "(alpha, rank, scaling) -> the factor s of the branch"}
    )
    initialize_a: Callable[[Tensor, Tensor, str, float], Tensor] = field(
        metadata={
            "doc": "(uniform [d,r] on [0,1), normal [d,r], kind, std) -> A at the start; kind is kaiming or gaussian"
        }
    )
    initialize_b: Callable[[Tensor], Tensor] = field(
        metadata={"doc": "(normal [r,k]) -> B at the start, whatever the draws say"}
    )
    framework_kaiming: Callable[[int, int], Tensor] = field(
        metadata={"doc": "(d, r) -> A [d,r] from the framework's own initialiser"}
    )
    linear: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor] = field(
        metadata={"doc": "(X, W, A, B, s) -> XW + s(XA)B"}
    )
    linear_detached: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor] = field(
        metadata={"doc": "(X, W, A, B, s) -> the same value; X gets no gradient through the branch"}
    )
    cross_entropy: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = field(
        metadata={"doc": "(Y [...,k], head [k,C], labels, weights) -> scalar, weighted mean over rows"}
    )
    squared_error: Callable[[Tensor, Tensor, Tensor], Tensor] = field(
        metadata={"doc": "(Y [...,k], target [...,k], weights) -> scalar, half the weighted mean of squared distances"}
    )
    trainable: Callable[[], tuple[str, ...]] = field(
        metadata={"doc": "() -> names that the optimizer may move: base, lora_a, lora_b"}
    )
    step: Callable[[Tensor, Tensor, float], None] = field(
        metadata={"doc": "(parameter, gradient, lr): one SGD step, in place"}
    )
    save: Callable[[Mapping[str, Tensor], Path], None] = field(metadata={"doc": "(factors, path): leave a checkpoint"})
    load: Callable[[Path], dict[str, Tensor]] = field(
        metadata={"doc": "(path) -> the factors of a checkpoint, with the bits saved"}
    )
    merge: Callable[[Tensor, Tensor, Tensor, float], Tensor] = field(
        metadata={"doc": "(W, A, B, s) -> W + sAB in W's dtype"}
    )
    unmerge: Callable[[Tensor, Tensor, Tensor, float], Tensor] = field(
        metadata={"doc": "(merged, A, B, s) -> W again, in W's dtype"}
    )
    quantize: Callable[[Tensor, int, int], tuple[Tensor, Tensor]] = field(
        metadata={
            "doc": "(W, bits, group) -> codes [d,k] int8, scales [d/group,k]: symmetric absmax along d, ties to even"
        }
    )
    dequantize: Callable[[Tensor, Tensor, int], Tensor] = field(metadata={"doc": "(codes, scales, group) -> [d,k]"})
    merge_quantized: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor] = field(
        metadata={
            "doc": "(original W, dequantised W, A, B, s) -> merged weight as bfloat16; A and B were trained on the dequantised"
        }
    )
    survival: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = field(
        metadata={
            "doc": "(before, stored, after, change) -> scalar: share of the change that the weight in use (after) has kept"
        }
    )
    branch: Callable[[Tensor, Tensor, Tensor], Tensor] = field(
        metadata={"doc": "(X, A, B) -> (XA)B, the cheap way for few rows"}
    )
    branch_product: Callable[[Tensor, Tensor, Tensor], Tensor] = field(
        metadata={"doc": "(X, A, B) -> X(AB), the other way"}
    )
