"""report.md: a report for GitHub, verdict first, failures first in each table.

Pure: the report's dict to text. Everything that comes from a config, a lab or an exception is escaped: a name can't end
a table cell, open a tag, mention a user or become a link.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from labs.core.reports import summary
from labs.core.reports.diff_markdown import section as diff_section
from labs.core.reports.markdown_text import code, escaped, table
from labs.core.reports.summary import Record, short


def markdown(report: Record) -> str:
    """The report as GitHub Markdown, ending with a newline."""
    lines = [f"# framework-lab: {report['run']['status']}", ""]
    if report["run"].get("sentence"):
        lines += [escaped(report["run"]["sentence"]), ""]
    for lab in report["labs"]:
        lines += [*_lab(lab), ""]
    if "baseline" in report:
        lines += ["## Baseline", "", *diff_section(report["baseline"]), ""]
    lines += _environment(report)
    return "\n".join(lines).rstrip("\n") + "\n"


def _lab(lab: Record) -> Iterator[str]:
    yield f"## {escaped(lab['name'])}"
    yield ""
    head, *rest = (escaped(part) for part in summary.verdict(lab))
    yield " · ".join([f"**{head}**", *rest])
    yield from _about(lab)
    yield from _listed("Also failed", summary.trouble(lab))
    yield from _failures(lab)
    yield from _controls(lab)
    yield from _loosened(lab)
    yield from _unjudged(lab)
    yield from _checks(lab)
    yield from _facts(lab)
    for own in lab.get("tables", ()):
        rows = [[_cell(value) for value in row] for row in own["rows"]]
        header = [escaped(name) for name in own["header"]]
        yield from table(escaped(own["title"]), header, rows, folded=False)


def _about(lab: Record) -> Iterator[str]:
    if lab.get("title"):
        yield ""
        yield f"{escaped(lab['title'])}. Seed {lab.get('seed', 0)}."
    rows = [_swap(s) for s in lab.get("swaps", ())]
    yield from table("Judged in place of the lab's own", ("part", "from", "line", "sha256", "with"), rows, folded=False)


def _swap(swap: Record) -> list[str]:
    line = str(swap["line"]) if swap["line"] else ""
    libraries = escaped(", ".join(swap["libraries"]))
    return [code(swap["part"]), code(swap["source"]), line, code(swap["sha256"][:16]), libraries]


def _listed(title: str, sentences: Sequence[str]) -> Iterator[str]:
    if sentences:
        yield from ("", f"**{title}**", "")
        yield from (f"- {'<br>'.join(escaped(line) for line in s.splitlines())}" for s in sentences)


def _failures(lab: Record) -> Iterator[str]:
    """What the table of checks has no room for: message, arbiter, diagnosis."""
    if silent := summary.without_answer(lab):
        yield from ("", f"{silent}: they are in the table below")
    yield from _listed("Failed checks: where it begins, then worst first", [_failure(c) for c in summary.answered(lab)])


def _failure(check: Record) -> str:
    head, *rest = summary.told(check)
    lines = [f"{check['name']} ({summary.kind(check)}), {head}", *rest]
    return "\n".join(" ".join(line.split()) for line in lines)


def _checks(lab: Record) -> Iterator[str]:
    head = ("check", "kind", "status", "decades left", "max abs", "max ULP", "worst: observed", "reference", "at")
    failed = summary.failing(lab)
    rows = [_row(c) for c in failed] + [_row(c) for c in lab["checks"] if c["status"] == "passed"]
    yield from table("Checks", head, rows, folded=len(failed) == 0)


def _row(check: Record) -> list[str]:
    worst = check.get("worst") or {}
    status = "passed" if check["status"] == "passed" else "**failed**"
    numbers = [_short(check.get(key)) for key in ("headroom", "max_abs", "max_ulp")]
    values = [_value(worst, key) for key in ("observed", "reference", "index")]
    return [code(check["name"]), escaped(summary.kind(check)), status, *numbers, *values]


def _value(worst: Record, key: str) -> str:
    return escaped(worst[key]) if worst.get(key) is not None else ""


def _short(value: Any) -> str:
    return escaped(short(value))


def _controls(lab: Record) -> Iterator[str]:
    head = ("known fault", "status", "good side, decades", "fault, decades", "why")
    ordered = sorted(lab["controls"], key=lambda c: c["status"] == "caught")
    rows = [_control(c) for c in ordered]
    yield from table("Known faults", head, rows, folded=all(map(summary.is_sound, ordered)))


def _control(control: Record) -> list[str]:
    separation = control.get("separation") or {}
    status = escaped(control["status"])
    shown = status if summary.is_sound(control) else f"**{status}**"
    sides = [_short(separation.get(key)) for key in ("good", "fault")]
    return [code(control["name"]), shown, *sides, escaped(control["why"])]


def _facts(lab: Record) -> Iterator[str]:
    rows = [[code(f["name"]), escaped(f["value"]), escaped(f["what"])] for f in lab.get("facts", ())]
    yield from table(
        "Facts, which differ between versions and are not judged", ("item", "value", "what"), rows, folded=False
    )


def _cell(value: Any) -> str:
    return escaped(value) if isinstance(value, str) else _short(value)


def _unjudged(lab: Record) -> Iterator[str]:
    """Items that a narrower precision says nothing of."""
    rows = [[code(u["name"]), escaped(u["why"])] for u in lab.get("unjudged", ())]
    yield from table(f"Not judged in {escaped(lab.get('precision', ''))}", ("item", "why"), rows, folded=True)


def _loosened(lab: Record) -> Iterator[str]:
    head = ("loosened", "atol", "rtol", "reason")
    rows = [[code(t["pattern"]), _short(t["atol"]), _short(t["rtol"]), escaped(t["reason"])] for t in lab["loosened"]]
    yield from table("Loosened tolerances", head, rows, folded=False)


def _environment(report: Record) -> Iterator[str]:
    rows = [[code(name), escaped(summary.plain(value))] for name, value in summary.flat(report.get("environment", {}))]
    yield from table("Environment", ("what", "found"), rows, folded=True)
