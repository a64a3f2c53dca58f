import numpy as np
import pytest

from labs.core import pinned
from labs.core.registry import load

ITEM = np.array([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])


def differs(changed):
    return pinned.moved({"item": pinned.fingerprint(ITEM)}, {"item": changed}) == {"item"}


@pytest.mark.parametrize(
    "changed",
    [ITEM * (1 + 1e-6), -ITEM, ITEM[::-1], ITEM[:, ::-1], ITEM.T, np.zeros_like(ITEM), ITEM + 1e-6, ITEM * np.nan],
    ids=["scaled", "negated", "rows", "columns", "transposed", "zero", "shifted", "nan"],
)  # fmt: skip
def test_a_changed_item_has_moved(changed):
    assert differs(changed)


def test_rounding_is_no_move():
    assert not differs(ITEM * (1 + 1e-15))


def test_an_item_that_is_gone_has_moved_and_a_new_one_says_nothing():
    assert pinned.moved({"gone": [1.0, 1.0, 1.0]}, {"new": ITEM}) == {"gone"}


def test_an_item_of_zeros_stays_while_it_is_zero():
    zeros = {"item": pinned.fingerprint(np.zeros(3))}
    assert pinned.moved(zeros, {"item": np.zeros(3)}) == frozenset()
    assert pinned.moved(zeros, {"item": np.array([0, 0, 1e-300])}) == {"item"}


def test_a_users_lab_has_none_and_may_get_some(tanh_layer):
    lab = load(str(tanh_layer))
    assert pinned.read(lab) == {}
    assert pinned.write(lab) == lab.path / "pinned.json"
    assert pinned.read(lab) == pinned.current(lab)
