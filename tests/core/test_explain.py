import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labs.core.explain import explain
from labs.core.inputs import Draw

REF = Draw(3).normal("x", (4, 5))
SQUARE = Draw(4).normal("x", (2, 3, 3))
ROW = Draw(5).normal("x", (7,))


def put(array, index, value):
    changed = array.copy()
    changed[index] = value
    return changed


def bfloat16(array):
    """Round by arithmetic: 8 significant bits, ties to even."""
    mantissa, exponent = np.frexp(array)
    return np.ldexp(np.rint(mantissa * 256) / 256, exponent)


CASES = [
    (REF, np.zeros_like(REF), "every element is 0"),
    (REF, 2 * REF, "2 times the reference, exactly"),
    (REF, REF / 3, "1/3 times the reference, to "),
    (REF, 1.5 * REF, "3/2 times the reference, exactly"),
    (REF, REF / 128, "1/128 times the reference, exactly"),
    (REF, -REF, "the sign is flipped, exactly"),
    (REF, -2 * REF, "-2 times the reference, exactly"),
    (REF, 0.123456 * REF, "0.123456 times the reference, to "),
    (1e200 * REF, 2e200 * REF, "2 times the reference, "),
    (1e-200 * REF, 2e-200 * REF, "2 times the reference, "),
    (np.array(0.7), np.array(1.4), "2 times the reference, exactly"),
    (np.arange(1, 5), 3 * np.arange(1, 5), "3 times the reference, exactly"),
    (REF, REF + 0.5, "the reference plus 0.5, "),
    (np.zeros(3), np.full(3, 0.5), "the reference plus 0.5, exactly"),
    (SQUARE, SQUARE.swapaxes(1, 2), "the reference with axes 1 and 2 swapped, exactly"),
    (SQUARE[0], SQUARE[0].T, "the reference with axes 0 and 1 swapped, exactly"),
    (REF, REF.T, "the reference transposed, exactly"),
    (REF, REF.reshape(5, 4), "the values of the reference in shape (5, 4), exactly"),
    (ROW, ROW[:, None], "the values of the reference in shape (7, 1), exactly"),
    (ROW, np.roll(ROW, 1), "the reference shifted up by one along axis 0, exactly"),
    (REF, put(np.roll(REF, -1, 1), (slice(None), -1), 0.0), "the reference shifted down by one along axis 1, exactly"),
    (REF, REF[[2, 0, 3, 1]], "the reference with axis 0 reordered (it holds 2, 0, 3, 1), exactly"),
    (REF, REF[:, [4, 1, 2, 3, 0]], "the reference with axis 1 reordered (it holds 4, 1, 2, 3, 0), exactly"),
    (ROW, ROW[[3, 1, 0, 6, 5, 4, 2]], "the reference with axis 0 reordered (it holds 3, 1, 0, 6, 5, 4, 2), exactly"),
    (REF, put(REF, (slice(None), 3), 9.0), "only index 3 of axis 1 differs"),
    (REF, put(REF, 0, 0.0), "only index 0 of axis 0 differs: there, every element is 0"),
    (REF, put(REF, 0, 2 * REF[0]), "only index 0 of axis 0 differs: there, 2 times the reference, exactly"),
    (REF, put(REF, [0, 2], 9.0), "only indices 0, 2 of axis 0 differ"),
    (REF, put(REF, (1, 2), 9.0), "only element [1, 2] differs"),
    (REF, put(REF, (1, 2), -REF[1, 2]), "only element [1, 2] differs: there, the sign is flipped, exactly"),
    (REF, put(REF, (1, 2), np.nan), "element [1, 2]: NaN, every other element agrees"),
    (REF, put(2 * REF, (1, 2), np.inf), "element [1, 2]: infinite"),
    (REF, put(REF, 1, np.nan), "index 1 of axis 0: NaN, every other element agrees"),
    (REF, np.full_like(REF, np.nan), "every element is NaN"),
    (REF, REF.astype(np.float32), "the reference rounded to float32, exactly"),
    (REF, REF.astype(np.float16).astype(float), "the reference rounded to float16, exactly"),
    (REF, bfloat16(REF), "the reference rounded to bfloat16, exactly"),
    (
        REF,
        REF * (1 + 1e-7 * np.sin(np.arange(5))),
        "agrees to float32 precision, not to float64 (8e-08 of the largest magnitude;",
    ),
    # nothing to say
    (REF, REF, None),
    (REF, REF * (1 + 1e-5 * np.sin(np.arange(5))), None),
    (REF, Draw(9).normal("x", (4, 5)), None),
    (REF, Draw(9).normal("x", (4, 6)), None),
    (np.array(0.7), np.array(0.9137), None),
    (np.array(0.7), np.array(0.7e-13), None),
    (put(REF, 0, np.nan), REF, None),
    (np.zeros((0, 2)), np.zeros((0, 2)), None),
    (REF, REF.astype(complex), None),
    (np.array(["a"]), np.array(["b"]), None),
]


@pytest.mark.parametrize(("reference", "observed", "clause"), CASES)
def test_a_pattern_is_recognised_or_nothing_is_said(reference, observed, clause):
    said = explain(reference, observed)
    assert said is clause if clause is None else said.startswith(clause), said


NEARLY = [2 * REF, -REF, REF + 0.5, REF[[2, 0, 3, 1]], REF[:, ::-1], REF.astype(np.float16).astype(float)]


@pytest.mark.parametrize("observed", NEARLY)
@pytest.mark.parametrize("at", [(0, 0), (2, 3), (3, 4)])
def test_a_pattern_with_one_exception_is_no_pattern(observed, at):
    changed = put(observed, at, observed[at] + 0.01)
    assert explain(REF, changed) is None


def test_a_large_array_is_left_alone(monkeypatch):
    monkeypatch.setattr("labs.core.explain.LARGEST", 19)
    assert explain(REF, 2 * REF) is None


ANY = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.bool_]), hnp.array_shapes(min_dims=0, min_side=0, max_side=4)
)


@given(ANY, ANY)
def test_it_never_raises_and_never_speaks_of_equal_arrays(first, second):
    assert explain(first, second) is None or isinstance(explain(first, second), str)
    assert explain(first, first) is None
