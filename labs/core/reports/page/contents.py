"""What the page shows, part by part, before anything is HTML."""

from typing import NamedTuple

from labs.core.reports.page import environment
from labs.core.reports.page.band import Band, band
from labs.core.reports.page.budget import Budget
from labs.core.reports.page.config import Config, config
from labs.core.reports.page.since import Since, since
from labs.core.reports.page.stored import Source
from labs.core.reports.summary import Record


class Contents(NamedTuple):
    """The whole page; `few` is how many rows the tables have that show what stands in report.json."""

    band: Band
    since: Since | None
    configs: list[Config]
    environment: list[environment.Fact]
    few: int
    left_out: str


def contents(report: Record, source: Source, where: str, budget: Budget) -> Contents:
    """Collect what the page shows of a report within a budget."""
    labs = report["labs"]
    more = len(labs) - budget.labs
    return Contents(
        band=band(report, budget),
        since=since(report, budget),
        configs=[config(lab, source(lab["name"]), where, budget) for lab in labs[: budget.labs]],
        environment=environment.facts(report),
        few=budget.faults,
        left_out=f"{more} more configs do not fit on this page" if more > 0 else "",
    )
