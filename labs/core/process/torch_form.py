"""The form of a result: what the lab's own part makes of some inputs, found out on copies. Python 3.10 syntax."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from labs.core.process.torch_graph import graph_start, reached_by, tensors_in

_COPIED = 1 << 22  # elements of one input: above, a change is seen by its version counter alone
_PLAIN = (int, float, bool, str, type(None), slice)


class Form(NamedTuple):
    """What the lab's own part makes of some inputs: its result, which inputs it writes into, which it leads back to."""

    result: Any
    written: frozenset[int]
    reached: frozenset[int]


def is_plain(value: object) -> bool:
    """True for tensors, numbers and what holds them: the own part can be run on copies, and leaves no trace."""
    if isinstance(value, Mapping):
        return all(map(is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return isinstance(value, (Tensor, *_PLAIN)) and not isinstance(value, torch.nn.Parameter)


def form_key(value: object, grad: bool) -> Any:
    """What the form of a result can depend on: shapes, dtypes, and the values of integers."""
    if isinstance(value, Tensor):
        whole = not value.dtype.is_floating_point and value.device.type == "cpu"
        content = value.numpy().tobytes() if whole else b""
        return (value.shape, value.dtype, value.device, value.requires_grad, content, grad)
    if isinstance(value, Mapping):
        return tuple((name, form_key(inner, grad)) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return (type(value), *(form_key(inner, grad) for inner in value))
    return repr(value)


def rehearsed(own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Form | None:
    """The own part on copies; None when it fails there, which says nothing of the other one."""
    state = torch.get_rng_state()
    copied_args, copied_kwargs = _copied((args, kwargs))
    copies = list(tensors_in((copied_args, copied_kwargs)))
    before, versions = [snapshot(copy) for copy in copies], [copy._version for copy in copies]  # noqa: SLF001
    starts = [graph_start(copy) for copy in copies]
    try:
        with saved_tensors_hooks(_untouched, _untouched):  # a stage that counts what is saved must not count this
            result = own(*copied_args, **copied_kwargs)
    except Exception:  # noqa: BLE001 - whatever it is, the stage meets it again without the swap
        return None
    finally:
        torch.set_rng_state(state)
    # Also where the bits are the same: a step along a gradient of 0 writes what was there.
    counted = {n for n, copy in enumerate(copies) if copy._version != versions[n]}  # noqa: SLF001
    written = counted.union(n for n, copy in enumerate(copies) if changed(copy, before[n]))
    return Form(_outline(result), frozenset(written), frozenset(reached_by(result, copies, starts)))


def _untouched(tensor: Tensor) -> Tensor:
    return tensor


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, Mapping):
        return {name: _copied(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        inner = [_copied(item) for item in value]
        return type(value)(*inner) if hasattr(value, "_fields") else type(value)(inner)
    return value


def _outline(result: Any) -> Any:
    """The result without its values and its graph, so that remembering it costs nothing."""
    if isinstance(result, Tensor):
        return result.detach().to("meta") if result.device.type == "cpu" else result.detach()
    if isinstance(result, list | tuple):
        return [_outline(item) for item in result]
    return result


def snapshot(tensor: Tensor) -> Any:
    """What tells later whether the tensor was written into."""
    if tensor.numel() > _COPIED:
        return tensor._version  # noqa: SLF001 - torch's own name for it
    return _bits(tensor).clone()


def changed(tensor: Tensor, was: Any) -> bool:
    """True when the tensor is not what its snapshot was."""
    if isinstance(was, Tensor):
        bits = _bits(tensor)
        return bits.shape != was.shape or not torch.equal(bits, was)
    return bool(tensor._version != was)  # noqa: SLF001


def _bits(tensor: Tensor) -> Tensor:
    """Bytes, so that NaN equals itself and -0 is not 0."""
    return tensor.detach().reshape(-1).contiguous().view(torch.uint8)
