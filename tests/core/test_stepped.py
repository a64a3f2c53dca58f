import numpy as np
import pytest

from labs.core.inputs import Draw
from labs.core.stepped import PANEL, Dense, RankOne, Stepped, direction

DRAW = Draw(3)
W = DRAW.uniform("w", (5, 4), -1, 1)
U, V = DRAW.uniform("u", (5,), -1, 1), DRAW.uniform("v", (4,), -1, 1)
STEPPED = Stepped(W, U, V)
WHOLE = W + 1j * np.multiply.outer(U, V)
X = DRAW.uniform("x", (2, 3, 5), -1, 1)
Z = X + 1j * DRAW.uniform("z", (2, 3, 5), -1, 1)


@pytest.mark.parametrize("rows", [X, Z, X[0], Z[0], Z[:, ::2], np.asfortranarray(Z[0]), X[:0]], ids=range(7))
def test_rows_times_it_are_the_complex_product(rows):
    found = rows @ STEPPED
    assert found.dtype == np.complex128
    np.testing.assert_allclose(found, rows @ WHOLE, rtol=1e-14, atol=1e-15)


def test_columns_are_made_piece_by_piece(monkeypatch):
    monkeypatch.setattr("labs.core.stepped.COLUMNS", 3)
    np.testing.assert_allclose(Z @ STEPPED, Z @ WHOLE, rtol=1e-14)


def test_rows_times_it_make_no_complex_matrix(monkeypatch):
    monkeypatch.setattr(Stepped, "__array__", None)
    assert (Z @ STEPPED).shape == (2, 3, 4)


@pytest.mark.parametrize(
    "use",
    [
        lambda w: w + 1.0,
        lambda w: X[0, 0] @ w,
        lambda w: w @ np.ones(4),
        lambda w: w.T @ w,
        lambda w: w @ w.T,
        lambda w: np.sum(w**2, axis=0),
        lambda w: np.where(w.real > 0, w, 0),
        lambda w: np.concatenate([w, w]),
        np.add.reduce,
        lambda w: np.einsum("ij,j", w, np.ones(4)),
        lambda w: -w[1:, 0],
        lambda w: w.reshape(-1),
        np.asarray,
        lambda w: np.matmul(X, w, dtype=np.complex128),
    ],
)
def test_to_everything_else_it_is_the_complex_array(use):
    np.testing.assert_allclose(use(STEPPED), use(WHOLE), rtol=1e-14)


def test_it_has_the_form_of_the_complex_array():
    for name in ("shape", "ndim", "size", "dtype"):
        assert getattr(STEPPED, name) == getattr(WHOLE, name)
    assert len(STEPPED) == len(WHOLE)
    assert not hasattr(STEPPED, "no_such_attribute")


def test_a_matrix_goes_along_a_direction_of_rank_one_in_which_every_element_counts():
    found = direction(DRAW, "w", (300, 200))
    weights = np.abs(np.multiply.outer(found.u, found.v))
    assert isinstance(found, RankOne)
    assert 0.25 <= weights.min() < weights.max() <= 1.0
    assert min(np.count_nonzero(end > 0) for end in (found.u, -found.u, found.v, -found.v)) > 50


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_what_is_no_matrix_goes_along_numbers_of_its_own(shape):
    assert isinstance(direction(DRAW, "x", shape), Dense)


@pytest.mark.parametrize("shape", [(5, 4), (1, PANEL + 1), (70, PANEL // 30), (0, 3)])
def test_both_kinds_of_direction_agree_on_the_sums(shape):
    along = direction(DRAW, "w", shape)
    gradient = DRAW.uniform("g", shape, -1, 1)
    dense = Dense(np.multiply.outer(along.u, along.v))
    assert along.sums(gradient) == pytest.approx(dense.sums(gradient), rel=1e-11)


def test_both_kinds_of_direction_step_to_the_same_place():
    found, expected = (along.step(W, 1e-20) for along in (RankOne(U, V), Dense(np.multiply.outer(U, V))))
    np.testing.assert_array_equal(found.real, expected.real)
    np.testing.assert_allclose(found.imag, expected.imag, rtol=1e-15)


@pytest.mark.parametrize("at", [(0, 0), (4, 3), (2, 1)])
def test_one_wrong_element_changes_the_sum_by_a_quarter_of_its_error_at_least(at):
    along = direction(DRAW, "w", W.shape)
    wrong = W.copy()
    wrong[at] += 1e-6
    assert abs(along.sums(wrong)[0] - along.sums(W)[0]) > 0.24e-6


def test_what_is_not_finite_shows():
    wrong = W.copy()
    wrong[2, 1] = np.nan
    assert np.isnan(direction(DRAW, "w", W.shape).sums(wrong)[0])
