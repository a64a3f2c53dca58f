"""The block lab's layer, loss and gradients, with transformers' LlamaDecoderLayer as the observed side."""

import dataclasses

from labs.block.lab import LAB as BLOCK
from labs.core.lab import Control, Stage

INSIDE = ("forward/residual_2", "forward/logits", "forward/mean_loss", "forward/loss")
GRADS = ("x", "gamma_1", "gamma_2", "w_q", "w_k", "w_v", "w_o", "w_gate", "w_up", "w_down", "w_head", "residual_2")
SEEN = (*INSIDE, *(f"grad/{name}" for name in GRADS))
EVERYTHING = ("forward/*", "grad/*")
CONTROLS = (
    Control("epsilon", "another epsilon in the norms", EVERYTHING, lie={"epsilon": 1e-2}),
    Control("rope_base", "another base of the rotation", EVERYTHING, lie={"rope_base": 500.0}),
    Control("loss_scale", "a loss that is not scaled", ("forward/loss", "grad/*"), lie={"loss_scale": 1.0}),
)


def reference(config, inputs):
    """The items that a decoder layer shows from outside."""
    return {name: array for name, array in BLOCK.reference(config, inputs).items() if name in SEEN}


LAB = dataclasses.replace(
    BLOCK,
    name="llama_layer",
    title="transformers' LlamaDecoderLayer against the block lab's layer",
    items={"forward/*": "the layer's output, logits and losses", "grad/*": "dL/d of parameters, x and output"},
    reference=reference,
    rules=lambda config: (),
    stages=(Stage("layer", ("forward/*", "grad/*")),),
    controls=CONTROLS,
    tables=lambda config, reference: (),
)
