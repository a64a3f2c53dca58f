import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.core.inputs import Draw
from labs.kernels import cross_entropy

LABELS = np.array([[0, -100, 3], [1, 1, -1]])
WEIGHTS = np.array([[0.5, 9.0, 2.0], [1.0, 0.0, 3.0]])


def logits(leading=(2, 3), classes=4, scale=1.0):
    return {"logits": Draw(0).normal("logits", (*leading, classes), scale)}


def weighted(inputs):
    return cross_entropy.forward(inputs["logits"], LABELS, WEIGHTS)


def grads(dloss, saved):
    return (cross_entropy.backward(dloss, saved),)


@pytest.mark.parametrize(("weights", "expected"), [(None, (np.log(2) + np.log(4)) / 2), ([3.0, 1.0], 1.25 * np.log(2))])
def test_two_rows_by_hand(weights, expected):
    rows = np.log(np.array([[1.0, 1.0], [1.0, 3.0]]))
    loss, saved = cross_entropy.forward(rows, np.array([1, 0]), None if weights is None else np.array(weights))
    share = np.array([0.5, 0.5]) if weights is None else np.array([0.75, 0.25])
    assert loss == pytest.approx(expected, rel=1e-15)
    np.testing.assert_allclose(cross_entropy.backward(1, saved), share[:, None] * [[0.5, -0.5], [-0.75, 0.75]])


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple), st.integers(1, 5), st.booleans())
def test_gradients_are_the_complex_step(every_gradient_is_the_complex_step, leading, classes, masked):
    labels = Draw(1).integers("labels", leading, classes + masked) - masked
    weights = Draw(1).uniform("weights", leading, 0.1, 2.0)
    every_gradient_is_the_complex_step(
        lambda inputs: cross_entropy.forward(inputs["logits"], labels, weights), grads, logits(leading, classes)
    )


def test_gradients_are_the_central_differences(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(weighted, grads, logits())


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    def forward(inputs):
        return cross_entropy.forward(inputs["logits"], LABELS, WEIGHTS.astype(inputs["logits"].dtype))

    every_result_keeps_the_dtype(forward, grads, logits())


def test_inputs_stay_as_they_were(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(weighted, grads, logits())


@pytest.mark.parametrize(
    ("labels", "weights"), [(-100 + 0 * LABELS, WEIGHTS), (LABELS, 0 * WEIGHTS), (-1 + 0 * LABELS, None)]
)
def test_without_a_supervised_row_loss_and_gradient_are_exactly_zero(labels, weights):
    loss, saved = cross_entropy.forward(logits()["logits"], labels, weights)
    assert loss == 0
    assert not cross_entropy.backward(1, saved).any()


def test_what_stands_in_an_unsupervised_row_does_not_matter():
    clean = logits()["logits"]
    dirty = clean.copy()
    dirty[0, 1], dirty[1, 2] = 1e300, -1e300
    (left, a), (right, b) = (cross_entropy.forward(x, LABELS, WEIGHTS) for x in (clean, dirty))
    assert left == right
    np.testing.assert_array_equal(a.unit[0, 0], b.unit[0, 0])
    assert not b.unit[0, 1].any()


@pytest.mark.parametrize("scale", [1e-300, 1e3, 1e300])
def test_large_logits_stay_finite(scale):
    loss, saved = cross_entropy.forward(Draw(0).uniform("l", (2, 3, 4), -1, 1) * scale, LABELS, WEIGHTS)
    assert np.isfinite(loss)
    assert np.isfinite(cross_entropy.backward(1, saved)).all()


def test_a_confident_right_answer_keeps_its_small_loss():
    loss, _ = cross_entropy.forward(np.array([[10.0, 0.0, 0.0, 0.0]]), np.array([0]))
    assert loss == pytest.approx(1.36e-4, rel=2e-3)


def test_a_constant_on_a_whole_row_changes_nothing():
    x = logits()["logits"]
    np.testing.assert_allclose(weighted({"logits": x + 100})[0], weighted({"logits": x})[0], rtol=1e-12)
