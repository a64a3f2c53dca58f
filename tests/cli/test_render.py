import re

import pytest

from cli.output import Look
from cli.render import clipped, terminal
from tests.cli.samples import reports

PIPE = Look(None, colour=False)
BUNDLE = "artifacts/framework-lab-20261129T205300Z"


def rendered(report, look=PIPE, level=0):
    return terminal(report, BUNDLE, look, level)


def test_a_green_run_is_one_line():
    assert rendered(reports.green()) == (
        "lora passed · 2 checks · 7.4 decades left (trained/grad/x) · 1/1 faults caught · torch 2.13.0 · 1.4 s · "
        + BUNDLE
    )


def test_a_red_run_ends_with_its_verdict():
    last = rendered(reports.red()).splitlines()[-1]
    assert last.startswith("lora failed · 3 of 4 checks failed · first at trained/loss · 7.9 decades over (")
    assert last.startswith("(trained/grad/lora_a) · 1/2 faults", last.index("("))


def test_failures_come_first_where_it_begins_then_the_worst():
    text = rendered(reports.red())
    order = ["trained/loss (", "trained/grad/lora_a (", "trained/grad/lora_b (", "no_scale", "wiring:", "again:"]
    assert sorted(order, key=text.index) == order


@pytest.mark.parametrize(
    "fact",
    [
        "observed   0.5",
        "reference  0.25",
        "[1, 2] of [3, 4]",
        "limit      3.5e-09 = 1e-09 + 1e-08 |reference|",
        "the torch side is wrong",
        "equals alpha_without_rank",
        "missing: the torch side did not yield it",
        "control no_scale missed: trained/* had to fail, nothing did",
        "a spoiled merge/output passed its check",
        f"again: lab run {BUNDLE}/lora/config.yaml",
    ],
)
def test_a_red_run_says(fact):
    assert fact in rendered(reports.red())


def test_a_single_number_has_no_place():
    number = {**reports.over("loss", 1.0), "shape": [], "worst": {"index": [], "reference": 0.25, "observed": 0.5}}
    text = rendered(reports.report(reports.lab(status="failed", checks=[number])))
    assert "at         a number, float64, 3 of 12 out of tolerance" in text


def test_the_command_to_run_again_is_narrowed_to_failed_checks():
    assert f"again: lab run {BUNDLE}/lora/config.yaml --only a --only b/c" in rendered(reports.plainly_red())


def test_a_crash_shows_its_last_words():
    assert '! stage forward raised ZeroDivisionError: division by zero\n    File "parts.py"' in rendered(
        reports.crash()
    )


def test_the_stage_that_crashed_comes_before_the_items_that_it_owed():
    checks = [reports.missing("trained/loss")]
    text = rendered(reports.report(reports.lab(status="failed", failures=["stage trained: killed"], checks=checks)))
    assert text.index("stage trained: killed") < text.index("1 check without an answer because of that")
    assert "trained/loss (close)" not in text


@pytest.mark.parametrize(("level", "shown"), [(0, 20), (1, 69)])
def test_very_many_failures_are_counted_until_verbose(level, shown):
    checks = [reports.over(f"item/{i:02}", 70.0 - i) for i in range(69)]
    text = rendered(reports.report(reports.lab(status="failed", checks=checks)), level=level)
    assert len(re.findall(r"^item/\d\d \(", text, re.MULTILINE)) == shown
    assert ("… and 49 more" in text) == (level == 0)


def test_a_run_that_could_not_be_completed_says_so():
    assert rendered(reports.report(reports.lab(status="error")), level=-1).startswith("lora not completed · ")


def test_what_narrows_or_loosens_stands_on_the_verdict_line():
    text = rendered(reports.narrowed(), level=-1)
    assert text.startswith("lora passed, narrowed by --only trained/* --no-controls · 2 checks · 1 tolerance loosened")


@pytest.mark.parametrize("report", [reports.green(), reports.red(), reports.crash(), reports.narrowed()])
def test_quiet_is_the_verdict_line_alone(report):
    assert len(rendered(report, level=-1).splitlines()) == 1


def test_every_config_has_a_line_and_the_run_one_of_its_own():
    lines = rendered(reports.report(reports.lab("lora"), reports.lab("block"))).splitlines()
    assert [line.split(" · ")[0] for line in lines] == ["lora passed", "block passed", "2 configs passed"]


def test_verbose_shows_every_check_and_control():
    text = rendered(reports.green(), level=1)
    names = ["trained/output", "trained/grad/x", "alpha_without_rank"]
    assert all(re.search(f"^{name} ", text, re.MULTILINE) for name in names)


def test_a_known_fault_keeps_its_name_on_a_terminal_and_loses_the_end_of_its_list():
    must = [f"trained/grad/item_{i}" for i in range(20)]
    fault = {**reports.green()["labs"][0]["controls"][0], "name": "alpha_without_rank", "must": must}
    text = rendered(reports.report(reports.lab(controls=[fault])), Look(80, colour=False), level=1)
    assert re.search(r"^alpha_without_rank .*trained/grad/item_0 .*…$", text, re.MULTILINE)


def test_what_would_command_the_terminal_is_spelled():
    report = reports.report(reports.lab(status="failed", failures=["stage a raised: \x1b[2J\x00\nlast words"]))
    text = rendered(report)
    assert "\\x1b[2J\\x00" in text
    assert "\x1b" not in text


def test_many_failures_get_a_line_each_after_the_first_ten():
    checks = [reports.over(f"item/{i:02}", 20.0 - i) for i in range(15)]
    text = rendered(reports.report(reports.lab(status="failed", checks=checks)))
    assert text.count("observed   0.5") == 10
    assert "item/14 (close): 6.0 decades over" in text


@pytest.mark.parametrize("level", [-1, 0, 1])
@pytest.mark.parametrize("report", [reports.green(), reports.red(), reports.crash(), reports.narrowed()])
def test_a_terminal_of_80_columns_is_enough(report, level):
    lines = rendered(report, Look(80, colour=False), level).splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith("again:")] == []


def test_a_long_failure_in_a_verdict_is_broken_where_the_terminal_ends():
    failure = (
        "stages init, merge, requantize, sgd and trained raised in part linear: NotImplementedError (linear.py:20)"
    )
    report = reports.report(reports.lab(status="failed", failures=[failure], checks=[reports.missing("trained/loss")]))
    lines = rendered(report, Look(60, colour=False), level=-1).splitlines()
    assert [line for line in lines if len(line) > 60] == []
    assert failure in " ".join(line.strip() for line in lines)


def test_a_long_name_is_cut_on_a_terminal_alone():
    name = "/".join(["very_long_name"] * 8)
    report = reports.report(reports.lab(checks=[reports.check(name)]))
    assert name in rendered(report, level=1).splitlines()[1]
    assert name not in rendered(report, Look(80, colour=False), level=1).splitlines()[1]


def test_colour_changes_no_word():
    coloured = rendered(reports.red(), Look(None, colour=True), level=1)
    assert coloured != rendered(reports.red(), level=1)
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == rendered(reports.red(), level=1)


def test_a_clipped_name_keeps_its_end():
    assert clipped("trained/grad/lora_a", 8) == "…/lora_a"
