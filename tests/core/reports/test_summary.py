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
    ("side", "words"),
    [
        ("observed", "the torch side is wrong: seen before"),
        ("reference", "the reference is wrong: seen before"),
        ("both", "both sides are wrong: seen before"),
    ],
)
def test_the_side_that_the_evidence_names_is_named_with_it(side, words):
    check = reports.check(blame={"side": side, "because": "seen before"})
    assert summary.wrong_side(check) == words


def test_the_arbiter_alone_accuses_nobody():
    check = reports.check(arbiter={"reference_ulp": 0.4, "observed_ulp": 1e15})
    assert summary.wrong_side(check).startswith("undecided")
    assert summary.distances(check) == "observed 1e+15 ULP from the formulas in longdouble, reference 0.4"


def test_without_an_arbiter_no_side_is_named():
    assert summary.wrong_side(reports.check()) == ""
    assert summary.distances(reports.check()) == ""


def test_the_margin_is_that_of_the_values_not_of_the_witness():
    checks = [reports.check("a", kind="witness", headroom=3.0), reports.check("b", headroom=8.0)]
    assert summary.tightest(reports.lab(checks=checks))["name"] == "b"
    assert summary.tightest(reports.lab(checks=checks[:1]))["name"] == "a"


@pytest.mark.parametrize("torch", ["2.13.0", {"version": "2.13.0"}])
def test_the_torch_version_is_found(torch):
    assert summary.torch_version({"environment": {"framework": {"torch": torch}}}) == "2.13.0"


def test_an_unknown_torch_version_is_a_question_mark():
    assert summary.torch_version({}) == "?"
