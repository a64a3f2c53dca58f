import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kernels import rms_norm

EPS = 1e-5


def forward(a):
    return rms_norm.forward(a["x"], a["gamma"], EPS)


def arrays(shape, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=shape), "gamma": rng.normal(size=shape[-1]) + 1.5}


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple), st.integers(0, 9))
def test_gradients_are_the_complex_step(every_gradient_is_the_complex_step, shape, seed):
    every_gradient_is_the_complex_step(forward, rms_norm.backward, arrays(shape, seed))


def test_gradients_are_the_central_difference(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(forward, rms_norm.backward, arrays((2, 3, 4)))


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    every_result_keeps_the_dtype(forward, rms_norm.backward, arrays((2, 3, 4)))


def test_inputs_stay_and_views_are_fine(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(forward, rms_norm.backward, arrays((2, 3, 4)))


def test_three_and_four_have_root_mean_square_five_over_root_two():
    y, _ = rms_norm.forward(np.array([3.0, 4.0]), np.array([1.0, 2.0]), 0.0)
    np.testing.assert_allclose(y, [3 * 2**0.5 / 5, 8 * 2**0.5 / 5], rtol=1e-15)


def test_a_weight_of_zero_gives_zero():
    y, _ = rms_norm.forward(np.array([[3.0, 4.0]]), np.zeros(2), EPS)
    np.testing.assert_array_equal(y, [[0.0, 0.0]])


def test_the_jacobian_built_by_hand_gives_the_same_gradient():
    """dy_j/dx_i = γ_j (r δ_ij − r³ x_i x_j / d), one row."""
    x, gamma, dy = np.array([0.5, -0.2, 1.0]), np.array([1.0, 2.0, -1.0]), np.array([0.3, 1.0, -2.0])
    r = 1 / (x @ x / 3 + EPS) ** 0.5
    jacobian = (r * np.eye(3) - r**3 / 3 * np.outer(x, x)) * gamma  # [i, j]
    _, saved = rms_norm.forward(x, gamma, EPS)
    np.testing.assert_allclose(rms_norm.backward(dy, saved).dx, jacobian @ dy, rtol=1e-14)


def test_without_eps_the_gradient_is_orthogonal_to_the_row():
    """The output doesn't change when a row is scaled, so nothing may point along it: a constant r fails this."""
    case = arrays((4, 5))
    _, saved = rms_norm.forward(case["x"], case["gamma"], 0.0)
    dx = rms_norm.backward(np.arange(20.0).reshape(4, 5), saved).dx
    np.testing.assert_allclose(np.sum(dx * case["x"], axis=-1), 0, atol=1e-12)


def test_a_third_axis_is_only_more_rows():
    case = arrays((2, 3, 4))
    dy = np.arange(24.0).reshape(2, 3, 4)
    deep = rms_norm.backward(dy, forward(case)[1])
    flat = rms_norm.backward(dy.reshape(6, 4), forward({**case, "x": case["x"].reshape(6, 4)})[1])
    np.testing.assert_allclose(deep.dgamma, flat.dgamma, rtol=1e-14)
    np.testing.assert_array_equal(deep.dx.reshape(6, 4), flat.dx)


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e150])
def test_extreme_rows_stay_finite(size):
    y, saved = rms_norm.forward(np.full((1, 2), size), np.ones(2), EPS)
    results = (y, *rms_norm.backward(np.array([[1.0, -2.0]]), saved))
    assert all(np.all(np.isfinite(result)) for result in results)
