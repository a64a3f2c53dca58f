import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.core.reports.json_text import json_text, writable

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


@given(VALUES)
def test_any_value_survives(value):
    assert json.loads(json_text(value)) == value


def test_every_check_has_a_line_of_its_own():
    checks = [{"name": "a", "worst": {"index": [0, 1]}}, {"name": "b", "worst": None}]
    lines = json_text({"schema": "s", "labs": [{"name": "lora", "checks": checks}]}).splitlines()
    assert '    {"name": "a", "worst": {"index": [0, 1]}},' in lines
    assert '    {"name": "b", "worst": null}' in lines


def test_what_json_has_no_number_for_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"labs": [float("nan")]})


def test_numbers_that_are_not_finite_become_words_all_the_way_down():
    found = writable({"a": [float("nan"), (1.0, float("-inf"))], "b": {"c": float("inf")}, "d": np.float64("inf")})
    assert found == {"a": ["nan", [1.0, "-inf"]], "b": {"c": "inf"}, "d": "inf"}
    assert json.loads(json_text(found)) == found


def test_half_a_character_is_replaced_and_a_whole_one_is_not():
    assert writable({"a": ["größer \udcff 🙂"]}) == {"a": ["größer ? 🙂"]}
