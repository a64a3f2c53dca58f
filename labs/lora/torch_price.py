"""What one way of computing a product really costs: operations of its matrix products, bytes kept for backward."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode


class MatmulCount(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts 2mpq operations for each product [m,p][p,q] that torch executes, forward or backward."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would import the compiler, two seconds; nothing is compiled here

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.bmm):
            left, right = args
            self.operations += 2 * math.prod(left.shape) * right.shape[-1]
        return func(*args, **(kwargs or {}))


def priced(way: str, product: Callable[..., Tensor], operands: tuple[Tensor, ...]) -> dict[str, Any]:
    """Items of one way: its value, its operations forward and backward, the bytes of the storages that it keeps."""
    leaves = [operand.detach().clone().requires_grad_() for operand in operands]
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()  # views of one storage are kept once
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with MatmulCount() as forward, saved_tensors_hooks(keep, lambda tensor: tensor):
        value = product(*leaves)
    with MatmulCount() as backward:
        value.backward(torch.ones_like(value))  # type: ignore[no-untyped-call]
    return {
        f"order/output/{way}": value,
        f"order/operations/{way}/forward": forward.operations,
        f"order/operations/{way}/backward": backward.operations,
        f"order/saved_bytes/{way}": sum(kept.values()),
    }
