import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labs.core import compare as module
from labs.core.compare import compare, compare_bound, different_bits

FINITE = st.floats(-1e6, 1e6, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 1e-9, 5e-324, 1e300, -1e300])
TOLERANCES = st.sampled_from([(1e-9, 1e-8), (0.0, 0.0), (0.0, 1e-3), (1.0, 0.0), (5e-324, 0.0)])


@st.composite
def pairs(draw):
    """Two arrays that are equal, near or unrelated, element by element."""
    size = draw(st.integers(1, 12))
    reference = np.array(draw(st.lists(FINITE, min_size=size, max_size=size)))
    errors = np.array(draw(st.lists(FINITE | st.just(0.0), min_size=size, max_size=size)))
    return reference, reference + errors * draw(st.sampled_from([0.0, 1e-12, 1e-6, 1.0]))


def slow(reference, observed, atol, rtol):
    """Every statistic of a Comparison by its definition, one element at a time."""
    ref, obs = reference.ravel().tolist(), observed.ravel().tolist()
    error = [abs(o - r) for r, o in zip(ref, obs, strict=True)]
    bound = [atol + rtol * abs(r) for r in ref]
    ratio = [_over(e, b) for e, b in zip(error, bound, strict=True)]
    nonzero = [abs(r) for r in ref if r != 0]
    largest = max(map(abs, ref))
    return {
        "size": len(ref),
        "max_abs": max(error),
        "mean_abs": math.fsum(e / len(ref) for e in error),
        "max_rel": max(_over(e, abs(r)) for e, r in zip(error, ref, strict=True)),
        "max_ulp": _over(max(error), math.ulp(largest)),
        "worst": ratio.index(max(ratio)),
        "out_of_tolerance": sum(not e <= b for e, b in zip(error, bound, strict=True)),
        "headroom": max(-16.0, min(16.0, -math.log10(max(ratio)) if max(ratio) else 16.0)),
        "blunt_share": sum(r <= 10 * atol for r in nonzero) / len(nonzero) if nonzero else 0.0,
        "largest": largest,
        "first_bad": -1,
        "blunt": all(abs(r) <= b for r, b in zip(ref, bound, strict=True)),
    }


def _over(error, by):
    return error / by if by else (math.inf if error else 0.0)


def agrees(found, expected):
    for name, value in expected.items():
        if name in {"mean_abs", "headroom"}:
            assert getattr(found, name) == pytest.approx(value, rel=1e-12, abs=1e-300), name
        else:
            assert getattr(found, name) == value, name


@given(pairs(), TOLERANCES)
@example((np.array([0.0, 1.0]), np.array([0.0, 1.0])), (0.0, 0.0))
@example((np.array([1e300]), np.array([-1e300])), (1e-9, 1e-8))
def test_every_statistic_equals_its_definition(pair, tolerance):
    agrees(compare(*pair, *tolerance), slow(*pair, *tolerance))


@settings(max_examples=30, deadline=None)  # thousands of chunks of 4, on any machine
@given(st.integers(0, 2**32), st.sampled_from([1, 99, 100, 101, 255, 1000, 5000]), st.sampled_from([4, 64, 1 << 14]))
def test_chunks_do_not_show(seed, size, chunk):
    rng = np.random.default_rng(seed)
    reference = rng.normal(size=size) * (rng.random(size) < 0.9)
    observed = reference + 10.0 ** rng.uniform(-20, -6, size) * (rng.random(size) < 0.9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", chunk)
        found = compare(reference, observed, 1e-9, 1e-8)
    agrees(found, slow(reference, observed, 1e-9, 1e-8))
    ranked = np.sort(np.abs(observed - reference))[math.ceil(0.99 * size - 1e-9) - 1]
    assert ranked <= found.p99_abs <= 2 * ranked


def test_of_several_chunks_the_first_bad_element_and_all_small_ones_are_told(monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 4)
    reference = np.array([1.0, 1e-12, 1.0, 1.0, 1e-12, 1.0, 1.0, 0.0, 1.0, 1.0])
    observed = reference.copy()
    observed[[2, 9]] = np.nan
    found = compare(reference, observed, 1e-9, 1e-8)
    assert (found.first_bad, found.out_of_tolerance) == (2, 2)
    assert compare(reference, reference, 1e-9, 1e-8).blunt_share == 2 / 9


def test_p99_ignores_the_hundredth_part():
    observed = np.zeros(1000)
    observed[:10] = 1.0
    assert compare(np.zeros(1000), observed, 0, 0).p99_abs == 0.0
    observed[10] = 1.0
    assert compare(np.zeros(1000), observed, 0, 0).p99_abs == 1.0


@pytest.mark.parametrize("value", [1e308, np.inf, np.nan])
def test_p99_of_the_largest_errors_is_the_maximum(value):
    found = compare(np.zeros(200), np.full(200, value), 0, 0)
    assert found.p99_abs == found.max_abs == (1e308 if value == 1e308 else np.inf)


@pytest.mark.parametrize("at", [0, 5, 11])
@pytest.mark.parametrize("sign", [1, -1])
def test_one_spoiled_element_is_found_where_it_is(at, sign):
    reference = np.linspace(0.5, 2, 12)
    observed = reference.copy()
    observed[at] += sign * 1e-6
    found = compare(reference, observed, 1e-9, 1e-8)
    assert (found.worst, found.out_of_tolerance, found.passed) == (at, 1, False)


def test_the_bound_itself_passes_and_the_next_number_does_not():
    bound = 0.25 + 0.5 * 1.0
    assert compare(np.array([1.0]), np.array([1.0 + bound]), 0.25, 0.5).passed
    assert not compare(np.array([1.0]), np.array([np.nextafter(1.0 + bound, 9)]), 0.25, 0.5).passed


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sides", ["reference", "observed", "both"])
@pytest.mark.parametrize("at", [0, 7, 19])
def test_an_element_that_is_not_finite_never_passes(bad, sides, at):
    reference, observed = np.ones(20), np.ones(20)
    if sides != "observed":
        reference[at] = bad
    if sides != "reference":
        observed[at] = bad
    found = compare(reference, observed, 1e6, 0.5)
    assert (found.passed, found.first_bad, found.worst, found.out_of_tolerance) == (False, at, at, 1)
    assert (found.max_abs, found.headroom, found.largest) == (np.inf, -16, 1.0)


def test_no_statistic_is_nan_when_everything_is():
    found = compare(np.full(150, np.nan), np.full(150, np.nan), 0.0, 0.0)
    numbers = [value for value in found if isinstance(value, float)]
    assert not np.isnan(numbers).any()
    assert found.out_of_tolerance == found.size == 150


def test_a_difference_that_overflows_is_out_of_a_bound_that_overflows():
    found = compare(np.array([1.7e308, 1.0]), np.array([-1.7e308, 1.0]), 0.0, 2.0)
    assert (found.passed, found.first_bad, found.max_abs) == (False, -1, np.inf)


def test_the_mean_of_huge_errors_does_not_overflow():
    assert compare(np.zeros(3), np.full(3, 1e308), 0.0, 0.0).mean_abs == pytest.approx(1e308)


def test_denormals_are_told_apart():
    tiny = np.array([5e-324, 1e-310])
    assert compare(tiny, tiny, 0.0, 0.0).passed
    found = compare(tiny, np.array([1e-323, 1e-310]), 0.0, 0.0)
    assert (found.max_abs, found.out_of_tolerance, found.max_rel) == (5e-324, 1, 1.0)


def test_an_empty_comparison_never_passes():
    found = compare(np.zeros((0, 3)), np.zeros((0, 3)), 1.0, 1.0)
    assert (found.size, found.passed, found.worst) == (0, False, -1)


def test_equal_arrays_have_the_largest_headroom_and_an_exact_bound_has_none():
    assert compare(np.ones(2), np.ones(2), 0.0, 0.0).headroom == 16
    assert compare(np.ones(1), np.full(1, 1.5), 0.5, 0.0).headroom == 0.0


def test_headroom_is_cut_on_both_ends():
    assert compare(np.ones(1), np.full(1, 1e40), 1e-9, 0.0).headroom == -16
    assert compare(np.full(1, 1e30), np.full(1, 1e30) + 1e14, 1e300, 0.0).headroom == 16


LAYOUTS = {
    "transposed": np.asfortranarray,
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "big-endian": lambda a: a.astype(">f8"),
    "read-only": lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_memory_layout_does_not_matter(layout):
    reference = np.arange(1.0, 301.0).reshape(30, 10)
    observed = reference + 1e-12
    observed[7, 3] += 1.0
    there = LAYOUTS[layout]
    expected = compare(reference, observed, 1e-9, 1e-8)
    assert compare(there(reference), there(observed), 1e-9, 1e-8) == expected
    if layout != "big-endian":
        assert compare(there(reference), observed, 1e-9, 1e-8) == expected
    assert expected.worst == 73


def test_a_memory_map_is_compared_like_memory(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(1.0, 50_000.0))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    observed = np.arange(1.0, 50_000.0)
    observed[-1] += 1
    assert compare(mapped, mapped, 0.0, 0.0).passed
    assert compare(mapped, observed, 0.0, 0.0).worst == 49_998


def test_a_scalar_array_has_one_element():
    found = compare(np.array(2.0), np.array(2.5), 0.0, 0.0)
    assert (found.size, found.worst, found.max_abs, found.passed) == (1, 0, 0.5, False)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_other_float_widths_use_their_own_spacing(dtype):
    reference = np.array([1.0, 1.5], dtype)
    observed = np.array([1.0, np.nextafter(dtype(1.5), dtype(2))], dtype)
    found = compare(reference, observed, 0.0, 0.0)
    assert (found.max_ulp, found.out_of_tolerance) == (1.0, 1)


def test_longdouble_keeps_differences_that_float64_has_not():
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        pytest.skip("longdouble is float64 here")
    one = np.ones(150, np.longdouble)
    found = compare(one, one + np.finfo(np.longdouble).eps, 0.0, 0.0)
    assert found.out_of_tolerance == 150
    assert found.max_abs <= found.p99_abs * 2


@given(
    st.sampled_from(["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]).flatmap(
        lambda dtype: st.tuples(hnp.arrays(dtype, 5), hnp.arrays(dtype, 5))
    )
)
@example((np.array([-(2**63)] * 5), np.array([2**63 - 1] * 5)))
@example((np.array([2**53] * 5), np.array([2**53 + 1] * 5)))
def test_integers_differ_exactly(pair):
    found = compare(*pair, 0.0, 0.0)
    errors = [abs(int(a) - int(b)) for a, b in zip(*pair, strict=True)]
    assert found.out_of_tolerance == sum(e != 0 for e in errors)
    assert found.max_abs == float(max(errors))
    assert found.max_ulp is None


def test_booleans_differ_by_one():
    found = compare(np.array([True, False]), np.array([True, True]), 0.0, 0.0)
    assert (found.out_of_tolerance, found.worst, found.max_abs) == (1, 1, 1.0)


@pytest.mark.parametrize(
    ("reference", "observed"),
    [
        (np.ones(3), np.ones((3, 1))),
        (np.ones(3), np.ones(())),
        (np.ones((1, 3)), np.ones((2, 3))),
        (np.ones(3), np.ones(3, np.float32)),
        (np.ones(3, np.int64), np.ones(3)),
        (np.ones(3), np.ones(3, ">f8")),
    ],
)
def test_nothing_is_broadcast_or_converted(reference, observed):
    for call in (lambda: compare(reference, observed, 1.0, 1.0), lambda: different_bits(reference, observed)):
        with pytest.raises(ValueError, match="expected"):
            call()


@pytest.mark.parametrize("dtype", [np.complex128, object, "U3", "datetime64[s]"])
def test_only_real_numbers_are_compared(dtype):
    array = np.zeros(2, dtype)
    with pytest.raises(TypeError, match="only real numbers"):
        compare(array, array, 0.0, 0.0)
    with pytest.raises(TypeError, match="bits"):
        different_bits(array, array)


@pytest.mark.parametrize("limits", [(-1.0, 0.0), (0.0, -1.0), (np.nan, 0.0), (0.0, np.nan), (np.inf, 0.0), (0, np.inf)])
def test_a_tolerance_that_is_no_tolerance_is_refused(limits):
    with pytest.raises(ValueError, match="tol: got"):
        compare(np.ones(1), np.ones(1), *limits)


@given(pairs())
def test_a_bound_holds_magnitudes(pair):
    bound, observed = np.abs(pair[0]), pair[1]
    found = compare_bound(bound, observed)
    ratio = [_over(abs(o), b) for o, b in zip(observed.tolist(), bound.tolist(), strict=True)]
    assert found.out_of_tolerance == sum(not abs(o) <= b for o, b in zip(observed, bound, strict=True))
    assert (found.max_abs, found.worst) == (np.abs(observed).max(), ratio.index(max(ratio)))
    assert found.max_rel == max(ratio)


@pytest.mark.parametrize(
    ("bound", "observed"), [(-1.0, 0.5), (-1.0, 0.0), (np.nan, 0.0), (np.inf, 0.0), (1.0, np.nan), (0.0, -5e-324)]
)
def test_a_bound_that_is_not_met_fails(bound, observed):
    assert not compare_bound(np.array([1.0, bound]), np.array([0.5, observed])).passed


def test_a_bound_of_zero_is_met_by_zero():
    assert compare_bound(np.zeros(2), np.array([0.0, -0.0])).passed


BITS = [
    (0.0, -0.0, np.float64),
    (1.0, np.nextafter(1.0, 2.0), np.float64),
    (0.0, 5e-324, np.float64),
    (1.0, np.nextafter(np.float32(1), np.float32(2)), np.float32),
    (0, 1, np.int64),
    (0, 1, np.uint8),
    (False, True, np.bool_),
]


@pytest.mark.parametrize("at", [0, 3, 8])
@pytest.mark.parametrize(("first", "second", "dtype"), BITS)
def test_one_bit_makes_a_difference(first, second, dtype, at):
    left = np.full((3, 3), first, dtype)
    right = left.copy()
    right.flat[at] = second
    assert different_bits(left, left.copy()) == (0, -1)
    assert different_bits(left, right) == (1, at)
    assert different_bits(left.T, right.T)[0] == 1


def test_bits_are_counted_across_chunks(monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 4)
    left, right = np.zeros(50), np.zeros(50)
    right[[13, 14, 49]] = -0.0
    assert different_bits(left, right) == (3, 13)


def test_the_first_of_equally_bad_elements_is_the_worst(monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 4)
    observed = np.ones(20)
    observed[[6, 13]] = 1.5
    assert compare(np.ones(20), observed, 0.0, 0.0).worst == 6
