"""The two encoders and the log-temperature as a module: what DistributedDataParallel wraps."""

from collections.abc import Callable

import torch
from torch import Tensor

PARAMETERS = ("w_a", "w_b", "log_scale")


class Encoders(torch.nn.Module):
    """Parameters w_a [d_a,D], w_b [d_b,D] and log_scale [], by what encode and scale make of them."""

    w_a: Tensor
    w_b: Tensor
    log_scale: Tensor

    def __init__(
        self,
        encode: Callable[[Tensor, Tensor], Tensor],
        scale: Callable[[Tensor], Tensor],
        initial: dict[str, Tensor],
    ) -> None:
        super().__init__()
        self.encode, self.scale = encode, scale
        for name in PARAMETERS:
            self.register_parameter(name, torch.nn.Parameter(initial[name].clone()))

    def forward(self, x_a: Tensor, x_b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x_a [n,d_a], x_b [n,d_b] -> features of each [n,D], and the factor on their cosines []."""
        return self.encode(x_a, self.w_a), self.encode(x_b, self.w_b), self.scale(self.log_scale)
