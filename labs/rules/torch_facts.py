"""What torch itself does at the edges where its versions differ: stated in the report, judged by nobody.

No config and no part changes an answer, so each is asked for once a process.
"""

import functools

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor


def masked_row_nan() -> bool:
    """Whether attention gives NaN to a query that sees no key."""
    return bool(_blind(torch.zeros(1, 1, 1, 1)).isnan().any())


def masked_row_gradient_nan() -> bool:
    """Whether its gradient is NaN."""
    q = torch.zeros(1, 1, 1, 1, requires_grad=True)
    (dq,) = torch.autograd.grad(_blind(q).sum(), q)
    return bool(dq.isnan().any())


def empty_mean_nan() -> bool:
    """Whether the mean cross-entropy of no label is NaN."""
    return bool(F.cross_entropy(torch.zeros(1, 2), torch.tensor([-100])).isnan())


def trunc_normal_at_bound() -> bool:
    """Whether narrow truncated normal draws in bfloat16 land on a bound that is 100 standard deviations away."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.empty(1024, dtype=torch.bfloat16)
    torch.nn.init.trunc_normal_(drawn, std=0.02, a=-2.0, b=2.0, generator=generator)
    return bool((drawn.abs() == 2.0).any())  # noqa: PLR2004 (the bound)


FACTS = {
    "masked_row_nan": functools.cache(masked_row_nan),
    "masked_row_gradient_nan": functools.cache(masked_row_gradient_nan),
    "empty_mean_nan": functools.cache(empty_mean_nan),
    "trunc_normal_at_bound": functools.cache(trunc_normal_at_bound),
}


def _blind(q: Tensor) -> Tensor:
    k = torch.ones(1, 1, 2, 1)
    return F.scaled_dot_product_attention(q, k, k, attn_mask=torch.zeros(1, 2, dtype=torch.bool))
