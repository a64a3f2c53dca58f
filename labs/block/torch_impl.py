"""The torch side's stages: what yields the items. Each uses only its parts; autograd differentiates everything."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from labs.block.config import Config
from labs.block.parts import Parts
from labs.block.torch_chance import chance
from labs.block.torch_layer import PARAMETERS, Tensors, layer, objective, operands
from labs.block.torch_parts import PARTS
from labs.block.torch_training import State, descend, flat, shuffled, stacked, start, whole
from labs.core.place import Place

__all__ = ["PARTS", "STAGES"]

# Imported once, before processes are forked: nothing but definitions.
PRELOAD = ("labs.block.torch_impl", "labs.block.torch_faults")

Items = dict[str, Any]


def one_pass(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """One forward and backward pass, and what can be learnt from it without another."""
    leaves = {name: inputs[name].requires_grad_() for name in ("x", *PARAMETERS)}
    values = layer(config, parts, leaves, leaves["x"])
    values |= objective(config, parts, leaves, values["residual_2"], inputs["labels"], inputs["weights"])
    for value in values.values():
        if value.requires_grad:  # a swapped-in part may have cut the graph
            value.retain_grad()
    values["loss"].backward()  # type: ignore[no-untyped-call]
    everything = {**leaves, **{name: value for name, value in values.items() if name != "loss"}}
    grads = {name: value.grad for name, value in everything.items() if value.grad is not None}
    values = {name: value.detach() for name, value in values.items()}
    items = {**_named("forward", values), **_named("grad", grads), **_first(grads)}
    if config.extras:
        items |= {**_fused(parts, values, grads), **_padded(parts, values, grads), **_grouped(parts, inputs)}
        items |= _causality(config, parts, leaves, values["residual_2"])
    return items


def _fused(parts: Parts, values: Tensors, grads: Tensors) -> Items:
    """The same attention as one operation, under the same gradient from above."""
    q, k, v = (operand.detach().requires_grad_() for operand in operands(values))
    heads = parts.attention(q, k, v)
    _backward(heads, grads.get("heads"))
    return {"fused/heads": heads, **_gradients("fused", q=q, k=k, v=v)}


def _padded(parts: Parts, values: Tensors, grads: Tensors) -> Items:
    """The first key is padding, so the first query sees nothing."""
    q, k, v = (operand.detach().requires_grad_() for operand in operands(values))
    visible = parts.causal(k.shape[-2]) & (torch.arange(k.shape[-2]) > 0)
    scores = parts.scores(q, k)
    probs = parts.softmax(scores, visible)
    heads = parts.mix(probs, v)
    scores.retain_grad()
    _backward(heads, grads.get("heads"))
    return {"padded/probs": probs, "padded/heads": heads, **_gradients("padded", scores=scores, q=q, k=k, v=v)}


def _grouped(parts: Parts, inputs: Tensors) -> Items:
    """Attention in both ways with several query heads on each of several key/value heads, whatever the layer has."""
    found: Items = {}
    for prefix, attention in (("grouped", _composed(parts)), ("fused/grouped", parts.attention)):
        q, k, v = (inputs[f"grouped/{name}"].detach().requires_grad_() for name in "qkv")
        found[f"{prefix}/heads"] = attention(q, k, v)
        _backward(found[f"{prefix}/heads"], inputs["grouped/upstream"])
        found |= _gradients(prefix, q=q, k=k, v=v)
    return found


def _composed(parts: Parts) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Attention from the layer's parts."""

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return parts.mix(parts.softmax(parts.scores(q, k), parts.causal(k.shape[-2])), v)

    return attention


def _causality(config: Config, parts: Parts, leaves: Tensors, before: Tensor) -> Items:
    """The same layer once more, with another last position."""
    with torch.no_grad():
        changed = leaves["x"].clone()
        changed[:, -1] += 1.0
        after = layer(config, parts, leaves, changed)["residual_2"]
    return {
        "causality/before": before[:, :-1],
        "causality/after": after[:, :-1],
        "causality/last_changes": bool((after[:, -1] != before[:, -1]).any()),
    }


def _first(grads: Tensors) -> Items:
    """What reaches the first position, which has no target."""
    first = {name: grad[:, 0] if name == "x" else grad[:, :, 0] for name, grad in grads.items() if name in "xkv"}
    unsupervised = {"first/grad/logits": grads["logits"][:, 0]} if "logits" in grads else {}
    return {**unsupervised, **{f"first/reached/{name}": bool(grad.any()) for name, grad in first.items()}}


def train(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """All AdamW steps, leaving a checkpoint on the way and one at the end; one SGD step beside them."""
    state = start(config, inputs)
    steps = []
    for step in descend(config, parts, state, whole(inputs)):
        steps.append(step)
        if state["done"] == config.checkpoint_after:
            parts.save(state, place.checkpoints / "halfway.pt")
    parts.save(state, place.checkpoints / "final.pt")
    return {
        **stacked("train", [_without(step, "grad") for step in steps]),
        **stacked("uninterrupted", [_without(step, "grad/") for step in steps[config.checkpoint_after :]]),
        **_whole("final", state),
        **_sgd_step(config, parts, inputs, steps[0]),
    }


def resume(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """A new process takes the steps after the checkpoint, and reads what the uninterrupted one left at the end."""
    state = parts.load(place.checkpoints / "halfway.pt")
    steps = list(descend(config, parts, state, whole(inputs)))
    return {
        **stacked("resume", [_without(step, "grad/") for step in steps]),
        **_whole("reloaded", parts.load(place.checkpoints / "final.pt")),
    }


def stochastic(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """Dropout and shuffled batches, without interruption; leaves a checkpoint on the way. Then each by itself."""
    torch.default_generator.manual_seed(config.torch_seed)
    state = start(config, inputs)
    steps = []
    for step in _stochastic_steps(config, inputs, parts, state):
        steps.append(step)
        if state["done"] == config.checkpoint_after:
            parts.save(state, place.checkpoints / "stochastic.pt")
    uninterrupted = stacked("stochastic/uninterrupted", steps[config.checkpoint_after :])
    return {**uninterrupted, **chance(config, parts, inputs["data/x"])}


def stochastic_resumed(config: Config, inputs: Tensors, parts: Parts, place: Place) -> Items:
    """A new process continues with torch's random state and the position in the data that the checkpoint holds."""
    state = parts.load(place.checkpoints / "stochastic.pt")
    torch.set_rng_state(state["rng"])
    return stacked("stochastic/resumed", list(_stochastic_steps(config, inputs, parts, state)))


STAGES = {
    "pass": one_pass,
    "train": train,
    "resume": resume,
    "stochastic/uninterrupted": stochastic,
    "stochastic/resumed": stochastic_resumed,
}


def _stochastic_steps(config: Config, inputs: Tensors, parts: Parts, state: State) -> Iterator[Tensors]:
    """Each step's batch (which sequences), its loss and the parameters after it."""

    def drop(gated: Tensor) -> Tensor:
        return parts.dropout(gated, config.dropout)

    for step in descend(config, parts, state, shuffled(config, parts, inputs), drop):
        batch = state["order"][state["position"] - config.batch : state["position"]]
        yield {"batch": batch, "loss": step["loss"], "param": flat(state["param"])}


def _whole(prefix: str, state: State) -> Items:
    """A state as one row a kind."""
    return {f"{prefix}/{kind}": flat(state[kind]) for kind in ("param", "exp_avg", "exp_avg_sq", "step")}


def _without(step: Tensors, name: str) -> Tensors:
    """A step's items but for the one of this name, or for all below it when the name ends with a slash."""
    return {n: value for n, value in step.items() if not (n.startswith(name) if name.endswith("/") else n == name)}


def _sgd_step(config: Config, parts: Parts, inputs: Tensors, first: Tensors) -> Items:
    """Adam hides a constant factor in the gradient; this step does not."""
    found: Items = {}
    for name in PARAMETERS:
        if f"grad/{name}" in first:
            found[f"sgd/param/{name}"] = inputs[name].clone()
            parts.sgd(found[f"sgd/param/{name}"], first[f"grad/{name}"], config.sgd_lr)
    return found


def _backward(value: Tensor, upstream: Tensor | None) -> None:
    """From a given gradient of `value`, if there is one. value.backward(upstream) would import sympy, a second."""
    if upstream is not None:
        (value * upstream).sum().backward()  # type: ignore[no-untyped-call]


def _gradients(prefix: str, **leaves: Tensor) -> Items:
    """An absent gradient is an absent item, never zeros."""
    return {f"{prefix}/grad/{name}": leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}


def _named(prefix: str, tensors: Tensors) -> Items:
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}
