import numpy as np
import pytest

from labs.core.errors import RequestError
from labs.core.items import Tolerance, label, plan, promised, tolerance_for
from labs.core.lab import Rule, identical, within, zero

REFERENCE = {"loss": np.array(0.5), "labels": np.arange(3), "mask": np.array([True]), "limit": np.ones(2)}


def test_floats_are_close_and_everything_else_exact():
    assert plan((), REFERENCE) == (
        Rule("close", "loss"),
        Rule("exact", "labels"),
        Rule("exact", "mask"),
        Rule("close", "limit"),
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_every_real_dtype_is_close(dtype):
    assert plan((), {"x": np.ones(2, dtype)}) == (Rule("close", "x"),)


@pytest.mark.parametrize("rule", [zero("loss"), Rule("exact", "loss")])
def test_a_rule_of_its_own_replaces_the_default(rule):
    assert plan((rule,), {"loss": np.array(0.0)}) == (rule,)


def test_identical_stands_beside_the_default_right_after_it():
    rules = plan((identical("loss", "base"),), REFERENCE)
    assert rules[:3] == (Rule("close", "loss"), identical("loss", "base"), Rule("exact", "labels"))


def test_a_bound_gets_no_check_and_is_not_promised():
    rules = plan((within("error", "limit"),), REFERENCE)
    assert "limit" not in {rule.item for rule in rules}
    assert "limit" not in promised(rules)
    assert rules[-1] == within("error", "limit")


def test_an_item_that_the_reference_lacks_is_promised_by_its_rule():
    rules = plan((identical("resumed", "uninterrupted"), zero("gone")), {"loss": np.array(0.5)})
    assert promised(rules) == ("loss", "resumed", "uninterrupted", "gone")


def test_a_name_is_promised_once():
    assert promised(plan((identical("loss", "labels"),), REFERENCE)) == ("loss", "labels", "mask", "limit")


@pytest.mark.parametrize(
    "rules",
    [
        (identical("loss", "a"), identical("loss", "b")),
        (within("loss", "limit"), within("loss", "limit")),
        (zero("loss"), Rule("exact", "loss")),
    ],
)
def test_two_rules_that_a_report_could_not_tell_apart_are_refused(rules):
    with pytest.raises(RequestError, match="loss: got 2 rules"):
        plan(rules, REFERENCE)


def test_different_kinds_may_share_an_item():
    rules = (zero("loss"), identical("loss", "a"), within("loss", "limit"))
    assert plan(rules, REFERENCE)[:3] == rules


@pytest.mark.parametrize(
    ("item", "atol"), [("trained/grad/a", 1.0), ("trained/loss", 2.0), ("init/loss", 1e-9), ("Trained/loss", 1e-9)]
)
def test_the_first_pattern_that_matches_gives_the_tolerance(item, atol):
    tolerances = (("trained/grad/*", Tolerance(1.0)), ("trained/*", Tolerance(2.0)))
    assert tolerance_for(item, tolerances).atol == atol


def test_the_default_tolerance_is_the_one_that_the_design_states():
    assert tolerance_for("x", ()) == Tolerance(1e-9, 1e-8, "")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("close", "a/b"), ("exact", "a/b"), ("zero", "a/b"), ("identical", "a/b:identical"), ("witness", "a/b:witness")],
)
def test_a_check_beside_the_items_own_is_named_with_its_kind(kind, expected):
    assert label("a/b", kind) == expected
