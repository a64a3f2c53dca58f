"""What got worse since a run's baseline, for the reports that list failures one by one.

Pure functions over report.json, standard library only.
"""

from labs.core.reports import diff_summary, summary
from labs.core.reports.summary import Record


def regressions(report: Record) -> list[Record]:
    """The changes since the baseline that fail the run, the worst first; none where there is no baseline."""
    baseline = report.get("baseline")
    if not baseline:
        return []
    return [change for change in baseline["changes"] if change["class"] in baseline["run"]["fails"]]


def untold(report: Record) -> list[Record]:
    """The regressions that no failed check or known fault of the run itself tells already."""
    told = {(lab["name"], c["name"]) for lab in report["labs"] for c in summary.failing(lab)}
    told |= {(lab["name"], c["name"]) for lab in report["labs"] for c in lab["controls"] if not summary.is_sound(c)}
    return [change for change in regressions(report) if (change["config"], change["name"]) not in told]


def is_worse(report: Record) -> bool:
    """Whether the run fails on its baseline, whatever its own checks say."""
    return "baseline" in report and report["baseline"]["run"]["exit_code"] != 0


def headline(report: Record) -> str:
    """`3 regressions since 20261129T205300Z`."""
    since = report["baseline"]["a"]["id"]
    found = len(regressions(report))
    return f"{summary.count(found, 'regression')} since {since}" if found else f"nothing could be held against {since}"


def name(change: Record) -> str:
    """`trained/loss (close)`, as the table of differences has it."""
    return diff_summary.label([change])


def sentence(change: Record) -> str:
    """What became of a check since the baseline."""
    decades = diff_summary.headroom(change)
    left = f", {decades} decades left" if decades else ""
    told = f"{change['class']}: {diff_summary.status(change)}{left}"
    return f"{told}; {change['why']}" if change["why"] else told
