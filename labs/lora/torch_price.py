"""What one way of computing a product really costs: operations of its matrix products, bytes kept for backward.

Both are read off the graph that autograd recorded. A mode that sees every operation (torch.utils._python_dispatch, as
the profiler and the FLOP counter use) would import the symbolic shape machinery, a third of a second in each process.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks


def priced(way: str, product: Callable[..., Tensor], operands: tuple[Tensor, ...]) -> dict[str, Any]:
    """Items of one way: its value, its operations forward and backward, the bytes of the storages that it keeps."""
    leaves = [operand.detach().clone().requires_grad_() for operand in operands]
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()  # views of one storage are kept once
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        value = product(*leaves)
    products = [node for node in _graph(value.grad_fn) if node.name() in ("MmBackward0", "BmmBackward0")]
    return {
        f"order/output/{way}": value,
        f"order/operations/{way}/forward": sum(_operations(node) for node in products),
        f"order/operations/{way}/backward": sum(_operations(node) * _wanted(node) for node in products),
        f"order/saved_bytes/{way}": sum(kept.values()),
    }


def _graph(root: Any) -> Iterator[Any]:
    """Every node that backward runs from `root`, each once."""
    seen, waiting = set(), [root]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting += [before for before, _ in node.next_functions]


def _operations(node: Any) -> int:
    """2mpq of a product [m,p][p,q], whatever stands before m: it multiplies."""
    rows, columns = node._saved_self_sym_sizes, node._saved_mat2_sym_sizes[-1]  # noqa: SLF001
    return 2 * math.prod(int(size) for size in rows) * int(columns)


def _wanted(node: Any) -> int:
    """How many of the two operands want a gradient: each costs one more product of the same size."""
    return sum(before is not None for before, _ in node.next_functions)
