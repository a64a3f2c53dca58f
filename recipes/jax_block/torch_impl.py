"""JAX in float64 in the place of torch; tested with jax 0.10.2.

    lab run recipes/jax_block

Found: NumPy, torch and JAX agree three ways, at every intermediate.
"""

import jax
import jax.numpy as jnp
import numpy as np
import torch

from labs.block.torch_layer import PARAMETERS
from labs.block.torch_parts import PARTS

jax.config.update("jax_enable_x64", val=True)


def everything(config, inputs, parts, place):
    """The layer's values, and gradients at all of them: each is that of a zero added to it."""
    given = {name: jnp.asarray(tensor.numpy()) for name, tensor in inputs.items()}
    leaves = {name: given[name] for name in ("x", *PARAMETERS)}
    shapes = jax.eval_shape(lambda p: layer(config, p, given, {}), leaves)
    nothing = {name: jnp.zeros(shape.shape) for name, shape in shapes.items() if name != "loss"}

    def lost(p, zeros):
        values = layer(config, p, given, zeros)
        return values["loss"], values

    (_, values), (grads, inside) = jax.jit(jax.value_and_grad(lost, (0, 1), has_aux=True))(leaves, nothing)
    items = {
        **{f"forward/{name}": value for name, value in values.items()},
        **{f"grad/{name}": value for name, value in {**grads, **inside}.items()},
        **{f"sgd/param/{name}": given[name] - config.sgd_lr * grads[name] for name in PARAMETERS if config.steps},
    }
    return {name: torch.from_numpy(np.array(value)) for name, value in items.items()}


def layer(config, p, given, zeros):
    """Every intermediate by name, from x to the loss; a name in `zeros` has that added."""
    t = {}

    def keep(name, value):
        t[name] = value + zeros[name] if name in zeros else value
        return t[name]

    n1 = keep("normed_1", norm(p["x"], p["gamma_1"], config.epsilon))
    sizes = {"q": config.heads, "k": config.kv_heads, "v": config.kv_heads}
    q, k, v = (keep(n, split(n1 @ p[f"w_{n}"], heads)) for n, heads in sizes.items())
    if config.rope:
        q, k = keep("q_turned", turned(q, config.rope_base)), keep("k_turned", turned(k, config.rope_base))
    group = config.heads // config.kv_heads
    scores = keep("scores", q @ jnp.repeat(k, group, 1).swapaxes(-1, -2) / jnp.sqrt(q.shape[-1]))
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    probs = keep("probs", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1))
    heads = keep("heads", probs @ jnp.repeat(v, group, 1))
    rows = heads.swapaxes(1, 2).reshape(*p["x"].shape)
    r1 = keep("residual_1", p["x"] + keep("attended", rows @ p["w_o"]))
    n2 = keep("normed_2", norm(r1, p["gamma_2"], config.epsilon))
    gated = keep("gated", jax.nn.silu(keep("gate", n2 @ p["w_gate"])) * keep("up", n2 @ p["w_up"]))
    r2 = keep("residual_2", r1 + keep("down", gated @ p["w_down"]))
    logits = keep("logits", r2 @ p["w_head"])
    mean = keep("mean_loss", loss(logits, given["labels"], given["weights"]))
    keep("loss", config.loss_scale * mean)
    return t


def norm(x, gamma, epsilon):
    """RMSNorm over the last axis."""
    return x * gamma * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + epsilon)


def split(rows, heads):
    """[B,T,H·D] -> [B,H,T,D]."""
    return rows.reshape(*rows.shape[:2], heads, -1).swapaxes(1, 2)


def turned(x, base):
    """RoPE, as a product of complex numbers: element i is the real part, element i + D/2 the imaginary one."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[-2])[:, None] * base ** (-jnp.arange(half) / half)
    pair = (x[..., :half] + 1j * x[..., half:]) * jnp.exp(1j * angles)
    return jnp.concatenate([pair.real, pair.imag], -1)


def loss(logits, labels, weights):
    """Weighted mean over the positions that have a label."""
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.maximum(labels, 0)[..., None], -1)[..., 0]
    counted = weights * (labels >= 0)
    return -(counted * chosen).sum() / counted.sum()


STAGES = {"jax": everything}
__all__ = ["PARTS", "STAGES"]
