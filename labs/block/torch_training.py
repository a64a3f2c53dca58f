"""Training in torch: AdamW steps on a state that a checkpoint holds completely, and the stochastic run's batches."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from labs.block.config import Config
from labs.block.parts import Parts
from labs.block.torch_layer import PARAMETERS, Drop, Tensors, layer, objective

State = dict[str, Any]
Batch = tuple[Tensor, Tensor, Tensor]  # x, labels, weights
Items = dict[str, Tensor]


def start(config: Config, inputs: Tensors) -> State:
    """The state before the first step; everything by name, never by position."""
    values = {name: inputs[name].detach().clone() for name in PARAMETERS}
    return {
        "param": values,
        "exp_avg": {name: torch.zeros_like(value) for name, value in values.items()},
        "exp_avg_sq": {name: torch.zeros_like(value) for name, value in values.items()},
        "step": {name: torch.tensor(float(config.steps_done)) for name in values},
        "done": 0,
        "rng": torch.get_rng_state(),
        "order": torch.arange(0),
        "position": 0,
    }


def descend(
    config: Config,
    parts: Parts,
    state: State,
    batches: Callable[[State], Batch],
    drop: Drop | None = None,
) -> Iterator[Items]:
    """Take steps until all are done, changing `state`; yields each one's loss, gradients and what it led to."""
    params = {name: state["param"][name].detach().requires_grad_() for name in PARAMETERS}  # same memory
    while state["done"] < config.steps:
        x, labels, weights = batches(state)
        hidden = layer(config, parts, params, x, drop)["residual_2"]
        loss = objective(config, parts, params, hidden, labels, weights)["loss"]
        for value in params.values():
            value.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        grads = {name: value.grad for name, value in params.items() if value.grad is not None}
        _update(config, parts, state, grads)
        state["done"] += 1
        state["rng"] = torch.get_rng_state()
        yield {
            "loss": loss.detach(),
            "grad": flat(grads),
            **{f"grad/{name}": grad for name, grad in grads.items()},
            **_reached(state),
        }


def whole(inputs: Tensors) -> Callable[[State], Batch]:
    """Every step sees the same full batch."""
    batch = (inputs["x"], inputs["labels"], inputs["weights"])
    return lambda state: batch


def shuffled(config: Config, parts: Parts, inputs: Tensors) -> Callable[[State], Batch]:
    """Each step sees the next sequences of an order that is drawn anew when it is used up."""

    def batch(state: State) -> Batch:
        while len(state["order"]) < state["position"] + config.batch:
            drawn = parts.shuffle(config.samples)
            state["order"], state["position"] = torch.cat((state["order"][state["position"] :], drawn)), 0
        rows = state["order"][state["position"] : state["position"] + config.batch]
        state["position"] += config.batch
        return inputs["data/x"][rows], inputs["data/labels"][rows], inputs["data/weights"][rows]

    return batch


def stacked(prefix: str, steps: list[Items]) -> Items:
    """Each quantity on a leading step axis; one that a step lacks is absent."""
    present = [name for name in steps[0] if all(name in step for step in steps)]
    return {f"{prefix}/{name}": torch.stack([step[name] for step in steps]) for name in present}


def flat(tensors: Tensors) -> Tensor:
    """All of them in one row, in the order of their names; a copy."""
    return torch.cat([tensors[name].detach().flatten() for name in sorted(tensors)])


def _update(config: Config, parts: Parts, state: State, grads: Tensors) -> None:
    """One optimizer call for the parameters that have a gradient."""
    lists = [[state[kind][name] for name in grads] for kind in ("param", "exp_avg", "exp_avg_sq", "step")]
    params, exp_avgs, exp_avg_sqs, steps = lists
    parts.optimizer(
        params,
        list(grads.values()),
        exp_avgs,
        exp_avg_sqs,
        steps,
        lr=config.lr,
        beta1=config.beta1,
        beta2=config.beta2,
        epsilon=config.adam_epsilon,
        weight_decay=config.weight_decay,
    )


def _reached(state: State) -> Items:
    """Copies, because the next step writes into the state."""
    return {
        "step": torch.stack([state["step"][name] for name in PARAMETERS]).long(),
        **{f"param/{name}": value.clone() for name, value in state["param"].items()},
        "exp_avg": flat(state["exp_avg"]),
        "exp_avg_sq": flat(state["exp_avg_sq"]),
    }
