"""Stage `wrong`: three mistakes made on purpose, so that a report shows how large each is."""
# ruff: noqa: D103 (a faulty part has its part's signature: see parts.py)

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from labs.core.place import Place
from labs.packing import torch_parts as right
from labs.packing.config import Config
from labs.packing.parts import Parts
from labs.packing.torch_model import Tensors, counted, documents, forward, packed

Items = dict[str, Any]


def mask_leak(segments: Tensor) -> Tensor:
    return torch.ones(len(segments), segments.shape[1], segments.shape[1], dtype=torch.bool).tril()


def positions_continue(segments: Tensor) -> Tensor:
    place = torch.arange(segments.shape[1]).expand_as(segments)
    return place.masked_fill(segments == right.PADDING, 0)


def shift_again(targets: Tensor) -> Tensor:
    return F.pad(targets[:, 1:], (0, 1), value=right.IGNORE)


def wrong(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Cross-sample visibility, positions that run on, a label shifted twice; nothing else is different."""
    rows = packed(config, documents(config, inputs, parts, config.truncation), parts)
    leak = rows._replace(mask=mask_leak(rows.segments))
    onward = rows._replace(positions=positions_continue(rows.segments))
    twice = rows._replace(targets=shift_again(rows.targets))
    leaking, moved, doubled = (forward(config, inputs, some, parts) for some in (leak, onward, twice))
    count, count_twice = counted(rows, parts), counted(twice, parts)
    return {
        "wrong/leak/mask": leak.mask[0],
        "wrong/leak/logits": leaking.logits[0],
        "wrong/leak/loss": parts.mean(leaking.losses.sum(), count),
        "wrong/double_shift/targets": twice.targets[0],
        "wrong/double_shift/count": count_twice,
        "wrong/double_shift/loss": parts.mean(doubled.losses.sum(), count_twice),
        "wrong/positions_continue/positions": onward.positions[0],
        "wrong/positions_continue/q": moved.q[0].transpose(0, 1),
        "wrong/positions_continue/k": moved.k[0].transpose(0, 1),
        "wrong/positions_continue/loss": parts.mean(moved.losses.sum(), count),
    }
