"""A folder of `.npy` files whose path is the item name: how arrays are saved, and how a stranger's are read.

Never pickle, in either direction. Reading checks the header against the file's size before any memory is taken, so a
few bytes that claim a huge shape cost nothing.
"""

import math
import mmap
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from labs.core.lab import Array
from labs.core.storage.stored import DamagedBundle, plain_file, plain_folder, shown
from labs.core.storage.writing import writing

PLAIN_KINDS = "biufc"  # booleans, integers, floats, complex: what an array in a bundle can be made of
MAPPED = 1 << 20  # bytes above which an array is memory-mapped instead of read
PIECE = 1 << 16  # bytes handed to the system at once; large pages can be slow to get (decision 0016)
_ITEM = re.compile(r"[a-z0-9_.-]+(/[a-z0-9_.-]+)*")
_START = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufc]\d{1,2})', 'fortran_order': (True|False), 'shape': \(([\d, ]{0,999})\), \} *\n"
)


def is_item_name(name: str) -> bool:
    """True for what can name an item: lower-case parts joined by "/", which is also its path in a bundle."""
    return bool(_ITEM.fullmatch(name)) and not {".", ".."} & set(name.split("/"))


def save_array(path: Path, array: Array) -> None:
    """Write one array as `.npy`, C order, folders made as needed. Raises CannotComplete naming the path.

    Written piece by piece because `np.save` reports a full disk without saying so.
    """
    if array.dtype.kind not in PLAIN_KINDS:
        raise TypeError(f"{path.name}: dtype {array.dtype} can't be stored without pickle")
    plain = np.asarray(array, order="C")
    with writing(path), _opened(path) as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(plain))
        data = plain.reshape(-1).view(np.uint8).data
        for start in range(0, plain.nbytes, PIECE):
            file.write(data[start : start + PIECE])


def _opened(path: Path) -> BinaryIO:
    """The file to write, in a folder that mostly is there already."""
    try:
        return open(path, "wb")  # noqa: PTH123 - pathlib is slow, and this is often
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")


class Folder(Mapping[str, Array]):
    """Lazy read-only view `{item: array}` of the `.npy` files below `<bundle>/<inside>`; large ones memory-mapped.

    A folder that is not there holds no items. Raises DamagedBundle for links, object dtypes, headers that do not fit
    the file, and names that are not items; KeyError for an item that is not stored.
    """

    def __init__(self, bundle: Path, inside: str = "") -> None:
        self._bundle = bundle
        self._inside = inside

    def __getitem__(self, name: str) -> Array:
        place = self._place(name)
        try:
            return read_array(plain_file(self._bundle, place), place)
        except FileNotFoundError:
            raise KeyError(name) from None
        except OSError as error:
            raise DamagedBundle(f"{place}: {error.strerror}") from None

    def __iter__(self) -> Iterator[str]:
        try:
            root = plain_folder(self._bundle, self._inside) if self._inside else self._bundle
        except FileNotFoundError:
            return
        for folder, folders, files in os.walk(root):
            folders.sort()
            for file in sorted(files):
                if file.endswith(".npy"):
                    yield (Path(folder) / file).relative_to(root).as_posix().removesuffix(".npy")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            return plain_file(self._bundle, self._place(name)).is_file()
        except FileNotFoundError:
            return False

    def _place(self, name: str) -> str:
        if not _ITEM.fullmatch(name):
            raise DamagedBundle(f"{shown(name)}: not an item name")
        return f"{self._inside}/{name}.npy" if self._inside else f"{name}.npy"


def read_array(path: Path, place: str) -> Array:
    """Read one `.npy` file, memory-mapped when large. Raises DamagedBundle naming `place`, or OSError."""
    with path.open("rb") as file:
        shape, dtype = _header(file, place)
        start, size = file.tell(), math.prod(shape) * dtype.itemsize
        found = os.fstat(file.fileno()).st_size - start
        if size != found:
            raise DamagedBundle(f"{place}: {found} bytes of data, expected {size} for shape {shape} of {dtype}")
        large = size > MAPPED
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if large else file.read()
        try:
            array: Array = np.ndarray(shape, dtype, data, start if large else 0)
        except ValueError as error:  # more dimensions, or larger ones, than NumPy has
            raise DamagedBundle(f"{place}: {error}") from None
        return array


def _header(file: BinaryIO, place: str) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Read the header as every NumPy writes it. NumPy's own reader evaluates it as a Python literal instead."""
    start = file.read(len(_START) + 2)
    if not start.startswith(_START):
        raise DamagedBundle(f"{place}: not a .npy file of version 1.0")
    found = _HEADER.fullmatch(file.read(int.from_bytes(start[-2:], "little")))
    if not found:
        raise DamagedBundle(f"{place}: not the header of a plain array")
    descr, order, lengths = (part.decode() for part in found.groups())
    if order == "True":  # judging and hashing read C order, so this would be copied whole
        raise DamagedBundle(f"{place}: Fortran order, expected C order")
    try:
        return tuple(int(length) for length in lengths.split(",") if length.strip()), np.dtype(descr)
    except (TypeError, ValueError) as error:
        raise DamagedBundle(f"{place}: dtype {descr}, shape ({lengths}): {error}") from None
