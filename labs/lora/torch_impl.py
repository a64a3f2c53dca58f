"""The torch side's stages: what yields the items. Each uses only its parts; autograd differentiates everything."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from labs.core.place import Place
from labs.lora.config import Config
from labs.lora.parts import Parts
from labs.lora.torch_parts import PARTS
from labs.lora.torch_price import priced

__all__ = ["PARTS", "STAGES"]

# Imported once, before processes are forked: nothing but definitions.
PRELOAD = ("labs.lora.torch_impl", "labs.lora.torch_faults")

Tensors = dict[str, Tensor]
Items = dict[str, Any]


def init(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """A drawn, B zero; and every way of drawing A."""
    uniform, normal = inputs["init_uniform"], inputs["init_normal"]
    leaves = _leaves(inputs, parts, inputs["base"], *_start(config, inputs, parts))
    zeros = (torch.zeros_like(inputs[name]) for name in ("lora_a", "lora_b"))
    bare = _leaves(inputs, parts, inputs["base"], *zeros)
    return {
        "init/draw/kaiming": parts.initialize_a(uniform, normal, "kaiming", config.init_std),
        "init/draw/gaussian": parts.initialize_a(uniform, normal, "gaussian", config.init_std),
        "init/draw/framework": parts.framework_kaiming(config.d_in, config.rank),
        "init/draw/bound_reached": _bound_reached(parts.framework_kaiming(64, 16), 1 / math.sqrt(64)),
        "init/lora_b": leaves["lora_b"].detach(),
        # By the part itself: another order of summation is as right as torch's, and has other last bits.
        "init/base_output": _forward(config, parts, bare, parts.linear).detach(),
        **_pass_items("init", leaves, *_backward(config, inputs, parts, leaves)),
    }


def trained(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Both factors non-zero."""
    leaves = _leaves(inputs, parts, inputs["base"], inputs["lora_a"], inputs["lora_b"])
    return _pass_items("trained", leaves, *_backward(config, inputs, parts, leaves))


def unfrozen(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """The base wants a gradient too."""
    leaves = _leaves(inputs, parts, inputs["base"], inputs["lora_a"], inputs["lora_b"])
    leaves["base"].requires_grad_()
    _backward(config, inputs, parts, leaves)
    return _gradients("unfrozen", leaves, "base")


def detached(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """The branch reads x without its history."""
    leaves = _leaves(inputs, parts, inputs["base"], inputs["lora_a"], inputs["lora_b"])
    _loss(config, inputs, parts, _forward(config, parts, leaves, parts.linear_detached))
    return _gradients("detached", leaves, "lora_a", "lora_b", "x")


def train(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """SGD from the initial state; leaves the factors as a checkpoint."""
    leaves = _leaves(inputs, parts, inputs["base"], *_start(config, inputs, parts))
    steps = list(_descend(config, inputs, parts, leaves))
    factors = {name: leaves[name].detach() for name in ("lora_a", "lora_b")}
    parts.save(factors, place.checkpoints / "factors.pt")
    return {
        **_stacked(steps),
        **_named("sgd/final", factors),
        "sgd/base/before": inputs["base"],
        "sgd/base/after": leaves["base"].detach(),
    }


def checkpoint(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """A new process reads what training left."""
    return _named("checkpoint", parts.load(place.checkpoints / "factors.pt"))


def merged(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """The branch folded into the base and taken out again, in float64 and in bfloat16."""
    x, base, lora_a, lora_b = (inputs[name] for name in ("x", "base", "lora_a", "lora_b"))
    factors = (lora_a, lora_b, _scale(config, parts))
    weight = parts.merge(base, *factors)
    through_merged, through_branch = x @ weight, parts.linear(x, base, *factors)
    stored = base.to(torch.bfloat16)
    low = parts.merge(stored, *factors)
    back = parts.unmerge(low, *factors)
    return {
        "merge/weight": weight,
        "merge/residual": parts.unmerge(weight, *factors) - base,
        "merge/output/merged": through_merged,
        "merge/output/unmerged": through_branch,
        "merge/output/difference": through_merged - through_branch,
        "merge/bf16/merged": low.double(),
        "merge/bf16/unmerged": back.double(),
        "merge/bf16/restored": back == stored,
        "merge/bf16/residual": back.double() - stored.double(),
    }


def requantize(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Base quantised, branch trained on what the codes stand for, merged as bfloat16, quantised again."""
    base, bits, group = inputs["base"], config.bits, config.group
    codes, scales = parts.quantize(base, bits, group)
    rounded = parts.dequantize(codes, scales, group)
    leaves = _leaves(inputs, parts, rounded, inputs["lora_a"], inputs["lora_b"])
    steps = list(_descend(config, inputs, parts, leaves))
    lora_a, lora_b, s = leaves["lora_a"].detach(), leaves["lora_b"].detach(), _scale(config, parts)
    change = s * (lora_a @ lora_b)
    stored = parts.merge_quantized(base, rounded, lora_a, lora_b, s).to(base.dtype)
    codes_after, scales_after = parts.quantize(stored, bits, group)
    final = parts.dequantize(codes_after, scales_after, group)
    return {
        "requantize/codes": codes,
        "requantize/scales": scales,
        "requantize/ties": parts.quantize(inputs["ties"], bits, group)[0],
        "requantize/loss": torch.stack([step["sgd/loss"] for step in steps]),
        "requantize/lora_a": lora_a,
        "requantize/lora_b": lora_b,
        "requantize/stored": stored,
        "requantize/codes_after": codes_after,
        "requantize/scales_after": scales_after,
        "requantize/error/quantize": rounded - base,
        "requantize/error/merge": stored - (rounded + change),
        "requantize/error/requantize": final - stored,
        "requantize/survival": parts.survival(rounded, stored, final, change),
        "requantize/output_error": inputs["x"] @ (final - (base + change)),
    }


def order(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Both bracketings of the branch, with what each really multiplies and keeps."""
    operands = tuple(inputs[name] for name in ("x", "lora_a", "lora_b"))
    return {**priced("factored", parts.branch, operands), **priced("product", parts.branch_product, operands)}


STAGES = {
    "init": init,
    "trained": trained,
    "unfrozen": unfrozen,
    "detached": detached,
    "sgd": train,
    "checkpoint": checkpoint,
    "merge": merged,
    "requantize": requantize,
    "order": order,
}


def _bound_reached(drawn: Tensor, bound: float) -> bool:
    """Whether a draw of many fills (-bound, bound): both signs, nearly to the end, no row or column there twice."""
    nearly = bool(drawn.min() < 0 < drawn.max()) and bool(drawn.abs().max() > 0.9 * bound)
    return nearly and all(torch.unique(drawn, dim=axis).shape == drawn.shape for axis in (0, 1))


def _scale(config: Config, parts: Parts) -> float:
    return parts.scale(config.alpha, config.rank, config.scaling)


def _start(config: Config, inputs: Tensors, parts: Parts) -> tuple[Tensor, Tensor]:
    lora_a = parts.initialize_a(inputs["init_uniform"], inputs["init_normal"], config.init, config.init_std)
    return lora_a, parts.initialize_b(inputs["init_normal_b"])


def _leaves(inputs: Tensors, parts: Parts, base: Tensor, lora_a: Tensor, lora_b: Tensor) -> Tensors:
    """Fresh copies that autograd starts from; x always wants a gradient, as a hidden activation does."""
    values = {"x": inputs["x"], "base": base, "lora_a": lora_a, "lora_b": lora_b}
    wanted = ("x", *parts.trainable())
    return {name: value.detach().clone().requires_grad_(name in wanted) for name, value in values.items()}


def _forward(config: Config, parts: Parts, leaves: Tensors, linear: Callable[..., Tensor]) -> Tensor:
    return linear(leaves["x"], leaves["base"], leaves["lora_a"], leaves["lora_b"], _scale(config, parts))


def _backward(config: Config, inputs: Tensors, parts: Parts, leaves: Tensors) -> tuple[Tensor, Tensor]:
    """One forward and backward pass: output and loss; the gradients are on the leaves and on the output."""
    y = _forward(config, parts, leaves, parts.linear)
    return y, _loss(config, inputs, parts, y)


def _loss(config: Config, inputs: Tensors, parts: Parts, y: Tensor) -> Tensor:
    """The loss of an output, sent back from there."""
    y.retain_grad()
    if config.loss == "cross_entropy":
        loss = parts.cross_entropy(y, inputs["head"], inputs["labels"], inputs["weights"])
    else:
        loss = parts.squared_error(y, inputs["target"], inputs["weights"])
    loss.backward()  # type: ignore[no-untyped-call]
    return loss


def _pass_items(prefix: str, leaves: Tensors, y: Tensor, loss: Tensor) -> Items:
    return {
        f"{prefix}/output": y,
        f"{prefix}/loss": loss,
        f"{prefix}/grad/output": y.grad,
        **_gradients(prefix, leaves, "lora_a", "lora_b", "x"),
        **{f"{prefix}/has_grad/{name}": leaves[name].grad is not None for name in ("base", "lora_a", "lora_b")},
    }


def _gradients(prefix: str, leaves: Tensors, *names: str) -> Items:
    """An absent gradient is an absent item, never zeros."""
    return {f"{prefix}/grad/{name}": leaves[name].grad for name in names if leaves[name].grad is not None}


def _descend(config: Config, inputs: Tensors, parts: Parts, leaves: Tensors) -> Iterator[Items]:
    """SGD on the leaves, in place; yields each step's loss and gradients, and the factors after it."""
    rates = {"lora_a": config.lr_a, "lora_b": config.lr_b, "base": config.lr_b}  # base: for parts that move it
    for _ in range(config.steps):
        for leaf in leaves.values():
            leaf.grad = None
        _, loss = _backward(config, inputs, parts, leaves)
        for name in parts.trainable():
            gradient = leaves[name].grad
            if gradient is not None:
                parts.step(leaves[name], gradient, rates[name])
        factors = {name: leaves[name].detach().clone() for name in ("lora_a", "lora_b")}
        yield {"sgd/loss": loss.detach(), **_gradients("sgd", leaves, *factors), **_named("sgd", factors)}


def _named(prefix: str, tensors: Tensors) -> Items:
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def _stacked(steps: list[Items]) -> Items:
    """Each quantity on a leading step axis; one that a step lacks is absent."""
    return {name: torch.stack([step[name] for step in steps]) for name in steps[0] if all(name in s for s in steps)}
