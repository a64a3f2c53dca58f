import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kernels import adamw


def train(p, grads, **settings):
    state = adamw.start(p)
    for g in grads:
        p, state = adamw.update(p, g, state, **settings)
    return p, state


def test_eps_stands_outside_the_bias_correction():
    """0.759747 where eps is scaled with the correction."""
    p, _ = train(np.array([0.0]), [np.array([1e-6])], lr=1.0, eps=1e-8, weight_decay=0.0)
    np.testing.assert_allclose(p, [-1e-6 / (1e-6 + 1e-8)], rtol=1e-12)
    assert abs(p[0] + 0.990099) < 1e-6


def test_the_decay_is_not_part_of_the_gradient():
    """.90 and .02 where it is."""
    p, state = train(np.array([1.0]), [np.array([0.1])], lr=0.1, eps=0.0, weight_decay=0.1)
    np.testing.assert_allclose([p[0], state.exp_avg[0], state.exp_avg_sq[0]], [0.89, 0.01, 1e-5], rtol=1e-12)


def test_a_parameter_without_gradient_still_decays():
    p, _ = train(np.array([2.0]), [np.array([0.0])] * 2, lr=0.5, weight_decay=0.1)
    np.testing.assert_allclose(p, [2 * 0.95**2], rtol=1e-15)


def test_the_second_correction_at_step_300():
    """With a constant gradient the corrected moments are the gradient itself, and 1 − .999^300 = .25929 of it is v."""
    _, state = train(np.array([0.0]), [np.array([1.0])] * 300, lr=0.1)
    assert state.step == 300
    assert abs(state.exp_avg_sq[0] - 0.25929) < 1e-5


def test_the_first_step_is_the_learning_rate_in_the_direction_of_the_sign():
    p, _ = train(np.zeros(3), [np.array([5.0, -0.01, 1e-300])], lr=0.1, eps=1e-30, weight_decay=0.0)
    np.testing.assert_allclose(p[:2], [-0.1, 0.1], rtol=1e-12)
    assert np.isfinite(p[2])


@given(
    st.lists(st.integers(1, 3), max_size=3).map(tuple),
    st.integers(1, 5),
    st.floats(0.1, 0.95),
    st.floats(0.1, 0.999),
)
def test_the_moments_are_weighted_sums_of_the_history(shape, steps, beta1, beta2):
    """Second derivation: m_t = (1−β1) Σ β1^(t−i) g_i, v_t alike, and each update from them, in plain numbers."""
    rng = np.random.default_rng(steps)
    p, grads = rng.normal(size=shape), rng.normal(size=(steps, *shape))
    lr, eps, decay = 0.3, 0.01, 0.2
    found, state = train(p, grads, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay)
    for t in range(1, steps + 1):
        weights = np.arange(t)[::-1].reshape(-1, *[1] * len(shape))
        m = (1 - beta1) * np.sum(beta1**weights * grads[:t], axis=0)
        v = (1 - beta2) * np.sum(beta2**weights * grads[:t] ** 2, axis=0)
        root = np.sqrt(v / (1 - beta2**t))
        p = p - lr * decay * p - lr * (m / (1 - beta1**t)) / (root + eps)
    for left, right in ((found, p), (state.exp_avg, m), (state.exp_avg_sq, v)):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble, np.complex128])
def test_the_dtype_is_kept(dtype):
    p, state = train(np.ones(2, dtype), [np.ones(2, dtype)] * 2, lr=0.1)
    assert p.dtype == state.exp_avg.dtype == state.exp_avg_sq.dtype == dtype


def test_longdouble_is_computed_in_longdouble():
    narrow, _ = train(np.ones(1), [np.full(1, 0.1), np.full(1, 0.3)], lr=0.1)
    wide, _ = train(np.ones(1, np.longdouble), [np.full(1, g, np.longdouble) for g in (0.1, 0.3)], lr=0.1)
    np.testing.assert_allclose(narrow, wide.astype(float), rtol=1e-14)
    assert np.finfo(np.longdouble).eps == np.finfo(float).eps or wide[0] != narrow[0]


def test_nothing_is_changed_in_place_and_views_are_fine():
    p, g = np.arange(6.0)[::-2], np.arange(1.0, 7.0)[::2]
    state = adamw.State(np.full(3, 0.5), np.full(3, 0.25), 4)
    held = [array.copy() for array in (p, g, state.exp_avg, state.exp_avg_sq)]
    ours = adamw.update(p, g, state, lr=0.1)
    theirs = adamw.update(held[0], held[1], adamw.State(held[2].copy(), held[3].copy(), 4), lr=0.1)
    for array, before in zip((p, g, state.exp_avg, state.exp_avg_sq), held, strict=True):
        np.testing.assert_array_equal(array, before)
    np.testing.assert_array_equal(ours[0], theirs[0])
    assert ours[1].step == 5
