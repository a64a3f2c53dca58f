"""Items that the framework process wrote, read when asked for: memory-mapped when large, never with pickle."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from labs.core.lab import Array
from labs.core.process.pack import SUFFIX, read_pack
from labs.core.storage.folder import read_array


class Observed(Mapping[str, Array]):
    """`{item: array}` over `{item: place}`: a folder that has it at `<folder>/<item>.npy`, or a pack of several.

    packs: what was read of packs already, for others that read the same ones.
    """

    def __init__(self, places: Mapping[str, Path], packs: dict[Path, Mapping[str, Array]] | None = None) -> None:
        self._places = places
        self._packs = {} if packs is None else packs

    def __getitem__(self, name: str) -> Array:
        place = self._places[name]
        if place.suffix != SUFFIX:
            return read_array(place / f"{name}.npy", name)
        if place not in self._packs:
            self._packs[place] = read_pack(str(place))
        return self._packs[place][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
