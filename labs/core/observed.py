"""Items that the framework process wrote, read when asked for: memory-mapped when large, never with pickle."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from labs.core.lab import Array

MAPPED = 1 << 20  # bytes from which an array is mapped instead of read


class Observed(Mapping[str, Array]):
    """`{item: array}` over `{item: folder}`, where an item lies at `<folder>/<item>.npy`."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders

    def __getitem__(self, name: str) -> Array:
        path = self._folders[name] / f"{name}.npy"
        large = path.stat().st_size > MAPPED
        array: Array = np.load(path, mmap_mode="r" if large else None, allow_pickle=False)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)
