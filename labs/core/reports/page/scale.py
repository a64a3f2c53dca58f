"""One logarithmic axis for the whole page: errors in decades from their limit, which stands in the middle."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from labs.core.compare import DECADES
from labs.core.reports.summary import Record, number

REACH = DECADES  # to either side, as far as headroom goes
LIMIT = REACH  # where the limit is on an axis of 2 * REACH units
DOT = 0.6  # the least length that can be seen


class Bar(NamedTuple):
    """A bar from `x`, `width` long, and the dot at its far end, which is the error; `over` when beyond the limit."""

    x: float
    width: float
    dot: float
    over: bool


def bar(headroom: object) -> Bar | None:
    """The bar of an error: from its limit to the left as far as it has decades left, to the right as far as over."""
    value = number(headroom)
    if math.isnan(value):
        return None
    place = position(-value)
    return Bar(min(place, LIMIT), max(abs(place - LIMIT), DOT), place, value < 0)


def position(decades: float) -> float:
    """Where an error of so many decades beyond its limit stands on the axis."""
    return round(LIMIT + max(-REACH, min(REACH, decades)), 2)


def histogram(checks: Sequence[Record]) -> list[tuple[int, float, bool]]:
    """How many checks have how many decades left: (left edge, height from 0 to 1, over the limit), a decade a bar.

    Heights are square roots, so that a single failure can be seen beside hundreds that passed.
    """
    counts = [0] * int(2 * REACH)
    for check in checks:
        value = number(check.get("headroom"))
        if not math.isnan(value):
            last = int(LIMIT) - 1 if value >= 0 else len(counts) - 1  # exactly at its limit is not over it
            counts[min(last, int(position(-value)))] += 1
    top = max(*counts, 1)
    return [(i, round(math.sqrt(n / top), 3), i >= LIMIT) for i, n in enumerate(counts) if n]
