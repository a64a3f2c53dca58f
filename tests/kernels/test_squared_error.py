import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.core.inputs import Draw
from labs.kernels import squared_error

SIZES = st.integers(1, 4)


def forward_on(leading=(2, 3), k=4):
    target = Draw(1).normal("target", (*leading, k))
    weights = Draw(1).uniform("weights", leading, 0.1, 2.0)

    def forward(inputs):
        dtype = inputs["y"].real.dtype
        return squared_error.forward(inputs["y"], target.astype(dtype), weights.astype(dtype))

    return forward, {"y": Draw(0).normal("y", (*leading, k))}


def grads(dloss, saved):
    return (squared_error.backward(dloss, saved),)


def test_two_rows_by_hand():
    y, target = np.array([[1.0, 2.0], [0.0, 4.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])
    loss, saved = squared_error.forward(y, target, np.array([1.0, 3.0]))
    assert loss == 4.0  # (1 · 5 + 3 · 9) / (2 · 4)
    np.testing.assert_array_equal(squared_error.backward(2.0, saved), [[0.5, 1.0], [0.0, 4.5]])


@given(st.lists(SIZES, max_size=3).map(tuple), SIZES)
def test_the_gradient_is_the_complex_step(every_gradient_is_the_complex_step, leading, k):
    forward, inputs = forward_on(leading, k)
    every_gradient_is_the_complex_step(forward, grads, inputs)


def test_the_gradient_is_the_central_difference(every_gradient_is_the_central_difference):
    forward, inputs = forward_on()
    every_gradient_is_the_central_difference(forward, grads, inputs)


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    forward, inputs = forward_on()
    every_result_keeps_the_dtype(forward, grads, inputs)


def test_inputs_stay_as_they_were(inputs_stay_and_strides_do_not_matter):
    forward, inputs = forward_on()
    inputs_stay_and_strides_do_not_matter(forward, grads, inputs)


@pytest.mark.parametrize("factor", [1e-3, 7.0])
def test_only_the_proportions_of_the_weights_matter(factor):
    y, target, weights = Draw(0).normal("y", (3, 2)), Draw(0).normal("t", (3, 2)), Draw(0).uniform("w", (3,), 1, 2)
    left, right = (squared_error.forward(y, target, w)[0] for w in (weights, factor * weights))
    assert left == pytest.approx(right, rel=1e-14)


def test_a_target_that_is_met_has_loss_and_gradient_zero():
    y = Draw(0).normal("y", (3, 2))
    loss, saved = squared_error.forward(y, y, np.ones(3))
    assert loss == 0
    assert not squared_error.backward(1, saved).any()
