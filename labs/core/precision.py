"""Precision lanes: the torch side in float32 or bfloat16, held against the same float64 reference.

The inputs are rounded to the narrower dtype before either side sees them, so that an error is one of computing. A limit
follows from dtype and magnitude: abs(observed - reference) <= factor · eps · max|reference|. How much a correct
computation needs was measured over the shipped labs: docs/decisions/0012-precision-lanes.md.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labs.core.controls import Bench
from labs.core.items import Tolerance
from labs.core.lab import Array, Arrays, Lab, Rule, is_float
from labs.core.patterns import matches
from labs.core.schedule import Case

ROUNDINGS_OF_FLOAT64 = "its bound is what float64 rounds"


@dataclass(frozen=True)
class Precision:
    """One precision of the torch side. eps is the spacing of the dtype at 1.

    factor: how many eps of its largest magnitude an item may be off; accumulated: where the lab says that rounding adds
    up from step to step.
    """

    name: str
    eps: float
    factor: float = 0.0
    accumulated: float = 0.0

    @property
    def narrow(self) -> bool:
        """True where the limits are not the usual ones."""
        return self.name != "float64"


FLOAT64 = Precision("float64", 2.0**-52)
PRECISIONS = {
    p.name: p for p in (FLOAT64, Precision("float32", 2.0**-23, 32.0, 64.0), Precision("bfloat16", 2.0**-7, 8.0, 32.0))
}


def rounded(precision: Precision, arrays: Arrays) -> Arrays:
    """The same arrays with every float a number of the precision's precision (still held as float64)."""
    if not precision.narrow:
        return arrays
    return {name: _rounded(precision, array) if is_float(array) else array for name, array in arrays.items()}


def _rounded(precision: Precision, array: Array) -> Array:
    narrow = np.asarray(array, np.float32)
    if precision.name == "bfloat16":  # the upper half of a float32, ties to even
        bits = narrow.view(np.uint32)
        even = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        narrow = ((bits + even) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.asarray(narrow, array.dtype)  # an operation on an array without axes gives a number


def tolerances(
    precision: Precision, lab: Lab, reference: Mapping[str, Array], stated: Sequence[tuple[str, Tolerance]]
) -> tuple[tuple[str, Tolerance], ...]:
    """The limit of every float item; what the config states comes first, as in the usual lane."""
    if not precision.narrow:
        return tuple(stated)
    return (*stated, *((n, _tolerance(precision, lab, n, array)) for n, array in reference.items() if is_float(array)))


def _tolerance(precision: Precision, lab: Lab, name: str, array: Array) -> Tolerance:
    added_up = next((why for pattern, why in lab.accumulates.items() if matches(name, (pattern,))), "")
    factor = precision.accumulated if added_up else precision.factor
    reason = f"{factor:g} eps of {precision.name} times the largest magnitude{added_up and ': '}{added_up}"
    return Tolerance(factor * precision.eps * float(np.max(np.abs(array), initial=0.0)), 0.0, reason)


def unjudged(precision: Precision, lab: Lab, rules: Sequence[Rule]) -> dict[str, str]:
    """Items that mean something in float64 alone: {item: why}."""
    if not precision.narrow:
        return {}
    bounded = {rule.item: ROUNDINGS_OF_FLOAT64 for rule in rules if rule.kind == "within"}
    patterns = lab.unjudged.get(precision.name, {}).items()
    stated = {r.item: why for r in rules for pattern, why in patterns if matches(r.item, (pattern,))}
    return {**bounded, **stated}


@dataclass(frozen=True)
class Target:
    """What the torch side computes in, and on which device."""

    precision: Precision = FLOAT64
    device: str = "cpu"

    def inputs(self, arrays: Arrays) -> Arrays:
        """The inputs as both sides get them."""
        return rounded(self.precision, arrays)

    def case(self, case: Case) -> Case:
        """The case with its torch side here."""
        return dataclasses.replace(case, precision=self.precision.name, device=self.device)

    def bench(self, bench: Bench) -> Bench:
        """The bench with its inputs rounded and all of its cases here."""
        faulty = tuple((control, self.case(case)) for control, case in bench.faulty)
        return Bench(bench.config, self.inputs(bench.inputs), self.case(bench.good), faulty)


USUAL = Target()
