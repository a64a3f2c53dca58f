"""Stages `zero` and `unaffected`: nothing to learn in the whole batch, or in rows that stand beside others."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)

from labs.core.place import Place
from labs.packing.config import Config
from labs.packing.parts import Parts
from labs.packing.torch_model import (
    Document,
    Tensors,
    counted,
    counted_by_row,
    documents,
    forward,
    leaves,
    packed,
    padded,
)

Items = dict[str, Any]


def zero(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """No token is learned; what the framework's own mean and its fused attention make of nothing is stated beside."""
    docs = documents(config, inputs, parts, config.truncation)
    unlearned = [Document(document.ids, torch.zeros_like(document.learned)) for document in docs]
    rows, own = packed(config, unlearned, parts), leaves(inputs)
    run = forward(config, own, rows, parts)
    count = counted(rows, parts)
    loss = parts.mean(run.losses.sum(), count)
    if loss.requires_grad:
        loss.backward()  # type: ignore[no-untyped-call]
    slopes = {"x": None if run.x.grad is None else run.x.grad[0], **{name: leaf.grad for name, leaf in own.items()}}
    plain = F.cross_entropy(run.logits.transpose(1, 2), rows.targets)
    return {
        "zero/count": count,
        "zero/loss": loss,
        "zero/connected": loss.requires_grad,
        "zero/framework_mean_is_nan": plain.isnan(),
        **{f"zero/grad/{name}": slope for name, slope in slopes.items() if slope is not None},
        "facts/masked_row_is_nan": _masked_row_is_nan(),
    }


def _masked_row_is_nan() -> bool:
    q = torch.ones(1, 1, 2, 2, dtype=torch.float64)
    seen = torch.tensor([[True, False], [False, False]])
    return bool(F.scaled_dot_product_attention(q, q, q, attn_mask=seen).isnan().any())


def unaffected(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """The padded batch with two rows more: a document that has lost its labels, and one without tokens."""
    learned = torch.arange(config.limit + config.completion) >= config.limit
    lost = Document(*parts.truncate(inputs["prompted"], learned, config.limit, "right"))
    nothing = Document(lost.ids[:0], lost.learned[:0])
    rows = padded(config, [*documents(config, inputs, parts, config.truncation), lost, nothing], parts)
    own = leaves(inputs)
    run = forward(config, own, rows, parts)
    count = counted(rows, parts)
    loss = parts.mean(run.losses.sum(), count)
    loss.backward()  # type: ignore[no-untyped-call]
    counts = counted_by_row(rows, parts)
    assert run.x.grad is not None
    return {
        "unaffected/tokens": rows.real.sum(1),
        "unaffected/count": count,
        "unaffected/loss": loss,
        "unaffected/document_mean": parts.mean_of_means(run.losses.sum(1), counts),
        **{f"unaffected/grad/{name}": leaf.grad for name, leaf in own.items() if leaf.grad is not None},
        "unaffected/added/grad": run.x.grad[-2:],
    }
