"""Reports of a run with somebody else's part, or in another precision: whose it was, and what can't be seen."""

import pytest

from cli.output import Look
from cli.render import terminal
from labs.core.reports import summary
from labs.core.reports.markdown import markdown
from labs.core.storage.report_schema import REPORT, require
from labs.core.storage.stored import DamagedBundle
from tests.cli.samples import reports

SWAP = {
    "part": "linear", "source": "mine.py:fused", "file": "mine.py", "line": 12, "sha256": "ab" * 32,
    "libraries": ["peft 0.21.2"],
}  # fmt: skip
UNJUDGED = [{"name": "merge/residual", "why": "its bound is what float64 rounds"}]


def lab(**changes):
    made = reports.green()["labs"][0]
    return {**made, "swaps": [SWAP], "precision": "float32", "device": "cpu", "unjudged": UNJUDGED, **changes}


def report(**changes):
    return {**reports.green(), "labs": [lab(**changes)]}


def test_the_verdict_names_whose_implementation_was_judged():
    assert summary.verdict(lab())[1] == "linear is mine.py:fused (peft 0.21.2)"
    assert "linear is mine.py:fused (peft 0.21.2)" in terminal(report(), "b", Look(width=None, colour=False))


def test_a_lab_of_its_own_parts_names_nobody():
    assert summary.implementation(reports.green()["labs"][0]) == ""
    assert summary.implementation(lab(swaps=[])) == ""


def test_markdown_has_file_line_hash_and_library():
    text = markdown(report())
    assert (
        "| <code>linear</code> | <code>mine.py:fused</code> | 12 | <code>abababababababab</code> | peft 0.21.2 |"
        in text
    )
    assert "Not judged in float32" in text
    assert "| <code>merge/residual</code> | its bound is what float64 rounds |" in text


def test_a_hostile_source_stays_in_its_cell():
    text = markdown(report(swaps=[{**SWAP, "source": "a|b`<img>\n:c"}]))
    assert "<img>" not in text
    assert "a\\|b" in text


def test_the_command_that_runs_it_again_swaps_again():
    words = summary.again(lab(), "bundle")
    assert words[3:] == ["--swap", "linear=mine.py:fused", "--precision", "float32"]


def test_faults_that_can_not_be_seen_are_counted_and_no_doubt():
    controls = [reports.control(), {**reports.control("fine"), "status": "unseen"}]
    made = lab(controls=controls)
    assert "1/2 faults caught" in summary.verdict(made)
    assert "1 can't be seen in float32" in summary.verdict(made)
    assert summary.doubts(made) == []


def test_the_schema_takes_them_and_refuses_other_types():
    require(report(), REPORT, "report.json")
    with pytest.raises(DamagedBundle, match=r"swaps\[0\]\.line"):
        require(report(swaps=[{**SWAP, "line": "12"}]), REPORT, "report.json")
    with pytest.raises(DamagedBundle, match="precision"):
        require(report(precision=32), REPORT, "report.json")
