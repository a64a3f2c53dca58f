"""A failed check in full: what was compared, the worst elements, a map of the errors, which side is wrong and why."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labs.core.lab import Array
from labs.core.reports import summary
from labs.core.reports.anchors import anchor, label
from labs.core.reports.page.heat import Heat, heat
from labs.core.reports.page.ratios import measure
from labs.core.reports.page.scale import Bar, bar
from labs.core.reports.page.stored import Absent, Stored, pair
from labs.core.reports.summary import Record, number


class Element(NamedTuple):
    """One element: where, both values, how far apart, and what was allowed ("" where the kind has no limit)."""

    at: str
    held: str
    observed: str
    difference: str
    limit: str


class Failure(NamedTuple):
    """What the page says of a failed check; `facts` are label and text."""

    id: str
    label: str
    name: str
    kind: str
    headline: str
    message: str
    diagnosis: str
    bar: Bar | None
    facts: list[tuple[str, str]]
    sides: tuple[str, str]
    elements: list[Element]
    heat: Heat | None
    remark: str


SIDES = {
    "identical": ("the other item", "observed"),
    "within": ("bound", "observed"),
    "witness": ("formula", "derivative"),
}


def failure(lab: Record, check: Record, arrays: Stored, *, maps: bool = True) -> Failure:
    """The card of a failed check, with what the stored arrays show of it."""
    elements, drawn, remark = _seen(check, arrays, maps)
    return Failure(
        id=anchor(lab, label(check)),
        label=label(check),
        name=str(check["name"]),
        kind=summary.kind(check),
        headline=summary.decades(check),
        message="" if elements and summary.tells_worst(check) else str(check["message"]),
        diagnosis=str(check.get("diagnosis") or ""),
        bar=bar(check.get("headroom")),
        facts=[(name, text) for name, text in _facts(check) if text],
        sides=SIDES.get(check["kind"], ("reference", "observed")),
        elements=elements,
        heat=drawn,
        remark=remark,
    )


def _facts(check: Record) -> list[tuple[str, str]]:
    shape = " × ".join(map(str, check["shape"])) or "a number"
    tolerance = check.get("tolerance")
    stated = summary.stated(tolerance) if tolerance else ""
    reason = f"; {tolerance['reason']}" if tolerance and tolerance["reason"] else ""
    out = f"{check['out_of_tolerance']} of {check['count']} elements" if check.get("worst") else ""
    return [
        ("wrong side", summary.wrong_side(check)),
        ("arbiter", summary.distances(check)),
        ("out of tolerance", out),
        ("limit", stated + reason),
        ("array", f"{shape}, {check['dtype']}" if check["dtype"] else ""),
    ]


def _seen(check: Record, arrays: Stored, maps: bool) -> tuple[list[Element], Heat | None, str]:
    """The worst elements and the map, or why there is only what report.json has."""
    try:
        held, observed = pair(arrays, check)
    except Absent as why:
        worst = check.get("worst")
        return ([_from_report(check)] if worst else []), None, str(why)
    found = measure(check, held, observed)
    worst_index = tuple(check["worst"]["index"]) if check.get("worst") else None
    drawn = heat(found.levels, worst_index) if maps and observed.size > 1 else None
    return [_element(check, held, observed, i) for i in found.worst], drawn, ""


def _from_report(check: Record) -> Element:
    worst = check["worst"]
    held, observed = worst["reference"], worst["observed"]
    limit = summary.limit(check)
    difference = number(observed) - number(held)
    return Element(
        _index(worst["index"]), str(held), str(observed), f"{difference:.3g}", "" if limit is None else f"{limit:.3g}"
    )


def _element(check: Record, held: Array, observed: Array, index: tuple[int, ...]) -> Element:
    left, right = (held if held.shape == () else held[index]).item(), observed[index].item()
    with np.errstate(all="ignore"):
        difference = np.float64(right) - np.float64(left)
    tolerance = check.get("tolerance")
    limit = number(tolerance["atol"]) + number(tolerance["rtol"]) * abs(left) if tolerance else None
    shown = "" if limit is None else f"{limit:.3g}"
    return Element(_index(index), repr(left), repr(right), f"{difference:.3g}", shown)


def _index(index: Sequence[int]) -> str:
    return ", ".join(map(str, index)) or "—"
