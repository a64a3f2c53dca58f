"""The faulty parts: what people really wrote. controls.py says what is wrong with each and where it was seen."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from labs.packing import torch_parts as right
from labs.packing.torch_wrong import mask_leak, positions_continue, shift_again

__all__ = ["mask_leak", "positions_continue"]


def truncate_right_always(ids: Tensor, learned: Tensor, limit: int, side: str) -> tuple[Tensor, Tensor]:
    return right.truncate(ids, learned, limit, "right")


def truncate_one_short(ids: Tensor, learned: Tensor, limit: int, side: str) -> tuple[Tensor, Tensor]:
    return right.truncate(ids, learned, limit - 1, side)


def truncate_labels_elsewhere(ids: Tensor, learned: Tensor, limit: int, side: str) -> tuple[Tensor, Tensor]:
    other = "left" if side == "right" else "right"
    return right.truncate(ids, learned, limit, side)[0], right.truncate(ids, learned, limit, other)[1]


def supervise_until_user(roles: str, turns: str) -> Tensor:
    if turns == "final":
        return right.supervise(roles, turns)
    answered = torch.tensor(["a" in roles[: i + 1] for i in range(len(roles))])
    return answered & torch.tensor([role != "u" for role in roles])


def supervise_every_turn(roles: str, turns: str) -> Tensor:
    return right.supervise(roles, "all")


def pad_learned(ids: Sequence[Tensor], learned: Sequence[Tensor], pad_id: int) -> tuple[Tensor, Tensor, Tensor]:
    rows, marks, segments = right.pad(ids, learned, pad_id)
    return rows, marks | (segments == right.PADDING), segments


def pack_without_boundaries(ids: Sequence[Tensor], learned: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    row, marks, segments = right.pack(ids, learned)
    return row, marks, torch.zeros_like(segments)


def labels_not_padding(ids: Tensor, learned: Tensor, pad_id: int) -> Tensor:
    return right.labels(ids, learned, pad_id).masked_fill(ids == pad_id, right.IGNORE)


def shift_across(labels: Tensor, segments: Tensor) -> Tensor:
    return shift_again(labels)


def shard_before_shift(labels: Tensor, segments: Tensor, shards: int) -> Tensor:
    missing = -labels.shape[1] % shards
    parts = F.pad(labels, (0, missing), value=right.IGNORE).view(shards, -1)
    owners = F.pad(segments, (0, missing), value=right.PADDING).view(shards, -1)
    return right.shift(parts, owners)


def mask_not_causal(segments: Tensor) -> Tensor:
    mask = right.mask(segments)
    return mask | mask.transpose(1, 2)


def positions_from_one(segments: Tensor) -> Tensor:
    return right.positions(segments) + (segments != right.PADDING).long()


def cu_seqlens_without_start(segments: Tensor) -> Tensor:
    return right.cu_seqlens(segments)[1:]


def rope_neighbours(x: Tensor, positions: Tensor, base: float) -> Tensor:
    halves = torch.cat([x[..., 0::2], x[..., 1::2]], -1)
    turned = right.rope(halves, positions, base)
    return torch.stack(turned.chunk(2, -1), -1).flatten(-2)


def attention_without_padding(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    causal = torch.ones_like(mask).tril()
    return right.attention(q, k, v, causal if mask.any(-1).all() else mask)


def attention_minus_infinity(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return scores.masked_fill(~mask.unsqueeze(1), -math.inf).softmax(-1) @ v


def losses_shifted_again(logits: Tensor, targets: Tensor) -> Tensor:
    return right.losses(logits, shift_again(targets))


def count_labels(labels: Tensor, targets: Tensor) -> Tensor:
    return (labels != right.IGNORE).sum()


def count_tokens(labels: Tensor, targets: Tensor) -> Tensor:
    return torch.tensor(targets.numel())


def mean_unguarded(total: Tensor, count: Tensor) -> Tensor:
    return total / count


def mean_constant(total: Tensor, count: Tensor) -> Tensor:
    return total / count if count > 0 else torch.zeros_like(total.detach())


def never_empty(count: Tensor) -> Tensor:
    return torch.zeros_like(count, dtype=torch.bool)


def mean_over_empty(totals: Tensor, counts: Tensor) -> Tensor:
    return (totals / counts.clamp(min=1)).mean()


def accumulate_means(total: Tensor, count: Tensor, window: Tensor, full: int) -> Tensor:
    return right.mean(total, count) / len(window)


def accumulate_undivided(total: Tensor, count: Tensor, window: Tensor, full: int) -> Tensor:
    return right.mean(total, count)


def accumulate_full_window(total: Tensor, count: Tensor, window: Tensor, full: int) -> Tensor:
    return right.mean(total, window.sum()) * len(window) / full


def rank_mean(total: Tensor, count: Tensor, everywhere: Tensor, ranks: int) -> Tensor:
    return right.mean(total, count)


def adamw_decay_in_gradient(parameter: Tensor, gradient: Tensor, lr: float, eps: float, weight_decay: float) -> None:
    right.adamw(parameter, gradient + weight_decay * parameter, lr, eps, 0.0)


def save_as_float32(parameters: Mapping[str, Mapping[str, Tensor]], path: Path) -> None:
    right.save({name: {key: p.float() for key, p in values.items()} for name, values in parameters.items()}, path)


def load_as_float64(path: Path) -> Mapping[str, Mapping[str, Tensor]]:
    return {name: {key: p.double() for key, p in values.items()} for name, values in right.load(path).items()}
