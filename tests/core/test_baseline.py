"""A run against a bundle that passed; the last tests run the documentation's own lab with a changed line."""

import json

import numpy as np
import pytest

from cli.output import Look
from cli.render import terminal
from labs.core.baseline import held_against, open_baseline
from labs.core.config import resolve, to_yaml
from labs.core.diff import diff
from labs.core.difference.opened import open_bundle
from labs.core.difference.record import record
from labs.core.errors import RequestError
from labs.core.launch import Framework
from labs.core.reports.markdown import markdown
from labs.core.run import Request, run
from labs.core.verify import verify
from tests.core.sample_bundle import control, make, rehash

WRONG = {"w": np.full((2, 3), 2.0), "resume/w": np.full((2, 3), 2.0)}
LORA = to_yaml(resolve("lora"))


def report_of(bundle):
    return json.loads((bundle / "report.json").read_text())


def held(before, after):
    return held_against(open_bundle(before), after, report_of(after))


def text(report, level=0):
    return terminal(report, "artifacts/x", Look(None, colour=False), level)


@pytest.fixture
def good(tmp_path):
    return make(tmp_path / "good", config=LORA)


def remove(name):
    return lambda bundle: (bundle / name).unlink()


def flip(bundle):
    path = bundle / "lora/inputs/x.npy"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


UNUSABLE = {
    "no bundle": (lambda b: [p.unlink() for p in (b / "report.json", b / "manifest.json")], "not a bundle"),
    "no report": (remove("report.json"), "report.json: missing"),
    "an array gone": (remove("lora/observed/w.npy"), "lora/observed/w.npy: missing"),
    "a byte changed": (flip, "damaged: lora/inputs/x.npy: changed"),
    "a file too many": (lambda b: (b / "more").write_text(""), "damaged: more: not listed"),
    "another config": (
        lambda b: ((b / "lora/config.yaml").write_text(LORA.replace("seed: 0", "seed: 1")), rehash(b)),
        "can be compared with this run: lora: the configs differ in seed (1 and 0)",
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_baseline_is_a_wrong_request(good, name):
    damage, sentence = UNUSABLE[name]
    damage(good)
    with pytest.raises(RequestError) as caught:
        open_baseline(good, [resolve("lora")])
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("--baseline ")


def test_a_failing_baseline_is_a_wrong_request(tmp_path):
    with pytest.raises(RequestError, match="its run failed; a baseline is a bundle that passed"):
        open_baseline(make(tmp_path, WRONG, config=LORA), [resolve("lora")])


def test_a_baseline_without_the_config_of_the_run_is_a_wrong_request(good):
    with pytest.raises(RequestError, match="it holds lora, not block"):
        open_baseline(good, [resolve("block")])


def test_a_baseline_of_another_precision_is_a_wrong_request(good):
    with pytest.raises(RequestError, match="lora: another precision: float64 and bfloat16"):
        open_baseline(good, [resolve("lora")], "bfloat16")


def test_a_baseline_may_hold_more_or_less_than_the_run(good):
    assert list(open_baseline(good, [resolve("block"), resolve("lora")]).labs) == ["lora"]


@pytest.mark.parametrize("place", ["nowhere", "good"])
def test_it_is_refused_before_anything_runs_and_nothing_is_created(tmp_path, place):
    make(tmp_path / "good", WRONG, config=LORA)
    request = Request(names=("lora",), out=tmp_path / "out", baseline=tmp_path / place / "latest")
    with pytest.raises(RequestError):
        run(request, framework=None)  # nothing asks it for anything
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "nowhere").exists()


def test_a_run_like_its_baseline_passes_and_says_so(tmp_path, good):
    report = held(good, make(tmp_path / "now", config=LORA))
    assert (report["run"]["status"], report["run"]["exit_code"]) == ("passed", 0)
    assert " · no regression since 0 · " in text(report)
    assert len(text(report).splitlines()) == 1
    assert "**no regression**" in markdown(report)


WORSE = {
    "a check gone": ({"observed": {"loose": None}, "reference": {"loose": None}, "tolerances": ()}, "removed"),
    "a fault gone": ({"controls": []}, "removed"),
}


@pytest.mark.parametrize("name", WORSE)
def test_a_run_that_passes_and_is_worse_fails(tmp_path, good, name):
    made, change = WORSE[name]
    report = held(good, make(tmp_path / "now", config=LORA, **made))
    assert (report["labs"][0]["status"], report["run"]["status"], report["run"]["exit_code"]) == ("passed", "failed", 1)
    assert [c["class"] for c in report["baseline"]["changes"]] == [change]
    lines = text(report).splitlines()
    assert lines[-1].startswith(f"against 0: failed on {change} · ")
    assert f"{change} (1)" in lines
    assert text(report, level=-1).splitlines() == lines[-2:]
    assert f"**failed on {change}**" in markdown(report)


def test_a_failing_run_fails_as_it_did(tmp_path, good):
    report = held(good, make(tmp_path / "now", WRONG, config=LORA))
    assert (report["run"]["exit_code"], report["baseline"]["run"]["exit_code"]) == (1, 1)


def test_drift_and_a_new_check_are_told_and_pass(tmp_path, good):
    moved = make(tmp_path / "now", {"loose": np.arange(1.0, 7.0).reshape(2, 3) / 7 + 9e-4}, config=LORA)
    report = held(good, moved)
    assert report["run"]["exit_code"] == 0
    assert [c["class"] for c in report["baseline"]["changes"]] == ["drift"]
    added = held(make(tmp_path / "then", config=LORA, controls=[]), make(tmp_path / "new", controls=[control()]))
    assert [c["class"] for c in added["baseline"]["changes"]] == ["not-comparable"] * 7 + ["added"]


def test_inputs_that_moved_leave_nothing_to_compare(tmp_path, good):
    report = held(good, make(tmp_path / "now", inputs={"x": np.ones(3)}, config=LORA))
    assert (report["run"]["status"], report["run"]["exit_code"]) == ("failed", 5)
    assert text(report).splitlines()[-1].startswith("against 0: nothing was compared")


def go(lab, out, **asked):
    with Framework(None, out / "framework") as framework:
        request = Request(names=(str(lab),), out=out, controls=False, only=("output", "grad/w"), **asked)
        return run(request, framework)


LINES = {
    "last-bits": "y = (1 + 2**-52) * config.scale * parts.activation(x @ w)",
    "drift": "y = (1 + 1e-12) * config.scale * parts.activation(x @ w)",
    "regression": "y = 1.001 * config.scale * parts.activation(x @ w)",
}


def test_a_changed_line_of_the_torch_side_shows_with_its_class_and_in_the_bundle(tanh_layer, tmp_path):
    before = go(tanh_layer, tmp_path / "before").bundle
    path = tanh_layer / "torch_impl.py"
    right = path.read_text()
    for name, line in LINES.items():
        path.write_text(right.replace("y = config.scale * parts.activation(x @ w)", line))
        after = go(tanh_layer, tmp_path / "after", baseline=tmp_path / "before/latest")
        found = diff(before, after.bundle)
        change = next(c for c in found.changes if c.name == "output" and c.kind == "close")
        assert (change.change, change.moved) == (name, ("observed",))
        assert "look at what changed in the code" in found.cause
        assert after.report["run"]["exit_code"] == (1 if name == "regression" else 0)
        stored = report_of(after.bundle)["baseline"]
        assert stored["counts"][name] >= 1
        assert {**record(found, "regression"), "changes": stored["changes"]} == stored
    assert "## Baseline" in (after.bundle / "report.md").read_text()
    assert not any("run is said" in p for p in verify(after.bundle).problems)
