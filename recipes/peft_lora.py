"""PEFT's LoRA layer over nn.Linear; tested with peft 0.21.2, torch 2.13.0.

    lab run lora --swap linear=recipes/peft_lora.py:linear --swap scale=recipes/peft_lora.py:scale
    lab run lora --set scaling=rslora --swap scale=recipes/peft_lora.py:scale
    lab run lora --swap merge=recipes/peft_lora.py:merge --swap unmerge=recipes/peft_lora.py:unmerge --only 'merge/[wro]*'
    lab run lora --swap merge=recipes/peft_lora.py:merge
    lab run lora --swap merge=recipes/peft_lora.py:safe_merge
    lab run lora --swap framework_kaiming=recipes/peft_lora.py:initial_a --swap initialize_b=recipes/peft_lora.py:initial_b

PEFT keeps the layout of nn.Linear: base weight [k,d] = W^T, lora_A [r,d] = A^T, lora_B [k,r] = B^T.

Found: alpha/r, alpha/sqrt(r), forward, every gradient and both starts agree. merge() rounds a bfloat16 weight once,
merge(safe_merge=True) rounds the product first and then the sum, as the lab does: some merged weights differ by one
step.
"""

import torch
from peft import LoraConfig
from peft.tuners.lora import Linear
from torch.func import functional_call

PRELOAD = ("peft.tuners.lora",)


def layer(d, k, rank, alpha=1.0, rslora=False, dtype=torch.float64):
    """A PEFT layer of these sizes around a base without bias."""
    base = torch.nn.Linear(d, k, bias=False, dtype=dtype)
    config = LoraConfig(r=rank, lora_alpha=alpha, use_rslora=rslora, lora_dropout=0.0)
    return Linear(base, "default", config, r=rank, lora_alpha=alpha).to(dtype)


def linear(x, w, lora_a, lora_b, s):
    """The layer's own forward with our tensors in the place of its parameters."""
    made = layer(*w.shape, lora_a.shape[1], dtype=x.dtype)
    made.scaling["default"] = s
    weights = {"base_layer.weight": w.T, "lora_A.default.weight": lora_a.T, "lora_B.default.weight": lora_b.T}
    return functional_call(made, weights, (x,))


def scale(alpha, rank, scaling):
    """What PEFT makes of alpha and r."""
    return layer(2, 2, rank, alpha, rslora=scaling == "rslora").scaling["default"]


def merge(w, lora_a, lora_b, s):
    """merge() into the base weight."""
    made = filled(w, lora_a, lora_b, s)
    made.merge()
    return made.base_layer.weight.T


def safe_merge(w, lora_a, lora_b, s):
    """merge(safe_merge=True), which looks for NaN before it lets go of the base."""
    made = filled(w, lora_a, lora_b, s)
    made.merge(safe_merge=True)
    return made.base_layer.weight.T


def unmerge(merged, lora_a, lora_b, s):
    """unmerge() out of it again."""
    made = filled(merged, lora_a, lora_b, s)
    made.merged_adapters.append("default")
    made.unmerge()
    return made.base_layer.weight.T


def filled(w, lora_a, lora_b, s):
    """The layer holding copies of our tensors, each in its own dtype."""
    made = layer(*w.shape, lora_a.shape[1]).requires_grad_(False)
    made.scaling["default"] = s
    made.base_layer.weight.data = w.T.clone()
    made.lora_A["default"].weight.data = lora_a.T.clone()
    made.lora_B["default"].weight.data = lora_b.T.clone()
    return made


def initial_a(d, rank):
    """lora_A as PEFT draws it."""
    return layer(d, 2, rank).lora_A["default"].weight.detach().T


def initial_b(normal):
    """lora_B as PEFT starts it."""
    return layer(2, normal.shape[1], normal.shape[0], dtype=normal.dtype).lora_B["default"].weight.detach().T
