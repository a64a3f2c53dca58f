"""transformers' LlamaDecoderLayer in the place of the block lab's layer; tested with transformers 5.24.0, torch 2.13.0.

    lab run recipes/llama_layer

Found: the whole layer agrees to float32 precision in float64, because of its norms, angles and softmax; in float32
output, loss and every gradient pass.
"""

import torch
from torch.func import functional_call
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

from labs.block.torch_layer import PARAMETERS
from labs.block.torch_parts import PARTS

PRELOAD = ("transformers.models.llama.modeling_llama",)

NAMES = {  # nn.Linear keeps [out, in]: every matrix is transposed
    "self_attn.q_proj.weight": "w_q",
    "self_attn.k_proj.weight": "w_k",
    "self_attn.v_proj.weight": "w_v",
    "self_attn.o_proj.weight": "w_o",
    "mlp.gate_proj.weight": "w_gate",
    "mlp.up_proj.weight": "w_up",
    "mlp.down_proj.weight": "w_down",
    "input_layernorm.weight": "gamma_1",
    "post_attention_layernorm.weight": "gamma_2",
}


def layer(config, inputs, parts, place):
    """One forward and backward pass."""
    leaves = {name: inputs[name].requires_grad_() for name in ("x", *PARAMETERS)}
    output = decoded(config, leaves)
    logits = parts.linear(output, leaves["w_head"])
    mean_loss = parts.loss(logits, inputs["labels"], inputs["weights"])
    loss = config.loss_scale * mean_loss
    output.retain_grad()
    loss.backward()
    forward = {"residual_2": output, "logits": logits, "mean_loss": mean_loss, "loss": loss}
    grads = {name: leaf.grad for name, leaf in {**leaves, "residual_2": output}.items() if leaf.grad is not None}
    return {**{f"forward/{n}": t for n, t in forward.items()}, **{f"grad/{n}": t for n, t in grads.items()}}


def decoded(config, leaves):
    """The layer's output, with our tensors for its parameters."""
    settings = LlamaConfig(
        hidden_size=config.hidden,
        intermediate_size=config.ffn,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        rms_norm_eps=config.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_base},
        attn_implementation="eager",
    )
    x = leaves["x"]
    hidden = torch.full((x.shape[1],) * 2, torch.finfo(x.dtype).min, dtype=x.dtype).triu(1)
    angles = LlamaRotaryEmbedding(settings)(x, torch.arange(x.shape[1])[None])
    weights = {theirs: leaves[ours].T for theirs, ours in NAMES.items()}
    given = {"position_embeddings": angles, "attention_mask": hidden}
    return functional_call(LlamaDecoderLayer(settings, 0), weights, (x,), given)


STAGES = {"layer": layer}
__all__ = ["PARTS", "STAGES"]
