"""One rule and two sides become one check: names, then dtype, shape, finiteness, values.

A check passes only when a comparison is true, so NaN never passes and an empty array never passes. Headroom is in
decades, cut to [-16, 16]; `exact`, `zero` and `identical` know only 16 (passed) and -16. A check that got as far as
the values has all statistics, one that failed before has None for them.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Thread
from typing import Any, TypeAlias

import numpy as np

from labs.core.compare import DECADES, Comparison, compare, compare_bound, different_bits
from labs.core.complaint import absence, complaint, element, unfitness
from labs.core.items import Tolerance, default_rule, promised, tolerance_for
from labs.core.lab import Array, Rule
from labs.core.reports.json_text import writable

_NOTHING = np.empty(0)
LARGE = 1 << 20  # bytes above which an array is hashed beside its comparison

Digests: TypeAlias = dict[tuple[str, str], Callable[[], str]]  # of (side, item)


@dataclass(frozen=True)
class Check:
    """The verdict on one item, with everything that a report says about it; (name, kind) is unique in a run.

    For `identical` the reference columns describe the observed item `other`, for `within` the bound.
    """

    name: str
    kind: str
    status: str  # passed | failed
    other: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    count: int = 0
    max_abs: float | None = None
    mean_abs: float | None = None
    p99_abs: float | None = None
    max_rel: float | None = None
    max_ulp: float | None = None
    worst: Mapping[str, Any] | None = None  # index (list), reference, observed
    tolerance: Mapping[str, Any] | None = None  # atol, rtol, reason; `close` only
    out_of_tolerance: int = 0
    headroom: float | None = None
    blunt_share: float | None = None
    reference_sha256: str = ""
    observed_sha256: str = ""
    arbiter: Mapping[str, Any] | None = None
    diagnosis: str | None = None
    blame: Mapping[str, Any] | None = None  # side (reference | observed | both), because: which side is wrong, and why
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the check as report.json has it: numbers that are not finite are the strings nan, inf, -inf."""
        plain: dict[str, Any] = writable(vars(self))
        return plain


@dataclass(frozen=True)
class Finding:
    """What a check decides by: what the item is held against, the item, and how far they are apart.

    unfit: why that can't be said; there is no `measured` then.
    """

    rule: Rule
    held: Array
    item: Array
    tolerance: Tolerance
    measured: Comparison | None
    unfit: str

    @property
    def passed(self) -> bool:
        """True only when values were compared, and nothing is wrong."""
        return self.measured is not None and self.measured.passed and not self.message

    @property
    def message(self) -> str:
        """What is wrong, in one sentence; writing it takes as long as comparing two small arrays."""
        if self.measured is None:
            return self.unfit
        return complaint(self.rule, self.held, self.item, self.measured, self.tolerance)


def judge(rule: Rule, reference: Mapping[str, Array], observed: Mapping[str, Array], tolerance: Tolerance) -> Check:
    """Judge one rule and record the SHA-256 of what it read."""
    return _judge(rule, reference, observed, tolerance, {})


def judge_all(
    plan: Sequence[Rule],
    reference: Mapping[str, Array],
    observed: Mapping[str, Array],
    tolerances: Sequence[tuple[str, Tolerance]],
    *,
    recorded: bool = True,
) -> tuple[Check, ...]:
    """Judge every rule of the plan, in order, and fail every observed name that nobody promised.

    The mappings may be lazy: an array is fetched once for each rule that reads it and hashed once. Not recorded: only
    the status and the headroom of each check, which takes half the time.
    """
    digests: Digests | None = {} if recorded else None
    checks = [_judge(rule, reference, observed, tolerance_for(rule.item, tolerances), digests) for rule in plan]
    owed = set(promised(plan))
    return (*checks, *(_extra(name, observed[name]) for name in observed if name not in owed))


def decide(rule: Rule, reference: Mapping[str, Array], observed: Mapping[str, Array], tolerance: Tolerance) -> Finding:
    """What the check of one rule decides, without the record of it, which takes longer than deciding."""
    return _finding(rule, *_operands(rule, reference, observed), tolerance)


def digest(array: Array) -> str:
    """SHA-256 of the array's bytes in C order, empty for objects. An array of another layout is copied first."""
    if array.dtype.hasobject:
        return ""
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()


def _judge(
    rule: Rule,
    reference: Mapping[str, Array],
    observed: Mapping[str, Array],
    tolerance: Tolerance,
    digests: Digests | None,
) -> Check:
    left, right = _operands(rule, reference, observed)
    if digests is None:
        return _brief(rule, _finding(rule, left, right, tolerance))
    side = "observed" if rule.kind == "identical" else "reference"
    keys = ((side, rule.other or rule.item), ("observed", rule.item))
    for key, array in zip(keys, (left, right), strict=True):
        if array is not None and key not in digests:
            digests[key] = _begun(array)
    return _decide(rule, left, right, tolerance, [digests.get(key, str) for key in keys])


def _begun(array: Array) -> Callable[[], str]:
    """A digest to ask for later; that of a large array is computed by a thread meanwhile."""
    if array.nbytes < LARGE:
        return partial(str, digest(array))
    found: list[str] = []
    thread = Thread(target=lambda large: found.append(digest(large)), args=(array,))  # it lets the array go
    thread.start()

    def ended() -> str:
        thread.join()
        return found[0]

    return ended


def _brief(rule: Rule, finding: Finding) -> Check:
    headroom = finding.measured.headroom if finding.measured else None
    status = "passed" if finding.passed else "failed"
    return Check(rule.item, rule.kind, status, rule.other, headroom=headroom)


def _operands(
    rule: Rule, reference: Mapping[str, Array], observed: Mapping[str, Array]
) -> tuple[Array | None, Array | None]:
    """Fetch what the rule holds the item against, and the item: None for a name that is not there."""
    if rule.kind == "identical":
        return observed.get(rule.other), observed.get(rule.item)
    return reference.get(rule.other if rule.kind == "within" else rule.item), observed.get(rule.item)


def _decide(
    rule: Rule, left: Array | None, right: Array | None, tolerance: Tolerance, hashes: Sequence[Callable[[], str]]
) -> Check:
    finding = _finding(rule, left, right, tolerance)
    about = _description(rule, right if right is not None else left, tolerance, [ended() for ended in hashes])
    statistics = {}
    if finding.measured is not None:
        statistics = _statistics(rule, finding.held, finding.item, finding.measured)
    status = "passed" if finding.passed else "failed"
    return Check(**about, **statistics, status=status, message=finding.message)


def _finding(rule: Rule, left: Array | None, right: Array | None, tolerance: Tolerance) -> Finding:
    absent = absence(rule, left, right)
    if absent or right is None:
        return Finding(rule, _NOTHING, _NOTHING, tolerance, None, absent)
    held = _held(rule, left, right)
    unfit = unfitness(held, right)
    measured = None if unfit else _measure(rule, held, right, tolerance)
    return Finding(rule, held, right, tolerance, measured, unfit)


def _description(rule: Rule, known: Array | None, tolerance: Tolerance, hashes: Sequence[str]) -> dict[str, Any]:
    """Collect what is known of a check before anything is compared; `known` is the item, or what it is held against."""
    close = {"atol": tolerance.atol, "rtol": tolerance.rtol, "reason": tolerance.reason}
    return {
        "name": rule.item,
        "kind": rule.kind,
        "other": rule.other,
        "shape": () if known is None else known.shape,
        "dtype": "" if known is None else str(known.dtype),
        "count": 0 if known is None else known.size,
        "tolerance": close if rule.kind == "close" else None,
        "reference_sha256": hashes[0],
        "observed_sha256": hashes[1],
    }


def _held(rule: Rule, left: Array | None, right: Array) -> Array:
    """Return what the item is held against, in its shape where the rule leaves that open."""
    if left is None:  # `zero` of an item that the reference does not compute
        return np.broadcast_to(np.zeros((), right.dtype), right.shape)
    if rule.kind == "within" and left.shape == ():
        return np.broadcast_to(left, right.shape)
    return left


def _statistics(rule: Rule, left: Array, right: Array, found: Comparison) -> dict[str, Any]:
    index = np.unravel_index(found.worst, right.shape)
    zero = rule.kind == "zero"
    return {
        "max_abs": found.max_abs,
        "mean_abs": found.mean_abs,
        "p99_abs": found.p99_abs,
        "max_rel": found.max_rel,
        "max_ulp": None if zero or rule.kind == "within" else found.max_ulp,  # no reference to take a spacing from
        "worst": {
            "index": [int(i) for i in index],
            "reference": left.dtype.type(0).item() if zero else element(left, index),
            "observed": element(right, index),
        },
        "out_of_tolerance": found.out_of_tolerance,
        "headroom": found.headroom,
        "blunt_share": found.blunt_share if rule.kind == "close" else None,
    }


def _measure(rule: Rule, left: Array, right: Array, tolerance: Tolerance) -> Comparison:
    match rule.kind:
        case "close":
            return compare(left, right, tolerance.atol, tolerance.rtol)
        case "within":
            return compare_bound(left, right)
        case "zero":
            return compare(np.broadcast_to(np.zeros((), right.dtype), right.shape), right, 0.0, 0.0)
        case "identical":
            return _by_bits(left, right)
        case "exact":
            return compare(left, right, 0.0, 0.0)
    raise ValueError(f"kind {rule.kind}: is not judged from two arrays")


def _by_bits(left: Array, right: Array) -> Comparison:
    """Compare values for the statistics and bits for the verdict."""
    found = compare(left, right, 0.0, 0.0)
    count, first = different_bits(left, right)
    worst = found.worst if found.out_of_tolerance else max(first, 0)
    return found._replace(out_of_tolerance=count, worst=worst, headroom=-DECADES if count else DECADES)


def _extra(name: str, array: Array) -> Check:
    kind = default_rule(name, array).kind
    message = "extra: the torch side yielded it and nobody promised it"
    check = Check(name, kind, "failed", "", array.shape, str(array.dtype), array.size, message=message)
    return replace(check, observed_sha256=digest(array))
