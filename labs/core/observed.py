"""Items that the framework process wrote, read when asked for: memory-mapped when large, never with pickle."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from labs.core.lab import Array
from labs.core.storage.folder import read_array


class Observed(Mapping[str, Array]):
    """`{item: array}` over `{item: folder}`, where an item lies at `<folder>/<item>.npy`."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._folders = folders

    def __getitem__(self, name: str) -> Array:
        return read_array(self._folders[name] / f"{name}.npy", name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)
