"""The third leg: hand-derived gradients against derivatives that know no formula.

Complex step: d f/d x_j = Im f(x + i h e_j) / h, with h = 1e-20. Nothing is subtracted, so it is exact to rounding, and
it decides. (Squire and Trapp 1998, Using complex variables to estimate derivatives of real functions.)

Small inputs are probed at every element. Above `EVERY_ELEMENT` units of work the probes are a seeded random direction,
along which the derivative must equal <g, d>, and a few sampled elements.

Central differences, (f(x + h d) - f(x - h d)) / 2h with h = 1e-5, stand beside it along the random direction: they need
no complex arithmetic, so they would show a kernel whose complex path is not its real one.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labs.core.inputs import Draw
from labs.core.judge import Check
from labs.core.lab import Array, Arrays, Witness

COMPLEX_STEP = 1e-20
COMPLEX_LIMIT = 1e-12  # times max(1, scale of the derivative)
DIFFERENCE_STEP = 1e-5
DIFFERENCE_LIMIT = (1e-6, 1e-9)  # relative to the scale of the derivative, absolute
EVERY_ELEMENT = 1 << 22  # elements probed x elements of all inputs: beyond it, directions and samples
SAMPLES = 2


@dataclass(frozen=True)
class Probe:
    """One direction: where (None: everywhere), the direction's values there, what the formula says, and its scale."""

    index: tuple[int, ...] | None
    values: Any
    expected: float
    scale: float


@dataclass(frozen=True)
class Reading:
    """What the complex step gave along one probe; `ratio` is its error over its limit."""

    probe: Probe
    derivative: float
    error: float
    ratio: float


def witness_checks(
    witnesses: Sequence[Witness], config: Any, inputs: Arrays, reference: Arrays, seed: int
) -> tuple[Check, ...]:
    """One check of kind `witness` for each of a lab's witnesses: reference gradient against complex step."""
    work = sum(a.size for a in inputs.values())
    return tuple(_check(w, config, inputs, reference[w.item], seed, work) for w in witnesses)


def _check(witness: Witness, config: Any, inputs: Arrays, gradient: Array, seed: int, work: int) -> Check:
    peak = float(np.max(np.abs(gradient), initial=0.0))
    if gradient.size * work <= EVERY_ELEMENT:
        how, probes = "every element", _elements(gradient, peak)
    else:
        how = f"a random direction and {SAMPLES} elements"
        probes = _sampled(gradient, peak, Draw(seed), witness.item)
    readings = [_read(witness, config, inputs, probe) for probe in probes]
    along = _direction(gradient, Draw(seed), witness.item)
    difference = abs(_central_difference(witness, config, inputs, along) - along.expected) if readings else 0.0
    return _record(witness, gradient, peak, how, readings, (difference, along.scale))


def _read(witness: Witness, config: Any, inputs: Arrays, probe: Probe) -> Reading:
    derivative = _complex_step(witness, config, inputs, probe)
    error = abs(derivative - probe.expected)
    ratio = error / (COMPLEX_LIMIT * max(1.0, probe.scale))
    return Reading(probe, derivative, error, ratio if math.isfinite(ratio) else math.inf)


def _record(
    witness: Witness,
    gradient: Array,
    peak: float,
    how: str,
    readings: list[Reading],
    difference: tuple[float, float],
) -> Check:
    worst = max(readings, key=lambda r: r.ratio, default=Reading(Probe((), 0.0, 0.0, 0.0), 0.0, 0.0, math.inf))
    wrong = sum(not r.ratio <= 1.0 for r in readings)
    passed = worst.ratio <= 1.0
    expected = DIFFERENCE_LIMIT[0] * difference[1] + DIFFERENCE_LIMIT[1]
    reason = f"complex step, {how}; central differences within {difference[0]:.1e} ({expected:.1e} expected)"
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
            "index": list(worst.probe.index or ()),
            "reference": worst.probe.expected,
            "observed": worst.derivative,
        },
        tolerance={"atol": COMPLEX_LIMIT * max(1.0, peak), "rtol": 0.0, "reason": reason},
        out_of_tolerance=wrong,
        headroom=min(16.0, max(-16.0, -math.log10(max(worst.ratio, 1e-300)))) if worst.ratio < math.inf else -math.inf,
        message="" if passed else _sentence(witness, wrong, len(readings), worst),
    )


def _sentence(witness: Witness, wrong: int, count: int, worst: Reading) -> str:
    if not count:
        return f"the gradient of {witness.input} is empty, so nothing is proved"
    return (
        f"the hand-derived gradient is not the derivative of the reference's own loss at {wrong} of {count} probes: "
        f"formula {worst.probe.expected:.17g}, complex step {worst.derivative:.17g}"
    )


def _elements(gradient: Array, peak: float) -> Iterator[Probe]:
    for index in np.ndindex(gradient.shape):
        yield Probe(index, 1.0, float(gradient[index]), peak)


def _sampled(gradient: Array, peak: float, draw: Draw, name: str) -> Iterator[Probe]:
    yield _direction(gradient, draw, name)
    for flat in draw.integers(f"witness/{name}/samples", (SAMPLES,), gradient.size):
        index = tuple(int(i) for i in np.unravel_index(flat, gradient.shape))
        yield Probe(index, 1.0, float(gradient[index]), peak)


def _direction(gradient: Array, draw: Draw, name: str) -> Probe:
    direction = draw.uniform(f"witness/{name}", gradient.shape, -1.0, 1.0)
    products = gradient * direction
    return Probe(None, direction, float(products.sum()), float(np.abs(products).sum()))


def _complex_step(witness: Witness, config: Any, inputs: Arrays, probe: Probe) -> float:
    moved = inputs[witness.input].astype(np.complex128)
    moved[probe.index if probe.index is not None else ...] += 1j * COMPLEX_STEP * probe.values
    loss = witness.loss(config, {**inputs, witness.input: moved}, inputs)
    return float(np.imag(loss)) / COMPLEX_STEP


def _central_difference(witness: Witness, config: Any, inputs: Arrays, probe: Probe) -> float:
    def at(step: float) -> float:
        moved = inputs[witness.input].astype(np.float64)
        moved[probe.index if probe.index is not None else ...] += step * probe.values
        return float(np.real(witness.loss(config, {**inputs, witness.input: moved}, inputs)))

    return (at(DIFFERENCE_STEP) - at(-DIFFERENCE_STEP)) / (2.0 * DIFFERENCE_STEP)
