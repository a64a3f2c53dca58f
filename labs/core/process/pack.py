"""Small arrays of one stage in one file, as `.safetensors`: opening a file costs more than reading ten of these.

A file is 8 bytes (the length of its header, little-endian), a JSON header {name: {dtype, shape, data_offsets}}, and the
raw numbers; the largest elements first, so that each array is aligned. NumPy only, Python 3.10 syntax: both sides
import this file.
"""

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

SUFFIX = ".safetensors"
KINDS = {
    "<f8": "F64", "<f4": "F32", "<i8": "I64", "<i4": "I32", "<i2": "I16", "|i1": "I8", "|u1": "U8", "|b1": "BOOL",
}  # fmt: skip
_DTYPES = {kind: np.dtype(code) for code, kind in KINDS.items()}


def pack_file(folder: str, stage: str, rank: int, ranks: int) -> str:
    """The file for what one rank of a stage yields."""
    return f"{folder}/{stage}{f'-rank{rank}' if ranks > 1 else ''}{SUFFIX}"


def write_pack(file: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays (C order, dtypes of KINDS) to a new file, folders made as needed."""
    entries, start = {}, 0
    ordered = sorted(arrays, key=lambda name: -arrays[name].itemsize)
    for name in ordered:
        array = arrays[name]
        end = start + array.nbytes
        entries[name] = {"dtype": KINDS[array.dtype.str], "shape": array.shape, "data_offsets": (start, end)}
        start = end
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120 - pathlib is slow, and this is often
    with open(file, "xb") as target:  # noqa: PTH123
        target.write(b"".join([len(header).to_bytes(8, "little"), header, *(arrays[n].tobytes() for n in ordered)]))


def read_pack(file: str) -> dict[str, NDArray[Any]]:
    """Read what `write_pack` wrote, as arrays that can't be written to."""
    with open(file, "rb") as source:  # noqa: PTH123
        data = source.read()
    base = 8 + int.from_bytes(data[:8], "little")
    return {name: _array(data, base, **entry) for name, entry in json.loads(data[8:base]).items()}


def _array(data: bytes, base: int, dtype: str, shape: list[int], data_offsets: list[int]) -> NDArray[Any]:
    return np.frombuffer(data, _DTYPES[dtype], math.prod(shape), base + data_offsets[0]).reshape(shape)
