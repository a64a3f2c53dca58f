"""Which known fault a side looks like: the control that gives the items that failed, unless another item denies it.

One item with a fault's values may have them by chance, or because another mistake has the same effect there. A fault
that is at work changes all that it has to change, from its first item on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from labs.core.lab import Array, is_float

SAME = 1e-12  # a fault explains an item when they agree to this, relative to the item's largest magnitude
OTHER = 1e-6  # and an item that is farther from it than this denies it: no rounding gets that far

Fault: TypeAlias = Mapping[str, Array | None]  # the items that a control must spoil; None where it yields nothing


@dataclass(frozen=True)
class Likeness:
    """A control whose values a side has at an item, and an item that denies that it is at work; "" for none."""

    control: str = ""
    denied_at: str = ""

    @property
    def proof(self) -> str:
        """The control where nothing denies it."""
        return "" if self.denied_at else self.control


def likenesses(
    names: Sequence[str], order: Sequence[str], side: Mapping[str, Array], faults: Mapping[str, Fault]
) -> dict[str, Likeness]:
    """Of each failed item in `names` the control that fits best: not denied, explaining most of them, promising least.

    `order` has the items of all checks in the order in which the lab computes them.
    """
    explained = {c: frozenset(n for n in names if n in f and _same(f[n], side.get(n))) for c, f in faults.items()}
    denied = {c: _denied_at(faults[c], explained[c], order, side) for c in faults if explained[c]}

    def best(name: str) -> Likeness:
        fitting = [c for c in denied if name in explained[c]]
        first = max(fitting, key=lambda c: (not denied[c], len(explained[c]), -len(faults[c])), default="")
        return Likeness(first, denied[first]) if first else Likeness()

    return {name: best(name) for name in names}


def _denied_at(fault: Fault, explained: frozenset[str], order: Sequence[str], side: Mapping[str, Array]) -> str:
    """Find the item that says that the fault is not at work, "" when none does.

    One that comes before all that it explains, and lacks its value, is enough. Behind these there can be a second
    mistake on top of it, so as many have to lack it as have it.
    """
    against = [n for n in order if n in fault and n in side and _distance(fault[n], side[n]) > OTHER]
    begins = next(place for place, name in enumerate(order) if name in explained)
    early = [name for name in against if name in order[:begins]]
    late = against if len(against) >= len(explained) else []
    return next(iter(early or late), "")


def _same(a: Array | None, b: Array | None) -> bool:
    return a is b if b is None else _distance(a, b) <= SAME


def _distance(a: Array | None, b: Array) -> float:
    """Return the largest difference as a share of the largest magnitude; infinite where nothing can be subtracted."""
    if a is None or a.shape != b.shape:
        return math.inf
    if not is_float(a) or not is_float(b):
        return 0.0 if np.array_equal(a, b) else math.inf
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], np.where(np.isfinite(b), 0.0, b)[~finite], equal_nan=True):
        return math.inf
    if not np.all(np.isfinite(b[finite])):
        return math.inf
    error = float(np.max(np.abs(a[finite] - b[finite]), initial=0.0))
    peak = float(np.max(np.abs(a[finite]), initial=0.0))
    return error / peak if peak > 0 else (math.inf if error else 0.0)
