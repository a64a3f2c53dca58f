import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kernels import swiglu


def forward(arrays):
    return swiglu.forward(arrays["a"], arrays["b"])


def arrays(shape, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": 2 * rng.normal(size=shape), "b": rng.normal(size=shape)}


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple), st.integers(0, 9))
def test_gradients_are_the_complex_step(every_gradient_is_the_complex_step, shape, seed):
    every_gradient_is_the_complex_step(forward, swiglu.backward, arrays(shape, seed))


def test_gradients_are_the_central_difference(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(forward, swiglu.backward, arrays((2, 3, 4)))


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    every_result_keeps_the_dtype(forward, swiglu.backward, arrays((2, 3, 4)))


def test_inputs_stay_and_views_are_fine(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(forward, swiglu.backward, arrays((2, 3, 4)))


@pytest.mark.parametrize(
    ("a", "b", "z", "da", "db"),
    [
        (0.0, 3.0, 0.0, 1.5, 0.0),  # σ = 1/2, the slope there is 1/2
        (np.log(3), 2.0, 1.5 * np.log(3), 1.5 + 0.375 * np.log(3), 0.75 * np.log(3)),  # σ = 3/4
        (1e3, 2.0, 2e3, 2.0, 1e3),
        (-1e3, 2.0, 0.0, 0.0, 0.0),
        (1e-300, 2.0, 1e-300, 1.0, 5e-301),
    ],
)
def test_values_that_anyone_can_check(a, b, z, da, db):
    found, saved = swiglu.forward(np.array(a), np.array(b))
    np.testing.assert_allclose([found, *swiglu.backward(np.array(1.0), saved)], [z, da, db], rtol=1e-15)


def test_the_sigmoid_is_symmetric_and_never_overflows():
    a = np.array([0.0, 1.0, 40.0, 1e3, 1e308])
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(swiglu.sigmoid(a) + swiglu.sigmoid(-a), 1.0, rtol=1e-15)


def test_the_sigmoid_is_half_a_hyperbolic_tangent():
    a = np.linspace(-9, 9, 31)
    np.testing.assert_allclose(swiglu.sigmoid(a), (1 + np.tanh(a / 2)) / 2, atol=1e-15)
