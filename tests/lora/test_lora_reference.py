import dataclasses

import numpy as np
import pytest

from labs.core.inputs import Draw
from labs.core.lab import is_float
from labs.kernels import cross_entropy, linear, lora, quantize, sgd, squared_error
from labs.lora.config import Config
from labs.lora.inputs import inputs
from labs.lora.reference import reference

TINY = Config(batch=1, positions=1, d_in=2, d_out=2, rank=1, alpha=2.0, loss="squared_error", steps=2, group=2)
HAND = {
    "x": np.array([[[1.0, 2.0]]]),
    "base": np.array([[1.0, 0.0], [0.0, 1.0]]),
    "head": np.zeros((2, 5)),
    "labels": np.array([[0]]),
    "weights": np.array([[3.0]]),
    "target": np.array([[[6.0, -5.0]]]),
    "lora_a": np.array([[1.0], [1.0]]),
    "lora_b": np.array([[1.0, -1.0]]),
    "init_uniform": np.array([[0.5], [1.0]]),
    "init_normal": np.array([[2.0], [4.0]]),
    "init_normal_b": np.array([[1.0, 1.0]]),
    "ties": np.array([[7.0, 7.0], [2.5, -1.5]]),
}
BY_HAND = {  # s = 2, h = 1 + 2 = 3, y = [1, 2] + 2 · 3 · [1, −1], G = y − t
    "trained/output": [[[7.0, -4.0]]],
    "trained/loss": 1.0,
    "trained/grad/output": [[[1.0, 1.0]]],
    "trained/grad/lora_a": [[0.0], [0.0]],  # B Gᵀ = 0
    "trained/grad/lora_b": [[6.0, 6.0]],
    "trained/grad/x": [[[1.0, 1.0]]],
    "unfrozen/grad/base": [[1.0, 1.0], [2.0, 2.0]],
    "detached/grad/x": [[[1.0, 1.0]]],
    "init/output": [[[1.0, 2.0]]],
    "init/loss": 37.0,  # (5² + 7²)/2
    "init/grad/x": [[[-5.0, 7.0]]],
    "init/draw/kaiming": [[0.0], [0.5**0.5]],
    "init/draw/gaussian": [[1.0], [2.0]],
    "init/grad/lora_b": [[-5 * 8**0.5, 7 * 8**0.5]],  # h = 2 · √½, s h = √8
    "merge/weight": [[3.0, -2.0], [2.0, -1.0]],
    "merge/output/merged": [[[7.0, -4.0]]],
    "merge/bf16/restored": [[True, True], [True, True]],
    "requantize/codes": [[7, 0], [0, 7]],
    "requantize/ties": [[7, 7], [2, -2]],
    "init/draw/bound": [[0.5**0.5], [0.5**0.5]],
    # W and sAB = ±2, and 2(1 + 2)u · 2 for the two products
    "merge/bound/residual": [[18 * 2.0**-53 + 3 * 2.0**-106, 16 * 2.0**-53], [16 * 2.0**-53, 18 * 2.0**-53]],
    "merge/bound/bf16_residual": [[0.02348399, 0.01565600], [0.01565600, 0.02348399]],  # (2u + u²)(|W| + 2), u = 2⁻⁸
    "merge/bound/difference": [[[14 * 7 * 2.0**-53, 14 * 8 * 2.0**-53]]],  # 2(2 + 1 + 4)u (|X||W| + 2 · 3)
    "requantize/bound/quantize": [[1 / 14 + 2.0**-52] * 2] * 2,
    "order/output/product": [[[3.0, -3.0]]],
    "order/operations/factored/forward": 8,
    "order/operations/product/forward": 16,
    "order/operations/factored/backward": 16,
    "order/saved_bytes/factored": 56,  # x, A, B and one number
    "order/saved_bytes/product": 80,  # x, A, B and four numbers
}


@pytest.fixture(scope="module")
def by_hand():
    return reference(TINY, HAND)


@pytest.mark.parametrize("name", BY_HAND)
def test_values_by_hand(by_hand, name):
    assert np.shape(by_hand[name]) == np.shape(BY_HAND[name])
    closeness = 1e-6 if name == "merge/bound/bf16_residual" else 2e-15
    np.testing.assert_allclose(by_hand[name], BY_HAND[name], rtol=closeness)


def test_the_first_step_moves_b_and_the_second_both(by_hand):
    a, b = by_hand["sgd/lora_a"], by_hand["sgd/lora_b"]
    np.testing.assert_array_equal(a[0], by_hand["init/draw/kaiming"])
    np.testing.assert_allclose(b[0], [[5 * 8**0.5 * TINY.lr_b, -7 * 8**0.5 * TINY.lr_b]])
    assert np.all(a[1] != a[0])


def drawn(config):
    return inputs(config, Draw(0))


@pytest.mark.parametrize("dtype", [np.longdouble, np.complex128])
@pytest.mark.parametrize("loss", ["cross_entropy", "squared_error"])
def test_other_precisions_give_the_same_numbers(dtype, loss):
    config = dataclasses.replace(Config(), loss=loss, scaling="rslora")
    arrays = drawn(config)
    narrow = reference(config, arrays)
    wide = reference(config, {k: v.astype(dtype) if is_float(v) else v for k, v in arrays.items()})
    assert wide.keys() == narrow.keys()
    for name, value in narrow.items():
        np.testing.assert_allclose(wide[name].real.astype(value.dtype), value, rtol=1e-12, atol=1e-14, err_msg=name)


def test_longdouble_stays_longdouble():
    arrays = {k: v.astype(np.longdouble) if is_float(v) else v for k, v in drawn(Config()).items()}
    kept = {name: value.dtype for name, value in reference(Config(), arrays).items() if is_float(value)}
    assert set(kept.values()) == {np.dtype(np.longdouble)}, kept


def test_every_item_is_an_array_and_the_inputs_stay_as_they_were():
    arrays = drawn(Config())
    before = {name: value.copy() for name, value in arrays.items()}
    assert all(isinstance(value, np.ndarray) for value in reference(Config(), arrays).values())
    for name, value in before.items():
        np.testing.assert_array_equal(arrays[name], value)


def wrong_scale(alpha, rank, scaling):
    return alpha / rank * 2.001 / 2


def backward_with(**changes):
    right = lora.backward

    def backward(dy, saved):
        grads = right(dy, saved)
        return grads._replace(**{name: change(getattr(grads, name)) for name, change in changes.items()})

    return backward


MUTATIONS = {  # one formula changed on the reference side, and an item that has to show it
    "scale": (lora, "scale", wrong_scale, "trained/output"),
    "da": (lora, "backward", backward_with(da=lambda g: g * 1.0001), "trained/grad/lora_a"),
    "db": (lora, "backward", backward_with(db=np.negative), "init/grad/lora_b"),
    "dx_base": (lora, "backward", backward_with(dx_base=lambda g: g * 0.5), "detached/grad/x"),
    "dx_branch": (lora, "backward", backward_with(dx_branch=np.zeros_like), "trained/grad/x"),
    "dw": (lora, "base_gradient", lambda dy, saved: dy[0].T @ saved.x[0] @ np.eye(8, 12), "unfrozen/grad/base"),
    "delta": (lora, "delta", lambda a, b, s: a @ b, "merge/weight"),
    "kaiming": (lora, "kaiming", lambda uniform: 2 * uniform - 1, "init/draw/kaiming"),
    "survival": (lora, "survival", lambda before, after, change: np.ones(()), "requantize/survival"),
    "head": (linear, "backward", lambda dy, saved: linear.Grads(dy @ saved.w.T * 2, dy, dy), "trained/grad/output"),
    "entropy": (cross_entropy, "backward", lambda dloss, saved: saved.unit**2, "init/grad/output"),
    "step": (sgd, "step", lambda p, dp, lr: p + lr * dp, "sgd/lora_b"),
    "codes": (quantize, "quantize", lambda w, bits, group: (np.ones(w.shape, np.int8), w[::group]), "requantize/codes"),
}


@pytest.mark.parametrize("case", MUTATIONS)
def test_a_changed_formula_fails_its_item(monkeypatch, checks, failing, case):
    module, function, wrong, item = MUTATIONS[case]
    monkeypatch.setattr(module, function, wrong)
    assert item in {name for name, _ in failing(checks())}


def test_a_changed_squared_error_fails_its_item(monkeypatch, checks, failing):
    monkeypatch.setattr(squared_error, "backward", lambda dloss, saved: dloss * saved.unit * 2)
    assert ("trained/grad/output", "close") in failing(checks({"loss": "squared_error"}))


BOUNDED = {
    "merge/bf16/residual": "merge/bound/bf16_residual",
    "requantize/error/quantize": "requantize/bound/quantize",
    "requantize/error/merge": "requantize/bound/merge",
    "requantize/error/requantize": "requantize/bound/requantize",
}


@pytest.mark.parametrize("item", BOUNDED)
def test_the_bounds_are_no_wider_than_they_need_to_be(observe, item):
    config = dataclasses.replace(Config(), d_in=64, d_out=48)
    arrays = drawn(config)
    bound = reference(config, arrays)[BOUNDED[item]]
    error = np.abs(observe(config, arrays)[item])
    assert np.all(error <= bound)
    assert np.any(error > bound / 3)
