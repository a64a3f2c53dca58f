import numpy as np
import pytest

from labs.core import arbiter
from labs.core.lab import Lab

EXACT = np.array([1.0, 2.0, 3.0], np.longdouble)
ULP = np.spacing(3.0)


def test_distances_are_ulps_of_the_largest_magnitude():
    here = EXACT.astype(float)
    there = here + np.array([0, 5 * ULP, 0])
    assert arbiter.distances(["y"], {"y": EXACT}, {"y": here}, {"y": there}) == {
        "y": {"reference_ulp": 0.0, "observed_ulp": 5.0}
    }


@pytest.mark.parametrize(
    "observed",
    [{}, {"y": np.zeros(2)}],
    ids=["missing", "another shape"],
)
def test_what_can_not_be_compared_has_no_distance(observed):
    assert arbiter.distances(["y"], {"y": EXACT}, {"y": EXACT.astype(float)}, observed) == {}


def test_integers_have_no_distance():
    codes = np.arange(3)
    assert arbiter.distances(["q"], {"q": codes}, {"q": codes}, {"q": codes + 1}) == {}


def test_zeros_have_a_finite_distance():
    zero = np.zeros(2)
    found = arbiter.distances(["y"], {"y": zero.astype(np.longdouble)}, {"y": zero}, {"y": zero + 1e-9})
    assert np.isfinite(found["y"]["observed_ulp"])


def test_the_extended_run_gets_longdouble_floats_and_the_same_integers():
    seen = {}

    def reference(config, inputs):
        seen.update(inputs)
        return {}

    lab = Lab("l", "", "", {}, object, None, reference, None, (), (), (), None)
    arbiter.extended(lab, None, {"x": np.ones(2), "ids": np.arange(2)})
    assert seen["x"].dtype == np.longdouble
    assert seen["ids"].dtype == np.int64


def test_large_inputs_are_not_affordable():
    assert arbiter.affordable({"x": np.ones(3)}) == (np.finfo(np.longdouble).eps < np.finfo(float).eps)
    assert not arbiter.affordable({"x": np.broadcast_to(np.ones(()), (arbiter.COST + 1,))})
