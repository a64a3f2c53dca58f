"""Somebody else's part judged for real: what is caught, what it is called, and which exit code it is worth."""

import hashlib
import json
import shutil

import pytest

from labs.core.launch import Framework
from labs.core.run import Request, run
from labs.core.swaps import parsed

MINE = """
import ctypes, time
import torch

def good(z):
    return torch.sinh(z) / torch.cosh(z)

def idle(z):
    return z.tanh()

def crashes(z):
    ctypes.string_at(0)

def hangs(z):
    print("about to sleep")
    time.sleep(1000)

def leaves(z):
    raise SystemExit("enough")

def wrong(z):
    return z / torch.cosh(z)

class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        return z.tanh()

    @staticmethod
    def backward(ctx, dy):
        raise ArithmeticError("in the backward pass")

def backward(z):
    return _Backward.apply(z)
"""


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    with Framework(None, tmp_path_factory.mktemp("framework")) as started:
        yield started


@pytest.fixture
def go(tanh_layer, tmp_path, framework):
    """Swap `activation` for a name in MINE; each run has a lab folder of its own name, because job names are unique."""
    (tmp_path / "mine.py").write_text(MINE)

    def runs(name, source=None, **asked):
        lab = shutil.copytree(tanh_layer, tmp_path / f"lab_{name}")
        swap = parsed([f"activation={source or f'{tmp_path}/mine.py:{name}'}"])
        request = Request(names=(str(lab),), out=tmp_path / "out", swap=swap, **asked)
        return run(request, framework)

    return runs


def test_a_right_part_passes_and_the_report_names_it(go, tmp_path):
    finished = go("good")
    (lab,) = finished.report["labs"]
    assert (finished.report["run"]["exit_code"], lab["status"]) == (0, "passed")
    assert {c["status"] for c in lab["controls"]} == {"caught"}
    content = (tmp_path / "mine.py").read_bytes()
    assert lab["swaps"] == [
        {
            "part": "activation",
            "source": f"{tmp_path}/mine.py:good",
            "file": f"{tmp_path}/mine.py",
            "line": 1 + content[: content.index(b"def good")].count(b"\n"),
            "sha256": hashlib.sha256(content).hexdigest(),
            "libraries": [],
        }
    ]
    assert json.loads((finished.bundle / "report.json").read_text())["labs"][0]["swaps"] == lab["swaps"]
    assert "mine.py:good" in (finished.bundle / "report.md").read_text()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("crashes", "was killed by SIGSEGV, inside part activation ("),
        ("leaves", "raised in part activation: SystemExit: enough ("),
        ("backward", "raised in part activation: ArithmeticError: in the backward pass ("),
    ],
)
def test_a_part_that_brings_a_stage_down_is_an_honest_no(go, name, sentence):
    report = go(name, controls=False).report
    failures = report["labs"][0]["failures"]
    assert sentence in failures[0]
    assert "mine.py" in failures[0]
    assert "own parts complete all of this" in failures[1]
    assert report["run"]["exit_code"] == 1


def test_a_part_that_nothing_called_is_not_said_to_have_passed(go, tanh_layer):
    module = tanh_layer / "torch_impl.py"
    module.write_text(module.read_text().replace("parts.activation(", "torch.tanh("))
    report = go("idle", controls=False).report
    assert {c["status"] for c in report["labs"][0]["checks"]} == {"passed"}
    assert report["labs"][0]["failures"] == [
        "part activation was swapped in and never called in this run, so nothing is known of it"
    ]
    assert report["run"]["exit_code"] == 1


def test_a_part_that_hangs_is_stopped_at_the_time_limit_and_named(go):
    report = go("hangs", controls=False, timeout=2.0).report
    failures = report["labs"][0]["failures"]
    assert "was stopped at the time limit" in failures[0]
    assert "inside part activation (" in failures[0]
    assert "about to sleep" in failures[0]
    assert report["run"]["exit_code"] == 1


def test_where_the_labs_own_parts_fail_too_the_run_is_not_completed(go, tanh_layer, tmp_path):
    stage = tanh_layer / "torch_impl.py"
    stage.write_text(stage.read_text() + "\nimport os\nSTAGES = dict.fromkeys(STAGES, lambda *_: os._exit(3))\n")
    report = go("broken_lab", source=f"{tmp_path}/mine.py:good", controls=False).report
    assert "the lab's own parts fail as well: " in report["labs"][0]["failures"][1]
    assert report["run"]["exit_code"] == 3


def test_a_library_that_is_not_there_is_a_sentence_and_no_verdict(go):
    report = go("absent", source="no_such_library.ops:tanh", controls=False).report
    assert "part activation needs the module 'no_such_library'" in report["labs"][0]["failures"][0]
    assert report["run"]["exit_code"] == 3


def test_a_wrong_part_fails_its_values_and_the_known_faults_are_caught_all_the_same(go):
    report = go("wrong").report
    (lab,) = report["labs"]
    assert {c["name"] for c in lab["checks"] if c["status"] == "failed"} >= {"output", "loss", "grad/w"}
    assert {c["status"] for c in lab["controls"]} == {"caught"}
    assert report["run"]["exit_code"] == 1
