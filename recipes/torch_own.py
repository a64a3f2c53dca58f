"""torch's own layers and fused kernels; tested with torch 2.13.0.

    lab run block --swap norm=recipes/torch_own.py:rms_norm
    lab run block --swap attention=recipes/torch_own.py:flash_attention
    lab run block --swap optimizer=recipes/torch_own.py:fused_adamw
    lab run block --swap optimizer=recipes/torch_own.py:foreach_adamw

Found: all four agree with the hand-derived layer, attention and AdamW.
"""

import torch
import torch.nn.functional as F
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.optim.adamw import adamw


def rms_norm(x, gamma, epsilon):
    """nn.RMSNorm with gamma for its weight."""
    layer = torch.nn.RMSNorm(gamma.shape, eps=epsilon, dtype=x.dtype)
    return functional_call(layer, {"weight": gamma}, (x,))


def flash_attention(q, k, v):
    """scaled_dot_product_attention by its CPU flash kernel; it repeats the key/value heads itself."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def fused_adamw(*lists, **settings):
    """The fused CPU kernel."""
    _adamw(*lists, **settings, fused=True)


def foreach_adamw(*lists, **settings):
    """The multi-tensor implementation."""
    _adamw(*lists, **settings, foreach=True)


def _adamw(params, grads, exp_avgs, exp_avg_sqs, steps, *, epsilon, **settings):
    with torch.no_grad():
        adamw(params, grads, exp_avgs, exp_avg_sqs, [], steps, eps=epsilon, amsgrad=False, maximize=False, **settings)
