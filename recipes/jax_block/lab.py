"""The block lab's layer with JAX as the observed side: every intermediate and every gradient in float64."""

import dataclasses

from labs.block.lab import LAB as BLOCK
from labs.core.lab import Control, Stage

SEEN = ("forward/", "grad/", "sgd/param/")


def reference(config, inputs):
    """The items that JAX is asked for."""
    return {n: a for n, a in BLOCK.reference(config, inputs).items() if n.startswith(SEEN)}


AFTER_NORM = ("forward/normed_1", "forward/[qkv]", "forward/heads", "forward/residual_*", "grad/w_*", "grad/x")
CONTROLS = (
    Control("epsilon", "another epsilon in the norms", AFTER_NORM, ("*",), lie={"epsilon": 1e-2}),
    Control(
        "rope_base",
        "another base of the rotation",
        ("forward/[qk]_turned", "grad/w_*"),
        ("*",),
        lie={"rope_base": 500.0},
    ),
    Control("loss_scale", "a loss that is not scaled", ("forward/loss", "grad/*"), ("sgd/*",), lie={"loss_scale": 1.0}),
)
LAB = dataclasses.replace(
    BLOCK,
    name="jax_block",
    title="the block lab's layer with JAX as the observed side",
    items={f"{prefix}*": "as in the block lab" for prefix in SEEN},
    reference=reference,
    rules=lambda config: (),
    stages=(Stage("jax", tuple(f"{prefix}*" for prefix in SEEN)),),
    controls=CONTROLS,
    tables=lambda config, reference: (),
)
