"""The third leg: hand-derived gradients against derivatives that know no formula.

Complex step: d f/d x_j = Im f(x + i h e_j) / h, with h = 1e-20. Nothing is subtracted, so it is exact to rounding, and
it decides. (Squire and Trapp 1998, Using complex variables to estimate derivatives of real functions.)

Small inputs are probed at every element. Above `EVERY_ELEMENT` units of work the probes are a seeded random direction,
along which the derivative must equal <g, d>, and a few sampled elements. Above `TOGETHER` elements one direction goes
through all inputs of a loss at once, of rank one through matrices (`labs.core.stepped`), and single inputs are probed
only when that does not fit (docs/decisions/0010-one-direction-for-all.md).

Central differences, (f(x + h d) - f(x - h d)) / 2h with h = 1e-5, stand beside the probes of single inputs along the
random direction: they need no complex arithmetic, so they would show a kernel whose complex path is not its real one.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from labs.core.compare import DECADES
from labs.core.inputs import Draw
from labs.core.judge import Check
from labs.core.lab import Array, Arrays, Witness
from labs.core.stepped import Dense, Direction, direction

COMPLEX_STEP = 1e-20
COMPLEX_LIMIT = 1e-12  # times max(1, scale of the derivative)
DIFFERENCE_STEP = 1e-5
DIFFERENCE_LIMIT = (1e-6, 1e-9)  # relative to the scale of the derivative, absolute
EVERY_ELEMENT = 1 << 22  # elements probed x elements of all inputs: beyond it, directions and samples
SAMPLES = 2
TOGETHER = 1 << 24  # elements of all inputs: beyond it, one direction for all inputs of a loss


@dataclass(frozen=True)
class Slope:
    """The derivative of a loss along one direction: `values` at `index` (None: everywhere)."""

    index: tuple[int, ...] | None
    values: Any
    derivative: float

    def against(self, gradient: Array) -> tuple[float, float]:
        """What a gradient says that this derivative is, and the scale of that: for one element the largest of all."""
        if self.index is None:
            return Dense(self.values).sums(gradient)
        return float(gradient[self.index]), float(np.max(np.abs(gradient)))


@dataclass(frozen=True)
class Slopes:
    """Every derivative that was taken of one loss by one input, and how the directions were chosen."""

    how: str
    steps: tuple[Slope, ...]
    difference: Slope


@dataclass(frozen=True)
class Reading:
    """One complex step against a gradient."""

    slope: Slope
    expected: float
    error: float
    limit: float

    @property
    def ratio(self) -> float:
        """The error over its limit, infinite for what is not finite."""
        ratio = self.error / self.limit
        return ratio if math.isfinite(ratio) else math.inf


def witness_checks(
    witnesses: Sequence[Witness], config: Any, inputs: Arrays, reference: Arrays, seed: int
) -> tuple[Check, ...]:
    """One check of kind `witness` for each of a lab's witnesses: reference gradient against complex step.

    Gradients of the same loss by the same input, such as those of several routes, share its derivatives.
    """
    draw = Draw(seed)
    proved = _together(witnesses, config, inputs, reference, draw)
    taken: dict[tuple[Any, str], Slopes] = {}
    for w in witnesses:
        if w not in proved and (w.loss, w.input) not in taken:
            taken[w.loss, w.input] = _slopes(w, config, inputs, draw)
    return tuple(proved.get(w) or _check(w, reference[w.item], taken[w.loss, w.input]) for w in witnesses)


def _together(
    witnesses: Sequence[Witness], config: Any, inputs: Arrays, reference: Arrays, draw: Draw
) -> dict[Witness, Check]:
    """The witnesses of large inputs that one direction through all inputs of their loss proves."""
    if sum(array.size for array in inputs.values()) <= TOGETHER:
        return {}
    proved: dict[Witness, Check] = {}
    for loss in dict.fromkeys(w.loss for w in witnesses):
        own = [w for w in witnesses if w.loss is loss]
        names = list(dict.fromkeys(w.input for w in own))
        moved = _Moved(inputs, {name: direction(draw, name, inputs[name].shape) for name in names})
        derivative = float(np.imag(loss(config, cast("Arrays", moved), inputs))) / COMPLEX_STEP
        sums = {w: moved.directions[w.input].sums(reference[w.item]) for w in own}
        first = {w.input: sums[w] for w in reversed(own)}
        for w in own:
            others = [first[name] for name in names if name != w.input]
            expected, scale = (math.fsum(parts) for parts in zip(sums[w], *others, strict=True))
            reading = _reading(Slope(None, 0.0, derivative), expected, scale)
            if reading.ratio <= 1.0:
                reason = f"complex step, a random direction through all {len(names)} inputs of the loss"
                proved[w] = _checked(w, reference[w.item], [reading], reason)
    return proved


class _Moved(Mapping[str, Array]):
    """The inputs, those that have a direction a complex step away along it: each is made when the loss reads it."""

    def __init__(self, inputs: Arrays, directions: Mapping[str, Direction]) -> None:
        self._inputs, self.directions = inputs, directions

    def __getitem__(self, name: str) -> Array:
        if name not in self.directions:
            return self._inputs[name]
        return cast("Array", self.directions[name].step(self._inputs[name], COMPLEX_STEP))

    def __iter__(self) -> Iterator[str]:
        return iter(self._inputs)

    def __len__(self) -> int:
        return len(self._inputs)


def _slopes(witness: Witness, config: Any, inputs: Arrays, draw: Draw) -> Slopes:
    array = inputs[witness.input]
    direction = draw.uniform(f"witness/{witness.input}", array.shape, -1.0, 1.0)
    places: list[tuple[tuple[int, ...] | None, Any]]
    if array.size * sum(a.size for a in inputs.values()) <= EVERY_ELEMENT:
        how, places = "every element", [(index, 1.0) for index in np.ndindex(array.shape)]
    else:
        how, places = f"a random direction and {SAMPLES} elements", [(None, direction)]
        chosen = draw.integers(f"witness/{witness.input}/samples", (SAMPLES,), array.size)
        places += [(tuple(map(int, np.unravel_index(flat, array.shape))), 1.0) for flat in chosen]
    steps = tuple(Slope(i, v, _complex_step(witness, config, inputs, i, v)) for i, v in places)
    difference = _central_difference(witness, config, inputs, direction) if steps else 0.0
    return Slopes(how, steps, Slope(None, direction, difference))


def _check(witness: Witness, gradient: Array, slopes: Slopes) -> Check:
    readings = [_reading(slope, *slope.against(gradient)) for slope in slopes.steps]
    expected, scale = slopes.difference.against(gradient)
    difference = abs(slopes.difference.derivative - expected)
    limit = DIFFERENCE_LIMIT[0] * scale + DIFFERENCE_LIMIT[1]
    reason = f"complex step, {slopes.how}; central differences within {difference:.1e} ({limit:.1e} expected)"
    return _checked(witness, gradient, readings, reason)


def _checked(witness: Witness, gradient: Array, readings: list[Reading], reason: str) -> Check:
    none = Reading(Slope((), 0.0, 0.0), 0.0, math.inf, COMPLEX_LIMIT)
    worst = max(readings, key=lambda r: r.ratio, default=none)
    passed = worst.ratio <= 1.0
    return Check(
        name=witness.item,
        kind="witness",
        status="passed" if passed else "failed",
        other=f"d loss / d {witness.input}",
        shape=gradient.shape,
        dtype=str(gradient.dtype),
        count=len(readings),
        max_abs=max((r.error for r in readings), default=math.nan),
        mean_abs=math.fsum(r.error for r in readings) / max(1, len(readings)),
        worst={
            "index": list(worst.slope.index or ()),
            "reference": worst.expected,
            "observed": worst.slope.derivative,
        },
        tolerance={"atol": worst.limit, "rtol": 0.0, "reason": reason},
        out_of_tolerance=sum(not r.ratio <= 1.0 for r in readings),
        headroom=_headroom(worst.ratio),
        message="" if passed else _sentence(witness, readings, worst),
    )


def _reading(slope: Slope, expected: float, scale: float) -> Reading:
    return Reading(slope, expected, abs(slope.derivative - expected), COMPLEX_LIMIT * max(1.0, scale))


def _headroom(ratio: float) -> float:
    """Decades between an error and its limit, cut as those of other checks; -inf where nothing could be measured."""
    return -math.inf if math.isinf(ratio) else min(DECADES, max(-DECADES, -math.log10(max(ratio, 1e-300))))


def _sentence(witness: Witness, readings: list[Reading], worst: Reading) -> str:
    if not readings:
        return f"the gradient of {witness.input} is empty, so nothing is proved"
    wrong = sum(not r.ratio <= 1.0 for r in readings)
    return (
        f"the hand-derived gradient is not the derivative of the reference's own loss at {wrong} of {len(readings)} "
        f"probes: formula {worst.expected:.17g}, complex step {worst.slope.derivative:.17g}"
    )


def _complex_step(witness: Witness, config: Any, inputs: Arrays, index: tuple[int, ...] | None, values: Any) -> float:
    moved = inputs[witness.input].astype(np.complex128)
    moved[... if index is None else index] += 1j * COMPLEX_STEP * values
    loss = witness.loss(config, {**inputs, witness.input: moved}, inputs)
    return float(np.imag(loss)) / COMPLEX_STEP


def _central_difference(witness: Witness, config: Any, inputs: Arrays, direction: Array) -> float:
    def at(step: float) -> float:
        moved = inputs[witness.input].astype(np.float64) + step * direction
        return float(np.real(witness.loss(config, {**inputs, witness.input: moved}, inputs)))

    return (at(DIFFERENCE_STEP) - at(-DIFFERENCE_STEP)) / (2.0 * DIFFERENCE_STEP)
