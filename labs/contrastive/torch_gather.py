"""Gathering rows of all ranks, over Gloo, with gradients and with uneven shares.

Gloo gathers equal shapes only, so ranks exchange counts, pad to the longest share, gather, and slice.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labs.core.place import Place


def meet(place: Place, world_size: int) -> None:
    """Make sure that there is a group of the size that the config says; one rank alone makes its own."""
    if place.ranks != world_size:
        raise ValueError(f"world_size is {world_size}, but {place.ranks} processes run this stage")
    if place.ranks == 1 and not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # type: ignore[attr-defined]


def exchange_counts(count: int) -> list[int]:
    """How many rows each rank has, in rank order."""
    mine = torch.tensor(count)
    counts = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, mine)
    return [int(one) for one in counts]


def gather_padded(x: Tensor, counts: list[int]) -> list[Tensor]:
    """Every rank's rows [longest,k], with zeros below those of a shorter share."""
    padded = x.new_zeros(max(counts), *x.shape[1:])
    padded[: len(x)] = x
    pieces = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(pieces, padded)
    return pieces


def gather_rows(x: Tensor, counts: list[int]) -> Tensor:
    """All ranks' rows [N,k] in rank order; no gradient."""
    return torch.cat([piece[:count] for piece, count in zip(gather_padded(x.detach(), counts), counts, strict=True)])


def own_rows(counts: list[int], rank: int) -> slice:
    """Where a rank's rows are among the gathered ones."""
    start = sum(counts[:rank])
    return slice(start, start + counts[rank])


class Gather(torch.autograd.Function):
    """gather_rows with a gradient: each rank gets the sum of what all ranks send back to its rows.

    Every rank's loss reads x, so dx = Σ_q dL_q/d all[own rows]: an all-reduce, then the own slice.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], rank: int) -> Tensor:
        """Rows [n,k] of this rank -> [N,k] of all."""
        ctx.own = own_rows(counts, rank)
        return gather_rows(x, counts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """Gradients [N,k] -> [n,k]; a collective: every rank has to get here."""
        total = grads[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total[ctx.own], None, None


def framework_all_gather() -> Callable[..., tuple[Tensor, ...]] | None:
    """Find what torch offers itself, torch.distributed.nn.functional.all_gather; None in a torch that has none.

    It has to be told its group: its default is the group that existed when it was imported.
    """
    try:
        from torch.distributed.nn.functional import all_gather  # noqa: PLC0415 - a torch without it is no error
    except ImportError:
        return None
    found: Callable[..., tuple[Tensor, ...]] = all_gather
    return found
