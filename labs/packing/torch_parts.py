"""The parts of the torch side, in plain torch. Signatures and meanings are in parts.py."""
# ruff: noqa: D103 (a docstring each would repeat parts.py)

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

# The functions: constructing an optimizer would import the compiler, two seconds.
from torch.optim.adamw import adamw as torch_adamw
from torch.optim.sgd import sgd as torch_sgd

from labs.packing.parts import Parts

IGNORE = -100
PADDING = -1


def truncate(ids: Tensor, learned: Tensor, limit: int, side: str) -> tuple[Tensor, Tensor]:
    kept = slice(None, limit) if side == "right" else slice(-limit, None)
    return ids[kept], learned[kept]


def supervise(roles: str, turns: str) -> Tensor:
    spoken = torch.tensor([role == "a" for role in roles])
    if turns == "all":
        return spoken
    starts = spoken & ~torch.cat([spoken.new_zeros(1), spoken[:-1]])
    turn = starts.cumsum(0)  # numbers each assistant turn from its first token on
    return spoken & (turn == turn[-1])


def pad(ids: Sequence[Tensor], learned: Sequence[Tensor], pad_id: int) -> tuple[Tensor, Tensor, Tensor]:
    owners = [torch.full_like(row, number) for number, row in enumerate(ids)]
    return _filled(ids, pad_id), _filled(learned, fill=False), _filled(owners, PADDING)


def _filled(rows: Sequence[Tensor], fill: int) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.stack([F.pad(row, (0, width - len(row)), value=fill) for row in rows])


def pack(ids: Sequence[Tensor], learned: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    owners = [torch.full_like(row, number) for number, row in enumerate(ids)]
    row, marks, segments = (torch.cat(list(rows)).unsqueeze(0) for rows in (ids, learned, owners))
    return row, marks, segments


def labels(ids: Tensor, learned: Tensor, pad_id: int) -> Tensor:
    del pad_id  # end-of-sequence has the same id, and is learned
    return ids.masked_fill(~learned, IGNORE)


def shift(labels: Tensor, segments: Tensor) -> Tensor:
    following = torch.cat([labels[:, 1:], labels.new_full((len(labels), 1), IGNORE)], 1)
    last = torch.cat([segments[:, 1:] != segments[:, :-1], segments.new_ones(len(segments), 1, dtype=torch.bool)], 1)
    return following.masked_fill(last, IGNORE)


def shard(labels: Tensor, segments: Tensor, shards: int) -> Tensor:
    targets = shift(labels, segments)[0]
    return F.pad(targets, (0, -len(targets) % shards), value=IGNORE).view(shards, -1)


def positions(segments: Tensor) -> Tensor:
    place = torch.arange(segments.shape[1]).expand_as(segments)
    first = torch.cat([segments.new_ones(len(segments), 1, dtype=torch.bool), segments[:, 1:] != segments[:, :-1]], 1)
    start = place.masked_fill(~first, 0).cummax(1).values  # of the run that a token is in
    return (place - start).masked_fill(segments == PADDING, 0)


def mask(segments: Tensor) -> Tensor:
    same = segments.unsqueeze(2) == segments.unsqueeze(1)  # [B, T, T]
    real = (segments != PADDING).unsqueeze(2)
    return (same & real).tril()


def cu_seqlens(segments: Tensor) -> Tensor:
    sizes = torch.bincount(segments[segments != PADDING])
    return F.pad(sizes.cumsum(0), (1, 0)).to(torch.int32)


def rope(x: Tensor, positions: Tensor, base: float) -> Tensor:
    half = x.shape[-1] // 2
    frequencies = base ** (torch.arange(half, dtype=x.dtype) / -half)  # [D/2]
    angle = (positions.unsqueeze(-1) * frequencies).unsqueeze(1)  # [B, 1, T, D/2]
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + turned * sin


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    hidden = ~mask.unsqueeze(1)  # the same for every head
    # The least number, not minus infinity: a row that sees nothing would be NaN, in its gradient too.
    weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(hidden, 0.0)
    return weights @ v


def losses(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=IGNORE, reduction="none")


def count(labels: Tensor, targets: Tensor) -> Tensor:
    del labels  # the first of a document has no predictor
    return (targets != IGNORE).sum()


def mean(total: Tensor, count: Tensor) -> Tensor:
    return total / count.clamp(min=1)


def is_empty(count: Tensor) -> Tensor:
    return count == 0


def mean_of_means(totals: Tensor, counts: Tensor) -> Tensor:
    present = counts > 0
    return (totals[present] / counts[present]).mean()


def accumulation(total: Tensor, count: Tensor, window: Tensor, full: int) -> Tensor:
    del count, full  # each micro-batch weighs as much as it has targets, in a short window too
    return mean(total, window.sum())


def rank_loss(total: Tensor, count: Tensor, everywhere: Tensor, ranks: int) -> Tensor:
    del count  # averaging over ranks divides by their number, not by their counts
    return total * ranks / everywhere.clamp(min=1)


def sgd(parameter: Tensor, gradient: Tensor, lr: float) -> None:
    with torch.no_grad():
        torch_sgd(
            [parameter],
            [gradient],
            [None],
            foreach=False,
            lr=lr,
            momentum=0.0,
            dampening=0.0,
            weight_decay=0.0,
            nesterov=False,
            maximize=False,
        )


def adamw(parameter: Tensor, gradient: Tensor, lr: float, eps: float, weight_decay: float) -> None:
    with torch.no_grad():
        torch_adamw(
            [parameter],
            [gradient],
            [torch.zeros_like(parameter)],
            [torch.zeros_like(parameter)],
            [],
            [torch.zeros(())],
            foreach=False,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=lr,
            weight_decay=weight_decay,
            eps=eps,
            maximize=False,
        )


def save(parameters: Mapping[str, Mapping[str, Tensor]], path: Path) -> None:
    torch.save({optimizer: dict(values) for optimizer, values in parameters.items()}, path)


def load(path: Path) -> Mapping[str, Mapping[str, Tensor]]:
    parameters: dict[str, dict[str, Tensor]] = torch.load(path, weights_only=True)
    return parameters


PARTS = Parts(
    truncate=truncate,
    supervise=supervise,
    pad=pad,
    pack=pack,
    labels=labels,
    shift=shift,
    shard=shard,
    positions=positions,
    mask=mask,
    cu_seqlens=cu_seqlens,
    rope=rope,
    attention=attention,
    losses=losses,
    count=count,
    mean=mean,
    is_empty=is_empty,
    mean_of_means=mean_of_means,
    accumulation=accumulation,
    rank_loss=rank_loss,
    sgd=sgd,
    adamw=adamw,
    save=save,
    load=load,
)
