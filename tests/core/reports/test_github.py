import re

import pytest

from labs.core.reports.github import ROOM, annotations, error, step_summary
from labs.core.reports.markdown import markdown
from tests.cli.samples import reports

COMMAND = re.compile(r"::error title=[^:,\r\n]*::[^\r\n]*")


def unescaped(command):
    text = command.replace("%0A", "\n").replace("%0D", "\r").replace("%3A", ":").replace("%2C", ",")
    return text.replace("%25", "%")


def failing(count):
    return reports.report(
        reports.lab(status="failed", checks=[reports.over(f"item/{i}", float(i)) for i in range(count)])
    )


def test_a_green_run_has_no_annotations():
    assert annotations(reports.green()) == []


@pytest.mark.parametrize(("failures", "shown"), [(1, 1), (9, 9), (10, 10), (11, 10), (300, 10)])
def test_at_most_ten_are_shown(failures, shown):
    assert len(annotations(failing(failures))) == shown


def test_where_it_begins_and_the_eight_worst_are_shown_and_the_rest_is_counted():
    found = annotations(failing(12))
    names = [re.search(r"item/(\d+)::", line)[1] for line in found[:9]]
    assert names == ["0", *(str(i) for i in range(11, 3, -1))]
    assert found[9] == "::error title=framework-lab::3 more failures: all of them are in the summary"


def test_the_worst_of_all_configs_comes_first():
    mild = reports.lab("mild", status="failed", checks=[reports.over("a", 1.0)])
    grave = reports.lab("grave", status="failed", checks=[reports.over("b", 9.0)])
    assert "grave%3A b" in annotations(reports.report(mild, grave))[0]


def test_what_did_not_run_comes_before_what_follows_from_it():
    lab = reports.lab(status="failed", failures=["stage forward: raised\nFile x"], checks=[reports.missing("a")])
    lab["checks"].append(reports.over("b", 1.0))
    first, second, third = annotations(reports.report(lab))
    assert first.startswith("::error title=lora%3A stage forward::stage forward: raised%0AFile x")
    assert second == "::error title=lora%3A no answer::1 check without an answer because of that"
    assert "lora%3A b" in third


def test_an_annotation_points_into_the_page():
    assert "report.html#lora/trained/grad/lora_a" in "".join(annotations(reports.red()))


@pytest.mark.parametrize(
    "text", ["100%", "a\nb", "a\r\nb", "a: b, c", "%0A", "::error::x", "a::b", "\x1b[31m", "\u2028"]
)
def test_nothing_ends_a_command_or_starts_another(text):
    command = error(text, text)
    assert COMMAND.fullmatch(command)
    assert len(command.splitlines()) == 1
    plain = re.sub(r"[\x1b\u2028]", " ", text)
    assert unescaped(command) == f"::error title={plain}::{plain}"


def test_a_regression_is_an_annotation_though_every_check_passed():
    first, second = annotations(reports.since(reports.change(), reports.change("b", **{"class": "drift"})))
    assert first == "::error title=framework-lab%3A baseline::1 regression since 20261101T000000Z"
    assert second.startswith("::error title=lora%3A trained/output (close)::regression: passed → failed")
    assert annotations(reports.since()) == []


def test_a_regression_that_failed_is_told_once():
    red = reports.red()
    name = reports.change("trained/loss")
    baseline = reports.since(name, reports.change("no_scale", kind="control"))["baseline"]
    told = annotations({**red, "baseline": baseline})
    assert sum("trained/loss" in line for line in told) == 1
    assert any("2 regressions since" in line for line in told)


def test_a_run_without_a_verdict_is_one_annotation():
    report = {"run": {"status": "error", "sentence": "no torch"}, "labs": []}
    assert annotations(report) == ["::error title=framework-lab::no torch"]


def test_a_summary_that_fits_is_the_markdown_report():
    assert step_summary(reports.red()) == markdown(reports.red())


def huge():
    return reports.report(reports.lab(checks=[reports.check(f"item/{i}") for i in range(20_000)]))


def test_a_summary_that_does_not_fit_is_cut_with_a_sentence():
    text = step_summary(huge())
    assert ROOM - 1000 < len(text.encode()) <= ROOM
    assert text.startswith("# framework-lab: passed")
    assert "**Cut here**" in text.splitlines()[-1]
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize("taken", [ROOM - 10_000, ROOM - 500, ROOM, 2 * ROOM])
def test_what_the_summary_holds_already_counts(taken):
    assert len(step_summary(huge(), taken).encode()) <= max(0, ROOM - taken)
