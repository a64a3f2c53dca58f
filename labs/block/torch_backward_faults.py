"""Hand-written backward passes that are wrong: a fault there can't be made by changing a forward pass.

The forward pass of each is right. torch_faults.py makes parts of them.
"""
# ruff: noqa: ARG004, D102 (autograd says what forward and backward are given)

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from labs.block import torch_parts as right


class Norm(torch.autograd.Function):
    """RMSNorm with a choice of mistakes in its backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: Tensor, epsilon: float, mistake: str) -> Tensor:
        r = (x.square().mean(-1, keepdim=True) + epsilon).rsqrt()
        ctx.save_for_backward(x, gamma, r)
        ctx.mistake = mistake
        return x * r * gamma

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x, gamma, r = ctx.saved_tensors
        v = grad * gamma
        dx = r * v
        if ctx.mistake != "constant r":
            dx = dx - r**3 * x * (v * x).mean(-1, keepdim=True)
        rows = (grad * x * r).flatten(0, -2)
        if ctx.mistake == "rows from the first axis":
            rows = rows[: x.shape[0]]
        return dx, rows.sum(0), None, None


class Softmax(torch.autograd.Function):
    """Softmax whose backward pass is that of an elementwise function."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, visible: Tensor) -> Tensor:
        probs = right.softmax(scores, visible)
        ctx.save_for_backward(probs)
        return probs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (probs,) = ctx.saved_tensors
        return probs * grad, None


class Rope(torch.autograd.Function):
    """A rotation whose backward pass turns in the same direction again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, positions: Tensor, base: float) -> Tensor:
        ctx.save_for_backward(positions)
        ctx.base = base
        return right.rope(x, positions, base)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (positions,) = ctx.saved_tensors
        return right.rope(grad, positions, ctx.base), None, None


class Gate(torch.autograd.Function):
    """SwiGLU's gate whose backward pass takes sigma(a) for the derivative of a sigma(a)."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gates, up)
        return right.gate(gates, up)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        gates, up = ctx.saved_tensors
        return grad * up * gates.sigmoid(), grad * F.silu(gates)


class Dropout(torch.autograd.Function):
    """Dropout whose mask is drawn again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, share: float) -> Tensor:
        ctx.share = share
        return right.dropout(x, share)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return right.dropout(grad, ctx.share), None


class Loss(torch.autograd.Function):
    """A fused loss that makes its gradient in the forward pass, and hands it on whatever comes from above."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            value = right.loss(leaf, labels, weights)
        ctx.save_for_backward(*torch.autograd.grad(value, leaf))
        return value.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.saved_tensors[0], None, None
