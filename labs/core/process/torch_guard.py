"""Watches a swapped-in part: what it takes, what it gives back, what it leaves alone. Python 3.10 syntax.

The lab's own part runs on copies of the same inputs first, and what it returns is the form that is expected: tensor or
number, shape, dtype, device, a way back to the inputs that want gradients, inputs left as they were. Values are not
looked at here: that is what the referee does. The swapped-in part gets the stage's own tensors, and its result is
passed on untouched, so its gradients are its own. A form that was seen for the same shapes is not computed again.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from labs.core.process.mark import Mark
from labs.core.process.swap import StageError, Swap

_LARGE = 1 << 24  # elements of all inputs: above, the lab's own part is not run beside the other one
_COPIED = 1 << 22  # elements of one input: above, a change is seen by its version counter alone
_PLAIN = (int, float, bool, str, type(None), slice)
_NODES = 20_000  # of a graph that is searched for the inputs


class PartError(StageError):
    """A swapped-in part that does not keep to its signature; its text is the whole sentence."""

    def __init__(self, swap: Swap, text: str) -> None:
        super().__init__(f"part {swap.part} ({swap.place}) {text}")
        self.part = swap.part


class Form(NamedTuple):
    """What the lab's own part makes of some inputs: its result, which inputs it writes into, which it leads back to."""

    result: Any
    written: frozenset[int]
    reached: frozenset[int]


@dataclass
class Guard:
    """Stands for the part `swap.part`; `own` is the lab's own callable, `memo` off where ranks have to keep step."""

    swap: Swap
    own: Callable[..., Any]
    mark: Mark
    remembers: bool

    def __post_init__(self) -> None:
        """Look at both signatures once."""
        self._signature = _signature(self.swap.callable)
        self._names = _names(self.own)
        self._seen: dict[Any, Form | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the swapped-in part. Raises PartError, and whatever the part raises."""
        self._fit(args, kwargs)
        tensors = list(_tensors((args, kwargs)))
        form = self._form(args, kwargs, tensors)
        before = [_snapshot(tensor) for tensor in tensors]
        starts = [_node(tensor) for tensor in tensors]
        self.mark.enter(self.swap.part)
        try:
            result = self.swap.callable(*args, **kwargs)
        except BaseException as error:
            if isinstance(error, TypeError) and error.__traceback__ and error.__traceback__.tb_next is None:
                self._refuse(args, kwargs, error)  # it was never entered
            _name(error, self.swap.part)
            raise
        finally:
            self.mark.leave()
        if form is not None:
            self._compare(result, form)
            self._compare_inputs(tensors, before, form)
            self._compare_graph(result, tensors, starts, form)
        return result

    def _fit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            if self._signature is not None:
                self._signature.bind(*args, **kwargs)
        except TypeError as error:
            self._refuse(args, kwargs, error)

    def _refuse(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError) -> NoReturn:
        given = ", ".join([*self._names[: len(args)], *(f"{name}=" for name in kwargs)])
        taken = f"takes {self._signature}, and is" if self._signature else "is"
        raise PartError(self.swap, f"{taken} called with ({given}): {error}") from None

    def _form(self, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> Form | None:
        if not _is_plain((args, kwargs)) or sum(tensor.numel() for tensor in tensors) > _LARGE:
            return None
        key = _key((args, kwargs), torch.is_grad_enabled()) if self.remembers else None
        if key is None or key not in self._seen:
            self._seen[key] = _rehearsed(self.own, args, kwargs)
        return self._seen[key]

    def _compare(self, result: object, form: Form) -> None:
        wrong = _difference(result, form.result)
        if wrong:
            raise PartError(self.swap, f"returned {wrong}")

    def _compare_inputs(self, tensors: list[Tensor], before: list[Any], form: Form) -> None:
        for number, (tensor, was) in enumerate(zip(tensors, before, strict=True)):
            if number not in form.written and _changed(tensor, was):
                raise PartError(self.swap, f"writes into its input {self._input(number, len(tensors))}")

    def _compare_graph(self, result: object, tensors: list[Tensor], starts: list[Any], form: Form) -> None:
        if not form.reached:
            return
        reached = _reached(result, tensors, starts)
        if not reached:
            raise PartError(self.swap, "returned a result that is cut off from the graph: nothing gets a gradient")
        lost = [n for n in sorted(form.reached - reached) if not _leads_to(starts, n, reached)]
        if lost:
            names = ", ".join(self._input(number, len(tensors)) for number in lost)
            raise PartError(self.swap, f"returned a result without a way back to {names}: no gradient gets there")

    def _input(self, number: int, count: int) -> str:
        """The name of the input tensor with this number, where every argument before it is a tensor too."""
        return self._names[number] if count <= len(self._names) else f"number {number + 1} of {count}"


def guarded(swap: Swap, own: Any, mark: Mark, ranks: int) -> Callable[..., Any]:
    """The swapped-in callable with a guard around it; faults of the lab itself are left alone."""
    return swap.callable if swap.fault else Guard(swap, own, mark, remembers=ranks == 1)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # a compiled one
        return None


def _names(function: Callable[..., Any]) -> list[str]:
    signature = _signature(function)
    return list(signature.parameters) if signature else []


def _name(error: BaseException, part: str) -> None:
    """Say on the error itself which part it passed through; a compiled part leaves no frame."""
    if not hasattr(error, "part"):
        try:
            error.part = part  # type: ignore[attr-defined]
        except AttributeError:
            return


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _tensors(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _tensors(inner)


def _is_plain(value: object) -> bool:
    """True for tensors, numbers and what holds them: the own part can be run on copies, and leaves no trace."""
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, (Tensor, *_PLAIN)) and not isinstance(value, torch.nn.Parameter)


def _key(value: object, grad: bool) -> Any:
    """What the form of a result can depend on: shapes, dtypes, and the values of integers."""
    if isinstance(value, Tensor):
        whole = not value.dtype.is_floating_point and value.device.type == "cpu"
        content = value.numpy().tobytes() if whole else b""
        return (value.shape, value.dtype, value.device, value.requires_grad, content, grad)
    if isinstance(value, Mapping):
        return tuple((name, _key(inner, grad)) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return (type(value), *(_key(inner, grad) for inner in value))
    return repr(value)


def _rehearsed(own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Form | None:
    """The own part on copies; None when it fails there, which says nothing of the other one."""
    state = torch.get_rng_state()
    copied_args, copied_kwargs = _copied((args, kwargs))
    copies = list(_tensors((copied_args, copied_kwargs)))
    before, versions = [_snapshot(copy) for copy in copies], [copy._version for copy in copies]  # noqa: SLF001
    starts = [_node(copy) for copy in copies]
    try:
        with saved_tensors_hooks(_untouched, _untouched):  # a stage that counts what is saved must not count this
            result = own(*copied_args, **copied_kwargs)
    except Exception:  # noqa: BLE001 - whatever it is, the stage meets it again without the swap
        return None
    finally:
        torch.set_rng_state(state)
    # Also where the bits are the same: a step along a gradient of 0 writes what was there.
    counted = {n for n, copy in enumerate(copies) if copy._version != versions[n]}  # noqa: SLF001
    written = counted.union(n for n, copy in enumerate(copies) if _changed(copy, before[n]))
    return Form(_outline(result), frozenset(written), frozenset(_reached(result, copies, starts)))


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


def _snapshot(tensor: Tensor) -> Any:
    if tensor.numel() > _COPIED:
        return tensor._version  # noqa: SLF001 - torch's own name for it
    return _bits(tensor).clone()


def _changed(tensor: Tensor, was: Any) -> bool:
    if isinstance(was, Tensor):
        bits = _bits(tensor)
        return bits.shape != was.shape or not torch.equal(bits, was)
    return bool(tensor._version != was)  # noqa: SLF001


def _bits(tensor: Tensor) -> Tensor:
    """Bytes, so that NaN equals itself and -0 is not 0."""
    return tensor.detach().reshape(-1).contiguous().view(torch.uint8)


def _node(tensor: Tensor) -> Any:
    """Where the graph reaches this tensor; None where it wants no gradient."""
    if not tensor.requires_grad:
        return None
    return tensor if tensor.grad_fn is None else tensor.grad_fn


def _reached(result: object, tensors: list[Tensor], starts: list[Any]) -> set[int]:
    """The numbers of the input tensors that lie on the way back from any tensor in the result."""
    wanted = [n for n, start in enumerate(starts) if start is not None]
    passed_on = {n for tensor in _tensors(result) for n in wanted if tensor is tensors[n]}
    return passed_on | _walked([tensor.grad_fn for tensor in _tensors(result)], starts)


def _leads_to(starts: list[Any], number: int, reached: set[int]) -> bool:
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


def _difference(found: object, expected: object) -> str:
    """What is wrong with the form of a result; empty when nothing is."""
    if isinstance(expected, Tensor):
        return _tensor_difference(found, expected)
    if isinstance(expected, list):
        return _list_difference(found, expected)
    wanted = "a number" if isinstance(expected, int | float) else "a text" if isinstance(expected, str) else ""
    fits = not wanted or (_is_number(found) if wanted == "a number" else isinstance(found, str))
    return "" if fits else f"{_kind(found)}, expected {wanted}"


def _list_difference(found: object, expected: list[Any]) -> str:
    if not isinstance(found, list | tuple):
        return f"{_kind(found)}, expected {len(expected)} values"
    if len(found) != len(expected):
        return f"{len(found)} values, expected {len(expected)}"
    wrong = ((n, _difference(a, b)) for n, (a, b) in enumerate(zip(found, expected, strict=True)))
    return next((f"as value {n + 1} {text}" for n, text in wrong if text), "")


def _tensor_difference(found: object, expected: Tensor) -> str:
    wanted = f"expected a tensor of shape {_shape(expected)}, {_dtype(expected)}"
    if not isinstance(found, Tensor):
        return f"{_kind(found)}, {wanted}"
    device = "cpu" if expected.device.type == "meta" else str(expected.device)  # see _outline
    wrong = (
        (found.layout != torch.strided, f"a tensor of layout {found.layout}, {wanted}"),
        (found.shape != expected.shape, f"a tensor of shape {_shape(found)}, expected {_shape(expected)}"),
        (found.dtype != expected.dtype, f"{_dtype(found)}, expected {_dtype(expected)}"),
        (str(found.device) != device, f"a tensor on {found.device}, expected it on {device}"),
    )
    return next((text for true, text in wrong if true), "")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, Tensor) and value.numel() == 1)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _shape(tensor: Tensor) -> str:
    return str(list(tensor.shape))


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
