"""The verdict band: how the run ended, by what margin, why, and the command that repeats it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from labs.core.reports import summary
from labs.core.reports.anchors import anchor, label
from labs.core.reports.page import scale
from labs.core.reports.page.budget import Budget, cut
from labs.core.reports.summary import Record, number

UNITS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))
PLAIN = 1e4  # below, a number needs no word
WORDS = {"passed": "Passed", "failed": "Failed", "error": "Not completed"}


class Band(NamedTuple):
    """What stands on top. `margin` is a number and its words, `closest` the id, name and config that it is about."""

    status: str
    headline: str
    sentence: str
    margin: tuple[str, str]
    margin_words: str
    findings: list[tuple[str, str]]
    closest: tuple[str, str, str] | None
    verb: str
    counts: str
    command: Sequence[str]
    about: list[str]


def band(report: Record, budget: Budget) -> Band:
    """Collect what the band says."""
    run, labs = report["run"], report["labs"]
    told = _told(labs)
    check = told[1] if told else None
    return Band(
        status=run["status"],
        headline=WORDS.get(run["status"], str(run["status"])),
        sentence=cut(str(run.get("sentence") or ""), budget),
        margin=_margin(check) if check else ("", ""),
        margin_words=_in_words(check) if check else "",
        findings=[(str(lab["name"]), found) for lab in labs[: budget.labs] if (found := _explained(lab))],
        closest=(anchor(told[0], label(told[1])), label(told[1]), str(told[0]["name"])) if told else None,
        verb="is the worst" if check and check["status"] != "passed" else "came closest to its limit",
        counts=_counts(labs),
        command=run.get("command", ()),
        about=_about(report),
    )


def _told(labs: Sequence[Record]) -> tuple[Record, Record] | None:
    """The check that the verdict band speaks of, with its config: the worst failure, else the smallest headroom."""
    failed = [(lab, c) for lab in labs if summary.failing(lab) and (c := summary.telling(lab))]
    if failed:
        return min(failed, key=lambda pair: summary.badness(pair[1]))
    tight = [(lab, c) for lab in labs if (c := summary.tightest(lab)) is not None]
    return min(tight, key=lambda pair: number(pair[1]["headroom"]), default=None)


def _margin(check: Record) -> tuple[str, str]:
    """A number of decades with its word; no number where only equality counts or nothing could be measured."""
    headroom = number(check.get("headroom"))
    if not math.isfinite(headroom):
        return "", "not comparable"
    if check["status"] != "passed" and headroom <= -scale.REACH:
        return "", "not equal"
    return f"{abs(headroom):.1f}", "decades left" if headroom >= 0 else "decades over"


def _in_words(check: Record) -> str:
    """What a headroom means, for who does not think in decades."""
    headroom = number(check.get("headroom"))
    if not math.isfinite(headroom):
        return "nothing could be compared"
    if check["status"] == "passed" and headroom >= scale.REACH:
        return "every value is equal"
    if check["status"] != "passed" and headroom <= -scale.REACH:
        return "it differs where nothing but equality will do"
    side = "below" if check["status"] == "passed" else "beyond"
    return f"its largest error is {_times(10 ** abs(headroom))} times {side} its limit"


def _times(ratio: float) -> str:
    """`2.5`, `1000`, `25 thousand`, `1.5 million`."""
    unit, word = next(((u, w) for u, w in UNITS if ratio >= u), (1.0, "")) if ratio >= PLAIN else (1.0, "")
    count = ratio / unit
    return f"{count:.0f} {word}".strip() if count >= 9.5 else f"{count:.2g} {word}".strip()  # noqa: PLR2004


def _explained(lab: Record) -> str:
    """The diagnosis of a config; where it names a known fault, with what that fault is."""
    found = summary.finding(lab)
    words = found.split()
    why = next((str(c["why"]) for c in lab["controls"] if c["name"] in words and c["why"] not in found), "")
    return f"{found}: {why}" if why else found


def _counts(labs: Sequence[Record]) -> str:
    total = sum(len(lab["checks"]) for lab in labs)
    failed = sum(len(summary.failing(lab)) for lab in labs)
    hits, tried = (sum(n) for n in zip(*(summary.caught(lab) for lab in labs), strict=True)) if labs else (0, 0)
    words = [f"{failed} of {summary.count(total, 'check')} failed" if failed else summary.count(total, "check")]
    words.append(f"{hits} of {tried} known faults caught" if tried else "no known faults tried")
    return " · ".join(words) if labs else "nothing was judged"


def _about(report: Record) -> list[str]:
    run = report["run"]
    found = [str(run.get("created", "")).replace("T", " ").replace("Z", " UTC")]
    found.append(f"torch {summary.torch_version(report)}" if report["labs"] else "")
    found.append(f"{number(run['seconds']):.1f} s" if "seconds" in run else "")
    return [word for word in found if word]
