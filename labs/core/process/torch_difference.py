"""What is wrong with the form of a result, in a sentence. Python 3.10 syntax."""

from typing import Any

import torch
from torch import Tensor


def difference(found: object, expected: object) -> str:
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
    wrong = ((n, difference(a, b)) for n, (a, b) in enumerate(zip(found, expected, strict=True)))
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
