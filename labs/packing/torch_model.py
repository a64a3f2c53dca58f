"""The small causal model of the torch side, and the rows it reads. What can be swapped comes from `parts`."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from labs.packing.config import Config
from labs.packing.parts import Parts

Tensors = dict[str, Tensor]
T = TypeVar("T")

PARAMETERS = ("embedding", "w_q", "w_k", "w_v", "w_o", "head")
PADDING = -1


class Document(NamedTuple):
    """One document: its ids, and which of them are learned. [L] both."""

    ids: Tensor
    learned: Tensor


class Rows(NamedTuple):
    """What a collator hands to the model, and what follows from it. [B,T], the mask [B,T,T]."""

    ids: Tensor
    segments: Tensor
    labels: Tensor
    targets: Tensor
    positions: Tensor
    mask: Tensor

    @property
    def real(self) -> Tensor:
        """Where there is a token, not padding; in this order tokens stand document by document."""
        return self.segments != PADDING


class Pass(NamedTuple):
    """One forward pass: embedded input [B,T,d], rotated q and k [B,H,T,D], logits [B,T,V], losses [B,T]."""

    x: Tensor
    q: Tensor
    k: Tensor
    logits: Tensor
    losses: Tensor


def documents(config: Config, inputs: Tensors, parts: Parts, side: str) -> list[Document]:
    """Every document cut to the limit, all of it learned."""
    whole = torch.split(inputs["tokens"], list(config.lengths))
    return [Document(*parts.truncate(ids, torch.ones_like(ids, dtype=torch.bool), config.limit, side)) for ids in whole]


def padded(config: Config, documents: Sequence[Document], parts: Parts) -> Rows:
    """A row a document."""
    return _rows(config, parts, *parts.pad(*_columns(documents), config.pad_id))


def packed(config: Config, documents: Sequence[Document], parts: Parts) -> Rows:
    """All documents in one row."""
    return _rows(config, parts, *parts.pack(*_columns(documents)))


def _columns(documents: Sequence[Document]) -> tuple[list[Tensor], list[Tensor]]:
    return [document.ids for document in documents], [document.learned for document in documents]


def _rows(config: Config, parts: Parts, ids: Tensor, learned: Tensor, segments: Tensor) -> Rows:
    labels = parts.labels(ids, learned, config.pad_id)
    targets = parts.shift(labels, segments)
    return Rows(ids, segments, labels, targets, parts.positions(segments), parts.mask(segments))


def leaves(inputs: Tensors) -> Tensors:
    """Fresh copies of the parameters that autograd starts from."""
    return {name: inputs[name].detach().clone().requires_grad_() for name in PARAMETERS}


def forward(config: Config, leaves: Tensors, rows: Rows, parts: Parts) -> Pass:
    """Embedding, attention with rotary positions, a residual, head; x keeps its gradient."""
    x = F.embedding(rows.ids, leaves["embedding"])
    if x.requires_grad:
        x.retain_grad()
    q, k, v = (_heads(x @ leaves[name], config.heads) for name in ("w_q", "w_k", "w_v"))
    q, k = (parts.rope(rotated, rows.positions, config.rope_base) for rotated in (q, k))
    mixed = parts.attention(q, k, v, rows.mask).transpose(1, 2).flatten(2)  # [B, T, H·D]
    logits = (x + mixed @ leaves["w_o"]) @ leaves["head"]
    return Pass(x, q, k, logits, parts.losses(logits, rows.targets))


def _heads(x: Tensor, heads: int) -> Tensor:
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)  # [B, H, T, D]


def counted(rows: Rows, parts: Parts) -> Tensor:
    """What the loss of these rows is a mean of."""
    return parts.count(rows.labels, rows.targets)


def counted_by_row(rows: Rows, parts: Parts) -> Tensor:
    """The same for every row by itself, [B]."""
    pairs = zip(torch.split(rows.labels, 1), torch.split(rows.targets, 1), strict=True)
    return torch.stack([parts.count(labels, targets) for labels, targets in pairs])


def grouped(items: Sequence[T], sizes: Iterable[int]) -> list[Sequence[T]]:
    """Consecutive groups of these sizes."""
    left = iter(items)
    return [[next(left) for _ in range(size)] for size in sizes]
