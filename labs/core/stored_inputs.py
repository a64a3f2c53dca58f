"""Inputs that a config takes from files instead of drawing them: real weights have outliers, drawn ones have none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from labs.core.errors import RequestError
from labs.core.lab import Array, Arrays
from labs.core.loading.nearest import nearest
from labs.core.setting import setting


@dataclass(frozen=True)
class Stored:
    """Where an input lies. `part` is a slice of rows and columns, such as ":64,:128"; after `transpose`."""

    file: str = field(metadata={"doc": "a .npy, .npz or .safetensors file, from here or absolute"})
    name: str = setting("", "the array's name in it; none in an .npy file")
    transpose: bool = setting(default=False, doc="nn.Linear keeps [out, in], a lab wants [in, out]")
    part: str = setting("", 'the part of it that is used, ":64,:128"; none: all')


def with_stored(arrays: Arrays, stored: Mapping[str, Stored]) -> Arrays:
    """The drawn inputs with those named in `stored` replaced.

    Raises RequestError: no such input, another shape or another kind of number.
    """
    if not stored:
        return arrays
    from labs.core.loading.tensor_files import read_tensor  # noqa: PLC0415 - few runs need it

    found = dict(arrays)
    for name, where in stored.items():
        if name not in arrays:
            raise RequestError(f"from_files.{name}: the lab has no such input{nearest(name, arrays)}")
        try:
            whole = read_tensor(Path(where.file), where.name)
        except RequestError as error:
            raise RequestError(f"from_files.{name}: {error}") from error
        array = _cut(name, where, whole)
        _require(name, where, array, arrays[name])
        found[name] = array.astype(arrays[name].dtype)
    return found


def _cut(name: str, where: Stored, array: Array) -> Array:
    turned = array.T if where.transpose else array
    if not where.part:
        return np.ascontiguousarray(turned)
    try:
        cuts = tuple(
            slice(*(int(end) if end.strip() else None for end in cut.split(":"))) for cut in where.part.split(",")
        )
        return np.ascontiguousarray(turned[cuts])
    except (ValueError, TypeError, IndexError) as error:
        raise RequestError(f"from_files.{name}.part: {where.part!r} is no slice of shape {_shape(turned)}") from error


def _require(name: str, where: Stored, array: Array, drawn: Array) -> None:
    said = f"from_files.{name}: {where.file}{where.name and ': '}{where.name}"
    if (array.dtype.kind == "f") != (drawn.dtype.kind == "f"):
        raise RequestError(f"{said} holds {array.dtype}, expected {drawn.dtype}")
    if array.shape != drawn.shape:
        hint = (
            "; transpose: true would fit" if array.T.shape == drawn.shape else "; the sizes in the config have to fit"
        )
        raise RequestError(f"{said} has shape {_shape(array)}, expected {_shape(drawn)}{hint}")


def _shape(array: Array) -> Sequence[int]:
    return list(array.shape)
