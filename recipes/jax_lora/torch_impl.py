"""JAX in float64 in the place of torch; tested with jax 0.10.2.

    lab run recipes/jax_lora

Found: NumPy, torch and JAX agree three ways.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import torch

from labs.lora.torch_parts import PARTS

jax.config.update("jax_enable_x64", val=True)


def everything(config, inputs, parts, place):
    """Every item; jax.grad differentiates what is written down here and nothing else."""
    given = {name: jnp.asarray(tensor.numpy()) for name, tensor in inputs.items()}
    s = config.alpha / (config.rank if config.scaling == "classic" else math.sqrt(config.rank))
    start = {**given, "lora_a": drawn(config, given)[config.init], "lora_b": jnp.zeros_like(given["lora_b"])}
    trained, detached = passed(config, given, s), passed(config, given, s, cut=True)
    weight = given["base"] + s * given["lora_a"] @ given["lora_b"]
    items = {
        **{f"init/draw/{kind}": a for kind, a in drawn(config, given).items()},
        "init/lora_b": start["lora_b"],
        "init/base_output": given["x"] @ given["base"],
        **{f"init/{name}": value for name, value in passed(config, start, s).items() if name != "grad/base"},
        **{f"trained/{name}": value for name, value in trained.items() if name != "grad/base"},
        "unfrozen/grad/base": trained["grad/base"],
        **{f"detached/grad/{name}": detached[f"grad/{name}"] for name in ("x", "lora_a", "lora_b")},
        **descended(config, start, s),
        "merge/weight": weight,
        "merge/output/merged": given["x"] @ weight,
    }
    return {name: torch.from_numpy(np.array(value)) for name, value in items.items()}


def layer(t, s, cut=False):
    """Y = X W + s (X A) B; `cut`: the branch reads X without its history."""
    return t["x"] @ t["base"] + s * ((jax.lax.stop_gradient(t["x"]) if cut else t["x"]) @ t["lora_a"]) @ t["lora_b"]


def objective(config, t, y):
    """Cross-entropy behind the head, or half a squared distance; weighted mean over rows."""
    if config.loss == "squared_error":
        rows = 0.5 * jnp.square(y - t["target"]).sum(-1)
    else:
        chosen = jax.nn.log_softmax(y @ t["head"])
        rows = -jnp.take_along_axis(chosen, t["labels"][..., None], -1)[..., 0]
    return (t["weights"] * rows).sum() / t["weights"].sum()


@functools.partial(jax.jit, static_argnames=("config", "s", "cut"))
def passed(config, t, s, cut=False):
    """Output, loss and gradients; the output's is that of a zero added to it."""
    names = ("x", "base", "lora_a", "lora_b")

    def loss(values, nothing):
        return objective(config, t, layer({**t, **values}, s, cut) + nothing)

    output = layer(t, s, cut)
    value, (grads, at_output) = jax.value_and_grad(loss, (0, 1))({n: t[n] for n in names}, jnp.zeros_like(output))
    return {"output": output, "loss": value, "grad/output": at_output, **{f"grad/{n}": g for n, g in grads.items()}}


def drawn(config, t):
    """Both ways of drawing A."""
    bound = 1 / math.sqrt(config.d_in)
    return {"kaiming": t["init_uniform"] * 2 * bound - bound, "gaussian": config.init_std * t["init_normal"]}


def descended(config, t, s):
    """SGD from the start."""
    steps = []
    for _ in range(config.steps):
        found = passed(config, t, s)
        t = {**t, "lora_a": t["lora_a"] - config.lr_a * found["grad/lora_a"]}
        t = {**t, "lora_b": t["lora_b"] - config.lr_b * found["grad/lora_b"]}
        steps.append(
            {n: found[n] for n in ("loss", "grad/lora_a", "grad/lora_b")} | {n: t[n] for n in ("lora_a", "lora_b")}
        )
    return {f"sgd/{name}": jnp.stack([step[name] for step in steps]) for name in steps[0]}


STAGES = {"jax": everything}
__all__ = ["PARTS", "STAGES"]
