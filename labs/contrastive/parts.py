"""What the torch side of the lab is made of: the units that people replace, and that a fault replaces.

A part is a plain function. n is the number of rows on this rank, counts what all ranks have, N their sum, D the columns
of the features. Ranks are those of the default process group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labs.core.setting import part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from torch import Tensor
    from torch.nn import Module

    Counts = list[int]
    Pairs = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Parts:
    """The callables of one torch side; `lab run --swap NAME=FILE.py:FUNCTION` replaces one by the user's."""

    encode: Callable[[Tensor, Tensor], Tensor] = part("(x [n,d], w [d,D]) -> features [n,D], rows of length 1")
    scale: Callable[[Tensor], Tensor] = part("(log_scale []) -> the factor on the cosines, with its gradient")
    exchange_counts: Callable[[int], Counts] = part("(n) -> counts of all ranks, in rank order")
    labels: Callable[[Counts, int], Tensor] = part(
        "(counts, rank) -> [n] int64: where each own row's partner is among the gathered rows"
    )
    weight: Callable[[str, Counts, int], float] = part(
        "(kind, counts, rank) -> factor on this rank's loss; kind is global or local"
    )
    gather: Callable[[Tensor, Counts, int], Tensor] = part(
        "(x [n,k], counts, rank) -> [N,k] in rank order, with gradient to every rank's x"
    )
    gather_detached: Callable[[Tensor, Counts, int], Tensor] = part(
        "(x [n,k], counts, rank) -> the same rows; the own ones alone have a gradient"
    )
    framework_gather: Callable[[Tensor, Counts, int], Tensor] = part(
        "(x [n,k], counts, rank) -> as gather, by what torch offers itself; equal counts only"
    )
    global_loss: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] = part(
        "(f_a [n,D], f_b, keys_a [N,D], keys_b, factor, own [n]) -> symmetric InfoNCE of all keys_a against all keys_b"
    )
    local_loss: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] = part(
        "(the same) -> symmetric InfoNCE of the own rows f_a, f_b against all keys; their labels are `own`"
    )
    micro_batches: Callable[[int, int], list[slice]] = part(
        "(n, size) -> the slices of consecutive rows that micro-batches take"
    )
    replay: Callable[[Module, Pairs, Pairs, Tensor], None] = part(
        "(model, inputs, gradients, factor gradient): the second pass of cached micro-batches; gradients of "
        "each micro-batch's features and of the factor go back through the model, averaged over ranks at the end"
    )
    average: Callable[[Module], Any] = part(
        "(module) -> the module wrapped so that backward averages gradients over ranks; has .module and "
        ".no_sync() as DistributedDataParallel has"
    )
    step: Callable[[Tensor, Tensor, float], None] = part(
        "(parameter, gradient, lr): one SGD step, in place, under a no_grad of its own"
    )
    save: Callable[[Mapping[str, Tensor], Path], None] = part("(parameters, path): a checkpoint")
    load: Callable[[Path], dict[str, Tensor]] = part("(path) -> the parameters of a checkpoint, with the bits saved")
