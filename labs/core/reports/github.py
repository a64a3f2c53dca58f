"""What GitHub Actions shows: annotations of the worst failures, and the Markdown report as the step's summary.

Pure: the report's dict to lines and text. GitHub shows ten annotations of a kind and drops a summary over 1 MiB whole.
"""

import re
from collections.abc import Iterator

from labs.core.reports import regressions, summary
from labs.core.reports.anchors import PAGE, anchor, label
from labs.core.reports.markdown import markdown
from labs.core.reports.summary import Record

MOST = 10  # annotations of a kind in a step
ROOM = 900_000  # bytes of a summary
_CONTROL = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f\u2028\u2029]")
_CUT = (
    "\n\n**Cut here**: the whole report, {size} bytes, does not fit into a summary. It is `report.md` in the bundle.\n"
)


def annotations(report: Record) -> list[str]:
    """One `::error` command a failure, the worst first; where there are more than ten, nine and how many are left."""
    found = [*_commands(report)]
    if len(found) <= MOST:
        return found
    left = len(found) - MOST + 1
    return [*found[: MOST - 1], error("framework-lab", f"{left} more failures: all of them are in the summary")]


def _commands(report: Record) -> Iterator[str]:
    """What did not run first, then checks (where it begins, then the worst), then what makes them doubtful."""
    run, labs = report["run"], report["labs"]
    if run.get("sentence"):
        yield error("framework-lab", run["sentence"])
    for lab in labs:
        yield from (error(f"{lab['name']}: {sentence.split(':')[0]}", sentence) for sentence in lab["failures"])
        if silent := summary.without_answer(lab):
            yield error(f"{lab['name']}: no answer", silent)
    failed = [(lab, number > 0, check) for lab in labs for number, check in enumerate(summary.answered(lab))]
    ordered = sorted(failed, key=lambda found: (found[1], summary.badness(found[2])))
    yield from (_check(lab, check) for lab, _, check in ordered)
    if regressions.is_worse(report):
        yield error("framework-lab: baseline", regressions.headline(report))
    for change in regressions.untold(report):
        yield error(f"{change['config']}: {regressions.name(change)}", regressions.sentence(change))
    for lab in labs:
        yield from (error(f"{lab['name']}: known faults", sentence) for sentence in summary.doubts(lab))


def _check(lab: Record, check: Record) -> str:
    name = label(check)
    return error(f"{lab['name']}: {name}", "\n".join([*summary.told(check), f"{PAGE}#{anchor(lab, name)}"]))


def error(title: str, message: object) -> str:
    """One `::error` command; nothing in it can end the command or start another one."""
    return f"::error title={_property(title)}::{_data(message)}"


def _data(text: object) -> str:
    plain = _CONTROL.sub(" ", str(text)).replace("%", "%25")
    return plain.replace("\r", "%0D").replace("\n", "%0A")


def _property(text: object) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def step_summary(report: Record, taken: int = 0) -> str:
    """The Markdown report for a summary that holds `taken` bytes already, cut with a sentence where it is too long."""
    whole = markdown(report)
    size, room = len(whole.encode()), ROOM - taken
    if size <= room:
        return whole
    said = _CUT.format(size=size)
    kept = _lines_within(whole, room - len(said.encode()) - len("\n\n</details>"))
    if not kept:
        return ""
    unclosed = kept.count("<details>") > kept.count("</details>")
    return kept + ("\n\n</details>" if unclosed else "") + said


def _lines_within(text: str, room: int) -> str:
    kept = text.encode()[: max(0, room)].decode(errors="ignore")
    return kept[: kept.rfind("\n") + 1]
