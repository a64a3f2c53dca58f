"""One config of the run: its verdict, its failures in full, its tables and drawings."""

from collections.abc import Sequence
from typing import NamedTuple

from labs.core.reports import summary
from labs.core.reports.anchors import anchor, label
from labs.core.reports.page import checks, curves, scale
from labs.core.reports.page.budget import Budget, cut
from labs.core.reports.page.failure import Failure, failure
from labs.core.reports.page.stored import Stored
from labs.core.reports.page.walk import Walk, walk
from labs.core.reports.summary import Record


class Config(NamedTuple):
    """What the page says of a config; `record` is its entry in report.json, for what is shown as it stands there."""

    id: str
    record: Record
    verdict: list[str]
    histogram: list[tuple[int, float, bool]]
    closest: tuple[str, str, str] | None
    again: Sequence[str]
    trouble: list[tuple[str, str]]
    cards: list[Failure]
    groups: list[checks.Group]
    faults: list[checks.Fault]
    faults_remark: str
    charts: list[curves.Chart]
    absent: list[str]
    walk: Walk | None
    left_out: str


def config(lab: Record, arrays: Stored, where: str, budget: Budget) -> Config:
    """Collect what the page says of a config within a budget; `where` is the bundle's folder for a command."""
    failed = summary.failing(lab)
    shown = failed[: budget.cards]
    charts, absent = curves.charts(lab, arrays) if budget.drawings else ([], [])
    told = summary.telling(lab)
    faults, remark = checks.faults(lab, budget.faults)
    return Config(
        id=anchor(lab, ""),
        record=lab,
        verdict=summary.verdict(lab),
        histogram=scale.histogram(lab["checks"]),
        closest=(anchor(lab, label(told)), label(told), summary.decades(told)) if told else None,
        again=summary.again(lab, where) if lab["status"] != "passed" else (),
        trouble=[_sentence(s, budget) for s in summary.trouble(lab)[: budget.failed]],
        cards=[failure(lab, c, arrays, maps=budget.maps) for c in shown],
        groups=checks.groups(lab, frozenset(label(c) for c in shown), budget.failed, budget.rows),
        faults=faults,
        faults_remark=remark,
        charts=charts,
        absent=absent,
        walk=walk(lab, arrays) if budget.drawings else None,
        left_out=_left_out(lab, budget),
    )


def _sentence(text: str, budget: Budget) -> tuple[str, str]:
    """The first line, and what stands below it, such as a traceback."""
    first, _, rest = text.partition("\n")
    return cut(first, budget), cut(rest, budget)


def _left_out(lab: Record, budget: Budget) -> str:
    """What the page has no room for, as a sentence; "" when it shows all."""
    failed = len(summary.failing(lab))
    passed = len(lab["checks"]) - failed
    counts: list[tuple[int, str]] = [
        (failed - budget.cards, "failed checks in full"),
        (failed - budget.failed, "failed checks"),
        (passed - budget.rows, "passed checks"),
        (len(lab["controls"]) - budget.faults, "known faults"),
    ]
    missing = [f"{n} {what}" for n, what in counts if n > 0]
    missing += ["maps of the errors"] if failed and not budget.maps else []
    missing += ["curves and walk"] if not budget.drawings and (lab.get("walk") or lab.get("trajectories")) else []
    return f"Not shown, to keep the page small: {', '.join(missing)}; report.json has all." if missing else ""
