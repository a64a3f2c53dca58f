"""Tensors from files and items to files, in the framework process: `.npy` only, never pickle. Python 3.10 syntax."""

import functools
import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labs.core.process.pack import read_pack, write_pack
from labs.core.process.swap import StageError

_NAME = re.compile(r"[a-z0-9_.-]+(/[a-z0-9_.-]+)*")
_SMALL = 1 << 16  # bytes up to which a file is read once a process and kept
_MAPPED = 1 << 20  # bytes beyond which a file is mapped instead of read
_PIECE = 1 << 16  # bytes written at once
_DTYPES = (
    torch.float64,
    torch.float32,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)


def load_inputs(folder: str, precision: str = "float64", device: str = "cpu") -> dict[str, torch.Tensor]:
    """Every <name>.npy of a folder as a tensor of its own memory: a stage that writes into it harms only itself."""
    tensors = {name: torch.from_numpy(_own(file)) for name, file in _listed(folder)}
    if precision == "float64" and device == "cpu":
        return tensors
    dtype = getattr(torch, precision)
    return {name: t.to(device, dtype if t.is_floating_point() else t.dtype) for name, t in tensors.items()}


@functools.cache  # the tasks of a job read the same inputs
def _listed(folder: str) -> tuple[tuple[str, str], ...]:
    files = sorted(Path(folder).rglob("*.npy"))
    return tuple((file.relative_to(folder).with_suffix("").as_posix(), str(file)) for file in files)


def _own(file: str) -> NDArray[Any]:
    """A file's array that nobody else holds."""
    return _kept(file).copy() if os.path.getsize(file) <= _SMALL else _read(file)  # noqa: PTH202 - pathlib is slow


@functools.cache  # reading costs more than any stage computes with it
def _kept(file: str) -> NDArray[Any]:
    return _read(file)


def _read(file: str) -> NDArray[Any]:
    """A file's array; a large one is mapped, and a page of it copied when somebody writes there."""
    large = os.path.getsize(file) > _MAPPED  # noqa: PTH202
    return np.asarray(np.load(file, mmap_mode="c" if large else None, allow_pickle=False))


def arrays_of(stage: str, result: object, precision: str = "float64") -> dict[str, NDArray[Any]]:
    """What a stage returned, as arrays; in a narrower precision floats are widened, which is exact.

    Raises StageError naming the first item that is not fit to be compared.
    """
    if not isinstance(result, Mapping):
        raise StageError(f"stage {stage} returned {_kind(result)}, expected a mapping of item names to tensors")
    widened = {n: _widened(value) for n, value in result.items()} if precision != "float64" else result
    return {_checked(name): _array(name, value) for name, value in widened.items()}


def _widened(value: object) -> object:
    return value.detach().double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _checked(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or {".", ".."} & set(name.split("/")):
        raise StageError(f"item name {name!r} is not a path of lower-case letters, digits, '_', '.', '-' and '/'")
    return name


def _array(name: str, value: object) -> NDArray[Any]:
    if isinstance(value, bool | int | float):
        return _scalar(name, value)
    if not isinstance(value, torch.Tensor):
        raise StageError(f"item {name} is {_kind(value)}, expected a tensor, a bool, an int or a float")
    if value.dtype not in _DTYPES:
        raise StageError(f"item {name} has dtype {value.dtype}, expected float64, float32, an integer or bool")
    if value.layout != torch.strided:
        raise StageError(f"item {name} has layout {value.layout}, expected a dense tensor")
    array: NDArray[Any] = value.detach().cpu().resolve_neg().contiguous().numpy()
    return array


def _scalar(name: str, value: float) -> NDArray[Any]:
    kind = bool if isinstance(value, bool) else np.int64 if isinstance(value, int) else np.float64
    try:
        return np.asarray(value, dtype=kind)
    except OverflowError:
        raise StageError(f"item {name} is an integer that does not fit into 64 bits") from None


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def save_items(items: dict[str, NDArray[Any]], out: str) -> tuple[str, ...]:
    """Write each item to <out>/<name>.npy and let go of it, so that its memory can hold the next file: their names."""
    names = tuple(items)
    for name in names:
        _save(name, items.pop(name), f"{out}/{name}.npy")
    return names


def pack_items(items: Mapping[str, NDArray[Any]], file: str, good: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write to one file each item that has other bits than in the file `good`, when there is one: (written, same)."""
    known = _known(good) if good else {}
    same = tuple(name for name, array in items.items() if name in known and _same(known[name], array))
    changed = {name: array for name, array in items.items() if name not in same}
    if changed:
        write_pack(file, changed)
    return tuple(changed), same


@functools.cache  # the controls of a job stand beside the same good run
def _known(file: str) -> dict[str, NDArray[Any]]:
    return read_pack(file) if os.path.isfile(file) else {}  # noqa: PTH113


def _save(name: str, array: NDArray[Any], file: str) -> None:
    _make(os.path.dirname(file))  # noqa: PTH120 - pathlib is slow, and this is often
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise StageError(f"item {name} was yielded already, by another rank or stage") from None
    with open(descriptor, "wb") as target:  # noqa: PTH123
        target.write(_header(array.dtype.str, array.shape))
        target.writelines(_pieces(array))


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of a C-ordered array. Written at once, a large one would get large pages of the system's cache.

    Those can be slow to get (docs/decisions/0016-memory-for-one-use.md).
    """
    if array.nbytes <= _PIECE:
        yield array.data
        return
    data = array.data.cast("B")
    for start in range(0, array.nbytes, _PIECE):
        yield data[start : start + _PIECE]


@functools.cache  # a few kinds of arrays make all items
def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """What a `.npy` file of a C-ordered array begins with."""
    text = io.BytesIO()
    np.lib.format.write_array_header_1_0(text, {"descr": dtype, "fortran_order": False, "shape": shape})
    return text.getvalue()


@functools.cache  # nobody removes one while its items are being written
def _make(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)  # noqa: PTH103


def _same(other: NDArray[Any], array: NDArray[Any]) -> bool:
    if other.dtype != array.dtype or other.shape != array.shape:
        return False
    return other.tobytes() == array.tobytes()  # bytes, so that -0 and NaN count by their bits
