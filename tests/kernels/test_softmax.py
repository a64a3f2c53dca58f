import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kernels import softmax


def kernel(visible=None):
    return (lambda a: softmax.forward(a["s"], visible)), lambda dp, saved: (softmax.backward(dp, saved),)


def scores(shape, seed=0):
    return {"s": 3 * np.random.default_rng(seed).normal(size=shape)}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), st.integers(0, 99), st.booleans())
def test_gradients_are_the_complex_step(every_gradient_is_the_complex_step, shape, seed, masked):
    """Random masks hide whole rows now and then."""
    visible = np.random.default_rng(seed).random(shape) < 0.6 if masked else None
    every_gradient_is_the_complex_step(*kernel(visible), scores(shape, seed))


def test_gradients_are_the_central_difference(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(*kernel(np.tri(3, 4, dtype=bool)), scores((2, 3, 4)))


@pytest.mark.parametrize("visible", [None, np.tri(3, 4, dtype=bool)])
def test_the_dtype_is_kept(every_result_keeps_the_dtype, visible):
    every_result_keeps_the_dtype(*kernel(visible), scores((2, 3, 4)))


def test_inputs_stay_and_views_are_fine(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(*kernel(np.tri(3, 4, dtype=bool)[:, ::-1]), scores((2, 3, 4)))


@pytest.mark.parametrize(
    ("s", "visible", "p"),
    [
        ([0.0, 0.0], None, [0.5, 0.5]),
        ([np.log(3), 0.0], None, [0.75, 0.25]),
        ([np.log(3), 0.0, 5.0], [True, True, False], [0.75, 0.25, 0.0]),
        ([1e3, -1e3], None, [1.0, 0.0]),
        ([-1e3, -1e3], None, [0.5, 0.5]),
        ([[1e3, 1e3], [-1e3, -1e3]], None, [[0.5, 0.5], [0.5, 0.5]]),  # each row has its own maximum
        ([1e3, 0.0], [False, True], [0.0, 1.0]),
        ([1e300, 0.0, 0.0], [False, True, True], [0.0, 0.5, 0.5]),
        ([np.nan, np.inf, 0.0], [False, False, True], [0.0, 0.0, 1.0]),
        ([1e-300, 0.0], None, [0.5, 0.5]),
        ([7.0, 8.0], [False, False], [0.0, 0.0]),
        ([-np.inf, -np.inf], None, [0.0, 0.0]),
        ([-np.inf, 2.0], None, [0.0, 1.0]),
    ],
)
def test_values_that_anyone_can_check(s, visible, p):
    found, _ = softmax.forward(np.array(s), None if visible is None else np.array(visible))
    np.testing.assert_allclose(found, p, rtol=1e-15)


def test_the_mask_holds_for_the_derivative_too():
    visible = np.array([[True, False, True], [False, False, False]])
    _, saved = softmax.forward(np.array([[1.0, 1e3, 2.0], [1.0, 2.0, 3.0]]), visible)
    ds = softmax.backward(np.array([[1.0, 5.0, -1.0], [3.0, 2.0, 1.0]]), saved)
    assert np.all(ds[~visible] == 0)
    assert np.all(ds[0, [0, 2]] != 0)


def test_the_jacobian_built_by_hand_gives_the_same_gradient():
    s, dp = np.array([0.5, -1.0, 2.0]), np.array([1.0, -2.0, 0.5])
    p = np.exp(s) / np.exp(s).sum()
    _, saved = softmax.forward(s)
    np.testing.assert_allclose(softmax.backward(dp, saved), (np.diag(p) - np.outer(p, p)) @ dp, rtol=1e-14)


def test_rows_of_the_gradient_sum_to_zero():
    """A constant added to a row changes nothing: P ⊙ dP without the sum fails this."""
    _, saved = softmax.forward(scores((4, 5))["s"])
    np.testing.assert_allclose(softmax.backward(np.arange(20.0).reshape(4, 5), saved).sum(-1), 0, atol=1e-14)
