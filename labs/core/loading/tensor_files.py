"""One array out of a .npy, .npz or .safetensors file that a config names: data, never code.

A .safetensors file is 8 bytes (the length of its header, little-endian), a JSON header {name: {dtype, shape,
data_offsets}}, and the raw numbers. Read here rather than by the library, because NumPy has no bfloat16, in which most
real weights are kept: its bits are the upper half of a float32. (docs/decisions/0013-tensor-files.md)
"""

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labs.core.errors import RequestError
from labs.core.loading.nearest import nearest
from labs.core.process.pack import KINDS

HEADER = 100_000_000  # bytes: what the format itself allows
DAMAGE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    EOFError,
    zipfile.BadZipFile,
)
DTYPES = {**{kind: code for code, kind in KINDS.items()}, "F16": "<f2", "BF16": "<u2"}  # more than we write ourselves


def read_tensor(file: Path, name: str) -> NDArray[Any]:
    """The array `name` of a file (of an .npy the only one, name ""), as float64 when it holds floats.

    Raises RequestError, in one sentence: no such file or name, a damaged file, numbers that are not finite.
    """
    readers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors}
    if file.suffix not in readers:
        raise RequestError(f"{file}: expected a file that ends in {', '.join(readers)}")
    try:
        array = readers[file.suffix](file, name)
    except OSError as error:
        raise RequestError(f"{file}: {error.strerror or error}") from error
    except DAMAGE as error:
        raise RequestError(f"{file}: damaged, or not what its name says ({type(error).__name__}: {error})") from error
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
        if not np.isfinite(array).all():
            raise RequestError(f"{file}: {name or 'the array'} holds NaN or infinity")
    return array


def _npy(file: Path, name: str) -> NDArray[Any]:
    if name:
        raise RequestError(f"{file}: an .npy file has one array and no names, got name {name!r}")
    array: NDArray[Any] = np.load(file, allow_pickle=False)
    return array


def _npz(file: Path, name: str) -> NDArray[Any]:
    with np.load(file, allow_pickle=False) as arrays:
        if name not in arrays:
            raise _unknown(file, name, list(arrays))
        array: NDArray[Any] = arrays[name]
    return array


def _safetensors(file: Path, name: str) -> NDArray[Any]:
    with file.open("rb") as data:
        length = int.from_bytes(data.read(8), "little")
        if length > HEADER:
            raise ValueError(f"a header of {length} bytes")
        header = json.loads(data.read(length))
        entries = {key: value for key, value in header.items() if key != "__metadata__"}
        if name not in entries:
            raise _unknown(file, name, list(entries))
        kind, shape = entries[name]["dtype"], tuple(map(int, entries[name]["shape"]))
        start, end = map(int, entries[name]["data_offsets"])
        if kind not in DTYPES:
            raise RequestError(f"{file}: {name} has dtype {kind}, expected one of {', '.join(DTYPES)}")
        dtype = np.dtype(DTYPES[kind])
        if min(shape, default=0) < 0 or start < 0 or end - start != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{name} has offsets {start} to {end} for shape {shape} of {kind}")
        data.seek(8 + length + start)
        bits = data.read(end - start)
    array = np.frombuffer(bits, dtype).reshape(shape)
    return _from_bfloat16(array) if kind == "BF16" else array


def _from_bfloat16(bits: NDArray[Any]) -> NDArray[Any]:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _unknown(file: Path, name: str, known: list[str]) -> RequestError:
    return RequestError(f"{file}: no array {name!r}{nearest(name, known)}")
