import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.core.inputs import Draw
from labs.kernels import bfloat16

LARGEST = (2 - 2**-7) * 2.0**127


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (1.0, 1.0),
        (1.003, 1.0),
        (0.997, 0.99609375),
        (0.1234567, 0.12353515625),
        (1 + 2**-8, 1.0),  # a tie, to even
        (1 + 3 * 2**-8, 1 + 2**-6),  # a tie, to even
        (1 + 2**-8 + 2**-20, 1 + 2**-7),
        (1 + 2**-8 + 2**-40, 1.0),  # a tie once it is a float32
        (-1.003, -1.0),
        (LARGEST, LARGEST),
        (3.4e38, np.inf),
        (1e300, np.inf),
        (-1e300, -np.inf),
        (np.inf, np.inf),
        (2.0**-133, 2.0**-133),  # the smallest
        (2.0**-135, 0.0),
    ],
)
def test_literal_values(x, expected):
    assert bfloat16.nearest(np.array(x)) == expected


def test_merging_a_small_delta_and_taking_it_out_again_does_not_restore():
    merged = bfloat16.nearest(np.array(1.0) + 0.003)
    assert merged == 1.0
    assert bfloat16.nearest(merged - 0.003) == 0.99609375


@pytest.mark.parametrize("nan", [np.nan, -np.nan])
def test_nan_stays(nan):
    assert np.isnan(bfloat16.nearest(np.array([nan, 1.0]))).tolist() == [True, False]


def test_every_nan_word_stays_nan():
    words = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFFC00000], np.uint32).view(np.float32)
    assert np.isnan(bfloat16.nearest(words)).all()


def test_the_sign_of_zero_stays():
    np.testing.assert_array_equal(np.signbit(bfloat16.nearest(np.array([0.0, -0.0, -1e-60]))), [False, True, True])


@given(st.floats(2.0**-120, 2.0**120), st.sampled_from([-1, 1]))
def test_the_error_is_within_the_unit_roundoff_and_rounding_again_changes_nothing(x, sign):
    value = np.array(sign * x)
    rounded = bfloat16.nearest(value)
    assert abs(rounded - value) <= bfloat16.UNIT_ROUNDOFF * abs(value)
    assert bfloat16.nearest(rounded) == rounded


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble, np.complex128])
def test_the_dtype_and_the_shape_are_kept(dtype):
    x = Draw(0).normal("x", (2, 3)).astype(dtype)
    rounded = bfloat16.nearest(x)
    assert (rounded.dtype, rounded.shape) == (x.dtype, x.shape)


def test_the_imaginary_part_is_dropped():
    assert bfloat16.nearest(np.array(1.003 + 1e-20j)) == 1.0
