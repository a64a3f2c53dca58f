import re

import pytest

from labs.core.reports.anchors import LONGEST, anchor, control_anchor, node_anchor
from tests.cli.samples import reports

HOSTILE = [
    "<script>alert(1)</script>",
    'a"b',
    "a'b",
    "a b",
    "a#b",
    "a%20b",
    "\u202eabc",
    "ä",
    "a~3c~b",
    "\ud800",
    "",
    "x" * 999,
]


def test_an_ordinary_name_is_its_own_anchor():
    assert anchor(reports.lab(), "init/output:identical") == "lora/init/output:identical"


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_an_anchor_is_plain_and_short(name):
    assert re.fullmatch(r"[A-Za-z0-9_./:~-]+", anchor(reports.lab(), name))
    assert len(anchor(reports.lab(), name)) <= LONGEST


def test_no_two_names_share_an_anchor():
    lab = reports.lab()
    names = [*HOSTILE, "<script>alert(2)</script>", "x" * 998, "known", "a~b"]
    made = [f(lab, n) for f in (anchor, control_anchor, node_anchor) for n in names if n]
    assert len(set(made)) == len(made)
