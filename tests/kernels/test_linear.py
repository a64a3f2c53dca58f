import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.core.inputs import Draw
from labs.kernels import linear

SIZES = st.integers(1, 4)


def arrays(leading=(2, 3), d=4, k=5, seed=0):
    draw = Draw(seed)
    return {"x": draw.normal("x", (*leading, d)), "w": draw.normal("w", (d, k)), "b": draw.normal("b", (k,))}


def forward(inputs):
    return linear.forward(inputs["x"], inputs["w"], inputs["b"])


def test_one_row_by_hand():
    y, saved = linear.forward(
        np.array([[1.0, 2.0]]), np.array([[1.0, 0.0, 3.0], [0.0, 1.0, -1.0]]), np.array([1, 1, 1])
    )
    np.testing.assert_array_equal(y, [[2.0, 3.0, 2.0]])
    dx, dw, db = linear.backward(np.array([[1.0, 10.0, 100.0]]), saved)
    np.testing.assert_array_equal(dx, [[301.0, -90.0]])
    np.testing.assert_array_equal(dw, [[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]])
    np.testing.assert_array_equal(db, [1.0, 10.0, 100.0])


@given(st.lists(SIZES, max_size=3).map(tuple), SIZES, SIZES)
def test_gradients_are_the_complex_step_for_any_leading_axes(every_gradient_is_the_complex_step, leading, d, k):
    every_gradient_is_the_complex_step(forward, linear.backward, arrays(leading, d, k))


def test_gradients_are_the_central_differences(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(forward, linear.backward, arrays())


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    every_result_keeps_the_dtype(forward, linear.backward, arrays())


def test_inputs_stay_as_they_were(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(forward, linear.backward, arrays())


def test_leading_axes_are_rows():
    deep, flat = arrays((2, 3)), arrays((6,))
    dy = Draw(1).normal("dy", (2, 3, 5))
    left, right = (linear.backward(g, forward(a)[1]) for g, a in ((dy, deep), (dy.reshape(6, 5), flat)))
    np.testing.assert_allclose(left.dw, right.dw, rtol=1e-14)
    np.testing.assert_allclose(left.db, right.db, rtol=1e-14)


def test_without_a_bias_nothing_is_added():
    given_arrays = arrays()
    y, _ = linear.forward(given_arrays["x"], given_arrays["w"])
    np.testing.assert_array_equal(y, given_arrays["x"] @ given_arrays["w"])


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_extreme_inputs_stay_finite(scale):
    inputs = arrays()
    y, _ = linear.forward(inputs["x"] * scale, inputs["w"])
    assert np.all(np.isfinite(y))
