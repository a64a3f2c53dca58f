"""Stages `normalised` and `accumulated`: by what a sum of losses is divided, on one device, over ranks, over steps."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from labs.core.place import Place
from labs.packing.config import Config
from labs.packing.parts import Parts
from labs.packing.torch_model import (
    PARAMETERS,
    Document,
    Rows,
    Tensors,
    counted,
    counted_by_row,
    documents,
    forward,
    grouped,
    leaves,
    packed,
    padded,
)

Items = dict[str, Any]


def normalised(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Three means of the same token losses; the gradient of the embedded input shows what each token weighs."""
    rows = padded(config, documents(config, inputs, parts, config.truncation), parts)
    run = forward(config, leaves(inputs), rows, parts)
    sums = run.losses.sum(1)  # a row is a document
    counts = counted_by_row(rows, parts)
    sizes = list(config.micro_batches)
    totals, numbers = (torch.stack([part.sum() for part in torch.split(values, sizes)]) for values in (sums, counts))
    means = {
        "token_mean": parts.mean(sums.sum(), counts.sum()),
        "document_mean": parts.mean_of_means(sums, counts),
        "micro_mean": parts.mean_of_means(totals, numbers),
    }
    items: Items = {f"normaliser/{name}/loss": loss for name, loss in means.items()}
    for name, loss in means.items():
        (slope,) = torch.autograd.grad(loss, run.x, retain_graph=True)
        items[f"normaliser/{name}/grad/x"] = slope[rows.real]
    return items


def accumulated(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Documents spread over ranks, over micro-batches of one update, over micro-batches of several."""
    docs = documents(config, inputs, parts, config.truncation)
    micro = [packed(config, group, parts) for group in grouped(docs, config.micro_batches)]
    windows = [micro[i : i + config.window] for i in range(0, len(micro), config.window)]
    loss, slopes = _update(config, inputs, parts, micro, len(micro))
    each = [_update(config, inputs, parts, window, config.window) for window in windows]
    return {
        **_ranks(config, inputs, parts, docs),
        "accumulate/loss": loss,
        **{f"accumulate/grad/{name}": slope for name, slope in slopes.items()},
        "windows/loss": torch.stack([loss for loss, _ in each]),
        **{
            f"windows/grad/{name}": torch.stack([slopes[name] for _, slopes in each])
            for name in PARAMETERS
            if all(name in slopes for _, slopes in each)
        },
    }


def _update(
    config: Config, inputs: Tensors, parts: Parts, window: Sequence[Rows], full: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """What the micro-batches of one update leave: the sum of what they back-propagate, and the gradients."""
    own = leaves(inputs)
    counts = torch.stack([counted(rows, parts) for rows in window])
    losses = []
    for rows, count in zip(window, counts, strict=True):
        loss = parts.accumulation(forward(config, own, rows, parts).losses.sum(), count, counts, full)
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.detach())
    return torch.stack(losses).sum(), {name: leaf.grad for name, leaf in own.items() if leaf.grad is not None}


def _ranks(config: Config, inputs: Tensors, parts: Parts, docs: Sequence[Document]) -> Items:
    """Each rank differentiates its own loss; the gradients are averaged, as data parallelism does."""
    own, world = leaves(inputs), len(config.ranks)
    shares = [packed(config, group, parts) for group in grouped(docs, config.ranks)]
    counts = torch.stack([counted(rows, parts) for rows in shares])
    losses = torch.stack(
        [
            parts.rank_loss(forward(config, own, rows, parts).losses.sum(), count, counts.sum(), world)
            for rows, count in zip(shares, counts, strict=True)
        ]
    )
    slopes = [torch.autograd.grad(loss, list(own.values()), retain_graph=True) for loss in losses]
    averaged = {name: torch.stack(column).mean(0) for name, column in zip(own, zip(*slopes, strict=True), strict=True)}
    return {
        "ranks/loss": losses,
        "ranks/mean": losses.mean(),
        **{f"ranks/grad/{name}": slope for name, slope in averaged.items()},
    }
