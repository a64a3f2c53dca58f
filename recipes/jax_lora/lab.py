"""The lora lab with JAX as the observed side: gradients, SGD and merging in float64."""

import dataclasses

from labs.core.lab import Control, Stage, identical, zero
from labs.lora.lab import LAB as LORA

SEEN = ("init/", "trained/", "unfrozen/", "detached/", "sgd/", "merge/weight", "merge/output/merged")
UNSEEN = ("has_grad", "init/draw/bound")  # JAX has no gradient that is absent


def reference(config, inputs):
    """The items that JAX is asked for."""
    every = LORA.reference(config, inputs)
    return {n: a for n, a in every.items() if n.startswith(SEEN) and not any(word in n for word in UNSEEN)}


SCALED = ("trained/*", "detached/*", "init/grad/lora_b", "merge/*", "unfrozen/*", "sgd/*")
CONTROLS = (
    Control("alpha_without_rank", "the scale is alpha", SCALED[:5], SCALED[5:], lie={"alpha": 15.0}),
    Control("rslora_scale", "the scale is alpha/sqrt(r)", SCALED[:5], SCALED[5:], lie={"scaling": "rslora"}),
)
LAB = dataclasses.replace(
    LORA,
    name="jax_lora",
    title="the lora lab with JAX as the observed side",
    items={f"{prefix}*": "as in the lora lab" for prefix in SEEN},
    reference=reference,
    rules=lambda config: (zero("init/lora_b"), zero("init/grad/lora_a"), identical("init/output", "init/base_output")),
    stages=(Stage("jax", tuple(f"{prefix}*" for prefix in SEEN)),),
    controls=CONTROLS,
)
