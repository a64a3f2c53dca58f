"""The arrays behind a page: those of a bundle, read as a stranger's, or none."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from labs.core.lab import Array
from labs.core.reports.summary import Record
from labs.core.storage.folder import Folder
from labs.core.storage.stored import DamagedBundle

LARGEST = 1 << 26  # elements: reading more takes longer than a page is worth


class Stored(NamedTuple):
    """The arrays of one config, `{item: array}` for each side and for the inputs."""

    reference: Mapping[str, Array]
    observed: Mapping[str, Array]
    inputs: Mapping[str, Array]


Source: TypeAlias = Callable[[str], Stored]


def stored(bundle: Path | None) -> Source:
    """The arrays of a config by its name, from the bundle's folders; no arrays where there is no bundle."""
    if bundle is None:
        return lambda _name: Stored({}, {}, {})
    return lambda name: Stored(*(Folder(bundle, f"{name}/{side}") for side in Stored._fields))


class Absent(Exception):
    """Why an array can't be shown, as a clause."""


def fetch(side: Mapping[str, Array], name: str) -> Array:
    """One array. Raises Absent when it was not kept, is damaged, too large, or no numbers."""
    try:
        array = side[name]
    except KeyError:
        raise Absent(
            "the bundle does not hold it (what the config's save leaves out, or a stage that gave no answer)"
        ) from None
    except DamagedBundle as error:
        raise Absent(f"damaged: {error}") from None
    if array.size > LARGEST:
        raise Absent(f"{array.size} elements, more than a page can show")
    if array.dtype.kind not in "biuf" or array.size == 0:
        raise Absent(f"dtype {array.dtype} with {array.size} elements can't be drawn")
    return array


def pair(arrays: Stored, check: Record) -> tuple[Array, Array]:
    """What a check held its item against (in the item's shape, or a scalar), and the item. Raises Absent.

    For `identical` the first is the other observed item, for `within` the bound, for `zero` a zero.
    """
    kind, name, other = check["kind"], str(check["name"]), str(check["other"])
    if kind == "witness":
        raise Absent("the derivative that knows no formula is not an item, so it is not kept")
    observed = fetch(arrays.observed, name)
    if kind == "zero":
        return observed.dtype.type(0).reshape(()), observed
    held = fetch(arrays.observed if kind == "identical" else arrays.reference, other or name)
    if held.shape != observed.shape and not (kind == "within" and held.shape == ()):
        raise Absent(f"the shapes differ: {list(held.shape)} and {list(observed.shape)}")
    return held, observed
