import math

import pytest

from labs.core.reports import summary
from tests.cli.samples import reports


@pytest.mark.parametrize(("value", "expected"), [("inf", math.inf), ("-inf", -math.inf), (2, 2.0), ("1e-3", 1e-3)])
def test_numbers_come_back_from_json(value, expected):
    assert summary.number(value) == expected


@pytest.mark.parametrize("value", [None, "nan"])
def test_what_is_absent_is_not_a_number(value):
    assert math.isnan(summary.number(value))


def test_the_tightest_check_has_least_headroom():
    assert summary.tightest(reports.lab())["name"] == "trained/grad/x"


def test_without_headroom_no_check_is_tightest():
    assert summary.tightest(reports.lab(checks=[reports.check(headroom=None)])) is None


def test_nan_is_worse_than_any_number():
    checks = [reports.over("a", 300.0), reports.check("b", status="failed", headroom="nan")]
    assert [c["name"] for c in summary.failing(reports.lab(checks=checks))] == ["b", "a"]


@pytest.mark.parametrize(
    ("reference", "observed", "verdict"),
    [
        (0.4, 1e15, "the observed side is wrong"),
        (1e15, 0.4, "the reference is wrong"),
        (0.0, "inf", "the observed side is wrong"),
        (0.4, 3.0, "the arbiter can't tell"),
        (1e9, 1e9, "the arbiter can't tell"),
        ("nan", 1.0, "the arbiter can't tell"),
    ],
)
def test_the_arbiter_names_the_side_that_is_far_from_it(reference, observed, verdict):
    check = reports.check(arbiter={"reference_ulp": reference, "observed_ulp": observed})
    assert summary.wrong_side(check).startswith(verdict)


def test_without_an_arbiter_no_side_is_named():
    assert summary.wrong_side(reports.check()) == ""


@pytest.mark.parametrize("torch", ["2.13.0", {"version": "2.13.0"}])
def test_the_torch_version_is_found(torch):
    assert summary.torch_version({"environment": {"framework": {"torch": torch}}}) == "2.13.0"


def test_an_unknown_torch_version_is_a_question_mark():
    assert summary.torch_version({}) == "?"
