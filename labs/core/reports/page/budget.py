"""How much a page shows, from all there is to what fits in any case."""

from typing import NamedTuple

from labs.core.reports.summary import Record

LIMIT = 500_000  # bytes of a page
LINE = 150  # bytes that a line of a table has at least


class Budget(NamedTuple):
    """How many of each thing are shown: failed checks in full, rows of passed and of failed checks, known faults.

    `maps` are those of errors, `drawings` curves and walk, `text` the characters of a sentence or traceback.
    """

    cards: int
    rows: int
    maps: bool
    drawings: bool
    failed: int = 10_000
    changes: int = 200
    faults: int = 10_000
    labs: int = 1000
    text: int = 20_000


BUDGETS = (
    Budget(cards=40, rows=2000, maps=True, drawings=True),
    Budget(cards=40, rows=600, maps=True, drawings=True),
    Budget(cards=20, rows=200, maps=True, drawings=False),
    Budget(cards=20, rows=100, maps=False, drawings=False),
    Budget(cards=5, rows=0, maps=False, drawings=False, failed=200, faults=100),
    Budget(cards=2, rows=0, maps=False, drawings=False, failed=20, faults=10, labs=20, text=300),
)


def worth_trying(report: Record) -> list[Budget]:
    """The budgets, the most generous first, without those whose page can't but be too large."""
    return [*(b for b in BUDGETS[:-1] if _least(report, b) <= LIMIT), BUDGETS[-1]]


def _least(report: Record, budget: Budget) -> int:
    """Bytes that a page can't be below, so that one which is far too large is never made."""
    lines = 0
    for lab in report["labs"][: budget.labs]:
        failed = sum(c["status"] != "passed" for c in lab["checks"])
        lines += min(failed, budget.failed) + min(len(lab["checks"]) - failed, budget.rows)
        lines += min(len(lab["controls"]), budget.faults)
    return lines * LINE


def cut(text: str, budget: Budget) -> str:
    """A text within the budget, with an ellipsis where it was longer."""
    return text if len(text) <= budget.text else text[: budget.text] + "…"
