import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.core.inputs import Draw
from labs.kernels import lora

SIZES = st.integers(1, 4)
SCALE = 5 / 3


def arrays(leading=(2, 3), d=4, k=5, r=2):
    draw = Draw(0)
    shapes = {"x": (*leading, d), "w": (d, k), "a": (d, r), "b": (r, k)}
    return {name: draw.normal(name, shape) for name, shape in shapes.items()}


def forward(inputs):
    return lora.forward(inputs["x"], inputs["w"], inputs["a"], inputs["b"], inputs["a"].dtype.type(SCALE))


def backward(dy, saved):
    grads = lora.backward(dy, saved)
    return grads.dx_base + grads.dx_branch, lora.base_gradient(dy, saved), grads.da, grads.db


def test_one_row_by_hand():
    x, w = np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    a, b = np.array([[1.0], [1.0]]), np.array([[1.0, -1.0]])
    y, saved = lora.forward(x, w, a, b, 2.0)
    np.testing.assert_array_equal(y, [[7.0, -4.0]])  # [1, 2] + 2 · 3 · [1, -1]
    grads = lora.backward(np.array([[10.0, 1.0]]), saved)
    np.testing.assert_array_equal(grads.da, [[18.0], [36.0]])  # 2 xᵀ (10 − 1)
    np.testing.assert_array_equal(grads.db, [[60.0, 6.0]])  # 2 · 3 · dy
    np.testing.assert_array_equal(grads.dx_base, [[10.0, 1.0]])
    np.testing.assert_array_equal(grads.dx_branch, [[18.0, 18.0]])
    np.testing.assert_array_equal(lora.base_gradient(np.array([[10.0, 1.0]]), saved), [[10.0, 1.0], [20.0, 2.0]])


@pytest.mark.parametrize(
    ("alpha", "rank", "scaling", "expected"),
    [(16.0, 8, "classic", 2.0), (8.0, 4, "classic", 2.0), (8.0, 4, "rslora", 4.0), (3.0, 1, "rslora", 3.0)],
)
def test_the_scale_is_alpha_by_rank_or_by_its_root(alpha, rank, scaling, expected):
    assert lora.scale(alpha, rank, scaling) == expected


@pytest.mark.parametrize("scaling", ["classic", "rslora"])
def test_the_scale_is_divided_in_the_precision_of_alpha(scaling):
    scale = lora.scale(np.longdouble(5), 3, scaling)
    assert type(scale) is np.longdouble
    assert scale**2 * (9 if scaling == "classic" else 3) == pytest.approx(
        25, rel=4 * float(np.finfo(np.longdouble).eps)
    )


@given(st.lists(SIZES, max_size=3).map(tuple), SIZES, SIZES, SIZES)
def test_gradients_are_the_complex_step_for_any_shape(every_gradient_is_the_complex_step, leading, d, k, r):
    every_gradient_is_the_complex_step(forward, backward, arrays(leading, d, k, r))


def test_gradients_are_the_central_differences(every_gradient_is_the_central_difference):
    every_gradient_is_the_central_difference(forward, backward, arrays())


def test_the_dtype_is_kept(every_result_keeps_the_dtype):
    every_result_keeps_the_dtype(forward, backward, arrays())


def test_inputs_stay_as_they_were(inputs_stay_and_strides_do_not_matter):
    inputs_stay_and_strides_do_not_matter(forward, backward, arrays())


def test_at_b_zero_the_layer_is_its_base_and_only_b_has_a_gradient():
    inputs = {**arrays(), "b": np.zeros((2, 5))}
    y, saved = forward(inputs)
    grads = lora.backward(np.ones_like(y), saved)
    np.testing.assert_array_equal(y, inputs["x"] @ inputs["w"])
    assert not grads.da.any()
    assert grads.db.all()


def test_the_branch_alone_is_the_layer_without_its_base():
    inputs = {**arrays(), "w": np.zeros((4, 5))}
    alone = lora.branch(inputs["x"], inputs["a"], inputs["b"], SCALE)
    np.testing.assert_array_equal(forward(inputs)[0], alone)


def test_merged_and_unmerged_layers_agree():
    inputs = arrays()
    merged = inputs["w"] + lora.delta(inputs["a"], inputs["b"], SCALE)
    np.testing.assert_allclose(inputs["x"] @ merged, forward(inputs)[0], rtol=1e-12)


def test_kaiming_stays_within_one_by_root_of_the_rows():
    uniform = np.array([[0.0, 0.5], [0.25, 1.0], [0.5, 0.5], [0.75, 0.0]])
    np.testing.assert_array_equal(lora.kaiming(uniform), [[-0.5, 0.0], [-0.25, 0.5], [0.0, 0.0], [0.25, -0.5]])


@pytest.mark.parametrize(
    ("after", "share"), [([1.0, 2.0], 0.0), ([1.5, 3.0], 1.0), ([1.25, 2.5], 0.5), ([0.5, 1.0], -1.0)]
)
def test_survival_is_the_share_of_the_change_that_is_left(after, share):
    assert lora.survival(np.array([1.0, 2.0]), np.array(after), np.array([0.5, 1.0])) == share
