import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.kernels import labels

NO = labels.IGNORED
RUNS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=5)


def spread(runs):
    return np.array([value for value, length in runs for _ in range(length)])


@pytest.mark.parametrize(
    ("ids", "documents", "supervised", "expected"),
    [
        ([5, 6, 7], None, None, [6, 7, NO]),
        ([5], None, None, [NO]),
        ([10, 11, 20, 21], [0, 0, 1, 1], None, [11, NO, 21, NO]),
        ([5, 6, 2, 2], None, [1, 1, 1, 0], [6, 2, NO, NO]),
        ([5, 6, 7], None, [1, 0, 0], [NO, NO, NO]),  # nothing predicts the first token
        ([[1, 2], [3, 4]], [[0, 0], [0, 1]], None, [[2, NO], [NO, NO]]),
    ],
)
def test_targets_that_anyone_can_check(ids, documents, supervised, expected):
    found = labels.targets(
        np.array(ids),
        None if documents is None else np.array(documents),
        None if supervised is None else np.array(supervised, bool),
    )
    np.testing.assert_array_equal(found, expected)
    assert labels.count(found) == np.sum(np.array(expected) != NO)


@given(RUNS)
def test_a_packed_row_has_the_targets_and_positions_of_its_documents(runs):
    lengths = [length for _, length in runs]
    documents = np.repeat(np.arange(len(runs)), lengths)
    ids = np.arange(len(documents)) + 7
    alone = [labels.targets(part) for part in np.split(ids, np.cumsum(lengths)[:-1])]
    np.testing.assert_array_equal(labels.targets(ids, documents), np.concatenate(alone))
    assert labels.count(labels.targets(ids, documents)) == sum(length - 1 for length in lengths)
    np.testing.assert_array_equal(labels.positions(documents), np.concatenate([np.arange(n) for n in lengths]))


@given(RUNS, st.integers(0, 3))
def test_the_final_turn_is_the_last_run_of_its_role(runs, role):
    roles = spread(runs)
    expected, at = np.zeros(len(roles), bool), len(roles) - 1
    while at >= 0 and roles[at] != role:
        at -= 1
    while at >= 0 and roles[at] == role:
        expected[at] = True
        at -= 1
    np.testing.assert_array_equal(labels.final_turn(roles, role), expected)


def test_rows_do_not_see_each_other():
    documents = np.array([[0, 0, 1], [1, 2, 2]])
    np.testing.assert_array_equal(labels.positions(documents), [[0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(labels.final_turn(documents, 1), [[False, False, True], [True, False, False]])


def test_inputs_stay_and_views_are_fine():
    ids = np.array([3, 0, 2, 0, 1, 0])[::-2]  # 0, 0, 0 from the odd places
    before = ids.copy()
    labels.targets(ids, ids)
    labels.positions(ids)
    np.testing.assert_array_equal(ids, before)
