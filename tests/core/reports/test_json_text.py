import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.core.reports.json_text import json_text

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
