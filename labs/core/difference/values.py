"""How far the stored values of one item are apart in two bundles, in bounded memory.

Arrays are memory-mapped and read in chunks that stay in the cache. A digest in the report that a stored array does not
have means that the bundle is damaged. Where arrays were not kept, the recorded distances to a reference that has the
same bits bound how far apart they can be.
"""

from dataclasses import dataclass, field

from labs.core.bundle import DamagedBundle
from labs.core.compare import compare
from labs.core.difference.opened import Opened
from labs.core.judge import digest
from labs.core.lab import Array
from labs.core.reports.summary import Record


@dataclass(frozen=True)
class Distance:
    """`ulp` of the largest magnitude in A (None: not known, or no floats); `at_most`: it is a bound. why: a remark.

    max_abs: the largest absolute difference, where the values were compared.
    """

    ulp: float | None
    at_most: bool = False
    why: str = ""
    max_abs: float | None = None


@dataclass(frozen=True)
class Values:
    """The stored arrays of one config in both bundles; an item that several checks read is compared once."""

    config: str
    a: Opened
    b: Opened
    known: dict[tuple[str, str], Distance | None] = field(default_factory=dict)

    def apart(self, side: str, item: str, hashes: tuple[str, str]) -> Distance | None:
        """How far an item of a side (`observed` or `reference`) moved; None where a bundle does not have it.

        Raises DamagedBundle for what is no array, or not the one that the report has the hash of.
        """
        if (side, item) not in self.known:
            self.known[side, item] = self._apart(side, item, hashes)
        return self.known[side, item]

    def _apart(self, side: str, item: str, hashes: tuple[str, str]) -> Distance | None:
        a, b = (_stored(bundle, self.config, side, item) for bundle in (self.a, self.b))
        if a is None or b is None:
            return None
        for array, expected, bundle in zip((a, b), hashes, (self.a, self.b), strict=True):
            if digest(array) != expected:
                place = f"{bundle.path}: {self.config}/{side}/{item}.npy"
                raise DamagedBundle(f"{place}: not the values that report.json has the hash of; run lab verify")
        return _measured(a, b)


def _stored(bundle: Opened, config: str, side: str, item: str) -> Array | None:
    try:
        return bundle.arrays(config, side).get(item)
    except DamagedBundle as error:
        raise DamagedBundle(f"{bundle.path}: {error}") from error


def _measured(a: Array, b: Array) -> Distance:
    try:
        found = compare(a, b, 0.0, 0.0)
    except (TypeError, ValueError) as error:
        return Distance(None, why=str(error))
    if found.max_ulp is None:
        return Distance(None, why=f"{found.out_of_tolerance} of {found.size} differ, by up to {found.max_abs:g}")
    return Distance(found.max_ulp, max_abs=found.max_abs)


def bounded(old: Record, new: Record) -> Distance:
    """What the recorded distances to one reference say of values that were not kept."""
    if old["reference_sha256"] and old["reference_sha256"] == new["reference_sha256"]:
        ulps = [number(record["max_ulp"]) for record in (old, new)]
        if ulps[0] is not None and ulps[1] is not None:
            return Distance(ulps[0] + ulps[1], at_most=True, why="the values were not kept")
    return Distance(None, why="the values were not kept, so it is not known how far they moved")


def number(value: object) -> float | None:
    """A JSON number as float, the strings of those that are not finite too; None for what is absent."""
    return None if value is None else float(str(value))
