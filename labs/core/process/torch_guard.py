"""Watches a swapped-in part: what it takes, what it gives back, what it leaves alone. Python 3.10 syntax.

The lab's own part runs on copies of the same inputs first, and what it returns is the form that is expected: tensor or
number, shape, dtype, device, a way back to the inputs that want gradients, inputs left as they were. Values are not
looked at here: that is what the referee does. The swapped-in part gets the stage's own tensors, and its result is
passed on untouched, so its gradients are its own. A form that was seen for the same shapes is not computed again.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from labs.core.process.mark import Mark
from labs.core.process.swap import StageError, Swap
from labs.core.process.torch_difference import difference
from labs.core.process.torch_form import Form, changed, form_key, is_plain, rehearsed, snapshot
from labs.core.process.torch_graph import graph_start, leads_to, reached_by, tensors_in

_LARGE = 1 << 24  # elements of all inputs: above, the lab's own part is not run beside the other one


class PartError(StageError):
    """A swapped-in part that does not keep to its signature; its text is the whole sentence."""

    def __init__(self, swap: Swap, text: str) -> None:
        super().__init__(f"part {swap.part} ({swap.place}) {text}")
        self.part = swap.part


@dataclass
class Guard:
    """Stands for the part `swap.part`; `own` is the lab's own callable; `remembers` not where ranks keep step."""

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
        tensors = list(tensors_in((args, kwargs)))
        form = self._form(args, kwargs, tensors)
        before = [snapshot(tensor) for tensor in tensors] if form else []
        starts = [graph_start(tensor) for tensor in tensors]
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
            labels = self._labels(args, kwargs)
            self._compare(result, form)
            self._compare_inputs(tensors, before, form, labels)
            self._compare_graph(reached_by(result, tensors, starts), starts, form, labels)
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
        if not is_plain((args, kwargs)) or sum(tensor.numel() for tensor in tensors) > _LARGE:
            return None
        key = form_key((args, kwargs), torch.is_grad_enabled()) if self.remembers else None
        if key is None or key not in self._seen:
            self._seen[key] = rehearsed(self.own, args, kwargs)
        return self._seen[key]

    def _compare(self, result: object, form: Form) -> None:
        wrong = difference(result, form.result)
        if wrong:
            raise PartError(self.swap, f"returned {wrong}")

    def _compare_inputs(self, tensors: list[Tensor], before: list[Any], form: Form, labels: list[str]) -> None:
        for number, (tensor, was) in enumerate(zip(tensors, before, strict=True)):
            if number not in form.written and changed(tensor, was):
                raise PartError(self.swap, f"writes into its input {labels[number]}")

    def _compare_graph(self, reached: set[int], starts: list[Any], form: Form, labels: list[str]) -> None:
        if form.reached and not reached:
            raise PartError(self.swap, "returned a result that is cut off from the graph: nothing gets a gradient")
        lost = [n for n in sorted(form.reached - reached) if not leads_to(starts, n, reached)]
        if lost:
            names = ", ".join(labels[number] for number in lost)
            raise PartError(self.swap, f"returned a result without a way back to {names}: no gradient gets there")

    def _labels(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        """What each input tensor is called: by its argument, and by its place where that holds several."""
        names = [*self._names[: len(args)], *(f"argument {n + 1}" for n in range(len(self._names), len(args)))]
        found: list[str] = []
        for name, value in [*zip(names, args, strict=True), *kwargs.items()]:
            count = len(list(tensors_in(value)))
            found += [name] if isinstance(value, Tensor) else [f"{name}[{n}]" for n in range(count)]
        return found


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
