"""Rows about layers, by torch: norms, attention, gates, residual paths, and what a loss passes down to them."""
# ruff: noqa: D103 (a row's function is described by its entry in the table)

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor


def rms_constant_r(x: Tensor, gamma: Tensor, dy: Tensor) -> Tensor:
    return pulled_back(F.rms_norm(x.requires_grad_(), gamma.shape, gamma, 0.0), dy, x)


def rms_weight_gradient_missing(x: Tensor, gamma: Tensor, dy: Tensor) -> Tensor:
    return pulled_back(F.rms_norm(x, gamma.shape, gamma.requires_grad_(), 0.0), dy, gamma)


def rms_offset(x: Tensor, gamma: Tensor) -> Tensor:
    return F.rms_norm(x, gamma.shape, gamma, 0.0)


def rows_from_first_axis(dy: Tensor, width: Tensor) -> Tensor:
    gamma = torch.ones(int(width), dtype=dy.dtype, requires_grad=True)
    x = torch.ones(*dy.shape, int(width), dtype=dy.dtype)  # [2, 3, 4]
    y = F.rms_norm(x, gamma.shape, gamma, 0.0)
    return pulled_back(y, dy.unsqueeze(-1), gamma)


def scale_missing(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return two_keys(q, k, v, scale=None)


def two_keys(q: Tensor, k: Tensor, v: Tensor, scale: float | None) -> Tensor:
    """Attention of one query over a key of k and one of 0; scale None is torch's own."""
    keys = torch.stack([k.expand_as(q), torch.zeros_like(q)])
    return F.scaled_dot_product_attention(q[None, None], keys[None], v[None, :, None], scale=scale).squeeze()


def causal_off(v: Tensor) -> Tensor:
    return averages(v, len(v), is_causal=True)


def causal_top_left(v: Tensor, queries: Tensor) -> Tensor:
    return averages(v, int(queries), is_causal=True)


def causal_bottom_right(v: Tensor, queries: Tensor) -> Tensor:
    visible = torch.ones(int(queries), len(v), dtype=torch.bool).tril(len(v) - int(queries))
    return averages(v, int(queries), attn_mask=visible)


def averages(v: Tensor, queries: int, attn_mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
    """Attention of queries that are all 0 over values v [S] -> [queries]."""
    q, k = v.new_zeros(1, queries, 1), v.new_zeros(1, len(v), 1)
    y = F.scaled_dot_product_attention(q, k, v[None, :, None], attn_mask=attn_mask, is_causal=is_causal)
    return y[0, :, 0]


def masked_row_nan(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q.requires_grad_()
    visible = torch.zeros_like(k, dtype=torch.bool)
    # What torch's own attention does here depends on its version (torch_facts.py), so it is not used.
    seen = visible.any()
    p = torch.softmax((q * k).masked_fill(~visible & seen, -torch.inf), -1) * seen
    y = p @ v
    return torch.stack([y, *torch.autograd.grad(y, q)])


def softmax_backward_no_sum(s: Tensor, dp: Tensor) -> Tensor:
    ds = pulled_back(torch.softmax(s.requires_grad_(), -1), dp, s)
    return torch.cat([ds, ds.sum(0, keepdim=True)])


def silu_derivative(a: Tensor) -> Tensor:
    a.requires_grad_()
    return torch.autograd.grad(F.silu(a), a)[0]


def residual_dropped(x: Tensor, w: Tensor) -> Tensor:
    return x + w * x


def residual_gradient_dropped(x: Tensor, w: Tensor) -> Tensor:
    x.requires_grad_()
    return torch.autograd.grad(x + w * x, x)[0]


def upstream_ignored(x: Tensor, w: Tensor, labels: Tensor, upstream: Tensor) -> Tensor:
    losses = F.cross_entropy(torch.outer(x, w.requires_grad_()), labels, reduction="none")
    return pulled_back(losses, upstream, w)


def pulled_back(y: Tensor, dy: Tensor, leaf: Tensor) -> Tensor:
    """The gradient of a leaf when dy comes from above."""
    # A product, because grad(y, leaf, dy) imports sympy, half a second.
    return torch.autograd.grad((y * dy).sum(), leaf)[0]
