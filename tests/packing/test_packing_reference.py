import numpy as np
import pytest

from labs.core.inputs import Draw
from labs.core.lab import is_float
from labs.kernels import adamw, attention, cross_entropy, embedding, linear, rope, sgd
from labs.packing import reference_data as data
from labs.packing import reference_model as model
from labs.packing.config import Config
from labs.packing.inputs import inputs
from labs.packing.reference import reference

TINY = Config(
    lengths=(3, 2), limit=3, vocabulary=3, d_model=1, heads=1, head_dim=2, micro_batches=(1, 1), ranks=(1, 1), shards=2
)
HAND = {  # no score, so attention is the mean of what is visible: x = id, h = x + mean
    "tokens": np.array([1, 2, 0, 2, 0]),
    "conversation": np.array([1, 2, 1, 2, 1, 2, 1, 2]),
    "prompted": np.array([1, 2, 1, 2, 1]),
    "embedding": np.array([[0.0], [1.0], [2.0]]),
    "w_q": np.zeros((1, 2)),
    "w_k": np.zeros((1, 2)),
    "w_v": np.array([[1.0, 0.0]]),
    "w_o": np.array([[1.0], [0.0]]),
    "head": np.array([[1.0, 0.0, -1.0]]),
    "probe": np.ones((5, 3)),
    "nudge": np.zeros((5, 1)),
}


def nll(h, target):
    """-log softmax(h · [1, 0, -1]) at the target."""
    return np.log(np.exp(h) + 1 + np.exp(-h)) - h * (1, 0, -1)[target]


FIRST, SECOND, THIRD = nll(2.0, 2), nll(3.5, 0), nll(4.0, 0)  # h: 1+1, 2+1.5 | 2+2
LEAKING = nll(2 + 5 / 4, 0)  # the fourth token sees 1, 2, 0, 2
BY_HAND = {
    "alone/logits/doc0": [[2, 0, -2], [3.5, 0, -3.5], [1, 0, -1]],
    "packed/logits/doc1": [[4, 0, -4], [1, 0, -1]],
    "packed/targets": [2, 0, -100, 0, -100],
    "packed/positions": [0, 1, 2, 0, 1],
    "packed/cu_seqlens": [0, 3, 5],
    "packed/mask": [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 1]],
    "padded/ids": [[1, 2, 0], [2, 0, 0]],
    "padded/targets": [[2, 0, -100], [0, -100, -100]],  # end-of-sequence is learned, padding of the same id is not
    "padded/positions": [[0, 1, 2], [0, 1, 0]],
    "alone/cu_seqlens": [[0, 3], [0, 2]],
    "packed/count": 3,
    "packed/loss_sum": FIRST + SECOND + THIRD,
    "packed/loss": (FIRST + SECOND + THIRD) / 3,
    "normaliser/document_mean/loss": ((FIRST + SECOND) / 2 + THIRD) / 2,
    "ranks/loss": [(FIRST + SECOND) * 2 / 3, THIRD * 2 / 3],
    "windows/loss": [(FIRST + SECOND + THIRD) / 3],
    "wrong/leak/loss": (FIRST + SECOND + LEAKING) / 3,
    "wrong/double_shift/targets": [0, -100, 0, -100, -100],
    "wrong/double_shift/count": 2,
    "wrong/double_shift/loss": (nll(2.0, 0) + nll(1.0, 0)) / 2,
    "shards/targets": [[2, 0, -100], [0, -100, -100]],
    "shards/count": [2, 1],
    "prompted/right/empty": True,
    "prompted/left/count": 2,
    "turns/all/count": 4,
    "turns/final/targets": [-100, -100, -100, -100, -100, 1, 2, -100],
}


@pytest.fixture(scope="module")
def by_hand():
    return reference(TINY, HAND)


@pytest.mark.parametrize("name", BY_HAND)
def test_values_by_hand(by_hand, name):
    assert np.shape(by_hand[name]) == np.shape(BY_HAND[name])
    np.testing.assert_allclose(by_hand[name], BY_HAND[name], rtol=1e-14, atol=1e-15)


def test_a_target_never_lies_in_another_document():
    row = data.packed([np.array([10, 11]), np.array([20, 21])])
    np.testing.assert_array_equal(row["targets"], [11, -100, 21, -100])
    assert data.count(row["targets"]) == 2


def test_a_target_that_shares_its_id_with_padding_is_kept():
    rows = data.padded([np.array([5, 6, 9]), np.array([1, 2, 3, 9])], 9)
    np.testing.assert_array_equal(rows["targets"][0], [6, 9, -100, -100])


def test_truncation_can_take_every_target():
    learned = np.arange(8) >= 6
    for side, left in (("right", 0), ("left", 2)):
        row = data.targets(np.where(data.cut(learned, 5, side), 1, -100))
        assert data.count(row) == left


def test_the_first_label_after_a_left_cut_has_no_predictor():
    kept = data.cut(np.array([1, 2, 3, 4, 5]), 3, "left")
    np.testing.assert_array_equal(kept, [3, 4, 5])
    np.testing.assert_array_equal(data.targets(kept), [4, 5, -100])


@pytest.mark.parametrize(("which", "learned"), [("all", {2, 3, 6, 7}), ("final", {6, 7})])
def test_turns_of_the_assistant_are_learned_and_tool_output_is_not(which, learned):
    assert set(np.flatnonzero(data.learned_turns("uuaatuaa", which))) == learned


@pytest.mark.parametrize(("roles", "learned"), [("aatau", {3}), ("a", {0}), ("uaaa", {1, 2, 3}), ("tata", {3})])
def test_the_final_turn_is_the_last_run_of_the_assistant(roles, learned):
    assert set(np.flatnonzero(data.learned_turns(roles, "final"))) == learned


def test_a_shards_last_token_predicts_the_next_shards_first():
    parts = data.sharded(data.targets(np.arange(1, 9)), 2)
    np.testing.assert_array_equal(parts, [[2, 3, 4, 5], [6, 7, 8, -100]])
    np.testing.assert_array_equal(data.sharded(np.array([1, 2, 3]), 2), [[1, 2], [3, -100]])


def drawn(config=None, dtype=np.float64):
    arrays = inputs(config or Config(), Draw(0))
    return {name: array.astype(dtype) if is_float(array) else array for name, array in arrays.items()}


@pytest.mark.parametrize("dtype", [np.float64, np.longdouble, np.complex128])
def test_a_packed_row_behind_its_mask_is_every_document_alone(dtype):
    """The three routes are one: what the reference takes from the documents alone, forward and backward."""
    config, arrays = Config(), drawn(dtype=dtype)
    found = reference(config, arrays)
    row = data.packed(data.documents(config, arrays["tokens"], "right"))
    run = model.forward(config, arrays, row["ids"], row["positions"], row["mask"])
    assert run.logits.dtype == dtype
    logits = np.concatenate([found[f"alone/logits/doc{i}"] for i in range(4)])
    np.testing.assert_allclose(run.logits, logits, rtol=1e-13, atol=1e-14)
    share = np.full(len(row["ids"]), 1 / found["alone/count"])
    loss, grads = model.objective([run], [row["targets"]], [share])
    np.testing.assert_allclose(loss, found["packed/loss"], rtol=1e-14)
    for name, gradient in grads.items():
        np.testing.assert_allclose(gradient, found[f"packed/grad/{name}"], rtol=1e-12, atol=1e-15, err_msg=name)


def test_isolation_is_exact_in_the_packed_row():
    config, arrays = Config(), drawn()
    row = data.packed(data.documents(config, arrays["tokens"], "right"))
    run = model.forward(config, arrays, row["ids"], row["positions"], row["mask"])
    upstream = np.where(np.arange(16)[:, None] >= 10, arrays["probe"], 0)  # the last document's outputs
    slope = model.backward(upstream, run)["x"]
    assert not slope[:10].any()
    assert slope[10:].all()


def test_windows_add_up_to_what_they_are_means_of():
    found, counts = reference(Config(), drawn()), np.array([7, 5])
    for name in model.PARAMETERS:
        whole = np.tensordot(counts / 12, found[f"windows/grad/{name}"], 1)
        np.testing.assert_allclose(whole, found[f"packed/grad/{name}"], rtol=1e-12, atol=1e-15)


def test_longdouble_stays_longdouble():
    found = reference(Config(), drawn(dtype=np.longdouble))
    assert {v.dtype for v in found.values() if is_float(v)} == {np.dtype(np.longdouble)}


def test_every_item_is_an_array_and_the_inputs_stay_as_they_were():
    arrays = drawn()
    before = {name: value.copy() for name, value in arrays.items()}
    assert all(isinstance(value, np.ndarray) for value in reference(Config(), arrays).values())
    for name, value in before.items():
        np.testing.assert_array_equal(arrays[name], value)


def changed(right, **fields):
    """The backward of a kernel with some of its gradients changed."""

    def backward(dy, saved):
        grads = right(dy, saved)
        return grads._replace(**{name: change(getattr(grads, name)) for name, change in fields.items()})

    return backward


MUTATIONS = {  # one formula changed on the reference side, and an item that has to show it
    "rope": (rope, "_angles", lambda p, n, base, real: np.ones((len(p), n // 2)), "packed/k"),
    "unrotate": (rope, "backward", lambda dy, saved: dy, "alone/grad/w_k"),
    "dq": (attention, "backward", changed(attention.backward, dq=np.negative), "packed/grad/w_q"),
    "dv": (attention, "backward", changed(attention.backward, dv=lambda g: 1.0001 * g), "isolation/inside"),
    "causal": (attention, "causal", lambda q, k: np.ones((q, k), bool), "alone/mask/doc0"),
    "isolated": (attention, "same_document", lambda q, k: np.ones((len(q), len(k)), bool), "packed/mask"),
    "dw": (linear, "backward", changed(linear.backward, dw=lambda g: 2 * g), "windows/grad/head"),
    "dx": (linear, "backward", changed(linear.backward, dx=lambda g: 0 * g), "normaliser/micro_mean/grad/x"),
    "scatter": (embedding, "backward", lambda dy, saved: np.ones((saved.vocabulary, 3)), "accumulate/grad/embedding"),
    "entropy": (cross_entropy, "backward", lambda dloss, saved: saved.unit, "ranks/grad/head"),
    "sgd": (sgd, "step", lambda p, dp, lr: p + lr * dp, "padded/sgd/w_v"),
    "adamw": (adamw, "update", lambda p, g, state, lr, **rest: (p - lr * np.sign(g), state), "alone/adamw/w_o"),
    "targets": (data, "targets", lambda labels: np.append(labels[1:], labels[0]), "packed/supervised"),
    "count": (data, "count", lambda *rows: np.asarray(sum(map(len, rows))), "truncate/right/count"),
    "cut": (data, "cut", lambda values, limit, side: values[:limit], "truncate/left/ids"),
    "turns": (data, "learned_turns", lambda roles, which: np.array([r != "u" for r in roles]), "turns/all/learned"),
    "shards": (data, "sharded", lambda row, shards: np.append(row, [-100, 0]).reshape(shards, -1), "shards/targets"),
}


@pytest.mark.parametrize("case", MUTATIONS)
def test_a_changed_formula_fails_its_item(monkeypatch, checks, failing, case):
    module, function, wrong, item = MUTATIONS[case]
    monkeypatch.setattr(module, function, wrong)
    assert item in {name for name, _ in failing(checks())}
