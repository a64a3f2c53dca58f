"""The torch side's stages: what yields the items. Each uses only its parts; autograd differentiates everything."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from labs.core.place import Place
from labs.packing.config import Config
from labs.packing.parts import Parts
from labs.packing.torch_data import data
from labs.packing.torch_model import (
    PARAMETERS,
    Pass,
    Rows,
    Tensors,
    counted,
    documents,
    forward,
    leaves,
    packed,
    padded,
)
from labs.packing.torch_normalisers import accumulated, normalised
from labs.packing.torch_parts import PARTS
from labs.packing.torch_wrong import wrong
from labs.packing.torch_zero import unaffected, zero

__all__ = ["PARTS", "STAGES"]

# Imported once, before processes are forked: nothing but definitions.
PRELOAD = ("labs.packing.torch_impl", "labs.packing.torch_faults")

Items = dict[str, Any]


def alone_route(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Every document through the model by itself."""
    docs = documents(config, inputs, parts, config.truncation)
    each = [packed(config, [document], parts) for document in docs]
    items, _ = _route(config, inputs, parts, "alone", each)
    joined = {name: torch.cat([values[0] for values in column]) for name, column in _layout(each).items()}
    masks = {f"alone/mask/doc{i}": rows.mask[0] for i, rows in enumerate(each)}
    starts = torch.stack([parts.cu_seqlens(rows.segments) for rows in each])
    return {**items, **_named("alone", joined), **masks, "alone/cu_seqlens": starts}


def padded_route(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """A real batch: a row a document, filled up on the right."""
    rows = padded(config, documents(config, inputs, parts, config.truncation), parts)
    items, (run,) = _route(config, inputs, parts, "padded", [rows])
    if not rows.real.all():
        items["padded/padding/logits"] = run.logits[~rows.real]
        items["padded/padding/grad"] = _gradient(run)[~rows.real]
    layout = {name: column[0] for name, column in _layout([rows]).items()}
    return {**items, **_named("padded", layout), **_attention_items("padded", rows.mask, rows, parts)}


def packed_route(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """All documents in one row; leaves the updated parameters as a checkpoint."""
    rows = packed(config, documents(config, inputs, parts, config.truncation), parts)
    items, _ = _route(config, inputs, parts, "packed", [rows])
    updates = {
        optimizer: {n: items[key] for n in PARAMETERS if (key := f"packed/{optimizer}/{n}") in items}
        for optimizer in ("sgd", "adamw")
    }
    parts.save(updates, place.checkpoints / "parameters.pt")
    layout = {name: column[0][0] for name, column in _layout([rows]).items()}
    return {**items, **_named("packed", layout), **_attention_items("packed", rows.mask[0], rows, parts)}


def checkpoint(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """A new process reads what the packed route left."""
    found = parts.load(place.checkpoints / "parameters.pt")
    return {f"checkpoint/{optimizer}/{name}": p for optimizer, values in found.items() for name, p in values.items()}


def isolation(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Derivatives of each document's logits by the embedded inputs of the whole packed row."""
    rows = packed(config, documents(config, inputs, parts, config.truncation), parts)
    run = forward(config, leaves(inputs), rows, parts)
    owners = rows.segments[0]
    weighted = run.logits[0] * inputs["probe"][: len(owners)]
    inside, across = [], []
    for number in range(int(owners.max()) + 1):
        mine = owners == number
        (slope,) = torch.autograd.grad(weighted[mine].sum(), run.x, retain_graph=True)
        inside.append(slope[0, mine])
        across.append(slope[0, ~mine])
    return {"isolation/inside": torch.cat(inside), "isolation/across": torch.cat(across)}


STAGES = {
    "alone": alone_route,
    "padded": padded_route,
    "packed": packed_route,
    "checkpoint": checkpoint,
    "isolation": isolation,
    "data": data,
    "zero": zero,
    "unaffected": unaffected,
    "normalised": normalised,
    "accumulated": accumulated,
    "wrong": wrong,
}


def _route(
    config: Config, inputs: Tensors, parts: Parts, prefix: str, batches: Sequence[Rows]
) -> tuple[Items, list[Pass]]:
    """Forward, loss, backward and one update over all batches: what the three routes share."""
    own = leaves(inputs)
    runs = [forward(config, own, rows, parts) for rows in batches]
    total = torch.stack([run.losses.sum() for run in runs]).sum()
    count = torch.stack([counted(rows, parts) for rows in batches]).sum()
    loss = parts.mean(total, count)
    loss.backward()  # type: ignore[no-untyped-call]
    shared = {
        **_by_token(runs, batches),
        "loss_sum": total,
        "count": count,
        "loss": loss,
        **{f"grad/{name}": leaf.grad for name, leaf in own.items() if leaf.grad is not None},
        **_updated(config, own, parts),
    }
    return _named(prefix, shared), runs


def _by_token(runs: Sequence[Pass], batches: Sequence[Rows]) -> Items:
    """What every token has, document by document; logits apart for each document."""
    pairs = list(zip(runs, batches, strict=True))
    owners = [rows.segments[rows.real] for rows in batches]
    lengths = [int(size) for owner in owners for size in torch.bincount(owner)]
    logits = torch.split(torch.cat([run.logits[rows.real] for run, rows in pairs]), lengths)
    return {
        "q": torch.cat([run.q.transpose(1, 2)[rows.real] for run, rows in pairs]),  # [N, H, D]
        "k": torch.cat([run.k.transpose(1, 2)[rows.real] for run, rows in pairs]),
        "grad/x": torch.cat([_gradient(run)[rows.real] for run, rows in pairs]),
        **{f"logits/doc{i}": part for i, part in enumerate(logits)},
    }


def _gradient(run: Pass) -> Tensor:
    assert run.x.grad is not None  # the residual reaches it on every path
    return run.x.grad


def _updated(config: Config, own: Tensors, parts: Parts) -> Items:
    """Parameters after one update, of each optimizer from the same start."""
    found: Items = {}
    for name, leaf in own.items():
        if leaf.grad is None:
            continue
        stepped, decayed = (leaf.detach().clone() for _ in range(2))
        parts.sgd(stepped, leaf.grad, config.sgd_lr)
        parts.adamw(decayed, leaf.grad, config.adamw_lr, config.eps, config.weight_decay)
        found |= {f"sgd/{name}": stepped, f"adamw/{name}": decayed}
    return found


def _layout(batches: Sequence[Rows]) -> dict[str, list[Tensor]]:
    return {
        "ids": [rows.ids for rows in batches],
        "targets": [rows.targets for rows in batches],
        "supervised": [rows.targets >= 0 for rows in batches],
        "positions": [rows.positions for rows in batches],
    }


def _attention_items(prefix: str, mask: Tensor, rows: Rows, parts: Parts) -> Items:
    return {f"{prefix}/mask": mask, f"{prefix}/cu_seqlens": parts.cu_seqlens(rows.segments)}


def _named(prefix: str, tensors: Items) -> Items:
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}
