import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kernels import clip


@pytest.mark.parametrize(
    ("grads", "max_norm", "added", "expected"),
    [
        ([[3.0, 4.0]], 1.0, 0.0, [[0.6, 0.8]]),
        ([[3.0, 4.0]], 1.0, clip.TORCH_ADDED, [[3 / 5.000001, 4 / 5.000001]]),
        ([[3.0], [4.0]], 1.0, 0.0, [[0.6], [0.8]]),  # one norm over all tensors
        ([[3.0, 4.0]], 5.0, 0.0, [[3.0, 4.0]]),
        ([[3.0, 4.0]], 10.0, 1e-6, [[3.0, 4.0]]),  # never scaled up
        ([[0.0, 0.0]], 1.0, 0.0, [[0.0, 0.0]]),
        ([[3.0, 4.0]], 0.0, 0.0, [[0.0, 0.0]]),
        ([[1e-300, 0.0]], 1.0, 0.0, [[1e-300, 0.0]]),
        ([[10.0, 1.0]], 1.0, 0.0, [[10 / 101**0.5, 1 / 101**0.5]]),  # the sum first: .995, .0995
    ],
)
def test_values_that_anyone_can_check(grads, max_norm, added, expected):
    found = clip.clip([np.array(g) for g in grads], max_norm, added)
    for left, right in zip(found.grads, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-15)


def test_what_torch_adds_to_the_norm_shows_in_the_eighth_digit():
    grads = clip.clip([np.array([3.0, 4.0])], 1.0, clip.TORCH_ADDED).grads
    assert abs(grads[0][0] - 0.59999988) < 1e-9


def test_just_inside_the_limit_the_added_part_still_counts():
    """torch compares max_norm with norm + 1e-6, not with the norm."""
    found = clip.clip([np.array([1.0 - 5e-7])], 1.0, 1e-6)
    np.testing.assert_allclose(found.factor, 1 / (1 + 5e-7), rtol=1e-15)


@given(st.lists(st.lists(st.integers(1, 3), max_size=3).map(tuple), min_size=1, max_size=3), st.floats(0.01, 10))
def test_the_norm_after_is_the_smaller_of_the_norm_before_and_the_limit(shapes, max_norm):
    rng = np.random.default_rng(len(shapes))
    grads = [np.asarray(rng.normal(size=shape)) for shape in shapes]
    found = clip.clip(grads, max_norm)
    before, after = (np.linalg.norm(np.concatenate([np.ravel(g) for g in part])) for part in (grads, found.grads))
    np.testing.assert_allclose([found.norm, after], [before, min(before, max_norm)], rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble, np.complex128])
@pytest.mark.parametrize("max_norm", [0.5, 5.0])
def test_the_dtype_is_kept(dtype, max_norm):
    found = clip.clip([np.ones(2, dtype)], max_norm, 1e-6)
    assert found.grads[0].dtype == found.norm.dtype == found.factor.dtype == dtype


def test_a_missing_number_is_not_hidden():
    assert np.all(np.isnan(clip.clip([np.array([np.nan, 1.0])], 1.0).grads[0]))


def test_inputs_stay_and_views_are_fine():
    g = np.array([4.0, 9.0, 3.0, 9.0])[::-2]
    clip.clip([g], 1.0)
    np.testing.assert_array_equal(g, [9.0, 9.0])
