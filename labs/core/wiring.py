"""Proof that the checks of a run are connected: each one is shown spoiled elements, and has to fail.

This happens before torch has answered: the reference stands in for the observed side. The spoils are the smallest that
a check must notice: ten bounds for `close` and `within`, one step for `exact`, the lowest bit for `identical`, a
denormal for `zero`; at the first, the last and one position drawn from the item's name. A tenth of a bound must pass.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from labs.core.items import Tolerance, promised, tolerance_for
from labs.core.judge import decide
from labs.core.lab import Array, Rule

# Elements: a larger array is judged on a window around the position, so that the cost stays bounded. It is more than
# `compare` takes at once, so that the last position is not in the first chunk.
WINDOW = 24_576

Views: TypeAlias = dict[str, Array]


@dataclass(frozen=True)
class Wiring:
    """How many spoiled elements were shown to a check, and one sentence for each that was judged wrongly."""

    spoils: int
    problems: tuple[str, ...]


@dataclass
class _Recorder(Mapping[str, Array]):
    """The observed side of one check, and the names that the check asked for."""

    arrays: Views
    read: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> Array:
        array = self.arrays[name]
        self.read.add(name)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


def wiring(plan: Sequence[Rule], reference: Mapping[str, Array], tolerances: Sequence[tuple[str, Tolerance]]) -> Wiring:
    """Spoil what each check reads, element by element, and report every check that does not answer as it must.

    Also reported: a check that fails although nothing is spoiled, and a promised item that no check reads.
    """
    spoils, problems, read = 0, list[str](), set[str]()
    for rule in plan:
        trial = _Trial(rule, tolerance_for(rule.item, tolerances))
        trial.run(reference)
        spoils += trial.spoils
        problems += trial.problems
        read |= trial.read
    problems += [f"{name}: promised, but no check reads it" for name in promised(plan) if name not in read]
    return Wiring(spoils, tuple(problems))


@dataclass
class _Trial:
    """One check under test, and what came of it."""

    rule: Rule
    tolerance: Tolerance
    spoils: int = 0
    problems: list[str] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    def run(self, reference: Mapping[str, Array]) -> None:
        held, shown = _stand_ins(self.rule, reference)
        size = shown[self.rule.item].size if self.rule.item in shown else 0
        windows: dict[int, list[int]] = {}
        for position in _positions(self.rule.item, size):
            windows.setdefault(max(0, min(position - WINDOW // 2, size - WINDOW)), []).append(position)
        for start, positions in windows.items():
            views = self._cut(held, start), self._cut(shown, start)
            if not self._passes_unspoiled(*views):
                return
            self._show(*views, [position - start for position in positions])

    def _passes_unspoiled(self, held: Views, shown: Views) -> bool:
        recorder = _Recorder(shown)
        finding = decide(self.rule, held, recorder, self.tolerance)
        self.read |= recorder.read
        if not finding.passed:
            self._complain(f"fails with nothing spoiled: {finding.message}")
        return finding.passed

    def _show(self, held: Views, shown: Views, places: Sequence[int]) -> None:
        """Spoil one element after the other; then move all of them, up and down, by what must not matter."""
        for name in sorted(self.read):
            near: list[dict[int, Any]] = [{}, {}]
            for at in places:
                value, bound = shown[name].flat[at], _bound(self.rule, held, shown, at, self.tolerance)
                for wrong in _wrong_values(self.rule.kind, value, bound):
                    self.spoils += 1
                    if self._passes(held, shown, name, {at: wrong}):
                        self._complain(f"passes with {name} spoiled at {at}: {wrong} for {value}")
                for moved, right in zip(near, _right_values(self.rule.kind, value, bound), strict=False):
                    moved[at] = right
            for moved in filter(None, near):
                if not self._passes(held, shown, name, moved):
                    self._complain(f"fails with {name} a tenth of the bound away: {_listed(moved, shown[name])}")

    def _passes(self, held: Views, shown: Views, name: str, values: Mapping[int, Any]) -> bool:
        spoiled = shown[name].copy()
        for at, value in values.items():
            spoiled.flat[at] = value
        return decide(self.rule, held, {**shown, name: spoiled}, self.tolerance).passed

    def _complain(self, sentence: str) -> None:
        self.problems.append(f"{self.rule.item} ({self.rule.kind}): {sentence}")

    def _cut(self, views: Views, start: int) -> Views:
        """Cut large arrays to a flat window; for `close` with one large element more.

        A window may hold zeros only, and would then be blunt, although the array is not.
        """
        cut = {
            name: array if array.size <= WINDOW else array.flat[start : start + WINDOW] for name, array in views.items()
        }
        if self.rule.kind == "close":
            large = 1.0 + 2.0 * self.tolerance.atol / max(1.0 - self.tolerance.rtol, 1e-3)
            return {
                name: array if array is views[name] else np.append(array, array.dtype.type(large))
                for name, array in cut.items()
            }
        return cut


def _listed(values: Mapping[int, Any], right: Array) -> str:
    return ", ".join(f"{value} for {right.flat[at]} at {at}" for at, value in values.items())


def _stand_ins(rule: Rule, reference: Mapping[str, Array]) -> tuple[Views, Views]:
    """Choose the arrays of both sides that a check of this rule reads when everything is right."""
    item, other = reference.get(rule.item), reference.get(rule.other)
    small = np.arange(1.0, 4.0)
    if rule.kind == "identical":
        shown = next((array for array in (item, other) if array is not None), small)
        return {}, {rule.item: shown, rule.other: shown}
    if rule.kind == "zero":
        like = small if item is None else item
        held = {} if item is None else {rule.item: item}
        return held, {rule.item: np.broadcast_to(np.zeros((), like.dtype), like.shape)}
    if rule.kind == "within":
        if other is None:
            return {}, {rule.item: small if item is None else item}
        inside = np.zeros(other.shape or (3,), other.dtype) if item is None else item
        return {rule.other: other}, {rule.item: inside}
    return ({}, {rule.item: small}) if item is None else ({rule.item: item}, {rule.item: item})


def _positions(name: str, size: int) -> tuple[int, ...]:
    """Choose the first position, one from the name's checksum, and the last; each once, and 0 for no elements."""
    between = 1 + zlib.crc32(name.encode()) % max(1, size - 2)
    return tuple(dict.fromkeys((0, min(between, max(0, size - 1)), max(0, size - 1))))


def _bound(rule: Rule, held: Views, shown: Views, at: int, tolerance: Tolerance) -> float:
    """Return how far the element may be from what it is held against; 0 for the kinds that allow nothing."""
    if rule.kind == "within":
        bound = held[rule.other]
        return float(bound.flat[at if bound.shape else 0])
    if rule.kind == "close":
        return tolerance.atol + tolerance.rtol * abs(float(shown[rule.item].flat[at]))
    return 0.0


def _wrong_values(kind: str, value: Any, bound: float) -> list[Any]:
    """List the values that a check has to refuse where `value` is right."""
    array = np.asarray(value)
    if kind == "identical":
        unsigned = array.view(f"u{array.dtype.itemsize}")
        return [(unsigned ^ unsigned.dtype.type(1)).view(array.dtype)]
    if array.dtype.kind == "b":
        return [~array]
    if array.dtype.kind in "iu":
        start = int(bound) if kind == "within" else int(value)
        return [start - 1 if start == np.iinfo(array.dtype).max else start + 1]
    if kind == "zero":
        return [np.nextafter(array, array.dtype.type(sign)) for sign in (1, -1)]
    if kind == "exact":
        return [np.nextafter(array, array.dtype.type(np.inf))]
    centre = 0.0 if kind == "within" else value
    return [_stepped(array.dtype.type(centre), 10.0 * sign * bound) for sign in (1, -1)]


def _right_values(kind: str, value: Any, bound: float) -> list[Any]:
    """List the values that a check has to accept."""
    if kind not in {"close", "within"} or np.asarray(value).dtype.kind != "f":
        return []
    centre = 0.0 if kind == "within" else value
    return [type(value)(centre + sign * 0.1 * bound) for sign in (1, -1)]


def _stepped(centre: Any, by: float) -> Any:
    """Move `centre` by at least the spacing of its dtype: a bound may be smaller than that."""
    with np.errstate(over="ignore"):
        moved = type(centre)(centre + by)
        return moved if moved != centre else np.nextafter(centre, type(centre)(np.copysign(np.inf, by)))
