"""The ways from a rank's rows to its gradients: one pass each, through the module that averages them."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from labs.contrastive.parts import Parts
from labs.contrastive.torch_model import PARAMETERS

Gather = Callable[[Tensor, list[int], int], Tensor]


@dataclass(frozen=True)
class Scene:
    """One rank's view: its rows, its place among the ranks, the model inside what averages its gradients."""

    parts: Parts
    model: Any
    x_a: Tensor
    x_b: Tensor
    counts: list[int]
    rank: int


class Passed(NamedTuple):
    """What a route leaves beside the gradients on the parameters: loss [], gradients of the own features [n,D]."""

    loss: Tensor
    grad_a: Tensor | None
    grad_b: Tensor | None


Route = Callable[[Scene], Passed]


def one_pass(kind: str, gather: Gather) -> Route:
    """One forward and backward pass over the rank's rows."""

    def route(scene: Scene) -> Passed:
        f_a, f_b, factor = _kept(scene.model(scene.x_a, scene.x_b))
        return Passed(_backward(scene, kind, gather, f_a, f_b, factor), f_a.grad, f_b.grad)

    return route


def one_by_one(scene: Scene) -> Passed:
    """Micro-batches of one sample that know no others; the loss is their mean."""
    count = len(scene.x_a)
    pieces = scene.parts.micro_batches(count, 1)
    total, grads = torch.zeros((), dtype=scene.x_a.dtype), []
    for number, piece in enumerate(pieces, start=1):
        with nullcontext() if number == len(pieces) else scene.model.no_sync():
            f_a, f_b, factor = _kept(scene.model(scene.x_a[piece], scene.x_b[piece]))
            loss = scene.parts.local_loss(f_a, f_b, f_a, f_b, factor, torch.arange(len(f_a))) * len(f_a) / count
            loss.backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
        grads.append(torch.stack([f_a.grad, f_b.grad]))
    return Passed(total, *torch.cat(grads, 1))


def in_two_passes(size: int) -> Route:
    """Features of all micro-batches, then the loss's gradients at them, then these through each micro-batch again.

    size 0 stands for one micro-batch of all that the rank has.
    """

    def route(scene: Scene) -> Passed:
        count = len(scene.x_a)
        pieces = scene.parts.micro_batches(count, size or count)
        rows = [(scene.x_a[piece], scene.x_b[piece]) for piece in pieces]
        with torch.no_grad():
            encoded = [scene.model(*pair) for pair in rows]
        f_a, f_b, factor = _leaves(encoded)
        loss = _backward(scene, "local", scene.parts.gather, f_a, f_b, factor)
        gradients = [(f_a.grad[piece], f_b.grad[piece]) for piece in pieces]
        scene.parts.replay(scene.model, rows, gradients, factor.grad)
        return Passed(loss, f_a.grad, f_b.grad)

    return route


def travelled(scene: Scene, route: Route, initial: dict[str, Tensor], lr: float) -> dict[str, Tensor]:
    """Start from the initial parameters, go one route, update: {loss, grad/…, averaged/…, updated/…}.

    grad is what autograd hands to a parameter on this rank, averaged what is on it when the backward pass is over; a
    gradient that is absent is an absent item.
    """
    parameters = {name: getattr(scene.model.module, name) for name in PARAMETERS}
    _restore(parameters, initial)
    handed: dict[str, list[Tensor]] = {name: [] for name in PARAMETERS}
    hooks = [parameter.register_hook(handed[name].append) for name, parameter in parameters.items()]
    passed = route(scene)
    for hook in hooks:
        hook.remove()
    items = {"loss": passed.loss}
    items |= {f"grad/features_{side}": g for side, g in (("a", passed.grad_a), ("b", passed.grad_b)) if g is not None}
    items |= {f"grad/{name}": torch.stack(grads).sum(0) for name, grads in handed.items() if grads}
    for name, parameter in parameters.items():
        if parameter.grad is not None:
            items[f"averaged/{name}"] = parameter.grad.clone()
            scene.parts.step(parameter, parameter.grad, lr)
        items[f"updated/{name}"] = parameter.detach().clone()
    return items


def _restore(parameters: dict[str, Tensor], initial: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(initial[name])
            parameter.grad = None


def _kept(outputs: tuple[Tensor, Tensor, Tensor]) -> tuple[Any, Any, Tensor]:
    """Features that will have their gradients on them, and the factor."""
    f_a, f_b, factor = outputs
    f_a.retain_grad()
    f_b.retain_grad()
    return f_a, f_b, factor


def _leaves(encoded: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[Any, Any, Any]:
    """Features of all micro-batches [n,D] and the factor, cut off from what they came from."""
    f_a, f_b = (torch.cat([outputs[side] for outputs in encoded]).requires_grad_() for side in (0, 1))
    return f_a, f_b, encoded[0][2].clone().requires_grad_()


def _backward(scene: Scene, kind: str, gather: Gather, f_a: Tensor, f_b: Tensor, factor: Tensor) -> Tensor:
    """Send the weighted loss back; returns the loss without its weight. Both features travel in one gather."""
    parts, counts, rank = scene.parts, scene.counts, scene.rank
    keys_a, keys_b = gather(torch.cat([f_a, f_b], 1), counts, rank).chunk(2, 1)
    contrast = parts.global_loss if kind == "global" else parts.local_loss
    loss = contrast(f_a, f_b, keys_a, keys_b, factor, parts.labels(counts, rank))
    (parts.weight(kind, counts, rank) * loss).backward()  # type: ignore[no-untyped-call]
    return loss.detach()
