"""The table of a config's checks: failed ones first, the others in the groups that their names make."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from labs.core.reports import summary
from labs.core.reports.anchors import anchor, control_anchor, label
from labs.core.reports.page.scale import LIMIT, REACH, Bar, bar, position
from labs.core.reports.summary import Record, number, short


class Row(NamedTuple):
    """A check in one line; `id` is "" where a card has it."""

    id: str
    href: str
    stem: str
    leaf: str
    kind: str
    failed: bool
    bar: Bar | None
    decades: str
    error: str
    ulp: str
    worst: str


class Group(NamedTuple):
    """Rows under a heading."""

    title: str
    note: str
    failed: bool
    rows: list[Row]


class Fault(NamedTuple):
    """A known fault; `good` and `fault` are the two ends of its separation on the axis, None where it is not known."""

    id: str
    name: str
    why: str
    caught: bool
    status: str
    good: float | None
    fault: float | None
    left: float
    width: float
    decades: tuple[str, str]
    told: str


def groups(lab: Record, cards: frozenset[str], failed: int, passed: int) -> list[Group]:
    """The checks of a config, at most so many that failed and that passed; `cards` are the labels that have a card."""
    wrong = summary.failing(lab)[:failed]
    rows = [_row(lab, c, cards) for c in wrong]
    found = [Group("failed", summary.count(len(rows), "check"), failed=True, rows=rows)] if rows else []
    good = [c for c in lab["checks"] if c["status"] == "passed"][:passed]
    for title, checks in groupby(good, key=_stem):
        found.append(_group(lab, title, list(checks)))
    return found


def _group(lab: Record, title: str, checks: Sequence[Record]) -> Group:
    tight = summary.tightest({"checks": checks})
    parts = [summary.count(len(checks), "check")]
    if tight is not None:
        parts.append("all equal" if number(tight["headroom"]) >= REACH else summary.decades(tight))
    return Group(title, " · ".join(parts), failed=False, rows=[_row(lab, c, frozenset()) for c in checks])


def _stem(check: Record) -> str:
    return str(check["name"]).split("/")[0]


def _row(lab: Record, check: Record, cards: Iterable[str]) -> Row:
    name, own = label(check), str(check["name"])
    stem, slash, leaf = own.rpartition("/")
    href = anchor(lab, name)
    worst = check.get("worst")
    return Row(
        id="" if name in cards else href,
        href=href,
        stem=stem + slash,
        leaf=leaf,
        kind="" if check["kind"] == "close" else summary.kind(check),
        failed=check["status"] != "passed",
        bar=bar(check.get("headroom")),
        decades=short(check.get("headroom"), ".1f"),
        error=short(check.get("max_abs"), ".2g"),
        ulp=short(check.get("max_ulp"), ".3g"),
        worst=", ".join(map(str, worst["index"])) if worst else "",
    )


def _told(control: Record) -> str:
    """Why the control proves nothing, without its name and reason, which stand beside it."""
    return summary.control_sentence({**control, "why": ""}).partition(": ")[2]


def faults(lab: Record, most: int) -> tuple[list[Fault], str]:
    """At most so many known faults, those that were not caught first, and what is wrong with several at once."""
    ordered = sorted(lab["controls"], key=lambda c: c["status"] == "caught")
    found = [_fault(lab, c) for c in ordered[:most]]
    told = [f.told for f in found if f.told]
    shared = max(told, key=told.count, default="")
    if told.count(shared) < 2:  # noqa: PLR2004
        return found, ""
    said = f"{told.count(shared)} known faults were not caught: {shared}"
    return [f._replace(told="") if f.told == shared else f for f in found], said


def _fault(lab: Record, control: Record) -> Fault:
    good, bad = (number(control["separation"].get(side)) for side in ("good", "fault"))
    known = good == good and bad == bad  # noqa: PLR0124 - neither is NaN
    left, right = (position(-good), position(bad)) if known else (LIMIT, LIMIT)
    caught = summary.is_sound(control)
    return Fault(
        id=control_anchor(lab, control["name"]),
        name=str(control["name"]),
        why=str(control["why"]),
        caught=caught,
        status=str(control["status"]),
        good=left if known else None,
        fault=right if known else None,
        left=min(left, right),
        width=round(abs(right - left), 2),
        decades=(short(control["separation"].get("good"), ".1f"), short(control["separation"].get("fault"), ".1f")),
        told="" if caught else _told(control),
    )
