"""What every kernel has to satisfy, as fixtures that return a check.

A check sees a kernel as `forward({name: array}) -> (y, saved)` and `backward(dy, saved) -> gradients`, a tuple that
starts with the gradients in the order of the names. The loss is sum(y * u) with an upstream u that is never uniform.
"""

import numpy as np
import pytest

STEP = 1e-20


def upstream(y):
    """Different for every element, both signs, real, and of y's own precision."""
    index = np.arange(np.size(y)).reshape(np.shape(y))
    return (np.sin(1.0 + 1.7 * index) + 0.3).astype(np.asarray(y).real.dtype)


def loss(forward, arrays):
    y, _ = forward(arrays)
    return np.sum(y * upstream(y))


def gradients(forward, backward, arrays):
    y, saved = forward(arrays)
    return dict(zip(arrays, backward(upstream(y), saved), strict=False))


def complex_step(forward, arrays, name):
    """Im f(x + ih) / h, element by element: exact to the last bits, because nothing is subtracted."""
    out = np.empty(arrays[name].shape)
    wide = {key: value.astype(np.complex128) for key, value in arrays.items()}
    for index in np.ndindex(out.shape):
        wide[name][index] += 1j * STEP
        out[index] = loss(forward, wide).imag / STEP
        wide[name][index] = arrays[name][index]
    return out


def central_difference(forward, arrays, name, h=1e-5):
    out = np.empty(arrays[name].shape)
    for index in np.ndindex(out.shape):
        ends = []
        for side in (h, -h):
            moved = {**arrays, name: arrays[name].copy()}
            moved[name][index] += side
            ends.append(loss(forward, moved))
        out[index] = (ends[0] - ends[1]) / (2 * h)
    return out


def leaves(value):
    """Every array in a result, however the tuples nest."""
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in leaves(item)]
    return [np.asarray(value)] if isinstance(value, np.ndarray | np.generic) else []


@pytest.fixture(scope="session")
def every_gradient_is_the_complex_step():
    def check(forward, backward, arrays):
        found = gradients(forward, backward, arrays)
        for name, gradient in found.items():
            expected = complex_step(forward, arrays, name)
            assert np.shape(gradient) == expected.shape, name
            limit = 1e-12 * max(1.0, np.max(np.abs(expected), initial=0.0))
            assert np.all(np.abs(gradient - expected) <= limit), f"{name}: {gradient} against {expected}"

    return check


@pytest.fixture(scope="session")
def every_gradient_is_the_central_difference():
    def check(forward, backward, arrays):
        for name, gradient in gradients(forward, backward, arrays).items():
            expected = central_difference(forward, arrays, name)
            assert np.all(np.abs(gradient - expected) <= 1e-6 * np.max(np.abs(gradient)) + 1e-9), name

    return check


@pytest.fixture(scope="session")
def every_result_keeps_the_dtype():
    """Floating results have the precision of the inputs, and a wider input gives the same numbers only more exactly."""

    def check(forward, backward, arrays):
        values = {}
        for dtype in (np.float32, np.float64, np.longdouble):
            y, saved = forward({name: array.astype(dtype) for name, array in arrays.items()})
            results = leaves((y, saved, backward(upstream(y), saved)))
            floats = [leaf for leaf in results if np.issubdtype(leaf.dtype, np.inexact)]
            assert {leaf.dtype for leaf in floats} == {np.dtype(dtype)}
            values[dtype] = floats
        for wide, narrow in zip(values[np.longdouble], values[np.float64], strict=True):
            np.testing.assert_allclose(narrow, wide.astype(np.float64), rtol=1e-11, atol=1e-13)
        if np.finfo(np.longdouble).eps < np.finfo(np.float64).eps:
            pairs = zip(values[np.longdouble], values[np.float64], strict=True)
            assert any(np.any(wide != narrow) for wide, narrow in pairs), "longdouble computed in float64"

    return check


@pytest.fixture(scope="session")
def inputs_stay_and_strides_do_not_matter():
    """Reversed, strided, read-only arrays give the results of compact ones, and nothing is written into either."""

    def check(forward, backward, arrays):
        strided = {name: _strided(array) for name, array in arrays.items()}
        y, saved = forward(arrays)
        z, held = forward(strided)
        dy = upstream(y)
        odd = _strided(dy)
        before = dy.copy(), [leaf.copy() for leaf in leaves(saved)]
        ours, theirs = leaves((y, backward(dy, saved))), leaves((z, backward(odd, held)))
        for left, right in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-13, atol=1e-14)
        for left, right in zip(leaves(before), leaves((dy, saved)), strict=True):
            np.testing.assert_array_equal(left, right)

    return check


def _strided(array):
    """Equal to `array`, read-only, with negative and doubled strides on every axis."""
    array = np.asarray(array)
    store = np.full([2 * n for n in array.shape], np.nan)
    view = store[(*[slice(None, None, -2)] * array.ndim, ...)]
    view[...] = array
    view.flags.writeable = False
    return view
