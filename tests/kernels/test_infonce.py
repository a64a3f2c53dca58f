import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs.kernels import infonce


def kernel(labels):
    return (lambda a: infonce.forward(**a, labels=labels)), infonce.backward


def arrays(*, rows=2, keys=5, width=3, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"x": (rows, width), "y": (rows, width), "keys_x": (keys, width), "keys_y": (keys, width)}
    case = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    return {**case, "log_scale": np.array(0.7)}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
def test_gradients_are_the_complex_step(every_gradient_is_the_complex_step, rows, keys, width, seed):
    labels = np.random.default_rng(seed).integers(keys, size=rows)
    every_gradient_is_the_complex_step(*kernel(labels), arrays(rows=rows, keys=keys, width=width, seed=seed))


def test_gradients_are_the_central_difference(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(*kernel(np.array([2, 3])), arrays())


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    every_result_keeps_the_dtype(*kernel(np.array([2, 3])), arrays())


def test_inputs_stay_and_views_are_fine(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(*kernel(np.array([3, 2])[::-1]), arrays())


def global_batch(x, y, log_scale):
    return infonce.forward(x, y, x, y, np.array(log_scale), np.arange(len(x)))


def test_equal_logits_lose_the_logarithm_of_the_batch():
    x = np.ones((4, 1))
    loss, _ = global_batch(x, x, 0.0)
    np.testing.assert_allclose(loss, np.log(4), rtol=1e-15)


def test_two_orthogonal_pairs_at_scale_log_three():
    """Logits log 3 and 0: the right one has 3/4."""
    loss, saved = global_batch(np.eye(2), np.eye(2), np.log(np.log(3)))
    np.testing.assert_allclose(saved.s, [[np.log(3), 0], [0, np.log(3)]], rtol=1e-14)
    np.testing.assert_allclose(loss, np.log(4 / 3), rtol=1e-14)


def test_the_scale_is_the_exponential_of_the_parameter():
    """2.6593 where the exponential is forgotten."""
    _, saved = global_batch(np.eye(2), np.eye(2), np.log(1 / 0.07))
    assert abs(saved.scale - 14.2857) < 1e-4
    np.testing.assert_allclose(saved.s, np.eye(2) / 0.07, rtol=1e-14)


def test_one_sample_without_negatives_teaches_nothing():
    x = np.array([[0.6, 0.8]])
    loss, saved = global_batch(x, x[:, ::-1], 2.0)
    assert loss == 0
    assert all(np.all(gradient == 0) for gradient in infonce.backward(np.array(1.0), saved))


@pytest.mark.parametrize(("sign", "expected"), [(1.0, 0.0), (-1.0, 1e3)])
def test_logits_of_a_thousand_stay_finite(sign, expected):
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    loss, saved = global_batch(x, sign * x, np.log(1e3))
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    assert all(np.all(np.isfinite(gradient)) for gradient in infonce.backward(np.array(1.0), saved))


@pytest.mark.parametrize("size", [1e-300, 0.0])
def test_vanishing_features_lose_the_logarithm_of_the_batch(size):
    loss, _ = global_batch(size * np.eye(3), np.eye(3), 0.0)
    np.testing.assert_allclose(loss, np.log(3), rtol=1e-15)


def test_the_mean_over_ranks_is_the_global_loss_and_its_gradient():
    """Second derivation: two even shares with offset labels, keys summed over the ranks, against one batch."""
    rng = np.random.default_rng(4)
    x, y, log_scale = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), np.array(0.4)
    loss, saved = global_batch(x, y, log_scale)
    whole = infonce.backward(np.array(1.0), saved)
    parts = [infonce.forward(x[i : i + 2], y[i : i + 2], x, y, log_scale, np.arange(i, i + 2)) for i in (0, 2)]
    shares = [infonce.backward(np.array(0.5), held) for _, held in parts]
    np.testing.assert_allclose((parts[0][0] + parts[1][0]) / 2, loss, rtol=1e-14)
    for local, key in ((0, 2), (1, 3)):
        gradient = np.concatenate([share[local] for share in shares]) + sum(share[key] for share in shares)
        np.testing.assert_allclose(gradient, whole[local] + whole[key], atol=1e-14)
    np.testing.assert_allclose(sum(share.dlog_scale for share in shares), whole.dlog_scale, rtol=1e-13)


def test_the_other_half_of_the_loss_reads_the_columns():
    """Written out: rows and columns of one matrix of logits."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    e = np.exp(2.0 * x @ y.T)
    expected = -(np.log(np.diag(e) / e.sum(1)).mean() + np.log(np.diag(e) / e.sum(0)).mean()) / 2
    np.testing.assert_allclose(global_batch(x, y, np.log(2.0))[0], expected, rtol=1e-13)


@pytest.mark.parametrize("wrong", [-1, 5])
def test_a_label_without_a_key_is_refused(wrong):
    with pytest.raises(ValueError, match=f"label {wrong}: expected 0 <= label < 5"):
        infonce.forward(**arrays(), labels=np.array([0, wrong]))
