"""Why a check does not pass, in one sentence: names, then dtype, shape, finiteness, values.

In these functions `left` is what the item is held against (the reference, the other observed item, the bound) and
`right` is the observed item. An empty sentence means that there is nothing to complain about.
"""

import math
from typing import Any

import numpy as np

from labs.core.compare import Comparison
from labs.core.items import Tolerance
from labs.core.lab import Array, Rule
from labs.core.reports.summary import count


def absence(rule: Rule, left: Array | None, right: Array | None) -> str:
    """Say which name is missing on which side; empty when none is."""
    if right is None:
        return "missing: the torch side did not yield it"
    if left is not None or rule.kind == "zero":
        return ""
    if rule.kind == "identical":
        return f"missing: the torch side did not yield {rule.other}"
    if rule.kind == "within":
        return f"missing: the reference did not compute its bound {rule.other}"
    return "extra: the reference does not compute it"


def unfitness(left: Array, right: Array) -> str:
    """Say what keeps the two arrays from being compared: dtype, shape, no elements; empty when nothing does."""
    if right.dtype != left.dtype:
        return f"dtype {right.dtype}, expected {left.dtype}"
    if right.dtype.kind not in "fiub":
        return f"dtype {right.dtype}, expected a real number, an integer or a boolean"
    if right.shape != left.shape:
        return f"shape {_shape(right)}, expected {_shape(left)}"
    if right.size == 0:
        return f"empty: shape {_shape(right)} has no element to compare"
    return ""


def complaint(rule: Rule, left: Array, right: Array, found: Comparison, tolerance: Tolerance) -> str:
    """Say why the compared values do not pass: not finite, out of tolerance, or no test at all."""
    if found.first_bad >= 0:
        return _not_finite(rule, left, right, np.unravel_index(found.first_bad, right.shape))
    if not found.passed:
        return _out_of_tolerance(rule, left, right, found, tolerance)
    if rule.kind == "zero" and np.count_nonzero(left):
        return "the reference is not 0, so the rule zero does not fit"
    if rule.kind == "close" and found.blunt:
        if found.largest == 0.0:
            return "blunt: the reference is all zero and so could be the observation; judge it by the rule zero"
        return "blunt: an all-zero observation would pass; state a smaller atol"
    return ""


def element(array: Array, index: tuple[Any, ...]) -> float:
    """Return one element as the plain number or boolean that JSON can hold."""
    value = array[index].item()
    return value if isinstance(value, int) else float(value)


def _out_of_tolerance(rule: Rule, left: Array, right: Array, found: Comparison, tolerance: Tolerance) -> str:
    index = np.unravel_index(found.worst, right.shape)
    expected = element(left, index)
    what, against = {
        "close": ("out of tolerance", f", reference {expected}, limit {_limit(tolerance, expected):.3g}"),
        "exact": ("different", f", reference {expected}"),
        "zero": ("not 0", ""),
        "identical": ("different in their bits", f", {rule.other} {expected}"),
        "within": ("outside the bound", f", bound {expected}"),
    }[rule.kind]
    worst = f"worst{_at(index)}: observed {element(right, index)}{against}"
    return f"{found.out_of_tolerance} of {count(found.size, 'element')} {what}, {worst}"


def _limit(tolerance: Tolerance, expected: float) -> float:
    return tolerance.atol + tolerance.rtol * abs(expected)


def _not_finite(rule: Rule, left: Array, right: Array, index: tuple[Any, ...]) -> str:
    held, item = element(left, index), element(right, index)
    at = _at(index)
    name = {"identical": rule.other, "within": "the bound"}.get(rule.kind, "the reference")
    if math.isfinite(item):
        return f"{_spelled(held)}{at} in {name}"
    return f"{_spelled(item)}{at}" + ("" if math.isfinite(held) else f", in {name} too")


def _at(index: tuple[Any, ...]) -> str:
    return f" at {[int(i) for i in index]}" if index else ""


def _spelled(value: float) -> str:
    return "NaN" if math.isnan(value) else str(value)


def _shape(array: Array) -> str:
    return "(" + ",".join(map(str, array.shape)) + ("," if array.ndim == 1 else "") + ")"
