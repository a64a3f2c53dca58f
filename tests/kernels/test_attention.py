import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs.kernels import attention


def kernel(visible=None):
    return (lambda a: attention.forward(a["q"], a["k"], a["v"], visible)), attention.backward


def arrays(*, lead=(2,), heads=4, groups=2, queries=3, keys=4, width=2, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "q": rng.normal(size=(*lead, heads, queries, width)),
        "k": rng.normal(size=(*lead, groups, keys, width)),
        "v": rng.normal(size=(*lead, groups, keys, width)),
    }


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 2), max_size=2).map(tuple),
    st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2)),
    st.integers(0, 99),
    st.booleans(),
)
def test_gradients_are_the_complex_step(every_gradient_is_the_complex_step, lead, sizes, seed, masked):
    """Random masks hide whole rows now and then."""
    groups, share, queries, keys, width = sizes
    visible = np.random.default_rng(seed).random((queries, keys)) < 0.6 if masked else None
    size = {"heads": groups * share, "groups": groups, "queries": queries, "keys": keys, "width": width}
    case = arrays(lead=lead, **size, seed=seed)
    every_gradient_is_the_complex_step(*kernel(visible), case)


def test_a_mask_of_every_sample_holds_for_all_its_heads(every_gradient_is_the_complex_step):
    """As many heads as samples: a mistaken axis would still broadcast."""
    visible, case = np.random.default_rng(1).random((2, 3, 4)) < 0.6, arrays(heads=2)
    every_gradient_is_the_complex_step(*kernel(visible), case)
    samples = zip(case["q"], case["k"], case["v"], visible, strict=True)
    alone = [attention.forward(*sample)[0] for sample in samples]
    np.testing.assert_allclose(attention.forward(**case, visible=visible)[0], alone, rtol=1e-14)


def test_the_value_may_be_wider_than_the_key(every_gradient_is_the_complex_step):
    case = arrays()
    every_gradient_is_the_complex_step(*kernel(), {**case, "v": np.concatenate([case["v"], case["k"]], axis=-1)})


@pytest.mark.parametrize("name", ["s", "p"])
def test_the_gradient_at_an_intermediate_is_the_derivative_behind_it(name):
    """A step of the intermediate itself, then only what follows it, written out with einsum."""
    case, visible = arrays(groups=4), attention.causal(3, 4)
    dy = np.random.default_rng(5).normal(size=case["q"].shape)
    _, saved = attention.forward(**case, visible=visible)
    found = getattr(attention.backward(dy, saved), f"d{name}")
    for index in np.ndindex(found.shape):
        value = getattr(saved, name).astype(complex)
        value[index] += 1e-20j
        if name == "s":
            value = np.where(visible, np.exp(value), 0)
            value = value / value.sum(-1, keepdims=True)
        moved = np.einsum("bhtd,bhts,bhsd->", dy, value, case["v"])
        assert abs(found[index] - moved.imag / 1e-20) <= 1e-12


def test_gradients_are_the_central_difference(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(*kernel(attention.causal(3, 4, 1)), arrays())


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    every_result_keeps_the_dtype(*kernel(attention.causal(3, 4)), arrays())


def test_inputs_stay_and_views_are_fine(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(*kernel(attention.causal(3, 4)), arrays())


def plain(v, visible):
    """All scores 0, one head of width 1: every query averages the values that it sees."""
    v = np.array(v, dtype=float)
    q, k = np.zeros((1, visible.shape[0], 1)), np.zeros((1, len(v), 1))
    return attention.forward(q, k, v.reshape(1, -1, 1), visible)[0].ravel()


@pytest.mark.parametrize(("offset", "y"), [(0, [1.0, 1.5]), (3, [2.5, 3.0]), (-1, [0.0, 1.0])])
def test_causal_alignment_for_unequal_lengths(offset, y):
    np.testing.assert_allclose(plain([1, 2, 3, 4, 5], attention.causal(2, 5, offset)), y, rtol=1e-15)


def test_documents_in_one_row_do_not_see_each_other():
    ids = np.array([0, 0, 1, 1])
    visible = attention.causal(4, 4) & attention.same_document(ids, ids)
    np.testing.assert_allclose(plain([10, 20, 1, 3], visible), [10, 15, 1, 2], rtol=1e-15)
    np.testing.assert_allclose(plain([10, 20, 1, 3], attention.causal(4, 4)), [10, 15, 31 / 3, 8.5], rtol=1e-15)


def test_the_causal_mask_written_out():
    assert attention.causal(2, 3, 1).tolist() == [[True, True, False], [True, True, True]]


def test_document_ids_may_differ_in_every_row():
    mask = attention.same_document(np.array([[0, 1], [0, 0]]), np.array([[0, 0], [1, 0]]))
    assert mask.tolist() == [[[True, True], [False, False]], [[False, True], [False, True]]]


def test_one_literal_score_is_scaled_by_the_root_of_the_width():
    q, k = np.full((1, 1, 4), 2.0), np.array([[[3.0] * 4, [0.0] * 4]])
    _, saved = attention.forward(q, k, k)
    np.testing.assert_allclose(saved.s, [[[12.0, 0.0]]], rtol=1e-15)


def test_a_fully_masked_row_is_zero_and_gives_no_gradient():
    case, visible = arrays(), np.ones((3, 4), dtype=bool)
    visible[1] = False
    y, saved = attention.forward(**case, visible=visible)
    grads = attention.backward(np.ones_like(y), saved)
    assert np.all(y[..., 1, :] == 0)
    assert np.all(grads.dq[..., 1, :] == 0)
    assert all(np.all(np.isfinite(gradient)) for gradient in grads)


def test_a_hidden_key_gets_no_gradient():
    visible = np.ones((3, 4), dtype=bool)
    visible[:, 2] = False
    y, saved = attention.forward(**arrays(), visible=visible)
    grads = attention.backward(np.ones_like(y), saved)
    assert np.all(grads.dk[..., 2, :] == 0)
    assert np.all(grads.dv[..., 2, :] == 0)
    assert np.all(grads.ds[..., 2] == 0)


@pytest.mark.parametrize("size", [1e-300, 1e150])
def test_extreme_scores_stay_finite(size):
    case = arrays()
    y, saved = attention.forward(size * case["q"], size * case["k"], case["v"], attention.causal(3, 4))
    assert all(np.all(np.isfinite(result)) for result in (y, saved.p, attention.backward(y, saved).dv))


def test_grouped_heads_equal_repeated_keys_and_values():
    """Second derivation: repeat each key/value head, then sum the gradients of its copies."""
    case, visible = arrays(), attention.causal(3, 4)
    wide = {**case, "k": case["k"].repeat(2, axis=1), "v": case["v"].repeat(2, axis=1)}
    y, saved = attention.forward(**case, visible=visible)
    z, held = attention.forward(**wide, visible=visible)
    dy = np.random.default_rng(3).normal(size=y.shape)
    shared, copies = attention.backward(dy, saved), attention.backward(dy, held)
    np.testing.assert_allclose(y, z, rtol=1e-13)
    np.testing.assert_allclose(shared.dk, copies.dk.reshape(2, 2, 2, 4, 2).sum(2), rtol=1e-12)
    np.testing.assert_allclose(shared.dv, copies.dv.reshape(2, 2, 2, 4, 2).sum(2), rtol=1e-12)


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="3 query heads, 2 key/value heads"):
        attention.forward(**arrays(heads=3))
