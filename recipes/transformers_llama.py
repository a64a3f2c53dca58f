"""Pieces of transformers' Llama; tested with transformers 5.24.0, torch 2.13.0.

    lab run block --swap norm=recipes/transformers_llama.py:norm
    lab run block --swap rope=recipes/transformers_llama.py:rope
    lab run block --swap attention=recipes/transformers_llama.py:attention
    lab run block --swap gate=recipes/transformers_llama.py:gate

Found: norm, rotation and attention compute in float32 whatever they are given: red in float64, diagnosed as that, and
green in float32. The gate keeps its precision.
"""

from types import SimpleNamespace

import torch
from torch.func import functional_call
from transformers import LlamaConfig
from transformers.activations import ACT2FN
from transformers.models.llama import modeling_llama as llama

PRELOAD = ("transformers.models.llama.modeling_llama",)


def norm(x, gamma, epsilon):
    """LlamaRMSNorm, which normalises in float32 whatever it is given."""
    return functional_call(llama.LlamaRMSNorm(len(gamma), epsilon), {"weight": gamma}, (x,))


def rope(x, positions, base):
    """LlamaRotaryEmbedding's cosines and sines, in float32, and apply_rotary_pos_emb."""
    width = x.shape[-1]
    rotary = {"rope_type": "default", "rope_theta": base}
    config = LlamaConfig(hidden_size=width, num_attention_heads=1, head_dim=width, rope_parameters=rotary)
    cos, sin = llama.LlamaRotaryEmbedding(config)(x, positions[None])
    turned, _ = llama.apply_rotary_pos_emb(x, x, cos, sin)
    return turned


def attention(q, k, v):
    """The eager attention, whose softmax is in float32."""
    length = q.shape[-2]
    layer = SimpleNamespace(num_key_value_groups=q.shape[1] // k.shape[1], training=False)
    hidden = torch.full((length, length), torch.finfo(q.dtype).min, dtype=q.dtype).triu(1)
    heads, _ = llama.eager_attention_forward(layer, q, k, v, hidden, scaling=q.shape[-1] ** -0.5)
    return heads.transpose(1, 2)  # it returns [B,T,H,D]


def gate(gates, up):
    """What LlamaMLP does between its projections."""
    return ACT2FN["silu"](gates) * up
