"""Two arrays compared element by element, every statistic of a check in one pass.

The arrays are read in C order in chunks that stay in the cache, through buffers made once, so that no temporary grows
with the arrays. Floats are compared in float64 (longdouble in longdouble), integers and booleans by exact integer
differences. An element that is not finite, on either side, has an infinite error: NaN never enters a statistic.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from labs.core.lab import Array

CHUNK = 32_768  # elements: three buffers of 256 KiB stay in a second-level cache
DECADES = 16.0  # headroom is cut to [-16, 16]: equal values have 16, a wrong value under a limit of 0 has -16
EXPONENTS = 2048  # of float64

_max, _min = np.maximum.reduce, np.minimum.reduce  # half the overhead of the methods, which small arrays feel
_Errors = Callable[[Array, Array, Array, Array], None]
_Real: TypeAlias = float | np.floating[Any]


class Comparison(NamedTuple):
    """How far `observed` is from `reference`. Errors have the unit of the arrays, headroom is in decades.

    worst and first_bad are flat indices in C order, -1 when there is none: the largest error / bound, and the first
    element that is not finite. p99_abs is at least the 99th percentile (nearest rank) and at most twice that; below
    the smallest normal number it is 0. blunt_share counts finite elements only. max_ulp is None for integers.
    """

    size: int
    max_abs: float
    mean_abs: float
    p99_abs: float
    max_rel: float
    max_ulp: float | None
    worst: int
    out_of_tolerance: int
    headroom: float
    blunt_share: float
    largest: float
    first_bad: int
    blunt: bool

    @property
    def passed(self) -> bool:
        """True when there is an element and every one is finite and inside its bound."""
        return self.size > 0 and self.out_of_tolerance == 0 and self.first_bad < 0


def compare(reference: Array, observed: Array, atol: float, rtol: float) -> Comparison:
    """Hold abs(observed - reference) against atol + rtol * abs(reference), element by element.

    Any memory layout; same shape and dtype (there is no broadcasting). Raises ValueError for different shapes or
    dtypes and for a tolerance that is negative or not finite, TypeError for a dtype that is no real number.
    """
    return _scan(reference, observed, _Limits(atol, rtol), _distances)


def compare_bound(bound: Array, observed: Array) -> Comparison:
    """Hold abs(observed) against `bound`, element by element; a negative bound is never met.

    The errors are abs(observed), relative to the bound. Raises as `compare` does.
    """
    return _scan(bound, observed, _Limits(0.0, 1.0), _magnitudes)


class _Limits(NamedTuple):
    atol: float
    rtol: float


class _Part(NamedTuple):
    """The statistics of one chunk; `at` and `bad` are flat indices into the whole array."""

    largest: _Real
    max_abs: _Real
    mean: float
    max_rel: _Real
    ratio: _Real
    at: int
    inside: int
    nonzero: int
    small: int
    bad: int


def _scan(reference: Array, observed: Array, limits: _Limits, errors: _Errors) -> Comparison:
    _refuse(reference, observed, limits)
    operand, working = _dtypes(reference.dtype)
    count = reference.size
    buffers = np.empty((3, min(count, CHUNK)), working)
    histogram = np.zeros(EXPONENTS, np.int64) if count >= 100 else None  # noqa: PLR2004 - below, p99 is the maximum
    parts: list[_Part] = []
    start = 0
    with np.errstate(all="ignore"):
        for ref, obs in _chunks(reference, observed, operand):
            work = buffers[:, : ref.size]
            errors(ref, obs, work[0], work[1])
            parts.append(_part(ref, obs, work, limits, (start, count)))
            if histogram is not None:
                _count_exponents(work[0], histogram)
            start += ref.size
        return _total(parts, count, histogram, limits, reference.dtype)


def _refuse(reference: Array, observed: Array, limits: _Limits) -> None:
    if reference.shape != observed.shape:
        raise ValueError(f"shape {observed.shape}, expected {reference.shape}")
    if reference.dtype != observed.dtype:
        raise ValueError(f"dtype {observed.dtype}, expected {reference.dtype}")
    for name, limit in zip(_Limits._fields, limits, strict=True):
        if not 0.0 <= limit < math.inf:
            raise ValueError(f"{name}: got {limit}, expected a finite number >= 0")


def _dtypes(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Choose what the operands are read as, and what their errors are computed in."""
    if dtype.kind == "f":
        wide = np.dtype(np.float64 if dtype.itemsize <= 8 else np.longdouble)  # noqa: PLR2004 - bytes of float64
        return wide, wide
    if dtype.kind in "biu":
        return np.dtype(np.uint64 if dtype.kind == "u" else np.int64), np.dtype(np.float64)
    raise TypeError(f"dtype {dtype}: only real numbers, integers and booleans can be compared")


def _chunks(reference: Array, observed: Array, operand: np.dtype[Any]) -> Iterator[tuple[Array, Array]]:
    if reference.size <= CHUNK:
        pair = tuple(np.ascontiguousarray(array, operand).reshape(-1) for array in (reference, observed))
        return iter([(pair[0], pair[1])] if reference.size else [])
    flags: Any = ["external_loop", "buffered", "zerosize_ok"]
    pairs: Any = np.nditer([reference, observed], flags, op_dtypes=[operand] * 2, order="C", buffersize=CHUNK)
    return (pair for pair in pairs if pair[0].size)


def _distances(ref: Array, obs: Array, error: Array, scale: Array) -> None:
    """Fill `error` with abs(obs - ref) and `scale` with abs(ref)."""
    if ref.dtype.kind == "f":
        np.subtract(obs, ref, out=error)
        np.abs(error, out=error)
        np.abs(ref, out=scale)
    else:  # the difference of two int64 wraps, but read as unsigned it is exact
        error[...] = (np.maximum(obs, ref) - np.minimum(obs, ref)).view(np.uint64)
        scale[...] = ref
        np.abs(scale, out=scale)


def _magnitudes(bound: Array, obs: Array, error: Array, scale: Array) -> None:
    """Fill `error` with abs(obs) and `scale` with the bound."""
    error[...] = obs
    np.abs(error, out=error)
    scale[...] = bound
    error[scale < 0] = np.inf


def _part(ref: Array, obs: Array, work: Array, limits: _Limits, place: tuple[int, int]) -> _Part:
    start, count = place
    error, scale, limit = work
    top, largest, bad = _max(error), _max(scale), -1
    finite = math.isfinite(top) and math.isfinite(largest)
    if not finite:
        bad = _mark_infinite(ref, obs, error, scale)
        top, largest = _max(error), _max(scale)
    np.multiply(scale, limits.rtol, out=limit)
    limit += limits.atol
    if not finite:  # a bound that overflows must not admit a difference that overflows too
        np.minimum(limit, np.finfo(limit.dtype).max, out=limit)
    inside = int(np.count_nonzero(error <= limit))
    _quotient(error, limit, limit)
    at = int(limit.argmax())
    ratio = limit[at]
    _quotient(error, scale, limit)
    mean = float(np.add.reduce(error) / count)
    if math.isinf(mean) and math.isfinite(top):
        mean = float(np.add.reduce(error / count))
    nonzero, small = _blunt_counts(scale, 10.0 * limits.atol)
    bad = start + bad if bad >= 0 else -1
    return _Part(largest, top, mean, _max(limit), ratio, start + at, inside, nonzero, small, bad)


def _mark_infinite(ref: Array, obs: Array, error: Array, scale: Array) -> int:
    """Give every element that is not finite an infinite error and no size; return the first one, or -1."""
    bad = ~(np.isfinite(ref) & np.isfinite(obs))
    error[bad] = np.inf
    scale[bad] = 0.0
    return int(bad.argmax()) if bad.any() else -1


def _quotient(error: Array, by: Array, out: Array) -> None:
    """Fill `out` with error / by, where 0 / 0 is 0."""
    zeros = _min(by) <= 0
    np.divide(error, by, out=out)
    if zeros:
        np.copyto(out, 0.0, where=error == 0)


def _blunt_counts(scale: Array, small: float) -> tuple[int, int]:
    """Count the elements that are not 0, and those of them that are at most `small`."""
    least = _min(scale)
    zeros = int(np.count_nonzero(scale == 0)) if least <= 0 else 0
    low = int(np.count_nonzero(scale <= small)) if least <= small else zeros
    return scale.size - zeros, low - zeros


def _count_exponents(error: Array, histogram: Array) -> None:
    bits = error.astype(np.float64, copy=False).view(np.int64)
    histogram += np.bincount(bits >> 52, minlength=EXPONENTS)


def _total(
    parts: list[_Part], count: int, histogram: Array | None, limits: _Limits, dtype: np.dtype[Any]
) -> Comparison:
    if not parts:
        ulp = 0.0 if dtype.kind == "f" else None
        return Comparison(0, 0.0, 0.0, 0.0, 0.0, ulp, -1, 0, 0.0, 0.0, 0.0, -1, blunt=True)
    whole = functools.reduce(_merged, parts)
    largest, max_abs = float(whole.largest), float(whole.max_abs)
    return Comparison(
        size=count,
        max_abs=max_abs,
        mean_abs=math.fsum(part.mean for part in parts),
        p99_abs=_p99(histogram, count, max_abs),
        max_rel=float(whole.max_rel),
        max_ulp=_ulps(whole.max_abs, whole.largest, dtype),
        worst=whole.at,
        out_of_tolerance=count - whole.inside,
        headroom=_headroom(float(whole.ratio)),
        blunt_share=whole.small / whole.nonzero if whole.nonzero else 0.0,
        largest=largest,
        first_bad=whole.bad,
        blunt=bool(whole.largest <= limits.atol + limits.rtol * whole.largest),
    )


def _merged(first: _Part, then: _Part) -> _Part:
    """The statistics of two chunks; of equal ratios the first is the worst."""
    worst = first if first.ratio >= then.ratio else then
    return _Part(
        max(first.largest, then.largest),
        max(first.max_abs, then.max_abs),
        first.mean + then.mean,
        max(first.max_rel, then.max_rel),
        worst.ratio,
        worst.at,
        first.inside + then.inside,
        first.nonzero + then.nonzero,
        first.small + then.small,
        first.bad if first.bad >= 0 else then.bad,
    )


def _p99(histogram: Array | None, count: int, max_abs: float) -> float:
    """Return the upper edge of the exponent that holds the element of rank ceil(0.99 count), at most the maximum."""
    if histogram is None:
        return max_abs
    exponent = int(np.searchsorted(histogram.cumsum(), (99 * count + 99) // 100))
    if exponent == 0:
        return 0.0
    return min(max_abs, math.ldexp(1.0, exponent - 1022)) if exponent < EXPONENTS - 2 else max_abs


def _ulps(max_abs: _Real, largest: _Real, dtype: np.dtype[Any]) -> float | None:
    """Divide the largest error by the spacing of the reference's largest magnitude, in the arrays' own dtype."""
    if dtype.kind != "f":
        return None
    return float(max_abs / np.spacing(dtype.type(largest)))  # a power of two: exact where it does not overflow


def _headroom(ratio: float) -> float:
    if ratio <= 0.0:
        return DECADES
    return max(-DECADES, min(DECADES, 0.0 - math.log10(ratio)))


def different_bits(first: Array, second: Array) -> tuple[int, int]:
    """Count the elements whose bits differ, and find the first (flat index, -1 when none): -0.0 is not 0.0.

    Same shape and dtype. Raises ValueError as `compare` does, TypeError for longdouble, whose padding is no value.
    """
    _refuse(first, second, _Limits(0.0, 0.0))
    if first.dtype.kind not in "fbiu" or first.itemsize not in {1, 2, 4, 8}:
        raise TypeError(f"dtype {first.dtype}: its bits can't be compared")
    unsigned = np.dtype(f"u{first.itemsize}")
    count, found, start = 0, -1, 0
    for left, right in _chunks(first.view(unsigned), second.view(unsigned), unsigned):
        different = left != right
        here = int(np.count_nonzero(different))
        if here and found < 0:
            found = start + int(different.argmax())
        count += here
        start += left.size
    return count, found
