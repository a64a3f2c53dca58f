import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kernels import l2_normalise


def forward(arrays):
    return l2_normalise.forward(arrays["x"])


def backward(du, saved):
    return (l2_normalise.backward(du, saved),)


def rows(shape, seed=0):
    return {"x": np.random.default_rng(seed).normal(size=shape)}


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple), st.integers(0, 9))
def test_gradients_are_the_complex_step(every_gradient_is_the_complex_step, shape, seed):
    every_gradient_is_the_complex_step(forward, backward, rows(shape, seed))


def test_gradients_are_the_central_difference(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(forward, backward, rows((2, 3, 4)))


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    every_result_keeps_the_dtype(forward, backward, rows((2, 3, 4)))


def test_inputs_stay_and_views_are_fine(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(forward, backward, rows((2, 3, 4)))


@pytest.mark.parametrize("size", [1e-300, 1e-3, 1.0, -2.0, 1e300, 3e307])
def test_three_and_four_have_length_five_at_any_size(size):
    """dx = (du − u (u·du))/n with du = [1, 0]: [.64, −.48]/5."""
    u, saved = l2_normalise.forward(size * np.array([[3.0, 4.0]]))
    np.testing.assert_allclose(u, np.sign(size) * np.array([[0.6, 0.8]]), rtol=1e-15)
    np.testing.assert_allclose(saved.n, [[5 * abs(size)]], rtol=1e-15)
    dx = l2_normalise.backward(np.array([[1.0, 0.0]]), saved)
    np.testing.assert_allclose(dx, [[0.128 / abs(size), -0.096 / abs(size)]], rtol=1e-14)


def test_the_jacobian_built_by_hand_gives_the_same_gradient():
    x, du = np.array([0.5, -0.2, 1.0]), np.array([0.3, 1.0, -2.0])
    n = (x @ x) ** 0.5
    jacobian = np.eye(3) / n - np.outer(x, x) / n**3
    np.testing.assert_allclose(l2_normalise.backward(du, l2_normalise.forward(x)[1]), jacobian @ du, rtol=1e-14)


def test_the_gradient_is_orthogonal_to_the_row():
    x = rows((4, 5))["x"]
    dx = l2_normalise.backward(np.arange(20.0).reshape(4, 5), l2_normalise.forward(x)[1])
    np.testing.assert_allclose(np.sum(dx * x, axis=-1), 0, atol=1e-13)


def test_a_row_of_zeros_is_refused():
    with pytest.raises(ValueError, match="no direction"):
        l2_normalise.forward(np.array([[1.0, 2.0], [0.0, 0.0]]))


def test_the_largest_element_may_be_negative():
    u, _ = l2_normalise.forward(np.array([[-1e300, 1.0], [-2.0, 0.0]]))
    np.testing.assert_allclose(u, [[-1.0, 1e-300], [-1.0, 0.0]], rtol=1e-15)
