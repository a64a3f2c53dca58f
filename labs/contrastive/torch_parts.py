"""The parts of the torch side, in plain torch. Signatures and meanings are in parts.py."""
# ruff: noqa: D103 (a docstring each would repeat parts.py)

import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim.sgd import sgd

from labs.contrastive import torch_gather
from labs.contrastive.parts import Parts

Pairs = list[tuple[Tensor, Tensor]]


def encode(x: Tensor, w: Tensor) -> Tensor:
    return F.normalize(x @ w, dim=-1)


def scale(log_scale: Tensor) -> Tensor:
    return log_scale.exp()


def labels(counts: list[int], rank: int) -> Tensor:
    return torch.arange(counts[rank]) + sum(counts[:rank])


def weight(kind: str, counts: list[int], rank: int) -> float:
    # A global loss is the same on every rank, whatever its share; local ones are means over unequal numbers of rows.
    return 1.0 if kind == "global" else counts[rank] * len(counts) / sum(counts)


def gather(x: Tensor, counts: list[int], rank: int) -> Tensor:
    rows: Tensor = torch_gather.Gather.apply(x, counts, rank)  # type: ignore[no-untyped-call]
    return rows


def gather_detached(x: Tensor, counts: list[int], rank: int) -> Tensor:
    rows = torch_gather.gather_rows(x, counts)
    rows[torch_gather.own_rows(counts, rank)] = x
    return rows


def framework_gather(x: Tensor, counts: list[int], rank: int) -> Tensor:
    all_gather = torch_gather.framework_all_gather()
    if all_gather is None:
        return gather(x, counts, rank)  # the report's facts say so
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # that it is deprecated is one of the facts
        return torch.cat(all_gather(x, group=dist.group.WORLD))


def symmetric(
    rows_a: Tensor, rows_b: Tensor, keys_a: Tensor, keys_b: Tensor, factor: Tensor, partners: Tensor
) -> Tensor:
    """InfoNCE in both directions; row i's partner is key partners[i]."""
    a_to_b = F.cross_entropy(factor * rows_a @ keys_b.T, partners)
    b_to_a = F.cross_entropy(factor * rows_b @ keys_a.T, partners)
    return (a_to_b + b_to_a) / 2


def global_loss(f_a: Tensor, f_b: Tensor, keys_a: Tensor, keys_b: Tensor, factor: Tensor, own: Tensor) -> Tensor:
    return symmetric(keys_a, keys_b, keys_a, keys_b, factor, torch.arange(len(keys_a)))


def local_loss(f_a: Tensor, f_b: Tensor, keys_a: Tensor, keys_b: Tensor, factor: Tensor, own: Tensor) -> Tensor:
    return symmetric(f_a, f_b, keys_a, keys_b, factor, own)


def micro_batches(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def replay(model: Any, inputs: Pairs, gradients: Pairs, factor_gradient: Tensor) -> None:
    for number, ((x_a, x_b), (grad_a, grad_b)) in enumerate(zip(inputs, gradients, strict=True), start=1):
        last = number == len(inputs)
        with nullcontext() if last else model.no_sync():
            f_a, f_b, factor = model(x_a, x_b)
            # <f, g> has the gradient g at f. (Handing g to torch's backward says the same, and imports sympy.)
            surrogate = (f_a * grad_a).sum() + (f_b * grad_b).sum()
            if last:  # the factor is the same in every micro-batch, so its gradient goes back once
                surrogate = surrogate + factor * factor_gradient
            surrogate.backward()


def average(module: torch.nn.Module) -> torch.nn.Module:
    return DistributedDataParallel(module)


def step(parameter: Tensor, gradient: Tensor, lr: float) -> None:
    with torch.no_grad():
        sgd(
            [parameter],
            [gradient],
            [None],
            foreach=False,
            lr=lr,
            momentum=0.0,
            dampening=0.0,
            weight_decay=0.0,
            nesterov=False,
            maximize=False,
        )


def save(parameters: Mapping[str, Tensor], path: Path) -> None:
    torch.save(dict(parameters), path)


def load(path: Path) -> dict[str, Tensor]:
    parameters: dict[str, Tensor] = torch.load(path, weights_only=True)
    return parameters


PARTS = Parts(
    encode=encode,
    scale=scale,
    exchange_counts=torch_gather.exchange_counts,
    labels=labels,
    weight=weight,
    gather=gather,
    gather_detached=gather_detached,
    framework_gather=framework_gather,
    global_loss=global_loss,
    local_loss=local_loss,
    micro_batches=micro_batches,
    replay=replay,
    average=average,
    step=step,
    save=save,
    load=load,
)
