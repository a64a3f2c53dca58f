import dataclasses

import numpy as np
import pytest

from labs.block import reference_layer
from labs.block.config import Config
from labs.block.inputs import inputs
from labs.block.reference import reference
from labs.core.inputs import Draw
from labs.core.lab import is_float
from labs.kernels import adamw, attention, cross_entropy, linear, rms_norm, rope, sgd, swiglu

TINY = Config(
    batch=1,
    positions=2,
    hidden=2,
    heads=1,
    ffn=1,
    vocabulary=2,
    rope=False,
    epsilon=3.0,  # with rows of mean square 1, r = 1/2
    supervised="last",
    loss_scale=2.0,
    steps=0,
)
HAND = {
    "x": np.array([[[1.0, 1.0], [1.0, -1.0]]]),
    "labels": np.array([[-100, 1]]),
    "weights": np.array([[9.0, 5.0]]),
    "gamma_1": np.array([2.0, 2.0]),  # so that the normed rows are x itself
    "gamma_2": np.array([0.0, 0.0]),  # so that the second branch is silent
    "w_q": np.zeros((2, 2)),  # so that attention is uniform
    "w_k": np.eye(2),
    "w_v": np.eye(2),
    "w_o": np.eye(2),
    "w_gate": np.ones((2, 1)),
    "w_up": np.ones((2, 1)),
    "w_down": np.ones((1, 2)),
    "w_head": np.array([[1.0, -1.0], [2.0, -2.0]]),  # orthogonal to the last row of the output
    "grouped/q": np.zeros((1, 4, 2, 2)),  # uniform again, so that a head's values alone tell which one was read
    "grouped/k": np.ones((1, 2, 2, 2)),
    "grouped/v": np.array([[[[1.0, 1.0], [3.0, 3.0]], [[5.0, 5.0], [9.0, 9.0]]]]),
    "grouped/upstream": np.array([[[[1.0, 0.0], [0.0, 0.0]]] * 2 + [[[0.0, 0.0], [0.0, 2.0]]] * 2]),
}
ROOT_8 = 8**0.5
BY_HAND = {
    "forward/normed_1": [[[1.0, 1.0], [1.0, -1.0]]],
    "forward/probs": [[[[1.0, 0.0], [0.5, 0.5]]]],
    "forward/heads": [[[[1.0, 1.0], [1.0, 0.0]]]],
    "forward/residual_1": [[[2.0, 2.0], [2.0, -1.0]]],
    "forward/residual_2": [[[2.0, 2.0], [2.0, -1.0]]],
    "forward/logits": [[[6.0, -6.0], [0.0, 0.0]]],
    "forward/mean_loss": np.log(2),
    "forward/loss": 2 * np.log(2),
    "grad/mean_loss": 2.0,
    "grad/logits": [[[0.0, 0.0], [1.0, -1.0]]],  # 2 (1/2 - onehot)
    "grad/w_head": [[2.0, -2.0], [-1.0, 1.0]],
    "grad/residual_2": [[[0.0, 0.0], [2.0, 4.0]]],
    "grad/gamma_2": [0.0, 0.0],
    "grad/w_o": [[2.0, 4.0], [0.0, 0.0]],
    "grad/probs": [[[[0.0, 0.0], [6.0, -2.0]]]],
    "grad/scores": [[[[0.0, 0.0], [2.0, -2.0]]]],  # 1/2 (6 - 2), 1/2 (-2 - 2)
    "grad/v": [[[[1.0, 2.0], [1.0, 2.0]]]],
    "grad/q": [[[[0.0, 0.0], [0.0, ROOT_8]]]],  # (2 k_0 - 2 k_1)/sqrt(2)
    "grad/w_q": [[0.0, ROOT_8], [0.0, -ROOT_8]],
    "grad/normed_1": [[[1.0, 2.0], [1.0, 2.0]]],
    "grad/gamma_1": [1.0, 0.0],
    "grad/x": [[[0.625, 1.625], [3.125, 5.875]]],
    "first/grad/logits": [[0.0, 0.0]],
    "first/reached/x": True,
    "padded/probs": [[[[0.0, 0.0], [0.0, 1.0]]]],
    "padded/heads": [[[[0.0, 0.0], [1.0, -1.0]]]],
    "padded/grad/v": [[[[0.0, 0.0], [2.0, 4.0]]]],
    "grouped/heads": [[[[1.0, 1.0], [2.0, 2.0]]] * 2 + [[[5.0, 5.0], [7.0, 7.0]]] * 2],
    "grouped/grad/v": [[[[2.0, 0.0], [0.0, 0.0]], [[0.0, 2.0], [0.0, 2.0]]]],
    "fused/grouped/heads": [[[[1.0, 1.0], [2.0, 2.0]]] * 2 + [[[5.0, 5.0], [7.0, 7.0]]] * 2],
}


@pytest.fixture(scope="module")
def by_hand():
    return reference(TINY, HAND)


@pytest.mark.parametrize("name", BY_HAND)
def test_values_by_hand(by_hand, name):
    assert np.shape(by_hand[name]) == np.shape(BY_HAND[name])
    np.testing.assert_allclose(by_hand[name], BY_HAND[name], rtol=2e-15, atol=1e-15)


def drawn(config):
    return inputs(config, Draw(0))


@pytest.mark.parametrize("dtype", [np.longdouble, np.complex128])
def test_other_precisions_give_the_same_numbers(dtype):
    arrays = drawn(Config())
    narrow = reference(Config(), arrays)
    wide = reference(Config(), {k: v.astype(dtype) if is_float(v) else v for k, v in arrays.items()})
    assert wide.keys() == narrow.keys()
    for name, value in narrow.items():
        np.testing.assert_allclose(wide[name].real.astype(value.dtype), value, rtol=1e-11, atol=1e-13, err_msg=name)


def test_longdouble_stays_longdouble():
    arrays = {k: v.astype(np.longdouble) if is_float(v) else v for k, v in drawn(Config()).items()}
    kept = {name: value.dtype for name, value in reference(Config(), arrays).items() if is_float(value)}
    assert set(kept.values()) == {np.dtype(np.longdouble)}, kept


def test_resumed_steps_are_the_last_ones_of_the_whole_trajectory():
    found = reference(Config(), drawn(Config()))
    after = Config().checkpoint_after
    assert found["train/loss"].shape == (Config().steps,)
    for name in ("loss", "step", "exp_avg", "exp_avg_sq", "param/w_q"):
        np.testing.assert_array_equal(found[f"resume/{name}"], found[f"train/{name}"][after:])


def test_one_layer_alone_is_not_changed_by_what_stands_beside_it():
    arrays = drawn(Config())
    trained, alone = reference(Config(), arrays), reference(dataclasses.replace(Config(), steps=0), arrays)
    assert trained.keys() > alone.keys()
    assert all(np.array_equal(trained[name], value) for name, value in alone.items())


def backward_with(module, **changes):
    right = module.backward

    def backward(dy, saved):
        grads = right(dy, saved)
        return grads._replace(**{name: change(getattr(grads, name)) for name, change in changes.items()})

    return backward


def without_scale(q, k, v, visible=None):
    return RIGHT_ATTENTION(q * q.shape[-1] ** 0.5, k, v, visible)


RIGHT_ATTENTION = attention.forward
MUTATIONS = {  # one formula changed on the reference side, and an item that has to show it
    "dgamma": (rms_norm, "backward", backward_with(rms_norm, dgamma=lambda g: g * 1.0001), "grad/gamma_1"),
    "dx of a norm": (rms_norm, "backward", backward_with(rms_norm, dx=np.negative), "grad/residual_1"),
    "dw": (linear, "backward", backward_with(linear, dw=lambda g: g * 2), "grad/w_head"),
    "dx of a product": (linear, "backward", backward_with(linear, dx=lambda g: g * 2), "grad/residual_2"),
    "dq": (attention, "backward", backward_with(attention, dq=np.zeros_like), "grad/q_turned"),
    "dk": (attention, "backward", backward_with(attention, dk=lambda g: g * 2), "padded/grad/k"),
    "dv": (attention, "backward", backward_with(attention, dv=np.negative), "fused/grad/v"),
    "scale": (attention, "forward", without_scale, "forward/scores"),
    "da": (swiglu, "backward", backward_with(swiglu, da=lambda g: g / 2), "grad/gate"),
    "db": (swiglu, "backward", backward_with(swiglu, db=lambda g: g / 2), "grad/w_up"),
    "rotation": (rope, "backward", lambda dy, saved: dy, "grad/q"),
    "entropy": (cross_entropy, "backward", lambda dloss, saved: saved.unit, "grad/logits"),
    "residual": (reference_layer, "_transform_back", None, "grad/x"),
    "sgd": (sgd, "step", lambda p, dp, lr: p + lr * dp, "sgd/param/w_o"),
    "decay": (adamw, "update", None, "resume/param/w_o"),
}


@pytest.mark.parametrize("case", MUTATIONS)
def test_a_changed_formula_fails_its_item(monkeypatch, checks, failing, case):
    module, function, wrong, item = MUTATIONS[case]
    monkeypatch.setattr(module, function, wrong or WRONG[case])
    assert item in {name for name, _ in failing(checks())}


def past_the_branch_only(dresidual_2, saved):
    return {**RIGHT_TRANSFORM_BACK(dresidual_2, saved), "residual_1": dresidual_2}


def without_decay(p, g, state, **options):
    return RIGHT_UPDATE(p, g, state, **{**options, "weight_decay": 0.0})


RIGHT_TRANSFORM_BACK = reference_layer._transform_back
RIGHT_UPDATE = adamw.update
WRONG = {"residual": past_the_branch_only, "decay": without_decay}


@pytest.mark.parametrize("changes", [{}, {"rope": False}, {"kv_heads": 2, "heads": 4, "hidden": 16}])
def test_the_loss_of_the_witness_is_the_loss(changes):
    config = Config(**changes)
    arrays = drawn(config)
    assert reference_layer.loss(config, arrays, arrays) == reference_layer.forward(config, arrays)[0]["loss"]
