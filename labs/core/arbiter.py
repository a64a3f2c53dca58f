"""The arbiter: for an item on which the sides disagree, how far is each from the reference run in extended precision?

`longdouble` has 11 more bits than float64 on x86. Distances are in ULP of the tensor's largest magnitude, so a side
that merely rounds is a few ULP away and a side that is wrong is millions away. Where `longdouble` is no wider than
float64 there is no arbiter. It runs the reference's own formulas, so it tells rounding from error, not a wrong formula
from a right one: for that there are the witness, the controls and the pinned values (`labs.core.investigate`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from labs.core.lab import Array, Arrays, Lab, is_float

COST = 1 << 24  # elements of all inputs: above it the extended run would take minutes


def affordable(inputs: Arrays) -> bool:
    """True when `longdouble` is wider than float64 and the inputs are small enough to run the reference in it."""
    wider = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps
    return bool(wider) and sum(a.size for a in inputs.values()) <= COST


def extended(lab: Lab, config: Any, inputs: Arrays) -> Arrays:
    """The reference run in `longdouble`: the same code, the same inputs, more bits."""
    return lab.reference(config, {k: v.astype(np.longdouble) if is_float(v) else v for k, v in inputs.items()})


def distances(
    names: Iterable[str], exact: Mapping[str, Array], reference: Mapping[str, Array], observed: Mapping[str, Array]
) -> dict[str, dict[str, float]]:
    """{item: {reference_ulp, observed_ulp}} for the float items that all three have with one shape."""
    found = {}
    for name in names:
        truth, here, there = (side.get(name) for side in (exact, reference, observed))
        if truth is None or here is None or there is None or not truth.size:
            continue
        if is_float(truth) and truth.shape == here.shape == there.shape:
            spacing = np.spacing(np.asarray(np.max(np.abs(truth)), dtype=np.float64)).clip(np.finfo(float).tiny)
            far = [float(np.max(np.abs(truth - side)) / spacing) for side in (here, there)]
            found[name] = {"reference_ulp": far[0], "observed_ulp": far[1]}
    return found
