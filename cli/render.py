"""A report as terminal text: pure functions from the report's dict to lines.

A green run is one line. A red one shows the failures first (where it begins, then worst first), then the verdict. With
`width` None (a pipe) nothing is wrapped or cut.
"""

import shlex
import textwrap
from collections.abc import Iterable, Sequence

from cli.output import Look, printable
from labs.core.reports import summary
from labs.core.reports.summary import Record, number, short

IN_FULL = 10  # failures shown with all their values; the rest gets a line each, until -v
INDENT = "  "
STYLES = {"green": "1;32", "red": "1;31", "yellow": "33", "dim": "2"}
SEPARATOR = " · "


def terminal(report: Record, bundle: str, look: Look, level: int = 0) -> str:
    """The report as text. `level` -1 is the verdict alone, 1 every check and control as a table."""
    report = printable(report, keep="\n")
    blocks = [_block(lab, bundle, look, level) for lab in report["labs"]] if level >= 0 else []
    if level >= 0 and "baseline" in report and not summary.held(report):
        from cli.render_diff import against

        blocks.append(wrapped(f"A is the baseline {report['baseline']['a']['id']}, B is this run", look))
        blocks += against(report["baseline"], look, level)
    return stacked([*blocks, _verdicts(report, bundle, look)])


def stacked(blocks: Sequence[Sequence[str]]) -> str:
    """Blocks of lines with an empty line between those that have any."""
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _verdicts(report: Record, bundle: str, look: Look) -> list[str]:
    """One line a config; the run's own facts end the only one, or get a line of their own."""
    labs, footer = report["labs"], summary.footer(report, bundle)
    worse = _worse(report, look)
    if len(labs) == 1:
        return [*_coloured([*summary.verdict(labs[0]), *footer], labs[0]["status"], look), *worse]
    status = "passed" if worse and all(lab["status"] == "passed" for lab in labs) else report["run"]["status"]
    total = summary.count(len(labs), "config") + f" {status}"
    rows = [line for lab in labs for line in _coloured(summary.verdict(lab), lab["status"], look)]
    return [*rows, *_coloured([total, *footer], status, look), *worse]


def _worse(report: Record, look: Look) -> list[str]:
    """The last word of a run that is worse than its baseline: such a run fails, whatever its checks say."""
    if "baseline" not in report or summary.held(report):
        return []
    from cli.render_diff import verdict

    head, *rest = verdict(report["baseline"])
    return joined([f"against {report['baseline']['a']['id']}: {head}", *rest], look, "red")


def joined(parts: Sequence[str], look: Look, style: str = "") -> list[str]:
    """The parts between dots, broken at a dot where the terminal ends, the first one in a colour (none: as it is).

    A part that is longer than a line is broken at spaces.
    """
    lines = [parts[0]]
    for part in parts[1:]:
        longer = lines[-1] + SEPARATOR + part
        if look.width is None or len(longer) <= look.width:
            lines[-1] = longer
        else:
            lines += wrapped(INDENT + part, look, hang=2 * len(INDENT))
    if not style:
        return lines
    return [painted(parts[0], style, look) + lines[0][len(parts[0]) :], *lines[1:]]


def _coloured(parts: Sequence[str], status: str, look: Look) -> list[str]:
    return joined(parts, look, "green" if status == "passed" else "red")


def _block(lab: Record, bundle: str, look: Look, level: int) -> list[str]:
    """What stands above the verdict of one config: failures when there are any, tables with -v."""
    lines = _failures(lab, look, level)
    if level > 0:
        lines += [*_tables(lab, look), *_loosened(lab)]
    if lab["status"] != "passed":
        lines.append(f"again: {shlex.join(summary.again(lab, bundle))}")
    return lines


def _failures(lab: Record, look: Look, level: int) -> list[str]:
    """Stages first, because missing items follow from them; then checks, worst first; then doubts about the checks."""
    failed, silent = summary.answered(lab), summary.without_answer(lab)
    checks = [[silent]] if silent else []
    checks += [failure(c, look) for c in failed[:IN_FULL]]
    checks += [failure(c, look) if level > 0 else [_one_line(c)] for c in failed[IN_FULL:]]
    stages, doubts = ([_bullet(t, look) for t in texts] for texts in (lab["failures"], summary.doubts(lab)))
    blocks = [_capped(stages, IN_FULL, level), _capped(checks, 2 * IN_FULL, level), _capped(doubts, IN_FULL, level)]
    return [line for block in blocks for line in block]


def _capped(entries: Sequence[Sequence[str]], most: int, level: int) -> list[str]:
    shown = entries if level > 0 else entries[:most]
    rest = len(entries) - len(shown)
    return [*(line for entry in shown for line in entry), *more(rest)]


def more(rest: int) -> list[str]:
    """The line below a list that is cut; no line where nothing is left."""
    return [f"… and {rest} more (-v shows all)"] if rest else []


def _one_line(check: Record) -> str:
    return f"{check['name']} ({summary.kind(check)}): {summary.decades(check)}"


def _bullet(sentence: str, look: Look) -> list[str]:
    first, *rest = sentence.splitlines() or [""]
    mark, *more = wrapped(f"! {first}", look)
    return [painted("!", "red", look) + mark[1:], *more, *(INDENT + line for line in rest)]


def failure(check: Record, look: Look) -> list[str]:
    """One failed check: both values, where, the limit, which side is wrong, the diagnosis, the message."""
    name = painted(check["name"], "red", look)
    if not check.get("worst"):  # nothing was compared element by element: the message says all
        return [f"{name} ({summary.kind(check)}): {check['message']}"]
    head = f"{name} ({summary.kind(check)}): {summary.decades(check)}"
    labels = ("derivative", "formula") if check["kind"] == "witness" else ("observed", "reference")
    rows = [(labels[0], _side(check, "observed")), (labels[1], _side(check, "reference"))]
    rows += [("at", _place(check)), ("limit", _limit(check)), ("wrong side", summary.wrong_side(check))]
    rows += [("arbiter", summary.distances(check))]
    message = "" if summary.tells_worst(check) else check["message"]  # the rows above say the same
    rows += [("diagnosis", check.get("diagnosis") or ""), ("message", message)]
    return [head, *(line for label, text in rows if text for line in _row(label, text, look))]


def _side(check: Record, side: str) -> str:
    worst = check.get("worst")
    return str(worst[side]) if worst else ""


def _place(check: Record) -> str:
    worst = check.get("worst")
    if not worst:
        return ""
    share = f"{check['out_of_tolerance']} of {check['count']} out of tolerance"
    place = f"{list(worst['index'])} of {list(check['shape'])}" if check["shape"] else "a number,"
    return f"{place} {check['dtype']}, {share}"


def _limit(check: Record) -> str:
    bound, tolerance = summary.limit(check), check.get("tolerance")
    if bound is None or not tolerance:
        return ""
    reason = f"; {tolerance['reason']}" if tolerance["reason"] else ""
    return f"{bound:.3g} = {summary.stated(tolerance)}{reason}"


def _row(label: str, text: str, look: Look) -> list[str]:
    return wrapped(f"{INDENT}{label:<10} {text}", look, hang=len(INDENT) + 11)


def wrapped(line: str, look: Look, hang: int = 2) -> list[str]:
    """The line, broken at spaces where the terminal ends; long words (paths) stay whole to be copied."""
    if look.width is None:
        return [line]
    return textwrap.wrap(
        line, look.width, subsequent_indent=" " * hang, break_long_words=False, break_on_hyphens=False
    ) or [""]


def _tables(lab: Record, look: Look) -> list[str]:
    """Every check, every control and every fact, one row each."""
    checks: list[tuple[str, ...]] = [("check", "kind", "status", "decades", "max_abs", "max_ulp", "out of")]
    checks += [_check_row(c) for c in lab["checks"]]
    controls: list[tuple[str, ...]] = [("control", "status", "good", "fault", "must fail")]
    controls += [_control_row(c) for c in lab["controls"]]
    facts: list[tuple[str, ...]] = [("fact", "value", "what")]
    facts += [(str(f["name"]), str(f["value"]), str(f["what"])) for f in lab.get("facts", ())]
    shown = [rows for rows in (checks, controls, facts) if len(rows) > 1]
    return [line for rows in shown for line in ("", *table(rows, look))][1:]


def _check_row(check: Record) -> tuple[str, ...]:
    out = f"{check.get('out_of_tolerance') or 0}/{check.get('count') or 0}"
    numbers = [short(check.get(key), absent="-") for key in ("headroom", "max_abs", "max_ulp")]
    return (str(check["name"]), str(check["kind"]), str(check["status"]), *numbers, out)


def _control_row(control: Record) -> tuple[str, ...]:
    separation = control.get("separation") or {}
    sides = [short(separation.get(key), absent="-") for key in ("good", "fault")]
    return (str(control["name"]), str(control["status"]), *sides, " ".join(control["must"]))


def table(rows: Sequence[Sequence[str]], look: Look) -> list[str]:
    """Columns two spaces apart, the first row dim; on a terminal the first column gives way so that a row fits."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    if look.width is not None:
        others = sum(widths[1:-1]) + min(widths[-1], 20) + 2 * (len(widths) - 1)
        widths[0] = min(widths[0], max(12, look.width - others))
    lines = [_cells(row, widths, look) for row in rows]
    return [painted(lines[0], "dim", look), *lines[1:]]


def _cells(row: Sequence[str], widths: Iterable[int], look: Look) -> str:
    line = "  ".join(clipped(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    return line if look.width is None or len(line) <= look.width else line[: look.width - 1] + "…"


def clipped(text: str, width: int) -> str:
    """`text` in `width` columns, the end kept (an item's last words tell it apart) behind an ellipsis."""
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]


def _loosened(lab: Record) -> list[str]:
    return [
        f"loosened: {t['pattern']} to atol {number(t['atol']):g}, rtol {number(t['rtol']):g}: {t['reason']}"
        for t in lab["loosened"]
    ]


def painted(text: str, style: str, look: Look) -> str:
    """`text` in a colour when the terminal wants colours."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if look.colour else text
