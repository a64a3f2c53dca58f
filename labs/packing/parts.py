"""What the torch side of the lab is made of: the units that people replace, and that a fault replaces.

A part is a plain function. Rows are [B,T]: one document a row (padded), or all of them in one (packed). `segments`
[B,T] says whose token each is: the number of its document, -1 for padding. A label belongs to its own token, a target
to the token that predicts it; -100 stands for none. q, k, v are [B,H,T,D].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labs.core.setting import part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor


@dataclass(frozen=True)
class Parts:
    """The callables of one torch side; `lab run --swap NAME=FILE.py:FUNCTION` replaces one by the user's."""

    truncate: Callable[[Tensor, Tensor, int, str], tuple[Tensor, Tensor]] = part(
        "(ids [L], learned [L], limit, side) -> both cut on the side: right or left"
    )
    supervise: Callable[[str, str], Tensor] = part(
        "(roles, turns) -> learned [L] bool; a letter a token; turns is all or final"
    )
    pad: Callable[[Sequence[Tensor], Sequence[Tensor], int], tuple[Tensor, Tensor, Tensor]] = part(
        "(ids, learned of each document, pad id) -> ids, learned, segments [B,T], filled on the right"
    )
    pack: Callable[[Sequence[Tensor], Sequence[Tensor]], tuple[Tensor, Tensor, Tensor]] = part(
        "(ids, learned of each document) -> ids, learned, segments [1,N], nothing between documents"
    )
    labels: Callable[[Tensor, Tensor, int], Tensor] = part(
        "(ids, learned, pad id) -> labels: the id where it is learned"
    )
    shift: Callable[[Tensor, Tensor], Tensor] = part(
        "(labels, segments) -> targets: the next token's label, never another document's"
    )
    shard: Callable[[Tensor, Tensor, int], Tensor] = part(
        "(labels [1,N], segments [1,N], shards) -> targets [shards,n], filled up at the end"
    )
    positions: Callable[[Tensor], Tensor] = part("(segments) -> positions, from 0 in every document; 0 for padding")
    mask: Callable[[Tensor], Tensor] = part(
        "(segments) -> [B,T,T] bool: query i sees key j; padding sees nothing and is not seen"
    )
    cu_seqlens: Callable[[Tensor], Tensor] = part(
        "(segments) -> int32 [documents+1]: where each document starts, and the end"
    )
    rope: Callable[[Tensor, Tensor, float], Tensor] = part(
        "(x [B,H,T,D], positions, base) -> rotated, element i with element i + D/2"
    )
    attention: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = part(
        "(q, k, v [B,H,T,D], mask) -> [B,H,T,D], scaled by 1/sqrt(D); a query that sees nothing gets 0"
    )
    losses: Callable[[Tensor, Tensor], Tensor] = part(
        "(logits [B,T,V], targets) -> cross-entropy of every token, 0 without a target"
    )
    count: Callable[[Tensor, Tensor], Tensor] = part(
        "(labels, targets) -> int64 scalar: how many tokens the loss is a mean of"
    )
    mean: Callable[[Tensor, Tensor], Tensor] = part(
        "(loss sum, count) -> loss; without targets 0, still connected to the graph"
    )
    is_empty: Callable[[Tensor], Tensor] = part("(count) -> bool: reports a document that nothing can be learned from")
    mean_of_means: Callable[[Tensor, Tensor], Tensor] = part(
        "(loss sums [n], counts [n]) -> mean of the means of the groups that have targets"
    )
    accumulation: Callable[[Tensor, Tensor, Tensor, int], Tensor] = part(
        "(loss sum, count, counts of the window [n], full window) -> what a micro-batch back-propagates"
    )
    rank_loss: Callable[[Tensor, Tensor, Tensor, int], Tensor] = part(
        "(loss sum, count, global count, ranks) -> a rank's loss; its gradients will be averaged"
    )
    sgd: Callable[[Tensor, Tensor, float], None] = part("(parameter, gradient, lr): one update, in place")
    adamw: Callable[[Tensor, Tensor, float, float, float], None] = part(
        "(parameter, gradient, lr, eps, weight decay): the first update, in place; its betas cancel"
    )
    save: Callable[[Mapping[str, Mapping[str, Tensor]], Path], None] = part(
        "(parameters by optimizer, path): leave a checkpoint"
    )
    load: Callable[[Path], Mapping[str, Mapping[str, Tensor]]] = part(
        "(path) -> the parameters of a checkpoint, with the bits saved"
    )
