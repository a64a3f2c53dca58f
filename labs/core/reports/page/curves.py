"""Trajectories: what an item's elements do from step to step, the reference as lines and torch's values as dots."""

import math
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labs.core.lab import Array
from labs.core.reports.anchors import anchor
from labs.core.reports.page.stored import Absent, Stored, fetch
from labs.core.reports.summary import Record

F64: TypeAlias = NDArray[np.float64]

WIDTH, HEIGHT = 200, 80
LINES = 5  # elements of an item that are drawn: those that move most
POINTS = 60  # steps that are drawn of a long training
CURVES = 16  # items of a config


class Chart(NamedTuple):
    """An item's curves: `lines` and `dots` are paths, one an element, in a box of WIDTH by HEIGHT."""

    name: str
    href: str
    lines: list[str]
    dots: list[str]
    low: str
    high: str
    steps: int
    remark: str


def charts(lab: Record, arrays: Stored) -> tuple[list[Chart], list[str]]:
    """The charts of a config's trajectories, and a sentence for those that can't be drawn for the same reason."""
    drawn: list[Chart] = []
    missing: dict[str, list[str]] = {}
    for name in lab.get("trajectories", ())[:CURVES]:
        try:
            drawn += _chart(lab, str(name), arrays)
        except Absent as why:
            missing.setdefault(str(why), []).append(str(name))
    return drawn, [f"{', '.join(names)}: {why}" for why, names in missing.items()]


def _chart(lab: Record, name: str, arrays: Stored) -> Iterator[Chart]:
    reference = fetch(arrays.reference, name)
    if reference.ndim == 0 or len(reference) < 2:  # noqa: PLR2004 - one step makes no curve
        return
    observed, remark = _observed(arrays, name, reference.shape)
    steps = np.unique(np.linspace(0, len(reference) - 1, min(POINTS, len(reference))).round().astype(int))
    moving = _moving(reference, steps)
    ref = _columns(reference, steps, moving)
    obs = None if observed is None else _columns(observed, steps, moving)
    seen = ref if obs is None else np.concatenate([ref, obs])
    finite = seen[np.isfinite(seen)]
    if finite.size == 0:
        raise Absent("no finite value")
    low, high = float(finite.min()), float(finite.max())
    if reference.size // len(reference) > LINES:
        remark = f"{LINES} of {reference.size // len(reference)} elements, those that move most{remark}"
    at = steps / max(1, len(reference) - 1)
    lines = [_line(at, values, low, high) for values in ref.T]
    dots = [] if obs is None else [_dots(at, values, low, high) for values in obs.T]
    href = anchor(lab, name)
    yield Chart(name, href, lines, dots, f"{low:.4g}", f"{high:.4g}", len(reference), remark.removeprefix("; "))


def _observed(arrays: Stored, name: str, shape: tuple[int, ...]) -> tuple[Array | None, str]:
    try:
        observed = fetch(arrays.observed, name)
    except Absent as why:
        return None, f"; torch's values: {why}"
    return (observed, "") if observed.shape == shape else (None, "; torch's values have another shape")


def _moving(array: Array, steps: NDArray[np.intp]) -> NDArray[np.intp]:
    """The flat indices of the elements that move most, in their order."""
    flat = array.reshape(len(array), -1)
    with np.errstate(all="ignore"):
        span = np.ptp(np.asarray(flat[steps], np.float64), axis=0)
    return np.sort(np.argsort(-np.nan_to_num(span, nan=math.inf), kind="stable")[:LINES])


def _columns(array: Array, steps: NDArray[np.intp], elements: NDArray[np.intp]) -> F64:
    """[steps, elements]."""
    return np.asarray(array.reshape(len(array), -1)[np.ix_(steps, elements)], np.float64)


def _places(at: F64, values: F64, low: float, high: float) -> Iterator[tuple[float, float] | None]:
    """Where each value stands; None for one that is not finite."""
    for x, value in zip(at, values, strict=True):
        if math.isfinite(value):
            share = 0.5 if high == low else (float(value) - low) / (high - low)
            yield round(float(x) * WIDTH, 1), round((1 - share) * HEIGHT, 1)
        else:
            yield None


def _line(at: F64, values: F64, low: float, high: float) -> str:
    path, pen = [], "M"
    for place in _places(at, values, low, high):
        if place is None:
            pen = "M"
        else:
            path.append(f"{pen}{place[0]:g} {place[1]:g}")
            pen = "L"
    return "".join(path)


def _dots(at: F64, values: F64, low: float, high: float) -> str:
    """Strokes of no length: round caps make dots of them."""
    return "".join(f"M{p[0]:g} {p[1]:g}h0" for p in _places(at, values, low, high) if p)
