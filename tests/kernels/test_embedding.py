import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kernels import embedding


def kernel(ids):
    return (lambda a: embedding.forward(a["table"], ids)), lambda dy, saved: (embedding.backward(dy, saved),)


def table(shape, seed=0):
    return {"table": np.random.default_rng(seed).normal(size=shape)}


@given(st.lists(st.integers(1, 3), max_size=3).map(tuple), st.integers(1, 4), st.integers(1, 3))
def test_gradients_are_the_complex_step(every_gradient_is_the_complex_step, shape, vocabulary, width):
    ids = np.random.default_rng(1).integers(vocabulary, size=shape)
    every_gradient_is_the_complex_step(*kernel(ids), table((vocabulary, width)))


def test_gradients_are_the_central_difference(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(*kernel(np.array([[2, 0], [2, 2]])), table((4, 3)))


def test_the_dtype_is_kept():
    for dtype in (np.float32, np.float64, np.longdouble, np.complex128):
        y, saved = embedding.forward(np.ones((3, 2), dtype), np.array([1]))
        assert y.dtype == embedding.backward(y, saved).dtype == dtype


def test_inputs_stay_and_views_are_fine(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(*kernel(np.array([2, 0, 2])[::-1]), table((4, 3)))


def test_a_repeated_id_adds_up_and_an_unused_row_is_zero():
    _, saved = embedding.forward(np.zeros((4, 2)), np.array([1, 3, 1]))
    dtable = embedding.backward(np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]]), saved)
    np.testing.assert_array_equal(dtable, [[0, 0], [101, 202], [0, 0], [10, 20]])


def test_a_lookup_is_a_product_with_one_hot_rows():
    """Second derivation: Y = O E, dE = Oᵀ dY."""
    ids, rows = np.array([[2, 0, 2], [3, 3, 1]]), table((4, 5))["table"]
    one_hot = np.eye(4)[ids.ravel()]
    y, saved = embedding.forward(rows, ids)
    dy = np.arange(30.0).reshape(2, 3, 5)
    np.testing.assert_array_equal(y.reshape(6, 5), one_hot @ rows)
    np.testing.assert_array_equal(embedding.backward(dy, saved), one_hot.T @ dy.reshape(6, 5))


@pytest.mark.parametrize("wrong", [-1, -100, 4])
def test_an_id_outside_the_table_is_refused(wrong):
    with pytest.raises(ValueError, match=f"id {wrong}: expected 0 <= id < 4"):
        embedding.forward(np.ones((4, 2)), np.array([0, wrong]))
