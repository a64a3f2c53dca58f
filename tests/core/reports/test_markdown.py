import re

import pytest

from labs.core.reports.markdown import code, escaped, markdown
from tests.cli.samples import reports

HOSTILE = "a|b `c` <img src=x onerror=alert(1)> [x](http://y) *z* @team\n| new | row |\r\u2028# title"


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def cells(row):
    return len(re.split(r"(?<!\\)\|", row)) - 2


def test_the_verdict_comes_first():
    lines = markdown(reports.green()).splitlines()
    assert lines[0] == "# framework-lab: passed"
    assert lines[4].startswith(r"**lora passed** · 2 checks · 7.4 decades left (trained/grad/x) · 1/1 faults")


def test_failed_checks_head_the_table_in_the_order_of_the_list():
    names = re.findall(r"^\| <code>([^<]*)</code> \| close", markdown(reports.red()), re.MULTILINE)
    assert names == ["trained/loss", "trained/grad/lora_a", "trained/grad/lora_b", "trained/output"]


@pytest.mark.parametrize(
    "fact",
    [
        "missing: the torch side did not yield it",
        "the torch side is wrong",
        "equals alpha_without_rank",
        "control no_scale missed",
        "wiring: a spoiled merge/output passed its check",
        "| **missed** |",
    ],
)
def test_a_red_report_says(fact):
    assert fact in markdown(reports.red())


def test_checks_without_an_answer_are_counted_and_stay_in_the_table():
    checks = [reports.missing("a"), reports.over("b", 1.0)]
    text = markdown(reports.report(reports.lab(status="failed", failures=["stage forward: raised"], checks=checks)))
    assert "1 check without an answer because of that" in text
    assert re.findall(r"^- (\w) \(close\)", text, re.MULTILINE) == ["b"]
    assert any("<code>a</code>" in row for row in rows(text))


def test_a_row_has_headroom_error_and_worst_element():
    row = next(line for line in rows(markdown(reports.plainly_red())) if "b/c" in line)
    assert row == (r"| <code>b/c</code> | close | **failed** | -3 | 0.25 | 1 | 0.5 | 0.25 | \[1, 2\] |")


def test_a_controls_row_has_both_separations():
    assert "| caught | 7.4 | 8.1 | the scale is alpha, not alpha/r |" in markdown(reports.green())


def test_loosened_tolerances_and_narrowing_are_shown():
    text = markdown(reports.narrowed())
    assert r"| <code>merge/\*</code> | 1e-06 | 1e-05 | float32 \| storage |" in text
    assert r"narrowed by --only trained/\* --no-controls" in text


def test_the_environment_is_shown():
    assert "| <code>framework.torch</code> | 2.13.0 |" in markdown(reports.green())


@pytest.mark.parametrize("make", [escaped, code])
def test_hostile_text_is_one_line_without_markup(make):
    text = make(HOSTILE).removeprefix("<code>").removesuffix("</code>")
    assert not re.search(r"[<>\n\r\u2028@]|(?<![\\&])[|`*_\[\]#]|http:", text)


def test_hostile_names_leave_every_table_in_shape():
    checks = [reports.over(HOSTILE, 1.0, diagnosis=HOSTILE), reports.missing(HOSTILE)]
    controls = [reports.control(HOSTILE, why=HOSTILE, status="missed")]
    loosened = [{"pattern": HOSTILE, "atol": 1.0, "rtol": 1.0, "reason": HOSTILE}]
    lab = reports.lab(status="failed", checks=checks, controls=controls, loosened=loosened, failures=[HOSTILE])
    text = markdown(reports.report(lab))
    assert {cells(row) for row in rows(text)} == {9, 5, 4, 2}
    assert "\n| new" not in text
    assert "<img" not in text


def test_numbers_that_are_not_finite_are_shown():
    text = markdown(reports.report(reports.lab(status="failed", checks=[reports.over("a", 1.0, max_ulp="inf")])))
    assert "| 0.25 | inf | 0.5 |" in text


def test_a_run_that_ended_without_a_verdict_says_why():
    report = {"run": {"status": "error", "sentence": "no torch"}, "labs": []}
    assert markdown(report) == "# framework-lab: error\n\nno torch\n"
