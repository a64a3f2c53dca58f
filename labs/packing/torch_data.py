"""Stage `data`: what is cut, what is learned, what is split, before any gradient."""

from typing import Any

import torch
from torch import Tensor

from labs.core.place import Place
from labs.packing.config import Config
from labs.packing.parts import Parts
from labs.packing.torch_model import Document, Tensors, counted, documents, forward, packed

Items = dict[str, Any]


def data(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Truncation, emptied documents, turns, shards."""
    found: Items = {}
    for side in ("right", "left"):
        found |= _truncated(config, inputs, parts, side) | _prompted(config, inputs, parts, side)
    for turns in ("all", "final"):
        learned = parts.supervise(config.roles, turns)
        found[f"turns/{turns}/learned"] = learned
        found |= _single(config, inputs, parts, f"turns/{turns}", Document(inputs["conversation"], learned))
    return found | _sharded(config, inputs, parts)


def _truncated(config: Config, inputs: Tensors, parts: Parts, side: str) -> Items:
    each = [packed(config, [document], parts) for document in documents(config, inputs, parts, side)]
    return {
        f"truncate/{side}/ids": torch.cat([rows.ids[0] for rows in each]),
        f"truncate/{side}/targets": torch.cat([rows.targets[0] for rows in each]),
        f"truncate/{side}/labels": torch.stack([(rows.labels >= 0).sum() for rows in each]).sum(),
        f"truncate/{side}/count": torch.stack([counted(rows, parts) for rows in each]).sum(),
    }


def _prompted(config: Config, inputs: Tensors, parts: Parts, side: str) -> Items:
    """A prompt as long as the limit, and a completion behind it."""
    learned = torch.arange(config.limit + config.completion) >= config.limit
    document = Document(*parts.truncate(inputs["prompted"], learned, config.limit, side))
    found = _single(config, inputs, parts, f"prompted/{side}", document)
    return {**found, f"prompted/{side}/empty": parts.is_empty(found[f"prompted/{side}/count"])}


def _single(config: Config, inputs: Tensors, parts: Parts, prefix: str, document: Document) -> Items:
    """One document by itself, some of its tokens learned."""
    rows = packed(config, [document], parts)
    count = counted(rows, parts)
    loss = parts.mean(forward(config, inputs, rows, parts).losses.sum(), count)
    return {f"{prefix}/targets": rows.targets[0], f"{prefix}/count": count, f"{prefix}/loss": loss}


def _sharded(config: Config, inputs: Tensors, parts: Parts) -> Items:
    """The packed row in equal parts along the sequence; the loss is that of the whole row."""
    rows = packed(config, documents(config, inputs, parts, config.truncation), parts)
    targets = parts.shard(rows.labels, rows.segments, config.shards)  # [shards, n]
    kept = rows._replace(targets=targets.flatten()[: rows.ids.shape[1]].unsqueeze(0))
    counts = (targets >= 0).sum(1)
    total: Tensor = forward(config, inputs, kept, parts).losses.sum()
    return {"shards/targets": targets, "shards/count": counts, "shards/loss": parts.mean(total, counts.sum())}
