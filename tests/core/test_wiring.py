import dataclasses

import numpy as np
import pytest

from labs.core import wiring as module
from labs.core.items import Tolerance, plan
from labs.core.judge import decide
from labs.core.lab import Rule, identical, within, zero
from labs.core.wiring import wiring

VALUES = np.linspace(-2.0, 2.0, 12).reshape(3, 4)
CASES = {
    "close": ((), {"x": VALUES}, 6),
    "close, one element": ((), {"x": np.array(0.5)}, 2),
    "close, two elements": ((), {"x": np.array([0.5, -1.0])}, 4),
    "close, float32": ((), {"x": VALUES.astype(np.float32)}, 6),
    "exact": ((), {"x": np.arange(5)}, 3),
    "exact at the largest integer": ((), {"x": np.full(3, np.iinfo(np.int8).max, np.int8)}, 3),
    "exact, booleans": ((), {"x": np.array([True, False, True])}, 3),
    "exact, floats": ((Rule("exact", "x"),), {"x": VALUES}, 3),
    "zero": ((zero("x"),), {"x": np.zeros((2, 3))}, 6),
    "zero, observed only": ((zero("x"),), {}, 6),
    "zero, integers": ((zero("x"),), {"x": np.zeros(3, np.int64)}, 3),
    "identical": ((identical("x", "y"),), {}, 6),
    "identical beside close": ((identical("x", "y"),), {"x": VALUES}, 12),
    "identical, booleans": ((identical("x", "y"),), {"x": np.array([True, False, False])}, 9),
    "within": ((within("x", "b"),), {"b": np.array([1.0, 0.0, 5e-324])}, 6),
    "within a scalar": ((within("x", "b"),), {"b": np.array(0.1)}, 6),
    "within beside close": ((within("x", "b"),), {"x": np.ones(3), "b": np.full(3, 2.0)}, 12),
}


@pytest.mark.parametrize("case", CASES)
def test_connected_checks_answer_to_every_spoil(case):
    rules, reference, spoils = CASES[case]
    found = wiring(plan(rules, reference), reference, ())
    assert (found.problems, found.spoils) == ((), spoils)


@pytest.mark.parametrize(
    "tolerance", [Tolerance(1e-30, 0.0), Tolerance(0.0, 0.0), Tolerance(0.5, 0.0), Tolerance(0, 0.9)]
)
def test_every_tolerance_is_probed_at_its_own_bound(tolerance):
    reference = {"x": VALUES}
    assert wiring(plan((), reference), reference, (("x", tolerance),)).problems == ()


def mutant(change):
    """A judge with a fault: `change(rule, held, shown, tolerance)` gives what it judges instead."""
    return lambda *arguments: decide(*change(*arguments))


def only(start, stop):
    def change(rule, held, shown, tolerance):
        return rule, *({n: a.reshape(-1)[start:stop] for n, a in side.items()} for side in (held, shown)), tolerance

    return change


def looser(factor):
    return lambda rule, held, shown, t: (rule, held, shown, Tolerance(t.atol * factor, t.rtol * factor))


def as_itself(rule, held, shown, tolerance):
    return dataclasses.replace(rule, other=rule.item), held, shown, tolerance


def flushed(rule, held, shown, tolerance):
    return rule, held, {n: np.where(np.abs(a) < 1e-300, 0.0, a) for n, a in shown.items()}, tolerance


def by_value(rule, _, shown, tolerance):
    return Rule("close", rule.item), {rule.item: shown[rule.other]}, shown, tolerance


def one_sided(rule, held, shown, tolerance):
    return rule, held, {n: np.maximum(a, held[n]) for n, a in shown.items()}, tolerance


MUTANTS = {
    "skips the first": (only(1, None), (), {"x": VALUES}, "passes with x spoiled at 0"),
    "skips the last": (only(0, -1), (), {"x": VALUES}, "passes with x spoiled at 11"),
    "reads the ends only": (only(0, None), (), {"x": VALUES}, None),
    "nine times looser, which is inside the resolution": (looser(9.0), (), {"x": VALUES}, None),
    "nine times stricter, likewise": (looser(1 / 9.0), (), {"x": VALUES}, None),
    "eleven times looser": (looser(11.0), (), {"x": VALUES}, "passes with x spoiled"),
    "eleven times stricter": (looser(1 / 11.0), (), {"x": VALUES}, "a tenth of the bound away"),
    "one-sided": (one_sided, (), {"x": VALUES}, "passes with x spoiled"),
    "compares with itself": (as_itself, (identical("x", "y"),), {}, "y: promised, but no check reads it"),
    "flushes denormals": (flushed, (zero("x"),), {}, "passes with x spoiled"),
    "compares values": (by_value, (identical("x", "y"),), {}, "passes with x spoiled"),
    "one bound for two": (looser(100.0), (), {"x": np.ones(3)}, "passes with x spoiled at 1"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_faulty_judge_is_noticed(name, monkeypatch):
    change, rules, reference, expected = MUTANTS[name]
    monkeypatch.setattr(module, "decide", mutant(change))
    problems = wiring(plan(rules, reference), reference, ()).problems
    assert any(expected in problem for problem in problems) if expected else problems == ()


def test_a_judge_that_skips_the_middle_is_noticed(monkeypatch):
    def ends(rule, held, shown, tolerance):
        return rule, *({n: a.reshape(-1)[[0, -1]] for n, a in side.items()} for side in (held, shown)), tolerance

    monkeypatch.setattr(module, "decide", mutant(ends))
    assert wiring(plan((), {"x": VALUES}), {"x": VALUES}, ()).problems


@pytest.mark.parametrize(
    ("rules", "reference", "message"),
    [
        ((), {"x": np.full(3, 1e-12)}, "blunt"),
        ((), {"x": np.zeros(0)}, "empty"),
        ((), {"x": np.array([1.0, np.nan])}, "NaN at [1]"),
        ((zero("x"),), {"x": np.ones(2)}, "the reference is not 0"),
        ((within("x", "b"),), {"x": np.ones(2), "b": np.full(2, 0.5)}, "outside the bound"),
        ((within("x", "b"),), {}, "did not compute its bound b"),
    ],
)
def test_a_check_that_can_not_pass_is_a_problem(rules, reference, message):
    problems = wiring(plan(rules, reference), reference, ()).problems
    assert any("fails with nothing spoiled" in problem and message in problem for problem in problems)


def test_identical_with_itself_proves_nothing():
    rules = (identical("x", "x"),)
    assert any("passes with x spoiled" in p for p in wiring(rules, {"x": VALUES}, ()).problems)


def test_a_large_array_is_judged_on_windows(monkeypatch):
    monkeypatch.setattr(module, "WINDOW", 8)
    sizes = []

    def watched(rule, held, shown, tolerance):
        sizes.append(next(iter(dict(shown).values())).size)
        return decide(rule, held, shown, tolerance)

    monkeypatch.setattr(module, "decide", watched)
    sparse = np.zeros((50, 4))
    sparse[20] = 1.0  # most windows hold zeros only, which is not blunt
    reference = {"x": sparse, "z": np.zeros(100), "n": np.arange(100), "b": np.ones(100)}
    found = wiring(plan((zero("z"), within("w", "b"), identical("x", "y")), reference), reference, ())
    assert (found.problems, found.spoils) == ((), 6 + 6 + 3 + 6 + 6)
    assert max(sizes) == 9


def test_the_reference_is_left_alone():
    reference = {"x": VALUES.copy(), "n": np.arange(3)}
    for array in reference.values():
        array.setflags(write=False)
    wiring(plan((identical("x", "y"),), reference), reference, ())
    np.testing.assert_array_equal(reference["x"], VALUES)


def test_the_position_in_between_depends_on_the_name_alone():
    assert module._positions("x", 1000) == module._positions("x", 1000)
    assert module._positions("x", 1000) != module._positions("y", 1000)
    assert [module._positions("x", n) for n in (0, 1, 2, 3)] == [(0,), (0,), (0, 1), (0, 1, 2)]
