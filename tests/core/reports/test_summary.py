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


def failed(name, headroom, kind="close", **changes):
    return reports.check(name, kind=kind, status="failed", headroom=headroom, out_of_tolerance=3, **changes)


def red(*checks, **changes):
    return reports.lab(status="failed", checks=checks, **changes)


def test_nan_is_worse_than_any_number():
    lab = red(failed("first", -1.0), failed("a", -16.0), failed("b", "nan"))
    assert [c["name"] for c in summary.failing(lab)] == ["first", "b", "a"]
    assert summary.telling(lab)["name"] == "b"


def test_the_check_where_it_begins_comes_first_then_the_worst_then_what_has_no_size():
    checks = [failed("first", -0.1), failed("bits", -16.0, "identical"), failed("small", -1.0), failed("large", -2.0)]
    lab = red(reports.check("good"), *checks, failed("mask", -16.0, "exact"), reports.missing("gone"))
    assert [c["name"] for c in summary.failing(lab)] == ["first", "large", "small", "bits", "mask", "gone"]
    assert summary.telling(lab)["name"] == "large"


WALK = [{"name": n, "gradient": f"grad/{n}"} for n in ("loss", "logits", "x")]


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["grad/x", "grad/logits", "train/loss"], "grad/logits"),
        (["out", "grad/x", "grad/logits"], "out"),
        (["train/loss", "grad/x"], "train/loss"),
        (["grad/x"], "grad/x"),
    ],
)
def test_gradients_begin_where_the_walk_from_the_loss_meets_them_first(names, first):
    lab = red(*(failed(name, -1.0) for name in names), walk=WALK)
    assert summary.beginning(lab)["name"] == first


def test_what_a_stage_left_out_is_not_where_it_begins():
    lab = red(reports.missing("a"), failed("b", -1.0), failures=["stage a raised ValueError"])
    assert summary.beginning(lab)["name"] == "b"


FAULT, DENIED = "the torch side equals fault", "the torch side equals fault here, but not at a"
FLOAT32 = "agrees to float32 precision, not to float64 (1e-07 of the largest magnitude; ask)"


@pytest.mark.parametrize(
    ("diagnoses", "finding"),
    [
        pytest.param([FAULT, None, None], FAULT, id="the fault where it begins"),
        pytest.param([None, FAULT, FAULT], FAULT, id="a fault that explains half"),
        pytest.param([None, None, FAULT], "first at a", id="a fault that explains little"),
        pytest.param([None, DENIED, DENIED], "first at a", id="a fault that is denied"),
        pytest.param(["2 times the reference", FLOAT32, FLOAT32], "first at a: 2 times the reference", id="a clause"),
        pytest.param([FLOAT32, None], "first at a: agrees to float32 precision, not to float64", id="no distance"),
        pytest.param([None, FLOAT32, FLOAT32], "first at a", id="a clause about what comes after"),
        pytest.param(["every element is 0"], "every element is 0", id="the only check has its name in the margin"),
        pytest.param([None], "", id="nothing to say of the only check"),
    ],
)
def test_a_red_verdict_is_about_the_fault_or_about_where_it_begins(diagnoses, finding):
    assert (
        summary.finding(red(*(failed(n, -1.0, diagnosis=d) for n, d in zip("abc", diagnoses, strict=False)))) == finding
    )


def test_a_stage_that_failed_is_what_a_verdict_is_about():
    stages = [{"name": "forward", "status": "raised", "seconds": 0.2}]
    lab = red(failed("a", -1.0, diagnosis=FAULT), failures=["stage forward raised ValueError"], stages=stages)
    assert summary.finding(lab) == "stage forward raised ValueError"


@pytest.mark.parametrize(("kind", "words"), [("exact", "differ"), ("identical", "differ"), ("zero", "are not 0")])
def test_where_no_difference_is_allowed_there_are_no_decades(kind, words):
    check = failed("a", -16.0, kind, message="3 of 12 elements wrong")
    assert summary.decades(check) == f"3 of 12 {words}"
    assert summary.told(check) == ["3 of 12 elements wrong"]


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


@pytest.mark.parametrize(
    ("words", "sentence"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_a_list_reads_as_a_sentence(words, sentence):
    assert summary.listed(words) == sentence


def test_a_long_list_is_cut_and_counted():
    assert summary.some([*"abcdefgh"]) == "a, b, c, d, e, f and 2 more"
