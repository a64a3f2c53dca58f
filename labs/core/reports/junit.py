"""junit.xml: a report for CI servers, one suite a config, every check, known fault and failure a test case.

Pure: the report's dict to text. The elements and attributes are those that Jenkins, GitLab and the viewers on GitHub
have in common. No `system-out`: some of them act on what it says.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

from labs.core.reports import regressions, summary
from labs.core.reports.anchors import PAGE, anchor, control_anchor, label
from labs.core.reports.summary import Record, number

LONGEST = 4000  # characters of a message; the text below it has all of them
FIRST = 100  # characters of a sentence that names a case
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Case:
    """One test case: `problem` is "" (passed), "failure" or "error", `kind` a word for what went wrong."""

    name: str
    problem: str = ""
    kind: str = ""
    message: str = ""


def junit(report: Record) -> str:
    """The report as JUnit XML, ending with a newline."""
    suites = [_suite(report, lab) for lab in report["labs"]] or [_no_verdict(report)]
    suites += [_since(report)] if "baseline" in report else []
    root = ET.Element("testsuites", name="framework-lab")
    for total in ("tests", "failures", "errors"):
        root.set(total, str(sum(int(s.get(total, "0")) for s in suites)))
    root.set("time", _seconds(report["run"].get("seconds", 0)))
    root.extend(suites)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def cases(lab: Record) -> list[Case]:
    """Every check, known fault and failure of a config, and its wiring; names are unique."""
    found = [*_failures(lab), *(_check(lab, c) for c in lab["checks"]), *(_control(lab, c) for c in lab["controls"])]
    problems = lab["wiring"]["problems"]
    found.append(Case("wiring", "failure", "wiring", "\n".join(problems)) if problems else Case("wiring"))
    if lab["status"] != "passed" and not any(c.problem for c in found):
        found.append(Case("verdict", "failure", "verdict", f"{summary.headline(lab)}, and no check says why"))
    return list(_unique(found))


def _failures(lab: Record) -> Iterator[Case]:
    problem = "error" if lab["status"] == "error" else "failure"
    for sentence in lab["failures"]:
        first = sentence.splitlines()[0] if sentence.strip() else "no sentence"
        yield Case(f"run: {first[:FIRST]}", problem, "stage", sentence)


def _check(lab: Record, check: Record) -> Case:
    name = label(check)
    if check["status"] == "passed":
        return Case(name)
    told = [*summary.told(check), f"see {PAGE}#{anchor(lab, name)}"]
    return Case(name, "failure", check["kind"], "\n".join(told))


def _control(lab: Record, control: Record) -> Case:
    name = f"known fault: {control['name']}"
    if summary.is_sound(control):
        return Case(name)
    told = f"{summary.control_sentence(control)}\nsee {PAGE}#{control_anchor(lab, control['name'])}"
    return Case(name, "failure", control["status"], told)


def _unique(found: Sequence[Case]) -> Iterator[Case]:
    """The cases under names that no other one has once spaces are what XML makes of them."""
    taken: set[str] = set()
    for case in found:
        plain = _SPACE.sub(" ", cleaned(case.name)).strip() or "no name"
        name, times = plain, 1
        while name in taken:
            times += 1
            name = f"{plain} ({times})"
        taken.add(name)
        yield replace(case, name=name)


def _suite(report: Record, lab: Record) -> ET.Element:
    seconds = sum(number(s) for s in lab["seconds"].values())
    return _element(report, cleaned(lab["name"]), cases(lab), seconds)


def _since(report: Record) -> ET.Element:
    """What became of the run's baseline: a suite of its own, for a config has but its own checks."""
    cases = [
        Case(
            f"{change['config']}: {regressions.name(change)}", "failure", change["class"], regressions.sentence(change)
        )
        for change in regressions.regressions(report)
    ]
    if regressions.is_worse(report) and not cases:
        cases = [Case("baseline", "failure", "baseline", regressions.headline(report))]
    since = f"since {report['baseline']['a']['id']}"
    return _element(report, cleaned(since), list(_unique(cases or [Case("no regression")])), 0.0)


def _no_verdict(report: Record) -> ET.Element:
    """A run that ended before there was anything to judge."""
    sentence = str(report["run"].get("sentence") or "nothing was run")
    return _element(report, "run", [Case("run", "error", str(report["run"]["status"]), sentence)], 0.0)


def _element(report: Record, name: str, found: Sequence[Case], seconds: float) -> ET.Element:
    suite = ET.Element("testsuite", name=name, tests=str(len(found)))
    for total, problem in (("failures", "failure"), ("errors", "error")):
        suite.set(total, str(sum(c.problem == problem for c in found)))
    suite.set("skipped", "0")
    suite.set("time", _seconds(seconds))
    if report["run"].get("created"):
        suite.set("timestamp", cleaned(report["run"]["created"]).removesuffix("Z"))
    suite.extend(_test_case(case, f"lab.{name}") for case in found)
    return suite


def _test_case(case: Case, classname: str) -> ET.Element:
    element = ET.Element("testcase", name=case.name, classname=classname, time="0")
    if case.problem:
        message = _SPACE.sub(" ", cleaned(case.message)).strip()
        problem = ET.SubElement(element, case.problem, type=cleaned(case.kind), message=message[:LONGEST])
        problem.text = cleaned(case.message)
    return element


def cleaned(text: object) -> str:
    """The text without the characters that no XML 1.0 document can hold, such as control characters."""
    return _NOT_XML.sub("", str(text))


def _seconds(value: object) -> str:
    return f"{number(value):.3f}"
