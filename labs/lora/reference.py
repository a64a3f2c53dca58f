"""The reference: every item of the lab from hand-derived formulas, in the precision of its inputs."""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from labs.core.lab import Array, Arrays
from labs.kernels import bfloat16, cross_entropy, linear, lora, quantize, sgd, squared_error
from labs.lora.config import Config

# The framework side runs in float64, whatever precision this module is run in.
FLOAT64_BYTES = 8
UNIT_ROUNDOFF = 2.0**-53

LossSaved: TypeAlias = tuple[squared_error.Saved] | tuple[cross_entropy.Saved, linear.Saved]


class Pass(NamedTuple):
    """One forward and backward pass through the layer and the loss."""

    y: Array
    loss: Array
    dy: Array
    saved: lora.Saved
    grads: lora.Grads


def reference(config: Config, inputs: Arrays) -> Arrays:
    """Every item of the lab, `{name: array}`."""
    sections = (_initial, _trained, _sgd, _merged, _requantized, _order)
    items = {name: value for section in sections for name, value in section(config, inputs).items()}
    return {name: np.asarray(value) for name, value in items.items()}  # a scalar is an array without axes


def scale(config: Config, inputs: Arrays) -> Any:
    """The factor s of the branch, in the precision of the inputs."""
    return lora.scale(inputs["x"].dtype.type(config.alpha), config.rank, config.scaling)


def draw_a(config: Config, inputs: Arrays) -> Array:
    """lora_a where trajectories start, [d, r]."""
    return _draws(config, inputs)[config.init]


def objective(config: Config, inputs: Arrays, y: Array) -> tuple[Array, LossSaved]:
    """The scalar loss of the layer's output: cross-entropy behind a fixed head, or half a squared distance."""
    if config.loss == "squared_error":
        loss, error = squared_error.forward(y, inputs["target"], inputs["weights"])
        return loss, (error,)
    logits, head = linear.forward(y, inputs["head"])  # [B, T, C]
    loss, choice = cross_entropy.forward(logits, inputs["labels"], inputs["weights"])
    return loss, (choice, head)


def _output_gradient(saved: LossSaved) -> Array:
    if len(saved) == 1:
        return squared_error.backward(1, saved[0])
    choice, head = saved
    return linear.backward(cross_entropy.backward(1, choice), head).dx


def _pass(config: Config, inputs: Arrays, base: Array, a: Array, b: Array) -> Pass:
    y, saved = lora.forward(inputs["x"], base, a, b, scale(config, inputs))
    loss, loss_saved = objective(config, inputs, y)
    dy = _output_gradient(loss_saved)
    return Pass(y, loss, dy, saved, lora.backward(dy, saved))


def _draws(config: Config, inputs: Arrays) -> Arrays:
    return {"kaiming": lora.kaiming(inputs["init_uniform"]), "gaussian": config.init_std * inputs["init_normal"]}


def _initial(config: Config, inputs: Arrays) -> Arrays:
    """A drawn, B zero: the layer is its base, and only B has a gradient."""
    base, b = inputs["base"], np.zeros_like(inputs["lora_b"])
    start = _pass(config, inputs, base, draw_a(config, inputs), b)
    return {
        **{f"init/draw/{kind}": drawn for kind, drawn in _draws(config, inputs).items()},
        "init/draw/bound": np.full_like(inputs["init_uniform"], 1 / np.sqrt(inputs["x"].dtype.type(config.d_in))),
        "init/draw/bound_reached": np.ones((), np.bool_),
        "init/lora_b": b,
        "init/base_output": linear.forward(inputs["x"], base)[0],
        **_pass_items("init", start),
    }


def _trained(config: Config, inputs: Arrays) -> Arrays:
    """Both factors non-zero; then the same with the base unfrozen, and with the branch reading a detached x."""
    state = _pass(config, inputs, inputs["base"], inputs["lora_a"], inputs["lora_b"])
    return {
        **_pass_items("trained", state),
        "unfrozen/grad/base": lora.base_gradient(state.dy, state.saved),
        "detached/grad/lora_a": state.grads.da,
        "detached/grad/lora_b": state.grads.db,
        "detached/grad/x": state.grads.dx_base,
    }


def _pass_items(prefix: str, state: Pass) -> Arrays:
    grads = state.grads
    return {
        f"{prefix}/output": state.y,
        f"{prefix}/loss": state.loss,
        f"{prefix}/grad/output": state.dy,
        f"{prefix}/grad/lora_a": grads.da,
        f"{prefix}/grad/lora_b": grads.db,
        f"{prefix}/grad/x": grads.dx_base + grads.dx_branch,
        # The frozen base has none, which is not the same as zero.
        **{f"{prefix}/has_grad/{name}": np.array(name != "base") for name in ("base", "lora_a", "lora_b")},
    }


def _descend(config: Config, inputs: Arrays, base: Array, a: Array, b: Array) -> Iterator[tuple[Array, ...]]:
    """SGD on the factors; yields loss, dA, dB and the factors after each step."""
    for _ in range(config.steps):
        state = _pass(config, inputs, base, a, b)
        a, b = sgd.step(a, state.grads.da, config.lr_a), sgd.step(b, state.grads.db, config.lr_b)
        yield state.loss, state.grads.da, state.grads.db, a, b


def _sgd(config: Config, inputs: Arrays) -> Arrays:
    steps = _descend(config, inputs, inputs["base"], draw_a(config, inputs), np.zeros_like(inputs["lora_b"]))
    names = ("sgd/loss", "sgd/grad/lora_a", "sgd/grad/lora_b", "sgd/lora_a", "sgd/lora_b")
    return {name: np.stack(values) for name, values in zip(names, zip(*steps, strict=True), strict=True)}


def _merged(config: Config, inputs: Arrays) -> Arrays:
    """The branch folded into the base and taken out again, in float64 and in bfloat16."""
    x, base, a, b = (inputs[name] for name in ("x", "base", "lora_a", "lora_b"))
    change = lora.delta(a, b, scale(config, inputs))
    stored, low = bfloat16.nearest(base), bfloat16.nearest(change)
    merged = bfloat16.nearest(stored + low)
    unmerged = bfloat16.nearest(merged - low)
    return {
        "merge/weight": base + change,
        "merge/bound/residual": _two_roundings(UNIT_ROUNDOFF, base, change) + _two_products(config, inputs),
        "merge/output/merged": x @ (base + change),
        "merge/output/unmerged": lora.forward(x, base, a, b, scale(config, inputs))[0],
        "merge/bound/difference": _output_bound(config, inputs),
        "merge/bf16/merged": merged,
        "merge/bf16/unmerged": unmerged,
        "merge/bf16/restored": unmerged == stored,
        "merge/bound/bf16_residual": _two_roundings(bfloat16.UNIT_ROUNDOFF, stored, low),
    }


def _two_roundings(u: float, w: Array, change: Array) -> Array:
    """What two roundings of sums (or of terms, then of their sum) may do: (2u + u²)(|w| + |change|), [d, k]."""
    bound: Array = (2 + u) * u * (np.abs(w.real) + np.abs(change.real))
    return bound


def _two_products(config: Config, inputs: Arrays) -> Array:
    """How far sAB may be from sAB in another order of its factors: two sums of at most r + 2 rounded terms, [d, k]."""
    a, b = (np.abs(inputs[name].real) for name in ("lora_a", "lora_b"))
    bound: Array = 2 * (config.rank + 2) * UNIT_ROUNDOFF * np.abs(scale(config, inputs)) * (a @ b)
    return bound


def _output_bound(config: Config, inputs: Arrays) -> Array:
    """How far X(W + sAB) and XW + s(XA)B may be apart in float64: two sums of at most d + r + 4 rounded terms each."""
    x, base, a, b = (np.abs(inputs[name].real) for name in ("x", "base", "lora_a", "lora_b"))
    terms = config.d_in + config.rank + 4
    bound: Array = 2 * terms * UNIT_ROUNDOFF * (x @ base + np.abs(scale(config, inputs)) * ((x @ a) @ b))
    return bound  # [B, T, k]


def _requantized(config: Config, inputs: Arrays) -> Arrays:
    """Base quantised, branch trained on what the codes stand for, merged as bfloat16, quantised again."""
    base, a, b = inputs["base"], inputs["lora_a"], inputs["lora_b"]
    codes, scales = quantize.quantize(base, config.bits, config.group)
    rounded = quantize.dequantize(codes, scales, config.group)
    steps = list(_descend(config, inputs, rounded, a, b))
    *_, a, b = steps[-1]
    change = lora.delta(a, b, scale(config, inputs))
    stored = bfloat16.nearest(bfloat16.nearest(rounded) + bfloat16.nearest(change))
    codes_after, scales_after = quantize.quantize(stored, config.bits, config.group)
    final = quantize.dequantize(codes_after, scales_after, config.group)
    return {
        "requantize/codes": codes,
        "requantize/scales": scales,
        "requantize/ties": quantize.quantize(inputs["ties"], config.bits, config.group)[0],
        "requantize/error/quantize": rounded - base,
        "requantize/loss": np.stack([step[0] for step in steps]),
        "requantize/lora_a": a,
        "requantize/lora_b": b,
        "requantize/stored": stored,
        "requantize/error/merge": stored - (rounded + change),
        "requantize/codes_after": codes_after,
        "requantize/scales_after": scales_after,
        "requantize/error/requantize": final - stored,
        "requantize/bound/quantize": quantize.error_bound(base, config.bits, config.group),
        "requantize/bound/merge": _two_roundings(bfloat16.UNIT_ROUNDOFF, rounded, change),
        "requantize/bound/requantize": quantize.error_bound(stored, config.bits, config.group),
        "requantize/survival": lora.survival(rounded, final, change),
        "requantize/output_error": inputs["x"] @ (final - (base + change)),
    }


def _order(config: Config, inputs: Arrays) -> Arrays:
    """(XA)B against X(AB): one value, two prices. A product [m,p][p,q] costs 2mpq, and as much for each gradient."""
    x, a, b = (inputs[name] for name in ("x", "lora_a", "lora_b"))
    n, d, k, r = config.batch * config.positions, config.d_in, config.d_out, config.rank
    operations = {"factored": 2 * n * d * r + 2 * n * r * k, "product": 2 * d * r * k + 2 * n * d * k}
    saved = {
        "factored": n * d + d * r + n * r + r * k,
        "product": n * d + d * r + r * k + d * k,
    }  # x, A, B and XA or AB
    return {
        "order/output/factored": (x @ a) @ b,
        "order/output/product": x @ (a @ b),
        **{f"order/operations/{way}/forward": np.array(count) for way, count in operations.items()},
        **{f"order/operations/{way}/backward": np.array(2 * count) for way, count in operations.items()},
        **{f"order/saved_bytes/{way}": np.array(FLOAT64_BYTES * count) for way, count in saved.items()},
    }
