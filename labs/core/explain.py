"""What a wrong array looks like, for a reader who knows arrays and no lab: one clause, or nothing.

Each pattern is a short function that either recognises the observed array or keeps silent; the first that speaks wins,
the more particular ones come first. Two numbers count as equal when they differ by at most CLOSE of the largest
magnitude in the reference. A clause says how close it is; it describes and does not judge.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from labs.core.lab import Array

F64: TypeAlias = NDArray[np.float64]

CLOSE = 1e-10
LARGEST = 4_194_304  # elements: above, the temporaries of a guess cost more than it is worth
DENOMINATOR = 16  # the largest of a fraction that is called simple
WHOLE = 100_000  # above, nearly every number is close to some whole one
SHOWN = 4  # indices listed in a clause


def explain(reference: Array, observed: Array) -> str | None:
    """Recognise what `observed` is in terms of `reference`, or return None. Never raises."""
    try:
        if not 0 < reference.size <= LARGEST or reference.dtype.kind not in "fiub" or observed.dtype.kind not in "fiub":
            return None
        with np.errstate(all="ignore"):
            return _first(np.asarray(reference, np.float64), np.asarray(observed, np.float64))
    except Exception:  # noqa: BLE001 - an explanation that fails must not take the verdict along
        return None


def _first(ref: F64, obs: F64) -> str | None:
    if not np.isfinite(ref).all():
        return None
    if ref.shape != obs.shape:
        return _other_shape(ref, obs)
    if _distance(ref, obs) <= CLOSE:
        return None
    patterns: tuple[Callable[[F64, F64], str | None], ...] = (
        _not_finite,
        _all_zero,
        _factor,
        _offset,
        _transposed,
        _shifted,
        _permuted,
        _one_slice,
        _rounded,
    )
    return next((clause for pattern in patterns if (clause := pattern(ref, obs))), None)


def _distance(ref: F64, obs: F64) -> float:
    """Return the largest difference as a share of the reference's largest magnitude; infinite for other shapes."""
    if ref.shape != obs.shape:
        return math.inf
    top, error = float(np.abs(ref).max()), float(np.abs(obs - ref).max())
    return error / top if top > 0 else (math.inf if error else 0.0)


def _to(distance: float) -> str:
    return "exactly" if distance == 0 else f"to {distance:.0e}"


def _other_shape(ref: F64, obs: F64) -> str | None:
    if ref.size != obs.size:
        return None
    if ref.ndim > 1 and (distance := _distance(ref.T, obs)) <= CLOSE:
        return f"the reference transposed, {_to(distance)}"
    distance = _distance(ref.reshape(-1), obs.reshape(-1))
    return f"the values of the reference in shape {obs.shape}, {_to(distance)}" if distance <= CLOSE else None


def _not_finite(ref: F64, obs: F64) -> str | None:
    bad = ~np.isfinite(obs)
    count = int(bad.sum())
    if count == 0:
        return None
    what = "NaN" if np.isnan(obs[bad]).all() else "infinite" if np.isinf(obs[bad]).all() else "NaN or infinite"
    if count == obs.size:
        return f"every element is {what}"
    where = _place(bad) or f"{count} of {obs.size} elements"
    agree = _distance(np.where(bad, 0.0, ref), np.where(bad, 0.0, obs)) <= CLOSE
    return f"{where}: {what}" + (", every other element agrees" if agree else "")


def _all_zero(ref: F64, obs: F64) -> str | None:
    return "every element is 0" if ref.any() and not obs.any() else None


def _factor(ref: F64, obs: F64) -> str | None:
    """Recognise c times the reference; a single number has always such a c, so there c must be a simple fraction."""
    top = float(np.abs(ref).max())
    if top == 0 or not obs.any():
        return None
    unit = ref / top  # squares of the values themselves could overflow or vanish
    factor = float((unit * obs).sum() / (unit * unit).sum()) / top
    simple = _simple(factor)
    distance = _distance((factor if simple is None else float(simple)) * ref, obs) / max(1.0, abs(factor))
    if not distance <= CLOSE or simple == 1:
        return None
    if simple is None and np.count_nonzero(ref) == 1:
        return None
    if simple == -1:
        return f"the sign is flipped, {_to(distance)}"
    return f"{simple or f'{factor:.12g}'} times the reference, {_to(distance)}"


def _simple(factor: float) -> Fraction | None:
    """Find n/m with m <= DENOMINATOR, or 1/m with a larger whole m, that equals the factor to CLOSE."""
    if not 1 / WHOLE <= abs(factor) <= WHOLE:
        return None
    for fraction in (Fraction(factor).limit_denominator(DENOMINATOR), Fraction(1, round(1 / factor) or 1)):
        if abs(float(fraction) / factor - 1) <= CLOSE:
            return fraction
    return None


def _offset(ref: F64, obs: F64) -> str | None:
    difference = obs - ref
    offset = float(f"{np.median(difference):.12g}")
    if ref.size == 1 or abs(offset) <= CLOSE * float(np.abs(ref).max()):
        return None
    distance = _distance(ref + offset, obs)
    return f"the reference plus {offset:.12g}, {_to(distance)}" if distance <= CLOSE else None


def _one_slice(ref: F64, obs: F64) -> str | None:
    """Recognise differences that stay in one element or in few indices of one axis, and say what is there."""
    different = np.abs(obs - ref) > CLOSE * float(np.abs(ref).max())
    where = _place(different)
    if where is None:
        return None
    inside = _all_zero(ref[different], obs[different]) or _factor(ref[different], obs[different])
    verb = "differ" if where.startswith("indices") else "differs"
    return f"only {where} {verb}" + (f": there, {inside}" if inside else "")


def _place(mask: NDArray[np.bool_]) -> str | None:
    """Name the element, or the indices of the axis, that hold all of the mask; None when it is spread out."""
    count = int(mask.sum())
    if count == 0 or mask.size == 1:
        return None
    if count == 1:
        return f"element {[int(i) for i in np.unravel_index(int(mask.argmax()), mask.shape)]}"
    for axis in range(mask.ndim):
        others = tuple(i for i in range(mask.ndim) if i != axis)
        hit = np.flatnonzero(mask.any(axis=others))
        if hit.size <= min(SHOWN, mask.shape[axis] // 2):
            indices = ", ".join(map(str, hit))
            return f"{'index' if hit.size == 1 else 'indices'} {indices} of axis {axis}"
    return None


def _transposed(ref: F64, obs: F64) -> str | None:
    for first, second in combinations(range(ref.ndim), 2):
        distance = _distance(ref.swapaxes(first, second), obs)
        if distance <= CLOSE:
            return f"the reference with axes {first} and {second} swapped, {_to(distance)}"
    return None


def _shifted(ref: F64, obs: F64) -> str | None:
    """Recognise a shift by one; what enters at the open end is free, so three indices are needed to tell."""
    for axis in range(ref.ndim):
        if ref.shape[axis] < 3:  # noqa: PLR2004
            continue
        source, target = np.moveaxis(ref, axis, 0), np.moveaxis(obs, axis, 0)
        for a, b, word in ((source[:-1], target[1:], "up"), (source[1:], target[:-1], "down")):
            distance = _distance(a, b)
            if distance <= CLOSE and a.any():
                return f"the reference shifted {word} by one along axis {axis}, {_to(distance)}"
    return None


def _permuted(ref: F64, obs: F64) -> str | None:
    """Recognise reordered indices of an axis: equal slices have equal sums under fixed irregular weights."""
    for axis in range(ref.ndim):
        source, target = (np.moveaxis(a, axis, 0).reshape(ref.shape[axis], -1) for a in (ref, obs))
        weights = np.sin(1.0 + np.arange(source.shape[1]) ** 1.5)
        order, place = np.argsort(source @ weights, kind="stable"), np.argsort(target @ weights, kind="stable")
        taken = np.empty_like(order)
        taken[place] = order
        distance = _distance(source[taken], target)
        if distance <= CLOSE and ref.shape[axis] > 1:
            shown = f" (it holds {', '.join(map(str, taken))})" if taken.size <= 2 * SHOWN else ""
            return f"the reference with axis {axis} reordered{shown}, {_to(distance)}"
    return None


_ASK = "; --precision float32 tells rounding from a small mistake"


def _rounded(ref: F64, obs: F64) -> str | None:
    """Recognise the reference in fewer bits, or an error of the size that a computation in float32 leaves."""
    kinds = {"float32": _float32(ref), "float16": ref.astype(np.float16).astype(np.float64), "bfloat16": _bfloat16(ref)}
    for name, rounded in kinds.items():
        if np.isfinite(rounded).all() and (distance := _distance(rounded, obs)) <= CLOSE:
            return f"the reference rounded to {name}, {_to(distance)}"
    if _distance(ref, obs) <= 8 * float(np.finfo(np.float32).eps):
        return f"agrees to float32 precision, not to float64 ({_distance(ref, obs):.0e} of the largest magnitude{_ASK})"
    return None


def _float32(ref: F64) -> F64:
    return ref.astype(np.float32).astype(np.float64)


def _bfloat16(ref: F64) -> F64:
    """Round to the upper half of a float32, ties to even."""
    bits = ref.astype(np.float32).view(np.uint32)
    bits = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(np.float64)
