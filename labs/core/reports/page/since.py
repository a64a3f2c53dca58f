"""What became of the run's baseline."""

from typing import NamedTuple

from labs.core.reports import regressions
from labs.core.reports.anchors import anchor, label
from labs.core.reports.page.budget import Budget
from labs.core.reports.summary import Record


class Change(NamedTuple):
    """A check that is not as it was: `href` is the id of its row, "" when it has none."""

    what: str
    config: str
    name: str
    href: str
    happened: str
    fails: bool


class Since(NamedTuple):
    """The changes since the baseline, and what the environments suggest."""

    worse: bool
    headline: str
    cause: str
    changes: list[Change]
    left_out: int


def since(report: Record, budget: Budget) -> Since | None:
    """What became of the baseline; None where there is none."""
    if "baseline" not in report:
        return None
    baseline, worse = report["baseline"], regressions.is_worse(report)
    known = {
        (lab["name"], c["name"], c["kind"]): anchor(lab, label(c)) for lab in report["labs"] for c in lab["checks"]
    }
    shown = baseline["changes"][: min(budget.failed, budget.changes)]
    changes = [
        Change(
            what=change["class"],
            config=change["config"],
            name=regressions.name(change),
            href=known.get((change["config"], change["name"], change["kind"]), ""),
            happened=regressions.sentence(change).partition(": ")[2],
            fails=change["class"] in baseline["run"]["fails"],
        )
        for change in shown
    ]
    headline = regressions.headline(report) if worse else f"no regression since {baseline['a']['id']}"
    return Since(worse, headline, baseline["cause"], changes, len(baseline["changes"]) - len(changes))
