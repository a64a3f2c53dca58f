"""The faulty parts: what people really wrote. controls.py says what is wrong with each and where it was seen."""
# ruff: noqa: D103 (a faulty part has its part's signature; see controls.py)

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from labs.contrastive import torch_parts as right
from labs.contrastive.torch_gather import gather_rows, own_rows

Pairs = list[tuple[Tensor, Tensor]]


def _reinserted(f: Tensor, keys: Tensor, own: Tensor) -> Tensor:
    """The keys without their gradients, but for the own rows."""
    return keys.detach().index_copy(0, own, f)


def global_loss_detached(
    f_a: Tensor, f_b: Tensor, keys_a: Tensor, keys_b: Tensor, factor: Tensor, own: Tensor
) -> Tensor:
    keys_a, keys_b = _reinserted(f_a, keys_a, own), _reinserted(f_b, keys_b, own)
    return right.global_loss(f_a, f_b, keys_a, keys_b, factor, own)


def local_loss_detached(
    f_a: Tensor, f_b: Tensor, keys_a: Tensor, keys_b: Tensor, factor: Tensor, own: Tensor
) -> Tensor:
    keys_a, keys_b = _reinserted(f_a, keys_a, own), _reinserted(f_b, keys_b, own)
    return right.local_loss(f_a, f_b, keys_a, keys_b, factor, own)


class _OwnSlice(torch.autograd.Function):
    """The gather whose backward forgets that the other ranks' losses read these rows too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], rank: int) -> Tensor:
        ctx.own = own_rows(counts, rank)
        return gather_rows(x, counts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return grads[0][ctx.own], None, None


class _EvenSlice(torch.autograd.Function):
    """The gather whose backward looks for the own rows where they are when all ranks have as many."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counts: list[int], rank: int) -> Tensor:
        ctx.start, ctx.count = rank * counts[rank], counts[rank]
        return gather_rows(x, counts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        total = grads[0].clone()
        torch.distributed.all_reduce(total)
        return total[ctx.start : ctx.start + ctx.count], None, None


def gather_own_slice(x: Tensor, counts: list[int], rank: int) -> Tensor:
    rows: Tensor = _OwnSlice.apply(x, counts, rank)  # type: ignore[no-untyped-call]
    return rows


def gather_even_slice(x: Tensor, counts: list[int], rank: int) -> Tensor:
    rows: Tensor = _EvenSlice.apply(x, counts, rank)  # type: ignore[no-untyped-call]
    return rows


def gather_own_first(x: Tensor, counts: list[int], rank: int) -> Tensor:
    rows, own = right.gather(x, counts, rank), own_rows(counts, rank)
    return torch.cat([rows[own], rows[: own.start], rows[own.stop :]])


def times_world(kind: str, counts: list[int], rank: int) -> float:
    return len(counts) if kind == "global" else right.weight(kind, counts, rank)


def weight_one(kind: str, counts: list[int], rank: int) -> float:
    return 1.0


def labels_without_offset(counts: list[int], rank: int) -> Tensor:
    return torch.arange(counts[rank])


def labels_by_own_count(counts: list[int], rank: int) -> Tensor:
    return torch.arange(counts[rank]) + rank * counts[rank]


def one_micro_batch(count: int, size: int) -> list[slice]:
    return [slice(0, count)]


def replay_last_only(model: Any, inputs: Pairs, gradients: Pairs, factor_gradient: Tensor) -> None:
    right.replay(model, inputs[-1:], gradients[-1:], factor_gradient)


def scale_itself(log_scale: Tensor) -> Tensor:
    return log_scale * 1.0


def average_but_one(module: torch.nn.Module) -> torch.nn.Module:
    ignore = DistributedDataParallel._set_params_and_buffers_to_ignore_for_model  # noqa: SLF001 - there is no other way
    ignore(module, ["w_b", ".w_b"])  # type: ignore[no-untyped-call]  # at the root both spellings are asked for
    return DistributedDataParallel(module)


def save_as_float32(parameters: Mapping[str, Tensor], path: Path) -> None:
    torch.save({name: parameter.float() for name, parameter in parameters.items()}, path)


def load_as_float64(path: Path) -> dict[str, Tensor]:
    return {name: parameter.double() for name, parameter in right.load(path).items()}
