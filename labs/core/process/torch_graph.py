"""Which tensors a result's autograd graph leads back to. Python 3.10 syntax."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

_NODES = 20_000  # of a graph that is searched


def tensors_in(value: object) -> Iterator[Tensor]:
    """Every tensor in a value, containers looked into, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from tensors_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from tensors_in(inner)


def graph_start(tensor: Tensor) -> Any:
    """Where the graph reaches this tensor; None where it wants no gradient."""
    if not tensor.requires_grad:
        return None
    return tensor if tensor.grad_fn is None else tensor.grad_fn


def reached_by(result: object, tensors: list[Tensor], starts: list[Any]) -> set[int]:
    """The numbers of the input tensors that lie on the way back from any tensor in the result."""
    wanted = [n for n, start in enumerate(starts) if start is not None]
    passed_on = {n for tensor in tensors_in(result) for n in wanted if tensor is tensors[n]}
    return passed_on | _walked([tensor.grad_fn for tensor in tensors_in(result)], starts)


def leads_to(starts: list[Any], number: int, reached: set[int]) -> bool:
    """True where this input was made from another one that the result leads back to: it is reached around it."""
    start = starts[number]
    return not isinstance(start, Tensor) and bool(_walked([n for n, _ in start.next_functions], starts) & reached)


def _walked(nodes: list[Any], starts: list[Any]) -> set[int]:
    """The numbers of the inputs that a walk back through the graph ends at."""
    ends: dict[int, set[int]] = {}
    for number, start in enumerate(starts):
        if start is not None:
            ends.setdefault(id(start), set()).add(number)
    found: set[int] = set()
    waiting = [node for node in nodes if node is not None]
    known = set(waiting)
    while waiting and len(known) < _NODES:
        node = waiting.pop()
        found |= ends.get(id(node), set()) | ends.get(id(getattr(node, "variable", None)), set())
        if id(node) not in ends:
            fresh = {after for after, _ in node.next_functions if after is not None} - known
            known |= fresh
            waiting += fresh
    return found
