import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.core.inputs import Draw
from labs.kernels import quantize

BITS = st.sampled_from([4, 8])


def test_a_column_by_hand():
    codes, scales = quantize.quantize(np.array([[0.30], [1.0], [-1.0], [0.0]]), bits=4, group=4)
    assert scales == pytest.approx(np.array([[1 / 7]]))
    np.testing.assert_array_equal(codes, [[2], [7], [-7], [0]])
    assert codes.dtype == np.int8
    assert quantize.dequantize(codes, scales, 4)[0, 0] == pytest.approx(0.2857, abs=5e-5)


def test_a_small_delta_is_rounded_away_again():
    base, delta = np.array([[0.30], [1.0]]), np.array([[0.01], [0.0]])
    codes, scales = quantize.quantize(base, 4, 2)
    before = quantize.dequantize(codes, scales, 2)
    again, new_scales = quantize.quantize(before + delta, 4, 2)
    np.testing.assert_array_equal(quantize.dequantize(again, new_scales, 2), before)


def test_groups_run_along_the_rows():
    w = np.array([[7.0, 70.0], [3.0, 10.0], [14.0, 0.7], [2.0, 0.1]])
    codes, scales = quantize.quantize(w, 4, 2)
    np.testing.assert_allclose(scales, [[1.0, 10.0], [2.0, 0.1]])
    np.testing.assert_array_equal(codes, [[7, 7], [3, 1], [7, 7], [1, 1]])


def test_ties_go_to_the_even_code():
    codes, _ = quantize.quantize(np.array([[7.0], [0.5], [1.5], [2.5], [-0.5], [-1.5]]), 4, 6)
    np.testing.assert_array_equal(codes.T, [[7, 0, 2, 2, 0, -2]])


def test_a_group_of_zeros_has_code_zero_and_bound_zero():
    w = np.array([[0.0, 1.0], [0.0, 2.0], [3.0, 4.0], [1.0, 0.0]])
    codes, scales = quantize.quantize(w, 8, 2)
    assert scales[0, 0] == 0
    assert not codes[:2, 0].any()
    assert not quantize.dequantize(codes, scales, 2)[:2, 0].any()
    assert not quantize.error_bound(w, 8, 2)[:2, 0].any()


@given(BITS, st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
def test_the_error_is_within_its_bound_and_the_largest_code_is_used(bits, groups, group, k, seed):
    w = Draw(seed).normal("w", (groups * group, k))
    codes, scales = quantize.quantize(w, bits, group)
    error = np.abs(quantize.dequantize(codes, scales, group) - w)
    assert np.all(error <= quantize.error_bound(w, bits, group))
    assert np.all(np.max(np.abs(codes.reshape(groups, group, k)), axis=1) == 2 ** (bits - 1) - 1)


def test_a_coarser_grid_breaks_the_bound_of_a_finer_one():
    w = Draw(0).normal("w", (8, 3))
    error = np.abs(quantize.dequantize(*quantize.quantize(w, 4, 4), 4) - w)
    assert not np.all(error <= quantize.error_bound(w, 8, 4))


@given(BITS, st.integers(0, 1000))
def test_quantising_again_gives_the_same_codes(bits, seed):
    codes, scales = quantize.quantize(Draw(seed).normal("w", (8, 3)), bits, 4)
    again, _ = quantize.quantize(quantize.dequantize(codes, scales, 4), bits, 4)
    np.testing.assert_array_equal(again, codes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_the_dtype_is_kept(dtype):
    w = Draw(0).normal("w", (4, 3)).astype(dtype)
    codes, scales = quantize.quantize(w, 4, 2)
    assert scales.dtype == dtype
    assert quantize.dequantize(codes, scales, 2).dtype == dtype


def test_the_imaginary_part_has_no_say():
    w = Draw(0).normal("w", (4, 3))
    for real, complex_ in zip(quantize.quantize(w, 4, 2), quantize.quantize(w + 1j, 4, 2), strict=True):
        np.testing.assert_array_equal(real, complex_)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_extreme_weights_stay_within_their_bound(scale):
    w = Draw(0).uniform("w", (4, 3), -1, 1) * scale
    codes, scales = quantize.quantize(w, 8, 4)
    error = np.abs(quantize.dequantize(codes, scales, 4) - w)
    assert np.all(error <= quantize.error_bound(w, 8, 4))
