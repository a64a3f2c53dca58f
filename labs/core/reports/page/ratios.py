"""How far each element's error is from its limit, and which are the worst: piece by piece, for large arrays."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labs.core.lab import Array
from labs.core.reports.summary import Record, number

F64: TypeAlias = NDArray[np.float64]
Levels: TypeAlias = NDArray[np.int8]

PIECE = 1 << 18  # elements at a time
WORST = 5
WORDS = (
    "equal",
    "inside the limit",
    "up to 100 × the limit",
    "up to 100 000 × the limit",
    "beyond 100 000 × the limit",
    "not finite",
)
STEPS = (0.0, 1.0, 1e2, 1e5)  # the ratios above which the words after the first apply
NOT_FINITE = len(WORDS) - 1


class Measured(NamedTuple):
    """The level of each element (an index of WORDS) in the item's shape, and the worst elements, the worst first."""

    levels: Levels
    worst: list[tuple[int, ...]]


def measure(check: Record, held: Array, observed: Array) -> Measured:
    """Measure an item against what it was held against: an array of its shape, or a scalar."""
    flat = observed.reshape(-1)
    levels = np.empty(flat.size, np.int8)
    worst: list[tuple[float, int]] = []
    for start in range(0, flat.size, PIECE):
        piece = slice(start, start + PIECE)
        found = ratios(check, held if held.shape == () else held.reshape(-1)[piece], flat[piece])
        levels[piece] = _levels(found)
        worst = sorted([*worst, *((r, start + i) for r, i in _top(found))], key=lambda pair: -pair[0])[:WORST]
    places = [tuple(int(i) for i in np.unravel_index(flat_index, observed.shape)) for _, flat_index in worst]
    return Measured(levels.reshape(observed.shape), places)


def ratios(check: Record, held: Array, observed: Array) -> F64:
    """Each element's error over its limit: at most 1 is inside; infinite where nothing but equality was allowed."""
    with np.errstate(all="ignore"):
        ref, obs = np.asarray(held, np.float64), np.asarray(observed, np.float64)
        error = np.abs(obs) if check["kind"] == "within" else np.abs(obs - ref)
        limit = _limit(check, ref)
        found: F64 = np.where(error == 0, 0.0, np.where(limit > 0, error / limit, np.inf))
        return np.where(np.isfinite(obs), found, np.nan)


def _limit(check: Record, ref: F64) -> F64:
    if check["kind"] == "within":
        return np.abs(ref)
    tolerance = check.get("tolerance")
    if check["kind"] != "close" or not tolerance:
        return np.zeros(ref.shape)
    limit: F64 = number(tolerance["atol"]) + number(tolerance["rtol"]) * np.abs(ref)
    return limit


def _levels(found: F64) -> Levels:
    levels = np.searchsorted(np.array(STEPS), found, side="left")
    return np.where(np.isnan(found), NOT_FINITE, levels).astype(np.int8)


def _top(found: F64) -> list[tuple[float, int]]:
    """The largest ratios of a piece that are not 0, what is not finite first."""
    keys = np.where(np.isnan(found), np.inf, found)
    order = np.argsort(-keys, kind="stable")[:WORST]
    return [(float(keys[i]), int(i)) for i in order if keys[i] > 0]
