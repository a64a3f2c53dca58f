"""Documents, labels and rows by hand: what is cut, what is learned, where it stands and what it sees."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from labs.core.lab import Array, Arrays
from labs.kernels import attention
from labs.packing.config import Config

T = TypeVar("T")

IGNORE = -100  # the label of a token that is not learned


def documents(config: Config, tokens: Array, side: str) -> list[Array]:
    """The ids of every document, cut to the limit."""
    ends = np.cumsum(config.lengths)
    return [cut(ids, config.limit, side) for ids in np.split(tokens, ends[:-1])]


def cut(values: Array, limit: int, side: str) -> Array:
    """At most `limit` values: the first ones when the right side goes, the last ones when the left side does."""
    return values[:limit] if side == "right" else values[max(0, len(values) - limit) :]


def targets(labels: Array) -> Array:
    """What each token of one document predicts: the next one's label. The first label has no predictor."""
    return np.append(labels[1:], IGNORE)


def count(*rows: Array) -> Array:
    """How many targets there are in all."""
    return np.asarray(sum(int(np.sum(row != IGNORE)) for row in rows))


def learned_turns(roles: str, which: str) -> Array:
    """Which tokens of a conversation are learned: those of every assistant turn, or of the final one. bool [L]."""
    spoken = np.array([role == "a" for role in roles])
    if which == "final":
        end = roles.rindex("a") + 1
        start = len(roles[:end].rstrip("a"))
        spoken[:start] = False
    return spoken


def grouped(items: Sequence[T], sizes: Sequence[int]) -> list[list[T]]:
    """Consecutive groups of these sizes."""
    ends = np.cumsum(sizes)
    return [list(items[end - size : end]) for size, end in zip(sizes, ends, strict=True)]


def alone(docs: Sequence[Array]) -> Arrays:
    """Every document a row of its own; what is one value a token is joined, masks [L,L] are not."""
    return {
        "ids": np.concatenate(docs),
        **_supervision(np.concatenate([targets(ids) for ids in docs])),
        "positions": np.concatenate([np.arange(len(ids)) for ids in docs]),
        **{f"mask/doc{i}": attention.causal(len(ids), len(ids)) for i, ids in enumerate(docs)},
        "cu_seqlens": np.array([[0, len(ids)] for ids in docs], np.int32),
    }


def padded(docs: Sequence[Array], pad_id: int) -> Arrays:
    """A row a document, padded on the right to the longest: [B,T]. Padding sees nothing and is not seen."""
    width = max(map(len, docs))
    rows = {
        "ids": np.full((len(docs), width), pad_id),
        "targets": np.full((len(docs), width), IGNORE),
        "positions": np.zeros((len(docs), width), np.int64),
    }
    mask = np.zeros((len(docs), width, width), bool)
    for i, ids in enumerate(docs):
        rows["ids"][i, : len(ids)] = ids
        rows["targets"][i, : len(ids)] = targets(ids)
        rows["positions"][i, : len(ids)] = np.arange(len(ids))
        mask[i, : len(ids), : len(ids)] = attention.causal(len(ids), len(ids))
    return {**rows, **_supervision(rows["targets"]), "mask": mask, "cu_seqlens": _cumulative(docs)}


def packed(docs: Sequence[Array]) -> Arrays:
    """All documents in one row [N], the mask block-diagonal."""
    owner = np.repeat(np.arange(len(docs)), [len(ids) for ids in docs])
    row = alone(docs)
    return {
        **{name: row[name] for name in ("ids", "targets", "supervised", "positions")},
        "mask": attention.causal(len(owner), len(owner)) & attention.same_document(owner, owner),
        "cu_seqlens": _cumulative(docs),
    }


def sharded(row_targets: Array, shards: int) -> Array:
    """The targets of one row in equal parts along the sequence, filled up at the end: [shards, n]."""
    missing = -len(row_targets) % shards
    return np.append(row_targets, np.full(missing, IGNORE)).reshape(shards, -1)


def _supervision(rows: Array) -> Arrays:
    return {"targets": rows, "supervised": rows != IGNORE}


def _cumulative(docs: Sequence[Array]) -> Array:
    return np.cumsum([0, *map(len, docs)]).astype(np.int32)
