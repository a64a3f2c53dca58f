import numpy as np
import pytest

from labs.kernels import sgd


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble, np.complex128])
def test_a_step_goes_against_the_gradient_and_leaves_its_argument(dtype):
    p, dp = np.array([1.0, -2.0], dtype), np.array([4.0, 8.0], dtype)
    after = sgd.step(p, dp, 0.25)
    np.testing.assert_array_equal(after, [0.0, -4.0])
    np.testing.assert_array_equal(p, [1.0, -2.0])
    assert after.dtype == dtype
