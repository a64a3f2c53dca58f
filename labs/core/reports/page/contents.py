"""What the page shows, part by part, before anything is HTML."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from labs.core.reports import regressions, summary
from labs.core.reports.anchors import anchor, label
from labs.core.reports.page import checks, curves, environment, failure, scale
from labs.core.reports.page.stored import Source, Stored
from labs.core.reports.page.walk import Walk, walk
from labs.core.reports.summary import Record, number


class Budget(NamedTuple):
    """How much a page shows: failed checks in full, rows of passed and failed checks, known faults, configs, text."""

    cards: int
    rows: int
    maps: bool
    drawings: bool
    failed: int = 10_000
    changes: int = 200
    faults: int = 10_000
    labs: int = 1000
    text: int = 20_000


class Config(NamedTuple):
    """One config of the run."""

    id: str
    name: str
    title: str
    seed: int
    status: str
    verdict: list[str]
    histogram: list[tuple[int, float, bool]]
    closest: tuple[str, str, str] | None
    again: Sequence[str]
    trouble: list[tuple[str, str]]
    cards: list[failure.Failure]
    groups: list[checks.Group]
    faults: list[checks.Fault]
    faults_remark: str
    charts: list[curves.Chart]
    absent: list[str]
    walk: Walk | None
    loosened: list[Record]
    swaps: list[Record]
    tables: list[Record]
    facts: list[Record]
    left_out: str


class Since(NamedTuple):
    """The baseline; `rows` are class, config, check, the id of its row, what happened, whether that fails the run."""

    worse: bool
    headline: str
    cause: str
    rows: list[tuple[str, str, str, str, str, bool]]
    left_out: int


class Contents(NamedTuple):
    """The whole page."""

    status: str
    headline: str
    sentence: str
    margin: tuple[str, str]
    margin_words: str
    findings: list[tuple[str, str]]
    closest: tuple[str, str, str] | None
    bar: scale.Bar | None
    counts: str
    command: Sequence[str]
    about: list[str]
    since: Since | None
    configs: list[Config]
    environment: list[environment.Fact]
    left_out: str


UNITS = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand"))
PLAIN = 1e4  # below, a number needs no word
WORDS = {"passed": "Passed", "failed": "Failed", "error": "Not completed"}


def contents(report: Record, source: Source, where: str, budget: Budget) -> Contents:
    """Collect what the page shows of a report within a budget."""
    run, labs = report["run"], report["labs"]
    told = _told(labs)
    check = told[1] if told else None
    return Contents(
        status=run["status"],
        headline=WORDS.get(run["status"], str(run["status"])),
        sentence=_cut(str(run.get("sentence") or ""), budget),
        margin=_margin(check) if check else ("", ""),
        margin_words=_in_words(check) if check else "",
        findings=[(str(lab["name"]), found) for lab in labs[: budget.labs] if (found := _explained(lab))],
        closest=_link(*told) if told else None,
        bar=scale.bar(check.get("headroom")) if check else None,
        counts=_counts(labs),
        command=run.get("command", ()),
        about=_about(report),
        since=_since(report, budget) if report.get("baseline") else None,
        configs=[_config(lab, source(lab["name"]), where, budget) for lab in labs[: budget.labs]],
        environment=environment.facts(report),
        left_out=f"{len(labs) - budget.labs} more configs do not fit on this page" if len(labs) > budget.labs else "",
    )


def _since(report: Record, budget: Budget) -> Since:
    baseline, worse = report["baseline"], regressions.is_worse(report)
    known = {
        (lab["name"], c["name"], c["kind"]): anchor(lab, label(c)) for lab in report["labs"] for c in lab["checks"]
    }
    changes = baseline["changes"][: min(budget.failed, budget.changes)]
    rows = [
        (
            change["class"],
            change["config"],
            regressions.name(change),
            known.get((change["config"], change["name"], change["kind"]), ""),
            regressions.sentence(change).partition(": ")[2],
            change["class"] in baseline["run"]["fails"],
        )
        for change in changes
    ]
    headline = regressions.headline(report) if worse else f"no regression since {baseline['a']['id']}"
    return Since(worse, headline, baseline["cause"], rows, len(baseline["changes"]) - len(rows))


def _told(labs: Sequence[Record]) -> tuple[Record, Record] | None:
    """The check that the verdict band speaks of, with its config: the worst failure, else the smallest headroom."""
    failed = [(lab, c) for lab in labs for c in summary.failing(lab)[:1]]
    if failed:
        return min(failed, key=lambda pair: summary.badness(pair[1]))
    tight = [(lab, c) for lab in labs if (c := summary.tightest(lab)) is not None]
    return min(tight, key=lambda pair: number(pair[1]["headroom"]), default=None)


def _explained(lab: Record) -> str:
    """The diagnosis of a config; where it names a known fault, with what that fault is."""
    found = summary.finding(lab)
    words = found.split()
    why = next((str(c["why"]) for c in lab["controls"] if c["name"] in words and c["why"] not in found), "")
    return f"{found}: {why}" if why else found


def _margin(check: Record) -> tuple[str, str]:
    """A number of decades with its word; no number where only equality counts or nothing could be measured."""
    headroom = number(check.get("headroom"))
    if not math.isfinite(headroom):
        return "", "not comparable"
    if check["status"] != "passed" and headroom <= -scale.REACH:
        return "", "not equal"
    return f"{abs(headroom):.1f}", "decades left" if headroom >= 0 else "decades over"


def _link(lab: Record, check: Record) -> tuple[str, str, str]:
    return anchor(lab, label(check)), label(check), str(lab["name"])


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


def _config(lab: Record, arrays: Stored, where: str, budget: Budget) -> Config:
    failed = summary.failing(lab)
    shown = failed[: budget.cards]
    cards = [failure.failure(lab, c, arrays, maps=budget.maps) for c in shown]
    charts, absent = curves.charts(lab, arrays) if budget.drawings else ([], [])
    tight = summary.tightest(lab)
    told = failed[0] if failed else tight
    faults, remark = checks.faults(lab, budget.faults)
    return Config(
        id=anchor(lab, ""),
        name=str(lab["name"]),
        title=str(lab["title"]),
        seed=lab["seed"],
        status=str(lab["status"]),
        verdict=summary.verdict(lab),
        histogram=scale.histogram(lab["checks"]),
        closest=(*_link(lab, told)[:2], summary.decades(told)) if told else None,
        again=summary.again(lab, where) if lab["status"] != "passed" else (),
        trouble=[_sentence(s, budget) for s in summary.trouble(lab)[: budget.failed]],
        cards=cards,
        groups=checks.groups(lab, frozenset(label(c) for c in shown), budget.failed, budget.rows),
        faults=faults,
        faults_remark=remark,
        charts=charts,
        absent=absent,
        walk=walk(lab, arrays) if budget.drawings else None,
        loosened=lab["loosened"][: budget.faults],
        swaps=lab.get("swaps", []),
        tables=lab.get("tables", [])[: budget.faults],
        facts=lab.get("facts", [])[: budget.faults],
        left_out=_left_out(lab, budget),
    )


def _sentence(text: str, budget: Budget) -> tuple[str, str]:
    """The first line, and what stands below it, such as a traceback."""
    first, _, rest = text.partition("\n")
    return _cut(first, budget), _cut(rest, budget)


def _cut(text: str, budget: Budget) -> str:
    return text if len(text) <= budget.text else text[: budget.text] + "…"


def _left_out(lab: Record, budget: Budget) -> str:
    """What the page has no room for, as a sentence; "" when it shows all."""
    failed = len(summary.failing(lab))
    passed = len(lab["checks"]) - failed
    counts: list[tuple[Any, str]] = [
        (failed - budget.cards, "failed checks in full"),
        (failed - budget.failed, "failed checks"),
        (passed - budget.rows, "passed checks"),
        (len(lab["controls"]) - budget.faults, "known faults"),
    ]
    missing = [f"{n} {what}" for n, what in counts if n > 0]
    missing += ["maps of the errors"] if failed and not budget.maps else []
    missing += ["curves and walk"] if not budget.drawings and (lab.get("walk") or lab.get("trajectories")) else []
    return f"Not shown, to keep the page small: {', '.join(missing)}; report.json has all." if missing else ""
