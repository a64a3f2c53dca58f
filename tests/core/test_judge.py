import json
import weakref
from collections.abc import Mapping
from hashlib import sha256

import numpy as np
import pytest

from labs.core.items import Tolerance
from labs.core.judge import LARGE, Check, digest, judge, judge_all
from labs.core.lab import Rule, identical, within, zero

CLOSE, EXACT = Rule("close", "x"), Rule("exact", "x")
RULES = {
    "close": CLOSE,
    "exact": EXACT,
    "zero": zero("x"),
    "identical": identical("x", "y"),
    "within": within("x", "b"),
}
POSITIONS = [0, 5, 11]


def good(kind):
    """Sides that the rule of this kind passes: (reference, observed), one array of 12 elements each."""
    values = np.linspace(0.5, 2.0, 12).reshape(3, 4)
    if kind == "exact":
        values = np.arange(12).reshape(3, 4)
    if kind == "zero":
        values = np.zeros((3, 4))
    if kind == "identical":
        return {}, {"x": values, "y": values.copy()}
    if kind == "within":
        return {"b": values}, {"x": values / 2}
    return {"x": values}, {"x": values.copy()}


def decide(kind, reference, observed):
    return judge(RULES[kind], reference, observed, Tolerance())


def spoiled(kind, at, value):
    reference, observed = good(kind)
    observed["x"].flat[at] = value
    return decide(kind, reference, observed)


@pytest.mark.parametrize("kind", RULES)
def test_good_sides_pass(kind):
    check = decide(kind, *good(kind))
    assert (check.status, check.message, check.out_of_tolerance) == ("passed", "", 0)
    assert (check.kind, check.name, check.other) == (kind, "x", RULES[kind].other)
    assert (check.shape, check.count) == ((3, 4), 12)


@pytest.mark.parametrize("at", POSITIONS)
@pytest.mark.parametrize(
    ("kind", "value", "what"),
    [
        ("close", 9.5, "out of tolerance"),
        ("exact", 99, "different"),
        ("zero", 5e-324, "not 0"),
        ("zero", -1.0, "not 0"),
        ("identical", 9.5, "different in their bits"),
        ("within", 9.5, "outside the bound"),
        ("within", -9.5, "outside the bound"),
    ],
)
def test_a_spoiled_element_fails_and_is_named(kind, value, what, at):
    check = spoiled(kind, at, value)
    assert check.status == "failed"
    assert check.message.startswith(f"1 of 12 elements {what}, worst at [{at // 4}, {at % 4}]: observed {value}")
    assert check.worst["index"] == [at // 4, at % 4]
    assert check.worst["observed"] == value


def test_the_sentence_of_close_has_both_values_and_the_limit():
    check = judge(CLOSE, {"x": np.array([1.0, 0.25])}, {"x": np.array([1.0, 0.5])}, Tolerance())
    assert check.message == (
        "1 of 2 elements out of tolerance, worst at [1]: observed 0.5, reference 0.25, limit 3.5e-09"
    )


def test_the_limit_does_not_depend_on_the_sign():
    check = judge(CLOSE, {"x": np.array([-0.25])}, {"x": np.array([0.5])}, Tolerance())
    assert check.message.endswith("limit 3.5e-09")


@pytest.mark.parametrize(
    ("kind", "ulp", "blunt"),
    [
        ("close", 0.0, 0.0),
        ("exact", None, None),
        ("zero", None, None),
        ("identical", 0.0, None),
        ("within", None, None),
    ],
)
def test_a_statistic_without_a_meaning_is_left_out(kind, ulp, blunt):
    check = decide(kind, *good(kind))
    assert (check.max_ulp, check.blunt_share) == (ulp, blunt)


def test_a_scalar_needs_no_index():
    check = judge(CLOSE, {"x": np.array(0.25)}, {"x": np.array(0.5)}, Tolerance())
    assert "worst: observed 0.5" in check.message
    assert check.worst["index"] == []


@pytest.mark.parametrize("at", POSITIONS)
@pytest.mark.parametrize(("bad", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
@pytest.mark.parametrize("kind", ["close", "zero", "identical", "within"])
def test_what_is_not_finite_fails_on_either_side_and_on_both(kind, bad, word, at):
    for spoil in ((True, False), (False, True), (True, True)):
        reference, observed = good(kind)
        held = observed["y"] if kind == "identical" else next(iter(reference.values()))
        for array, chosen in zip((held, observed["x"]), spoil, strict=True):
            if chosen:
                array.flat[at] = bad
        check = decide(kind, reference, observed)
        assert check.status == "failed"
        assert word in check.message or "reference is not 0" in check.message


def test_nan_names_its_place_and_the_other_side():
    one, nan = np.array([[1.0, 1.0]]), np.array([[1.0, np.nan]])
    message = [judge(CLOSE, {"x": a}, {"x": b}, Tolerance()).message for a, b in ((one, nan), (nan, one), (nan, nan))]
    assert message == ["NaN at [0, 1]", "NaN at [0, 1] in the reference", "NaN at [0, 1], in the reference too"]


@pytest.mark.parametrize("kind", RULES)
def test_another_dtype_fails_before_values(kind):
    reference, observed = good(kind)
    observed["x"] = observed["x"].astype(np.float32)
    check = decide(kind, reference, observed)
    expected = "int64" if kind == "exact" else "float64"
    assert (check.status, check.message) == ("failed", f"dtype float32, expected {expected}")
    assert (check.max_abs, check.worst, check.headroom) == (None, None, None)


@pytest.mark.parametrize("shape", [(12,), (4, 3), (3, 4, 1), (1, 3, 4), ()])
@pytest.mark.parametrize("kind", RULES)
def test_another_shape_fails_before_values(kind, shape):
    reference, observed = good(kind)
    observed["x"] = np.resize(observed["x"], shape)
    check = decide(kind, reference, observed)
    assert check.status == "failed"
    assert check.message.endswith(", expected (3,4)")


@pytest.mark.parametrize("kind", ["close", "exact", "zero", "identical"])
def test_a_scalar_stands_for_one_element_only(kind):
    reference, observed = good(kind)
    held = observed if kind == "identical" else reference
    name = "y" if kind == "identical" else "x"
    held[name] = np.array(held[name].flat[0])
    observed["x"] = np.full((3, 4), held[name])
    assert decide(kind, reference, observed).message == "shape (3,4), expected ()"


def test_a_column_is_no_row():
    check = judge(CLOSE, {"x": np.ones(3)}, {"x": np.ones((3, 1))}, Tolerance())
    assert check.message == "shape (3,1), expected (3,)"


def test_dtype_comes_before_shape_and_shape_before_finiteness():
    nan = np.full(3, np.nan)
    ref = {"x": np.ones(2)}
    assert judge(CLOSE, ref, {"x": nan.astype("f4")}, Tolerance()).message == "dtype float32, expected float64"
    assert judge(CLOSE, ref, {"x": nan}, Tolerance()).message == "shape (3,), expected (2,)"
    mixed = {"x": np.array([9.0, np.nan])}
    assert judge(CLOSE, ref, mixed, Tolerance()).message == "NaN at [1]"


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
@pytest.mark.parametrize("kind", RULES)
def test_an_empty_array_never_passes(kind, shape):
    sides = [{name: np.zeros(shape, array.dtype) for name, array in side.items()} for side in good(kind)]
    check = decide(kind, *sides)
    assert check.status == "failed"
    assert check.message.startswith("empty: ")


@pytest.mark.parametrize("kind", RULES)
def test_an_item_that_torch_did_not_yield_is_missing(kind):
    reference, observed = good(kind)
    del observed["x"]
    check = decide(kind, reference, observed)
    assert (check.status, check.message) == ("failed", "missing: the torch side did not yield it")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("close", "extra: the reference does not compute it"),
        ("exact", "extra: the reference does not compute it"),
        ("identical", "missing: the torch side did not yield y"),
        ("within", "missing: the reference did not compute its bound b"),
    ],
)
def test_what_an_item_is_held_against_has_to_be_there(kind, message):
    check = decide(kind, {}, {"x": good(kind)[1]["x"]})
    assert (check.status, check.message) == ("failed", message)


@pytest.mark.parametrize("dtype", [np.complex128, object, "U3"])
def test_what_is_no_real_number_is_refused(dtype):
    array = np.zeros(2, dtype)
    for kind in ("close", "exact"):
        assert "expected a real number" in judge(RULES[kind], {"x": array}, {"x": array}, Tolerance()).message


def test_negative_zero_is_not_zero_for_identical_only():
    plus, minus = np.array([1.0, 0.0]), np.array([1.0, -0.0])
    check = judge(identical("x", "y"), {}, {"x": minus, "y": plus}, Tolerance())
    assert check.message == "1 of 2 elements different in their bits, worst at [1]: observed -0.0, y 0.0"
    assert (check.max_abs, check.headroom, check.worst["index"]) == (0.0, -16, [1])
    assert judge(EXACT, {"x": plus}, {"x": minus}, Tolerance()).status == "passed"
    assert judge(zero("x"), {}, {"x": minus * 0}, Tolerance()).status == "passed"


def test_identical_reads_the_observed_side_only():
    reference = {"x": np.ones(2), "y": np.ones(2)}
    check = judge(identical("x", "y"), reference, {"x": np.ones(2), "y": np.full(2, 2.0)}, Tolerance())
    assert (check.status, check.out_of_tolerance) == ("failed", 2)


def test_zero_needs_no_reference_but_holds_one_that_is_there():
    zeros = {"x": np.zeros(2)}
    assert judge(zero("x"), {}, zeros, Tolerance()).status == "passed"
    check = judge(zero("x"), {"x": np.array([0.0, 1.0])}, zeros, Tolerance())
    assert check.message == "the reference is not 0, so the rule zero does not fit"
    same = {"x": np.array([0.0, 1.0])}
    assert judge(zero("x"), same, same, Tolerance()).message == "1 of 2 elements not 0, worst at [1]: observed 1.0"


def test_a_scalar_bound_holds_every_element():
    bound = {"b": np.array(1.0)}
    assert judge(within("x", "b"), bound, {"x": np.array([1.0, -1.0])}, Tolerance()).status == "passed"
    check = judge(within("x", "b"), bound, {"x": np.array([1.0, -1.5])}, Tolerance())
    assert check.message == "1 of 2 elements outside the bound, worst at [1]: observed -1.5, bound 1.0"


def test_the_headroom_of_within_is_the_distance_to_the_bound():
    check = judge(within("x", "b"), {"b": np.array([1.0, 1.0])}, {"x": np.array([1e-3, -0.1])}, Tolerance())
    assert check.headroom == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["exact", "zero", "identical"])
def test_the_other_kinds_have_all_the_headroom_or_none(kind):
    assert decide(kind, *good(kind)).headroom == 16
    assert spoiled(kind, 5, 77).headroom == -16


@pytest.mark.parametrize("largest", [1e-9, 5e-10, -1e-9])
def test_a_check_that_zeros_would_pass_is_blunt(largest):
    side = {"x": np.array([0.0, largest])}
    check = judge(CLOSE, side, side, Tolerance())
    assert (check.status, check.message) == (
        "failed",
        "blunt: an all-zero observation would pass; state a smaller atol",
    )
    assert check.blunt_share == 1.0
    assert judge(CLOSE, side, side, Tolerance(atol=1e-12)).status == "passed"


def test_an_all_zero_reference_is_blunt_whatever_the_tolerance():
    side = {"x": np.zeros(3)}
    assert "judge it by the rule zero" in judge(CLOSE, side, side, Tolerance(0.0, 0.0)).message


@pytest.mark.parametrize("rtol", [1.0, 2.0])
def test_a_relative_tolerance_of_one_is_blunt(rtol):
    side = {"x": np.ones(3)}
    assert judge(CLOSE, side, side, Tolerance(0.0, rtol)).message.startswith("blunt")


def test_the_tolerance_is_the_one_applied_and_recorded():
    sides = {"x": np.ones(2)}, {"x": np.full(2, 1.01)}
    check = judge(CLOSE, *sides, Tolerance(0.1, 0.0, "rounded on purpose"))
    assert check.status == "passed"
    assert check.tolerance == {"atol": 0.1, "rtol": 0.0, "reason": "rounded on purpose"}
    assert judge(CLOSE, *sides, Tolerance()).status == "failed"
    assert judge(EXACT, *sides, Tolerance(9.0)).status == "failed"


def test_a_witness_is_not_judged_here():
    with pytest.raises(ValueError, match="witness"):
        judge(Rule("witness", "x"), {"x": np.ones(1)}, {"x": np.ones(1)}, Tolerance())


def test_a_check_records_what_it_read():
    reference, observed = {"x": np.arange(3.0)}, {"x": np.arange(3.0) + 1e-12}
    check = judge(CLOSE, reference, observed, Tolerance())
    assert check.reference_sha256 == sha256(reference["x"].tobytes()).hexdigest()
    assert check.observed_sha256 == sha256(observed["x"].tobytes()).hexdigest()


def test_identical_records_the_hash_of_the_other_observed_item():
    observed = {"x": np.ones(2), "y": np.zeros(2)}
    check = judge(identical("x", "y"), {"y": np.full(2, 3.0)}, observed, Tolerance())
    assert (check.observed_sha256, check.reference_sha256) == (digest(observed["x"]), digest(observed["y"]))


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3).T, np.array(1.5), np.zeros((0, 2)), np.array([True]), np.arange(9)[::2]],
)
def test_the_hash_is_of_the_bytes_in_c_order(array):
    assert digest(array) == sha256(array.tobytes()).hexdigest()


def test_the_plan_is_judged_in_order_and_by_pattern():
    sides = {"a/x": np.ones(2), "b/x": np.ones(2)}
    rules = (Rule("close", "b/x"), Rule("close", "a/x"))
    checks = judge_all(rules, sides, {n: v + 1e-3 for n, v in sides.items()}, (("a/*", Tolerance(1e-2)),))
    assert [(c.name, c.status) for c in checks] == [("b/x", "failed"), ("a/x", "passed")]


@pytest.mark.parametrize("name", ["stray", "b"])
def test_a_name_that_nobody_promised_fails_even_when_it_is_a_bound(name):
    reference = {"x": np.ones(2), "b": np.ones(2)}
    observed = {"x": np.ones(2), name: np.ones(2)}
    checks = judge_all((CLOSE, within("x", "b")), reference, observed, ())
    assert [c.status for c in checks] == ["passed", "passed", "failed"]
    assert (checks[-1].name, checks[-1].message[:6]) == (name, "extra:")
    assert checks[-1].observed_sha256 == digest(np.ones(2))


def test_the_other_of_identical_is_promised():
    checks = judge_all((identical("x", "y"),), {}, {"x": np.ones(2), "y": np.ones(2)}, ())
    assert [c.status for c in checks] == ["passed"]


class Counting(Mapping):
    def __init__(self, arrays):
        self.arrays, self.fetched = arrays, []

    def __getitem__(self, name):
        array = self.arrays[name]
        self.fetched.append(name)
        return array

    def __iter__(self):
        return iter(self.arrays)

    def __len__(self):
        return len(self.arrays)


def test_a_lazy_array_is_fetched_once_a_check():
    reference, observed = Counting({"x": np.ones(2), "b": np.ones(2)}), Counting({"x": np.ones(2), "y": np.ones(2)})
    judge_all((CLOSE, identical("x", "y"), within("x", "b")), reference, observed, ())
    assert sorted(reference.fetched) == ["b", "x"]
    assert sorted(observed.fetched) == ["x", "x", "x", "y"]


def test_an_array_is_hashed_once(monkeypatch):
    hashed = []
    monkeypatch.setattr("labs.core.judge.digest", lambda array: hashed.append(array) or "hash")
    judge_all((CLOSE, identical("x", "y"), within("x", "x")), {"x": np.ones(2)}, {"x": np.ones(2), "y": np.ones(2)}, ())
    assert len(hashed) == 3


@pytest.mark.parametrize(
    ("value", "text"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (1.5, 1.5), (-0.0, -0.0)]
)
def test_json_spells_numbers_that_it_can_not_hold(value, text):
    check = judge(CLOSE, {"x": np.array([1.0, 2.0])}, {"x": np.array([1.0, value])}, Tolerance())
    document = json.loads(json.dumps(check.to_json(), allow_nan=False))
    assert document["worst"] == {"index": [1], "reference": 2.0, "observed": text}
    assert document["shape"] == [2]


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float32, np.longdouble])
def test_every_dtype_goes_to_json(dtype):
    side = {"x": np.ones((), dtype)}
    rule = EXACT if np.dtype(dtype).kind in "bi" else CLOSE
    check = judge(rule, side, side, Tolerance())
    assert check.status == "passed"
    assert json.loads(json.dumps(check.to_json()))["worst"]["observed"] == 1


def test_a_check_can_be_written_without_numbers():
    assert json.loads(json.dumps(Check("x", "witness", "failed", message="why").to_json()))["message"] == "why"


def test_a_large_array_has_the_same_digest_and_is_let_go():
    array = np.linspace(1.0, 2.0, LARGE // 8 + 1)
    left = weakref.ref(array)
    (check,) = judge_all([Rule("close", "x")], {"x": array}, {"x": array.copy()}, [])
    assert check.reference_sha256 == check.observed_sha256 == digest(array) == sha256(array.tobytes()).hexdigest()
    del array
    assert left() is None
