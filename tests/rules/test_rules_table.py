import ast
import math
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

from labs.core.items import Tolerance
from labs.rules import table
from labs.rules.config import Config
from labs.rules.lab import LAB
from labs.rules.table import NONE, ROWS, THEMES

BY_NAME = {row.name: row for row in ROWS}
TOLD = 1e4  # how many limits a wrong number is away from the right one, at least
nan = math.nan

# The numbers as they were published, with as many digits as they had: (right, wrong).
PUBLISHED = {
    "rms_offset": ([0, 0], None),
    "causal_top_left": ([1.0, 1.5], [2.5, 3.0]),
    "causal_bottom_right": ([2.5, 3.0], [1.0, 1.5]),
    "upstream_ignored": ([1, -1], [0, 0]),
    "masked_row_nan": ([0, 0], [nan, nan]),
    "adam_eps_scaled": (0.990099, 0.759747),
    "adam_l2": ([0.89, 0.01], [0.90, 0.02]),
    "adam_step_stuck": (0.25929, 0.22596),
    "resume_moments_cast": (0.1234567, 0.12353515625),
    "mask_leak": ([10, 15, 1, 2], [10, 15, 10.33, 8.5]),
    "mask_all_ones": ([10, 15, 1, 2], [10, 15, 10.33, 8.5]),
    "positions_continue": ([0, 1, 0, 1], [0, 1, 2, 3]),
    "label_double_shift": (1.36e-4, 10.0001),
    "label_across_boundary": ([11, NONE, 21, NONE, 2], [11, 20, 21, NONE, 3]),
    "eos_masked_by_id": ([6, 2, NONE, NONE, 2], [6, NONE, NONE, NONE, 1]),
    "wrong_turn": ([0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 1, 0, 1, 1]),
    "wrong_turn_final": ([0, 0, 0, 0, 0, 0, 1, 1], None),
    "truncation_silent_empty": ([0, 1], [0, 0]),
    "zero_labels_nan": ([0, 0, 0], [nan, 0, 0]),
    "count_unshifted": (10 / 4, 10 / 5),
    "mean_of_means": (4, 6),
    "mean_of_rank_means": (2, 4),
    "accumulation_not_divided": (3, 4 * 3),
    "last_window_divided_by_k": (3, 3 / 2),
    "shard_edge_target_lost": ([[2, 3, 4, 5], [6, 7, 8, NONE]], [[2, 3, 4, NONE], [6, 7, 8, NONE]]),
    "alpha_without_rank": (2, 16),
    "rs_scale_confused": ([2, 4], [4, 2]),
    "both_zero": (None, [0, 0]),
    "unmerge_uncast": ([1.0, 0.99609375], None),
    "requantize_wrong_base": (0.2957, 0.31),
    "requantize_loses_delta": ([0.2857, 0], [0.2957, 1]),
    "gather_detached_global": ([1, 1], [1 / 2, 1]),
    "gather_detached_local": (1, None),
    "gather_own_slice": ([11, 11], [1, 10]),
    "loss_times_world": ([1, 1], [1, 2]),
    "labels_without_offset": ([2, 3], [0, 1]),
    "microbatch_without_negatives": ([0, 0], None),
    "cached_last_only": ([36, 36, 36], None),
    "uneven_equal_weight": ([5 * 2 / 8, 3 * 2 / 8], [1, 1]),
    "temperature_without_exp": (14.2857, 2.6593),
    "clip_before_unscale": ([0.6, 0.8], [5.9e-4, 7.8e-4]),
    "clip_before_unscale_torch": ([0.59999988, 0.79999984], [5.9e-4, 7.8e-4]),
    "clip_per_micro_batch": ([0.995, 0.0995], [1, 1]),
    "chunked_cross_entropy": (1, 3),
    "recompute_random_state": (1.0, 0.5),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_number_is_in_the_table(name):
    for published, ours in zip(PUBLISHED[name], (BY_NAME[name].right, BY_NAME[name].wrong), strict=True):
        if published is not None:
            assert np.shape(ours) == np.shape(published)
            assert all(map(agrees, np.ravel(ours), np.ravel(published))), (ours, published)


def agrees(ours, published):
    """Equal as far as the published digits go."""
    digits = len(f"{published:.10g}".lstrip("-0.").replace(".", "").split("e")[0])
    return f"{float(ours):.{digits}g}" == f"{float(published):.{digits}g}"


def test_names_are_unique_and_can_be_functions():
    assert len(BY_NAME) == len(ROWS)
    assert all(row.name.isidentifier() and row.name.islower() for row in ROWS)
    assert all(name.isidentifier() for row in ROWS for name in row.given)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_wrong_number_is_far_from_the_right_one(row):
    right, wrong = np.array(row.right), np.array(row.wrong)
    assert right.shape == wrong.shape
    assert right.dtype == wrong.dtype
    if right.dtype.kind == "f":
        limit = Tolerance().atol + Tolerance().rtol * np.abs(right)
        far = np.max(np.where(np.isnan(wrong), np.inf, np.abs(wrong - right)) / limit)
        assert far > TOLD
    else:
        assert np.any(right != wrong)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_right_numbers_are_finite_and_every_row_is_described(row):
    assert np.isfinite(np.array(row.right)).all()
    assert all(np.isfinite(np.array(value)).all() for value in row.given.values())
    assert row.given
    assert all(text.strip() == text and text for text in (row.rule, row.fault, row.source))
    assert not row.rule.endswith(".")


def test_the_themes_of_the_config_are_those_of_the_table():
    assert get_args(get_type_hints(Config)["theme"]) == ("all", *THEMES)


def test_the_table_imports_the_standard_library_alone_and_has_no_formula():
    """Both sides read it, so a formula in it would be shared."""
    tree = ast.parse(Path(table.__file__).read_text(), feature_version=(3, 10))
    imported = {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    rows = next(n.value for n in tree.body if isinstance(n, ast.AnnAssign) and n.target.id == "THEMES")
    assert not [n for n in ast.walk(rows) if isinstance(n, ast.BinOp)]


def test_the_lab_shows_every_row_with_its_source_and_both_numbers():
    for row in ROWS:
        entry = LAB.equations.split(f"  {row.name} ", 1)[1].splitlines()[:3]
        assert row.source in entry[0]
        assert row.rule in entry[0]
        assert "right" in entry[1]
        assert entry[2].strip().startswith(f"wrong  {row.fault}: ")
    assert "right  ids [5 6 2 2], length 3, pad 2: [6 2 - - 2]" in LAB.equations
    assert max(map(len, LAB.equations.splitlines())) < 160
