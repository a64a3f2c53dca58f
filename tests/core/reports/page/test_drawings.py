"""Positions, maps, curves and the walk, before they are HTML."""

import numpy as np
import pytest

from labs.core.reports.page import curves, scale
from labs.core.reports.page.environment import facts
from labs.core.reports.page.failure import failure
from labs.core.reports.page.heat import PANELS, SIDE, heat
from labs.core.reports.page.ratios import NOT_FINITE, PIECE, measure, ratios
from labs.core.reports.page.stored import Absent, Stored, fetch, pair
from labs.core.reports.page.walk import walk, written
from tests.cli.samples import reports

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("headroom", "x", "width", "over"), [(7.5, 8.5, 7.5, False), (-3.0, 16, 3.0, True), (0.0, 16, 0.6, False)]
)
def test_a_bar_starts_at_the_limit(headroom, x, width, over):
    assert scale.bar(headroom) == (x, width, 16 - headroom, over)


@pytest.mark.parametrize("headroom", [None, "nan"])
def test_what_was_not_measured_has_no_bar(headroom):
    assert scale.bar(headroom) is None


@pytest.mark.parametrize("headroom", ["inf", "-inf", 99.0, -99.0])
def test_a_bar_stays_on_the_axis(headroom):
    bar = scale.bar(headroom)
    assert 0 <= bar.dot <= 32
    assert bar.x + bar.width <= 32.6


def test_a_value_exactly_at_its_limit_is_not_over_it():
    assert scale.histogram([{"headroom": 0.0}]) == [(15, 1.0, False)]
    assert scale.histogram([{"headroom": -0.1}]) == [(16, 1.0, True)]


def close(**changes):
    return reports.check(**changes)


def test_a_ratio_is_error_over_limit():
    held, observed = np.array([0.0, 1.0, 1.0]), np.array([1e-9, 1.0, np.nan])
    found = ratios(close(), held, observed)
    assert found[0] == pytest.approx(1.0)
    assert found[1] == 0
    assert np.isnan(found[2])


@pytest.mark.parametrize(
    ("kind", "expected"), [("exact", np.inf), ("identical", np.inf), ("zero", np.inf), ("within", 0.5)]
)
def test_other_kinds_have_other_limits(kind, expected):
    observed = np.array([1.0])
    held = np.array(2.0) if kind == "within" else np.array([0.0])
    assert ratios(close(kind=kind), held, observed)[0] == expected


def test_levels_and_worst_elements_are_those_of_the_whole_array_whatever_the_pieces(monkeypatch):
    reference = RNG.normal(size=(7, 11, 13))
    observed = reference + 10.0 ** RNG.uniform(-14, -2, reference.shape)
    observed[3, 4, 5] = np.nan
    whole = measure(close(), reference, observed)
    monkeypatch.setattr("labs.core.reports.page.ratios.PIECE", 17)
    pieces = measure(close(), reference, observed)
    assert np.array_equal(whole.levels, pieces.levels)
    assert whole.worst == pieces.worst
    assert whole.worst[0] == (3, 4, 5)
    assert whole.levels[3, 4, 5] == NOT_FINITE
    assert PIECE > 1


def test_equal_elements_are_never_called_worst():
    assert measure(close(), np.ones(9), np.ones(9)).worst == []


def strokes(drawn, level):
    """The elements (x, y) that a map draws at a level."""
    found = set()
    for part in dict(drawn.paths).get(level, "").split("M")[1:]:
        place, length = part.split("h")
        x, y = place.split()
        found |= {(int(x) + i, int(float(y))) for i in range(int(length))}
    return found


def test_a_map_draws_every_element_once():
    levels = RNG.integers(0, 6, (5, 7)).astype(np.int8)
    drawn = heat(levels, (2, 3))
    assert (drawn.width, drawn.height, drawn.worst) == (7, 5, (3, 2))
    for level in range(6):
        assert strokes(drawn, level) == {(int(x), int(y)) for y, x in np.argwhere(levels == level)}


def test_axes_before_the_last_two_are_panels_side_by_side():
    levels = np.zeros((2, 2, 3, 4), np.int8)
    levels[1, 0, 2, 1] = 4
    drawn = heat(levels, (1, 0, 2, 1))
    assert strokes(drawn, 4) == {(11, 2)}
    assert drawn.worst == (11, 2)


def test_a_long_axis_is_wrapped():
    levels = np.zeros(100, np.int8)
    levels[50] = 4
    drawn = heat(levels, (50,))
    assert strokes(drawn, 4) == {(2, 1)}
    assert drawn.worst == (2, 1)


def test_a_large_map_keeps_its_worst_elements_and_stays_small():
    levels = np.zeros((40, 500, 300), np.int8)
    levels[33, 499, 299] = 5
    drawn = heat(levels, (33, 499, 299))
    assert len(strokes(drawn, 5)) == 1
    assert drawn.worst in strokes(drawn, 5)
    assert f"{PANELS} of 40 slices" in drawn.remark
    assert "worst of 11 × 7 elements" in drawn.remark
    assert drawn.height < 10 * SIDE


@pytest.mark.parametrize("worst", [None, (9, 9), (1,), (-1, 0)])
def test_an_index_that_does_not_fit_points_nowhere(worst):
    assert heat(np.zeros((2, 2), np.int8), worst).worst is None


def test_a_card_has_the_worst_elements_first():
    reference, observed = np.ones((2, 3)), np.ones((2, 3))
    observed[1, 2], observed[0, 1] = 1.5, 1.25
    check = reports.over("a", 8.0)
    card = failure(
        reports.lab(),
        {**check, "worst": {"index": [1, 2], "reference": 1.0, "observed": 1.5}},
        Stored({"a": reference}, {"a": observed}, {}),
    )
    assert [(e.at, e.held, e.observed, e.difference) for e in card.elements] == [
        ("1, 2", "1.0", "1.5", "0.5"),
        ("0, 1", "1.0", "1.25", "0.25"),
    ]
    assert card.message == ""


@pytest.mark.parametrize(
    ("kind", "arrays", "sentence"),
    [
        ("close", Stored({}, {}, {}), "does not hold it"),
        ("close", Stored({"a": np.ones(3)}, {"a": np.ones(4)}, {}), "the shapes differ"),
        ("close", Stored({"a": np.ones(1)}, {"a": np.array(["x"])}, {}), "can't be drawn"),
        ("close", Stored({"a": np.ones(0)}, {"a": np.ones(0)}, {}), "can't be drawn"),
        ("witness", Stored({"a": np.ones(1)}, {"a": np.ones(1)}, {}), "is not kept"),
    ],
)
def test_what_can_not_be_compared_says_why(kind, arrays, sentence):
    with pytest.raises(Absent, match=sentence):
        pair(arrays, reports.check("a", kind=kind))


def test_an_array_that_is_too_large_is_not_read():
    huge = np.broadcast_to(np.float64(0), (1 << 27,))
    with pytest.raises(Absent, match="more than a page can show"):
        fetch({"a": huge}, "a")


@pytest.mark.parametrize("kind", ["zero", "identical", "within", "exact"])
def test_each_kind_is_held_against_its_own_array(kind):
    arrays = Stored({"a": np.full(2, 1.0), "b": np.full((), 2.0)}, {"a": np.full(2, 3.0), "b": np.full(2, 4.0)}, {})
    other = "b" if kind in ("identical", "within") else ""
    held, observed = pair(arrays, reports.check("a", kind=kind, other=other))
    assert held.reshape(-1)[0] == {"zero": 0.0, "identical": 4.0, "within": 2.0, "exact": 1.0}[kind]
    assert observed[0] == 3.0


def charted(reference, observed, name="train/loss"):
    drawn, missing = curves.charts(reports.lab(trajectories=[name]), Stored({name: reference}, {name: observed}, {}))
    return drawn[0] if drawn else None, missing


def test_a_curve_has_a_line_and_dots_where_the_values_are():
    chart, _ = charted(np.array([1.0, 0.0, 0.5]), np.array([1.0, 0.0, 0.5]))
    assert chart.lines == ["M0 0L100 80L200 40"]
    assert chart.dots == ["M0 0h0M100 80h0M200 40h0"]
    assert (chart.low, chart.high, chart.steps) == ("0", "1", 3)


def test_dots_that_leave_the_line_widen_the_box():
    chart, _ = charted(np.array([0.0, 1.0]), np.array([0.0, 2.0]))
    assert chart.lines == ["M0 80L200 40"]
    assert chart.dots == ["M0 80h0M200 0h0"]


def test_a_value_that_is_not_finite_leaves_a_gap():
    chart, _ = charted(np.array([0.0, 1.0, 2.0]), np.array([0.0, np.nan, 2.0]))
    assert chart.dots == ["M0 80h0M200 0h0"]


def test_the_elements_that_move_most_are_drawn():
    still = np.zeros((4, 9))
    still[:, 7] = [0, 1, 2, 3]
    chart, _ = charted(still, still)
    assert len(chart.lines) == curves.LINES
    assert "5 of 9 elements" in chart.remark
    assert "M0 80L66.7 53.3L133.3 26.7L200 0" in chart.lines


def test_a_long_training_is_thinned_out_and_keeps_its_ends():
    values = np.linspace(0, 1, 10_000)
    chart, _ = charted(values, values)
    assert chart.lines[0].count("L") == curves.POINTS - 1
    assert chart.lines[0].startswith("M0 80")
    assert chart.lines[0].endswith("L200 0")


def test_one_step_makes_no_curve():
    assert charted(np.ones(1), np.ones(1)) == (None, [])


def test_the_walk_shows_values_gradients_and_who_reads_whom(made, tmp_path):
    from labs.core.reports.page.stored import stored  # noqa: PLC0415

    report = made(tmp_path)
    found = walk(report["labs"][0], stored(tmp_path)("block"))
    stops = {stop.name: stop for stop in found.stops}
    assert stops["loss"].gradient is None
    assert [name for name, _ in stops["normed_1"].read_by] == ["q", "k", "v"]
    assert [name for name, _ in stops["residual_1"].reads] == ["attended", "x"]
    assert stops["w_q"].value.facts.startswith("8 × 8, norm ")
    assert stops["x"].value.numbers
    assert all(stop.gradient.verdict.endswith("left") for stop in found.stops if stop.gradient)
    assert len({(stop.x, stop.y) for stop in found.stops}) == len(found.stops)


def test_a_node_is_marked_by_what_is_wrong_there(made, spoiled, tmp_path):
    from labs.core.reports.page.stored import stored  # noqa: PLC0415

    report = made(tmp_path, **spoiled)
    status = {stop.name: stop.status for stop in walk(report["labs"][0], stored(tmp_path)("block")).stops}
    assert (status["gated"], status["w_q"], status["up"]) == ("failed", "gradient", "passed")


def test_numbers_are_written_in_columns_and_what_is_cut_is_said():
    text, remark = written(np.arange(2 * 3 * 4.0).reshape(2, 3, 4))
    assert text.splitlines()[1] == " 4   5   6   7"
    assert remark == "[0, :, :] of 2 slices"
    text, remark = written(np.zeros((9, 12)))
    assert len(text.splitlines()) == 8
    assert remark == "8 of 9 rows, 8 of 12 columns"
    assert written(np.array(0.5)) == ("0.5", "")


def test_facts_of_both_processes_stand_side_by_side():
    environment = {"tool": {"commit": "x"}, "referee": {"numpy": "1", "a": {"b": [1, 2]}}, "framework": {"numpy": "2"}}
    found = {f.name: f for f in facts({"environment": environment})}
    assert (found["numpy"].referee, found["numpy"].framework, found["numpy"].differs) == ("1", "2", True)
    assert (found["a.b"].referee, found["a.b"].differs) == ("1 2", False)
    assert found["tool.commit"].referee == "x"
