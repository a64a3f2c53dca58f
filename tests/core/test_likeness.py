import numpy as np
import pytest

from labs.core.likeness import Likeness, likenesses

ORDER = ("a", "b", "c", "d")
RIGHT = {name: np.array([1.0, 2.0]) for name in ORDER}
WRONG = {name: np.array([3.0, 5.0]) for name in ORDER}
NAN = np.array([np.nan, np.inf])


def found(side, **faults):
    failed = [n for n in ORDER if not np.array_equal(side.get(n, NAN), RIGHT[n])]
    return likenesses(failed, ORDER, side, faults)


def wrong(names, side=WRONG):
    return {name: side[name] for name in names}


def test_a_fault_that_gives_all_that_failed_is_named():
    assert found({**RIGHT, **wrong("bc")}, fault=wrong("bc")) == dict.fromkeys("bc", Likeness("fault"))


def test_a_fault_that_should_have_shown_before_is_denied_there():
    assert found({**RIGHT, **wrong("bcd")}, fault=wrong("abcd"))["c"] == Likeness("fault", denied_at="a")


def test_a_second_mistake_behind_the_first_denies_nothing():
    side = {**RIGHT, **wrong("abc"), "d": 7 * WRONG["d"]}
    assert found(side, fault=wrong("abcd"))["a"].proof == "fault"


def test_a_fault_that_more_items_deny_than_have_it_is_denied():
    side = {**RIGHT, **wrong("b")}
    assert found(side, fault=wrong("bc"))["b"] == Likeness("fault", denied_at="c")


def test_a_fault_that_nothing_denies_is_preferred_to_one_that_explains_more():
    side = {**RIGHT, **wrong("bcd")}
    assert found(side, more=wrong("abcd"), less=wrong("b"))["b"] == Likeness("less")


def test_a_number_that_is_none_denies_a_fault_that_gives_one():
    side = {**RIGHT, "a": NAN, **wrong("bcd")}
    assert found(side, fault=wrong("abcd"))["b"] == Likeness("fault", denied_at="a")


def test_rounding_denies_nothing():
    side = {**RIGHT, **wrong("abc"), "d": WRONG["d"] * (1 + 1e-9)}
    assert [like.proof for like in found(side, fault=wrong("abcd")).values()] == ["fault"] * 3 + [""]


def test_what_a_side_lacks_denies_nothing():
    side = {name: WRONG[name] for name in "bc"}
    assert found(side, fault=wrong("abc"))["b"].proof == "fault"


@pytest.mark.parametrize(
    ("given", "seen", "equal"),
    [
        (NAN, NAN, True),
        (NAN, -NAN, False),
        (NAN, np.array([np.nan, 1.0]), False),
        (NAN, np.array([0.0, np.inf]), False),
        (np.zeros(2), np.zeros(2), True),
        (np.zeros(2), np.array([0.0, 1e-300]), False),
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array([1, 2]), np.array([1, 3]), False),
        (np.array([3.0]), np.array([3.0, 5.0]), False),
    ],
)
def test_values_are_equal_or_not(given, seen, equal):
    found = likenesses(["a"], ORDER, {"a": seen}, {"fault": {"a": given}})
    assert (found["a"].control == "fault") is equal


def test_an_item_that_neither_yields_is_the_same():
    assert likenesses(["a"], ORDER, {}, {"fault": {"a": None}})["a"].proof == "fault"
