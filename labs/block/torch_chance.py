"""What dropout and shuffle promise by themselves: parts that do nothing resume with the same bits as well."""

from typing import Any

import torch
from torch import Tensor

from labs.block.config import Config
from labs.block.parts import Parts

Items = dict[str, Any]

SIDE = 64  # of the square of ones that dropout is given
ORDER = 64  # elements of a shuffled order


def chance(config: Config, parts: Parts, like: Tensor) -> Items:
    """Both parts on data of their own, with the dtype and the device of `like`; sets torch's random state."""
    torch.default_generator.manual_seed(config.torch_seed)
    ones = like.new_ones(SIDE, SIDE)
    return {**_dropout(config, parts, ones), **_shuffle(config, parts)}


def _dropout(config: Config, parts: Parts, ones: Tensor) -> Items:
    """Ones, so that the output is the mask with its scale, and the gradient has to be the output."""
    leaf = ones.clone().requires_grad_()
    output = parts.dropout(leaf, config.dropout)
    if output.requires_grad:  # a swapped-in part may have cut the graph
        output.sum().backward()  # type: ignore[no-untyped-call]
    output = output.detach()
    dropped = (output == 0).to(ones.dtype)
    shares = torch.cat((dropped.mean().reshape(1), dropped.mean(0), dropped.mean(1)))
    first, second = (parts.dropout(ones, 0.5) == 0 for _ in range(2))
    pairs = torch.stack((first & second, first & ~second, ~first & second, ~first & ~second))
    return {
        "stochastic/dropout/output": output,
        "stochastic/dropout/kept": torch.where(output == 0, 1 / (1 - config.dropout), output),
        "stochastic/dropout/excess": shares - config.dropout,
        "stochastic/dropout/again": pairs.to(ones.dtype).mean((1, 2)) - 0.25,
        **({} if leaf.grad is None else {"stochastic/dropout/grad": leaf.grad}),
    }


def _shuffle(config: Config, parts: Parts) -> Items:
    first, second = (parts.shuffle(ORDER) for _ in range(2))
    orders = []
    for _ in range(2):
        torch.default_generator.manual_seed(config.torch_seed)
        orders.append(parts.shuffle(ORDER))
    return {
        "stochastic/shuffle/sorted": first.sort().values,
        "stochastic/shuffle/successors": (first.diff() == 1).sum(),
        "stochastic/shuffle/again": (first == second).sum(),
        "stochastic/shuffle/repeats": torch.equal(*orders),
    }
