import numpy as np
import pytest

from labs.core import witness as module
from labs.core.lab import Witness
from labs.core.stepped import Stepped
from labs.core.witness import EVERY_ELEMENT, witness_checks

X = np.array([[0.3, -1.2, 0.7], [2.0, 0.1, -0.4]])
W = np.array([1.5, -0.25, 0.75])


def cubic(config, arrays, held):
    """loss = sum_ij w_j x_ij^3, so dx_ij = 3 w_j x_ij^2 and dw_j = sum_i x_ij^3."""
    return np.sum(arrays["w"] * arrays["x"] ** 3)


def check(gradient, loss=cubic, by="x", x=X, w=W):
    witness = Witness(f"grad/{by}", loss, by)
    (found,) = witness_checks([witness], None, {"x": x, "w": w}, {f"grad/{by}": gradient}, seed=3)
    return found


def test_a_right_gradient_passes_far_from_the_limit():
    found = check(3 * W * X**2)
    assert found.status == "passed"
    assert found.headroom > 2
    assert found.count == X.size


def test_every_single_wrong_element_fails():
    for index in np.ndindex(X.shape):
        wrong = 3 * W * X**2
        wrong[index] += 1e-10
        found = check(wrong)
        assert found.status == "failed"
        assert found.worst["index"] == list(index)
        assert found.out_of_tolerance == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_never_passes(value):
    wrong = 3 * W * X**2
    wrong[0, 1] = value
    assert check(wrong).status == "failed"


def test_an_empty_gradient_proves_nothing():
    found = check(np.zeros((0, 3)), x=np.zeros((0, 3)))
    assert found.status == "failed"
    assert "empty" in found.message


def test_a_loss_that_ignores_its_input_disproves_a_gradient():
    assert check(3 * W * X**2, loss=lambda config, arrays, held: np.sum(held["x"])).status == "failed"


def test_a_path_held_constant_takes_no_part():
    def half_held(config, arrays, held):
        return np.sum(arrays["x"] * held["x"])

    assert check(X, loss=half_held).status == "passed"
    assert check(2 * X, loss=half_held).status == "failed"


def test_large_inputs_are_probed_along_directions_and_still_catch_a_wrong_slice():
    x = np.linspace(0.5, 1.5, 3 * 3000).reshape(3000, 3)
    assert x.size * (x.size + 3) > EVERY_ELEMENT
    right = 3 * W * x**2
    assert check(right, x=x).status == "passed"
    assert "a random direction" in check(right, x=x).tolerance["reason"]
    right[:, 2] *= 1.001
    assert check(right, x=x).status == "failed"


@pytest.fixture
def together(monkeypatch):
    """Both gradients of the cubic loss, probed as those of very large inputs are."""
    monkeypatch.setattr(module, "TOGETHER", 3)
    witnesses = [Witness("grad/x", cubic, "x"), Witness("grad/w", cubic, "w"), Witness("again/x", cubic, "x")]

    def found(**changes):
        right = {"grad/x": 3 * W * X**2, "grad/w": np.sum(X**3, axis=0), "again/x": 3 * W * X**2}
        return witness_checks(witnesses, None, {"x": X, "w": W}, {**right, **changes}, seed=3)

    return found


def test_one_direction_goes_through_all_inputs_of_a_very_large_loss(together):
    assert [(c.name, c.status, c.count) for c in together()] == [
        ("grad/x", "passed", 1),
        ("grad/w", "passed", 1),
        ("again/x", "passed", 1),
    ]
    assert "all 2 inputs of the loss" in together()[0].tolerance["reason"]


@pytest.mark.parametrize("wrong", ["grad/x", "grad/w", "again/x"])
@pytest.mark.parametrize("at", range(3))
def test_one_wrong_element_is_found_in_the_gradient_that_has_it(together, wrong, at):
    gradient = {"grad/x": 3 * W * X**2, "grad/w": np.sum(X**3, axis=0), "again/x": 3 * W * X**2}[wrong].copy()
    gradient.flat[at] *= 1 + 1e-9
    assert [c.name for c in together(**{wrong: gradient}) if c.status == "failed"] == [wrong]


def product(config, arrays, held):
    """loss = sum_ij (x m)_ij^2, so dm = 2 xᵀ x m and dx = 2 x m mᵀ."""
    return np.sum((arrays["x"] @ arrays["m"]) ** 2)


@pytest.mark.parametrize("wrong", ["", "grad/x", "grad/m"])
def test_a_very_large_matrix_is_only_multiplied(monkeypatch, wrong):
    monkeypatch.setattr(module, "TOGETHER", 3)
    x, m = np.stack([X, X + 1]), np.linspace(-1, 1, 12).reshape(3, 4)
    y = x @ m
    gradients = {"grad/x": 2 * y @ m.T, "grad/m": 2 * x.reshape(-1, 3).T @ y.reshape(-1, 4)}
    if wrong:
        gradients[wrong].flat[5] *= 1 + 1e-9
    else:
        monkeypatch.setattr(Stepped, "__array__", None)
    witnesses = [Witness(f"grad/{by}", product, by) for by in ("x", "m")]
    found = witness_checks(witnesses, None, {"x": x, "m": m}, gradients, seed=3)
    assert [c.name for c in found if c.status == "failed"] == [wrong] * bool(wrong)


def test_the_stated_limit_is_the_one_that_was_applied(together):
    x = np.linspace(0.5, 1.5, 3 * 3000).reshape(3000, 3)
    off = {"grad/x": 3 * W * X**2 + 1e-14}
    for found in (check(3 * W * X**2 + 1e-14), check(3 * W * x**2 + 1e-14, x=x), together(**off)[0]):
        assert found.max_abs > 0
        assert found.headroom == pytest.approx(np.log10(found.tolerance["atol"] / found.max_abs))


def difference(found):
    return float(found.tolerance["reason"].split("within ")[1].split(" ")[0])


def test_central_differences_stand_beside_it():
    assert 0 < difference(check(3 * W * X**2)) < 1e-6


def test_central_differences_show_a_complex_path_that_is_not_the_real_one():
    def two_faced(config, arrays, held):
        factor = 1 if np.iscomplexobj(arrays["x"]) else 2
        return factor * np.sum(arrays["w"] * arrays["x"] ** 3)

    found = check(3 * W * X**2, loss=two_faced)
    assert found.status == "passed"
    assert difference(found) > 1e-2


@pytest.mark.parametrize("limit", [0, module.TOGETHER], ids=["together", "alone"])
def test_a_single_number_has_a_witness_too(limit, monkeypatch):
    monkeypatch.setattr(module, "TOGETHER", limit)
    scaled = Witness("grad/s", lambda config, arrays, held: arrays["s"] ** 2 * np.sum(held["x"]), "s")
    inputs = {"s": np.array(1.5), "x": X}
    (right,) = witness_checks([scaled], None, inputs, {"grad/s": np.asarray(3.0 * np.sum(X))}, seed=3)
    (wrong,) = witness_checks([scaled], None, inputs, {"grad/s": np.asarray(3.1 * np.sum(X))}, seed=3)
    assert (right.status, wrong.status) == ("passed", "failed")
