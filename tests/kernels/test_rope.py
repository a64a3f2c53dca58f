import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kernels import rope


def kernel(positions, base=10000.0):
    return (lambda a: rope.forward(a["x"], positions, base)), lambda dy, saved: (rope.backward(dy, saved),)


def rows(shape, seed=0):
    return {"x": np.random.default_rng(seed).normal(size=shape)}


@given(
    st.lists(st.integers(1, 2), max_size=3).map(tuple),
    st.lists(st.integers(0, 5000), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_gradients_are_the_complex_step(every_gradient_is_the_complex_step, lead, positions, half):
    every_gradient_is_the_complex_step(*kernel(np.array(positions)), rows((*lead, len(positions), 2 * half)))


def test_positions_of_every_sample_hold_for_all_its_heads(every_gradient_is_the_complex_step):
    """As many heads as samples: a mistaken axis would still broadcast."""
    positions, case = np.array([[0, 1, 0], [2, 0, 7]]), rows((2, 2, 3, 4))
    every_gradient_is_the_complex_step(*kernel(positions), case)
    alone = [rope.forward(x, ids)[0] for x, ids in zip(case["x"], positions, strict=True)]
    np.testing.assert_array_equal(rope.forward(case["x"], positions)[0], alone)


def test_gradients_are_the_central_difference(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(*kernel(np.array([0, 1, 0])), rows((2, 3, 4)))


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    every_result_keeps_the_dtype(*kernel(np.array([0, 1, 2])), rows((2, 3, 4)))


def test_inputs_stay_and_views_are_fine(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(*kernel(np.array([5, 1, 0])[::-1]), rows((2, 3, 4)))


@pytest.mark.parametrize(
    ("position", "base", "y"),
    [
        (0, 10000.0, [1.0, 2.0, 3.0, 4.0]),
        # θ = [1, 1/100]: the pairs are (1, 3) and (2, 4), not the neighbours
        (1, 10000.0, [np.cos(1) - 3 * np.sin(1), 2 * np.cos(0.01) - 4 * np.sin(0.01)]),
        (2, 16.0, [np.cos(2) - 3 * np.sin(2), 2 * np.cos(0.5) - 4 * np.sin(0.5)]),
        (2, 16.0, [None, None, 3 * np.cos(2) + np.sin(2), 4 * np.cos(0.5) + 2 * np.sin(0.5)]),
        (-1, 10000.0, [np.cos(1) + 3 * np.sin(1), 2 * np.cos(0.01) + 4 * np.sin(0.01)]),
    ],
)
def test_values_that_anyone_can_check(position, base, y):
    found, _ = rope.forward(np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([position]), base)
    for value, expected in zip(found[0], y, strict=False):
        assert expected is None or abs(value - expected) <= 1e-14


def test_a_pair_turns_like_a_complex_number():
    """Second derivation: (a + ib) e^{iφ}."""
    x, positions = rows((3, 6))["x"], np.array([4, 0, 9])
    theta = np.array([1.0, 10000 ** (-1 / 3), 10000 ** (-2 / 3)])
    turned = (x[:, :3] + 1j * x[:, 3:]) * np.exp(1j * positions[:, None] * theta)
    np.testing.assert_allclose(rope.forward(x, positions)[0], np.hstack([turned.real, turned.imag]), atol=1e-14)


def test_the_backward_pass_undoes_the_forward_pass():
    x = rows((2, 3, 4))["x"]
    y, saved = rope.forward(x, np.array([3, 1, 4]))
    np.testing.assert_allclose(rope.backward(y, saved), x, rtol=1e-14)


def test_only_the_distance_of_two_positions_shows_in_a_score():
    q, k = rows((1, 4), 1)["x"], rows((1, 4), 2)["x"]
    scores = [rope.forward(q, np.array([i]))[0] @ rope.forward(k, np.array([j]))[0].T for i, j in [(5, 2), (103, 100)]]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-12)


def test_restarted_positions_rotate_every_document_alike():
    x = rows((2, 4))["x"]
    y, _ = rope.forward(np.concatenate([x, x]), np.array([0, 1, 0, 1]))
    np.testing.assert_array_equal(y[:2], y[2:])


def test_an_odd_row_is_refused():
    with pytest.raises(ValueError, match="a row of 3 elements"):
        rope.forward(np.ones((1, 3)), np.array([0]))
