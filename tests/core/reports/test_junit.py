"""JUnit XML is read back with a parser that did not write it, and held against the rules that its readers have."""

import re
from xml.parsers import expat

import pytest

from labs.core.reports.junit import junit
from tests.cli.samples import reports

# What Jenkins' schema, GitLab and the viewers on GitHub take: attributes, and children in this order.
RULES = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, ["testsuite"]),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id"},
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "testcase": ({"name", "classname", "time", "file"}, ["skipped", "error", "failure", "system-out", "system-err"]),
    "failure": ({"type", "message"}, []),
    "error": ({"type", "message"}, []),
}
NUMBERS = {"tests": r"\d+", "failures": r"\d+", "errors": r"\d+", "skipped": r"\d+", "time": r"\d+(\.\d+)?"}
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"  # without a zone, as the schema has it
HOSTILE = "\x00\x07\x1b[31m<![CDATA[x]]>&\"'\u202e\ufffe\ud800 a\nb\tc" + "x" * 9000


def read(text):
    """(tag, attributes, children, text), by expat alone."""
    root = ("", {}, [], [])
    stack = [root]
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(tag, attributes):
        stack.append((tag, attributes, [], []))
        stack[-2][2].append(stack[-1])

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _tag: stack.pop()
    parser.CharacterDataHandler = lambda data: stack[-1][3].append(data)  # noqa: PLW0108 - the stack moves
    parser.Parse(text.encode(), True)  # noqa: FBT003 - that is how expat is called
    return root[2][0]


def broken_rules(element):
    tag, attributes, children, _text = element
    allowed, order = RULES.get(tag, (set(), []))
    found = [f"{tag}: attribute {name}" for name in attributes if name not in allowed]
    found += [f"{tag}: {n}={v!r}" for n, v in attributes.items() if n in NUMBERS and not re.fullmatch(NUMBERS[n], v)]
    if "timestamp" in attributes and not re.fullmatch(MOMENT, attributes["timestamp"]):
        found.append(f"{tag}: timestamp {attributes['timestamp']}")
    places = [order.index(child[0]) if child[0] in order else -1 for child in children]
    found += [f"{tag}: children {[c[0] for c in children]}"] if -1 in places or places != sorted(places) else []
    return [*found, *(problem for child in children for problem in broken_rules(child))]


def totals(suite):
    cases = suite[2]
    bad = [[child[0] for child in case[2]] for case in cases]
    return {
        "tests": len(cases),
        "failures": sum("failure" in b for b in bad),
        "errors": sum("error" in b for b in bad),
        "skipped": 0,
    }


def without_verdict():
    return {"run": {"status": "error", "sentence": "no torch"}, "labs": []}


def hostile():
    checks = [reports.over(HOSTILE, 1.0, diagnosis=HOSTILE), reports.over(HOSTILE, 2.0, kind=HOSTILE)]
    controls = [reports.control(HOSTILE, status="missed", why=HOSTILE)]
    return reports.report(reports.lab(HOSTILE, status="failed", checks=checks, controls=controls, failures=[HOSTILE]))


RUNS = {
    "green": reports.green(), "red": reports.red(), "crash": reports.crash(), "narrowed": reports.narrowed(),
    "two": reports.report(reports.lab(), reports.lab("block")), "hostile": hostile(), "no verdict": without_verdict(),
    "worse": reports.since(reports.change(), reports.change(), reports.change(HOSTILE)), "held": reports.since(),
    "incomparable": reports.since(run={"exit_code": 5, "fails": ["regression"]}),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_every_report_keeps_the_rules_of_its_readers(run):
    assert broken_rules(read(junit(run))) == []


def test_the_rules_can_be_broken():
    text = '<testsuites><testsuite tests="x" evil="1" timestamp="now"><system-out/><testcase/></testsuite></testsuites>'
    assert len(broken_rules(read(text))) == 4


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_totals_are_those_of_the_cases(run):
    root = read(junit(run))
    for suite in root[2]:
        assert {name: int(suite[1][name]) for name in totals(suite)} == totals(suite)
    for name in ("tests", "failures", "errors"):
        assert int(root[1][name]) == sum(int(suite[1][name]) for suite in root[2])


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_the_verdict_is_that_of_the_report(run):
    root = read(junit(run))
    assert (int(root[1]["failures"]) + int(root[1]["errors"]) == 0) == (run["run"]["status"] == "passed")


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_names_are_unique_and_not_empty(run):
    for suite in read(junit(run))[2]:
        names = [(case[1]["classname"], case[1]["name"]) for case in suite[2]]
        assert len(set(names)) == len(names)
        assert all(part.strip() for name in names for part in name)


def test_regressions_are_a_suite_of_their_own():
    suite = read(junit(RUNS["worse"]))[2][1]
    first, second, _hostile = suite[2]
    assert suite[1]["name"] == "since 20261101T000000Z"
    assert (first[1]["name"], second[1]["name"]) == ("lora: trained/output (close)", "lora: trained/output (close) (2)")
    assert first[2][0][1]["message"] == "regression: passed → failed, 7.4 → -1.0 (-8.4) decades left"
    assert totals(read(junit(RUNS["held"]))[2][1])["failures"] == 0


def test_a_suite_a_config_with_its_name_in_the_class():
    suites = read(junit(RUNS["two"]))[2]
    assert [(suite[1]["name"], suite[2][0][1]["classname"]) for suite in suites] == [
        ("lora", "lab.lora"),
        ("block", "lab.block"),
    ]


def test_every_check_control_and_failure_is_a_case():
    names = [case[1]["name"] for case in read(junit(reports.red()))[2][0][2]]
    assert names == [
        "trained/output", "trained/loss", "trained/grad/lora_a", "trained/grad/lora_b",
        "known fault: alpha_without_rank", "known fault: no_scale", "wiring",
    ]  # fmt: skip
    first, *_ = read(junit(reports.crash()))[2][0][2]
    assert first[1]["name"].startswith("run: stage forward raised ZeroDivisionError")


def test_a_failure_says_where_the_page_shows_it():
    case = read(junit(reports.red()))[2][0][2][2]
    (failure,) = case[2]
    assert failure[1]["message"].startswith("7.9 decades over: 3 of 12")
    assert "report.html#lora/trained/grad/lora_a" in "".join(failure[3])
    assert "equals alpha_without_rank" in "".join(failure[3])


def test_a_crash_is_an_error_and_no_failure():
    crashed = reports.report(reports.lab(status="error", failures=["stage forward crashed"], checks=[], controls=[]))
    assert totals(read(junit(crashed))[2][0])["errors"] == 1


def test_a_verdict_that_nothing_explains_is_a_case_of_its_own():
    strange = reports.report(reports.lab(status="failed"))
    (failed,) = [case for case in read(junit(strange))[2][0][2] if case[2]]
    assert failed[1]["name"] == "verdict"


def test_control_characters_are_gone():
    text = junit(hostile())
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\ud800]", text)
    assert "[[ATTACHMENT|" not in junit(reports.green())


def test_messages_are_cut_and_texts_are_not():
    failure = next(case for case in read(junit(hostile()))[2][0][2] if case[2])[2][0]
    assert len(failure[1]["message"]) == 4000
    assert len("".join(failure[3])) > 9000
