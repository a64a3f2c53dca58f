"""The engine on the documentation's own lab, with real framework processes."""

import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.numpy

from labs.core import pinned, trial
from labs.core.errors import NothingCompared, RequestError
from labs.core.launch import Framework
from labs.core.process.jobs import JobResult, Outcome
from labs.core.registry import load
from labs.core.run import Request, run
from labs.core.schedule import Case, Ran
from labs.core.storage.folder import MAPPED
from labs.core.trial import mapped, save_all
from labs.core.verify import verify

FORMULA = "dy * (1 - a**2)"
STAGES = 'Stage("left", ("grad/w",)), Stage("values", ("output", "loss")), Stage("right", ("grad/x",))'
IN_THREE = """
def values(config, inputs, parts, place):
    import ctypes
    ctypes.string_at(0)

STAGES = {
    "left": lambda *given: {"grad/w": layer(*given)["grad/w"]},
    "values": values,
    "right": lambda *given: {"grad/x": layer(*given)["grad/x"]},
}
"""


def go(lab, tmp_path, **asked):
    with Framework(None, tmp_path / "framework") as framework:
        finished = run(Request(names=(str(lab),), out=tmp_path / "out", **asked), framework)
    return finished.report, finished.bundle


def checks_of(report):
    return {(c["name"], c["kind"]): c for c in report["labs"][0]["checks"]}


def change(lab, file, before, after):
    path = lab / file
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))


def test_a_right_lab_passes_with_every_fault_caught_and_a_whole_bundle(tanh_layer, tmp_path):
    report, bundle = go(tanh_layer, tmp_path)
    (lab,) = report["labs"]
    assert (report["run"]["status"], report["run"]["exit_code"]) == ("passed", 0)
    assert {c["status"] for c in lab["checks"]} == {"passed"}
    assert [c["status"] for c in lab["controls"]] == ["caught", "caught"]
    assert lab["wiring"]["spoils"] > 0
    assert lab["wiring"]["problems"] == []
    assert min(c["headroom"] for c in lab["checks"] if c["kind"] == "close") > 5
    assert json.loads((bundle / "report.json").read_text()) == report
    for item in ("output", "loss", "grad/w", "grad/x"):
        observed = np.load(bundle / f"tanh_layer/observed/{item}.npy")
        np.testing.assert_allclose(observed, np.load(bundle / f"tanh_layer/reference/{item}.npy"), rtol=1e-12)
    (packed,) = (bundle / "tanh_layer/controls/derivative_unsquared").iterdir()
    changed = safetensors.numpy.load_file(packed)
    assert sorted(changed) == ["grad/w", "grad/x"]
    assert not any(np.array_equal(changed[n], np.load(bundle / f"tanh_layer/observed/{n}.npy")) for n in changed)
    assert not (bundle / ".scratch").exists()
    assert (tmp_path / "out/latest").resolve() == bundle.resolve()


@pytest.mark.parametrize("asked", [{"changes": ("scale=2.5",)}, {"seed": 1}], ids=["config", "inputs"])
def test_controls_stand_beside_the_default_whatever_the_run_is(tanh_layer, tmp_path, asked):
    report, _ = go(tanh_layer, tmp_path, **asked)
    assert [(c["status"], c["separation"]["good"] > 5) for c in report["labs"][0]["controls"]] == [("caught", True)] * 2


def test_separation_has_room_on_both_sides_of_the_limit(tanh_layer, tmp_path):
    report, _ = go(tanh_layer, tmp_path)
    for control in report["labs"][0]["controls"]:
        assert control["separation"]["good"] > 5
        assert control["separation"]["fault"] > 5


def test_a_wrong_reference_gradient_is_disproved_and_named(tanh_layer, tmp_path):
    change(tanh_layer, "reference.py", "(1 - a**2)", "(1 - a)")
    report, _ = go(tanh_layer, tmp_path)
    assert report["run"]["exit_code"] == 1
    for name in ("grad/w", "grad/x"):
        check = checks_of(report)[name, "close"]
        assert check["status"] == "failed"
        assert check["blame"]["side"] == "reference"
        assert "derivative_unsquared" in check["diagnosis"]
    assert checks_of(report)["output", "close"]["status"] == "passed"


def test_a_wrong_torch_gradient_is_the_torch_sides(tanh_layer, tmp_path):
    change(tanh_layer, "torch_impl.py", "activation=torch.tanh", "activation=derivative_unsquared")
    change(
        tanh_layer, "torch_impl.py", "import torch\n", "import torch\nfrom .torch_faults import derivative_unsquared\n"
    )
    report, _ = go(tanh_layer, tmp_path)
    check = checks_of(report)["grad/w", "close"]
    assert report["run"]["exit_code"] == 1
    assert check["blame"]["side"] == "observed"
    assert "equals derivative_unsquared" in check["diagnosis"]
    assert check["arbiter"]["observed_ulp"] > 1e6 > check["arbiter"]["reference_ulp"]


def test_a_control_that_can_not_fire_is_missed_and_fails_the_run(tanh_layer, tmp_path):
    change(tanh_layer, "controls.py", 'lie={"scale": 1.0}', 'lie={"scale": 1.5}')
    report, _ = go(tanh_layer, tmp_path)
    control = report["labs"][0]["controls"][1]
    assert report["run"]["exit_code"] == 1
    assert control["status"] == "missed"
    assert set(control["missed"]) == {"output", "loss", "grad/w", "grad/x"}


def test_a_control_that_fails_elsewhere_leaks_and_fails_the_run(tanh_layer, tmp_path):
    change(tanh_layer, "controls.py", 'must=("output", "loss", "grad/*")', 'must=("output",)')
    report, _ = go(tanh_layer, tmp_path)
    control = report["labs"][0]["controls"][1]
    assert report["run"]["exit_code"] == 1
    assert control["status"] == "leaked"
    assert set(control["leaked"]) == {"loss", "grad/w", "grad/x"}


def test_an_item_left_out_is_a_failure_with_its_name(tanh_layer, tmp_path):
    change(tanh_layer, "torch_impl.py", ', "grad/x": x.grad}', "}")
    report, _ = go(tanh_layer, tmp_path, controls=False)
    check = checks_of(report)["grad/x", "close"]
    assert (report["run"]["exit_code"], check["status"]) == (1, "failed")
    assert "missing" in check["message"]


def test_an_item_that_nobody_promised_is_a_failure(tanh_layer, tmp_path):
    change(tanh_layer, "torch_impl.py", ', "grad/x": x.grad}', ', "grad/x": x.grad, "more": y}')
    report, _ = go(tanh_layer, tmp_path, controls=False)
    assert "extra" in checks_of(report)["more", "close"]["message"]


def test_only_narrows_the_promise_and_says_so(tanh_layer, tmp_path):
    report, _ = go(tanh_layer, tmp_path, only=("grad/*",))
    (lab,) = report["labs"]
    assert {c["name"] for c in lab["checks"]} == {"grad/w", "grad/x"}
    assert lab["narrowed"] == ["--only grad/*"]
    assert report["run"]["exit_code"] == 0


def test_a_pattern_that_matches_nothing_compares_nothing_and_leaves_nothing(tanh_layer, tmp_path):
    with pytest.raises(NothingCompared, match=r"grad/z.*lab show NAME"):
        go(tanh_layer, tmp_path, only=("grad/z",))
    assert [p for p in (tmp_path / "out").iterdir() if not p.name.startswith(".")] == []


def test_a_stage_that_raises_is_a_failure_with_its_error(tanh_layer, tmp_path):
    change(tanh_layer, "torch_impl.py", "loss.backward()", "raise ValueError('no such thing: \\udcff')")
    report, bundle = go(tanh_layer, tmp_path, controls=False, command=("lab", "run", "\udcff"))
    assert report["run"]["exit_code"] == 1
    (failure,) = report["labs"][0]["failures"]
    assert failure.startswith("stage layer raised: ValueError: no such thing: \\udcff (")
    assert failure.endswith("torch_impl.py:12)")
    assert bundle.is_dir()


def test_a_stage_that_crashes_ends_in_error_with_a_bundle(tanh_layer, tmp_path):
    change(tanh_layer, "torch_impl.py", "loss.backward()", "import ctypes; ctypes.string_at(0)")
    report, bundle = go(tanh_layer, tmp_path, controls=False)
    assert (report["run"]["status"], report["run"]["exit_code"]) == ("error", 3)
    assert "SIGSEGV" in report["labs"][0]["failures"][0]
    assert bundle.is_dir()


def test_a_crash_takes_no_other_stage_along(tanh_layer, tmp_path):
    change(tanh_layer, "lab.py", 'Stage("layer", ("output", "loss", "grad/*"))', STAGES)
    change(tanh_layer, "torch_impl.py", 'STAGES = {"layer": layer}', IN_THREE)
    report, bundle = go(tanh_layer, tmp_path, controls=False)
    assert [s["name"] for s in report["labs"][0]["stages"] if s["status"] != "ok"] == ["values"]
    assert "stage values: was killed by SIGSEGV" in report["labs"][0]["failures"][0]
    status = {name: check["status"] for (name, kind), check in checks_of(report).items() if kind == "close"}
    assert status == {"output": "failed", "loss": "failed", "grad/w": "passed", "grad/x": "passed"}
    assert verify(bundle).problems == ()


def test_a_crash_that_does_not_happen_again_is_not_forgotten(tanh_layer, tmp_path):
    once = IN_THREE.replace("ctypes.string_at(0)", "place.scratch.parent.joinpath('died').mkdir(); ctypes.string_at(0)")
    survives = """
def again(config, inputs, parts, place):
    if place.scratch.parent.joinpath('died').exists():
        found = layer(config, inputs, parts, place)
        return {"output": found["output"], "loss": found["loss"]}
    return values(config, inputs, parts, place)

STAGES["values"] = again
"""
    change(tanh_layer, "lab.py", 'Stage("layer", ("output", "loss", "grad/*"))', STAGES)
    change(tanh_layer, "torch_impl.py", 'STAGES = {"layer": layer}', once + survives)
    report, _ = go(tanh_layer, tmp_path, controls=False)
    assert report["run"]["exit_code"] == 3
    assert "stage values: was killed by SIGSEGV" in report["labs"][0]["failures"][0]
    assert {c["name"] for c in report["labs"][0]["checks"] if c["status"] != "passed"} == {"output", "loss"}


@pytest.mark.parametrize("name", ["../../climb", "Upper", "a//b", "a:b"])
def test_a_name_of_the_reference_that_is_no_item_name_writes_nothing(tanh_layer, tmp_path, name):
    change(tanh_layer, "reference.py", '"output": y,', f'"output": y, {name!r}: y,')
    with pytest.raises(RequestError, match="not a path of lower-case letters"):
        go(tanh_layer, tmp_path)


def test_a_stage_that_hangs_ends_at_the_time_limit(tanh_layer, tmp_path):
    change(tanh_layer, "torch_impl.py", "loss.backward()", "import time; time.sleep(600)")
    report, _ = go(tanh_layer, tmp_path, controls=False, timeout=20)
    assert report["run"]["exit_code"] == 3
    assert "stage layer" in report["labs"][0]["failures"][0]


def test_a_witness_of_an_item_that_the_reference_lacks_is_a_sentence(tanh_layer, tmp_path):
    change(tanh_layer, "reference.py", '"grad/w": x.T @ dz,', "")
    with pytest.raises(RequestError, match=r"the reference has no grad/w, which witnesses in lab\.py stand for"):
        go(tanh_layer, tmp_path)


def test_a_lie_about_a_key_that_is_not_there_is_a_sentence(tanh_layer, tmp_path):
    change(tanh_layer, "controls.py", 'lie={"scale": 1.0}', 'lie={"scal": 1.0}')
    with pytest.raises(RequestError, match=r"lie: there is no config key 'scal'.*scale"):
        go(tanh_layer, tmp_path)


def test_an_error_in_a_users_reference_is_a_sentence_with_its_line(tanh_layer, tmp_path):
    change(tanh_layer, "reference.py", "dz = config", "dz = 1 / 0 * config")
    line = next(
        i for i, text in enumerate((tanh_layer / "reference.py").read_text().splitlines(), 1) if "1 / 0" in text
    )
    with pytest.raises(RequestError, match=rf"reference\.py:{line}: ZeroDivisionError"):
        go(tanh_layer, tmp_path)


@pytest.mark.parametrize(("save", "kept"), [("none", set()), ("failing", {"grad/x"})])
def test_save_bounds_what_the_bundle_keeps(tanh_layer, tmp_path, save, kept):
    change(tanh_layer, "reference.py", '"grad/x": dz @ w.T', '"grad/x": 2 * dz @ w.T')
    report, bundle = go(tanh_layer, tmp_path, changes=(f"save={save}",))
    for side in ("reference", "observed"):
        folder = bundle / "tanh_layer" / side
        found = {p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.npy")}
        assert found == kept
    assert all(c["observed_sha256"] for c in report["labs"][0]["checks"] if c["kind"] == "close")


def test_a_loosened_tolerance_is_listed_with_its_reason(tanh_layer, tmp_path):
    report, _ = go(
        tanh_layer, tmp_path, changes=("tolerances={grad/*: {atol: 5, reason: just looking}}",), controls=False
    )
    assert report["labs"][0]["loosened"] == [{"pattern": "grad/*", "atol": 5.0, "rtol": 1e-8, "reason": "just looking"}]
    # a limit this loose would let zeros pass, and a check that zeros pass is none
    assert "blunt" in checks_of(report)["grad/w", "close"]["message"]


def test_the_referee_never_imports_torch(tanh_layer, tmp_path):
    code = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(tanh_layer.parent)!r})
from labs.core.launch import Framework
with Framework(None, Path({str(tmp_path / "f")!r})) as framework:
    from labs.core.run import Request, run
    run(Request(names=({str(tanh_layer)!r},), out=Path({str(tmp_path / "o")!r})), framework)
print([name for name in sys.modules if name.startswith("torch")])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
    assert not re.search("Traceback", out.stderr)


def with_facts(lab):
    change(lab, "torch_impl.py", '"grad/x": x.grad}', '"grad/x": x.grad, "facts/odd": True}')
    change(lab, "lab.py", '"layer", ("output",', '"layer", ("facts/*", "output",')
    change(
        lab,
        "lab.py",
        "    controls=CONTROLS,",
        '    controls=CONTROLS,\n    facts={"facts/odd": "what versions do differently"},',
    )


@pytest.mark.parametrize("save", ["all", "none"])
def test_a_fact_is_stated_and_not_judged(tanh_layer, tmp_path, save):
    with_facts(tanh_layer)
    report, bundle = go(tanh_layer, tmp_path, changes=(f"save={save}",))
    (lab,) = report["labs"]
    assert report["run"]["exit_code"] == 0
    assert verify(bundle).problems == ()
    assert lab["facts"] == [{"name": "facts/odd", "what": "what versions do differently", "value": True}]
    assert "facts/odd" not in {c["name"] for c in lab["checks"]}


def test_a_fact_that_is_not_stated_is_a_failure(tanh_layer, tmp_path):
    with_facts(tanh_layer)
    change(tanh_layer, "torch_impl.py", ', "facts/odd": True', "")
    report, _ = go(tanh_layer, tmp_path, controls=False)
    assert report["run"]["exit_code"] == 1
    assert report["labs"][0]["failures"] == ["fact facts/odd: the torch side did not state it"]


def test_both_sides_wrong_in_the_same_way_no_longer_have_the_pinned_values(tanh_layer, tmp_path):
    pinned.write(load(str(tanh_layer)))
    assert go(tanh_layer, tmp_path)[0]["run"]["exit_code"] == 0
    twin = tmp_path / "twin"  # a changed file of an imported lab would not be imported again
    shutil.copytree(tanh_layer, twin)
    change(twin, "reference.py", "y = config.scale * a\n", "y = 2 * config.scale * a\n")
    change(twin, "reference.py", "dz = config.scale", "dz = 2 * config.scale")
    change(twin, "reference.py", "y = config.scale * np", "y = 2 * config.scale * np")
    change(twin, "torch_impl.py", "y = config.scale", "y = 2 * config.scale")
    report, _ = go(twin, tmp_path)
    assert report["run"]["exit_code"] == 1
    assert {c["status"] for c in report["labs"][0]["checks"]} == {"passed"}
    assert "pinned values at grad/w, grad/x, loss and output" in report["labs"][0]["failures"][0]


@pytest.mark.parametrize(
    ("before", "after"),
    [('"derivative_unsquared"}', '"no_such_fault"}'), ('swap={"activation"', 'swap={"activasion"')],
    ids=["no such fault", "no such part"],
)
def test_a_fault_that_could_not_run_is_not_caught(tanh_layer, tmp_path, before, after):
    change(tanh_layer, "controls.py", before, after)
    report, _ = go(tanh_layer, tmp_path)
    control = report["labs"][0]["controls"][0]
    assert report["run"]["exit_code"] == 1
    assert control["status"] == "missed"
    assert "not exercised" in control["message"]


def test_a_blunt_limit_accuses_nobody(tanh_layer, tmp_path):
    loose = "tolerances={grad/w: {atol: 1e9, reason: far too loose}}"
    report, _ = go(tanh_layer, tmp_path, changes=(loose,), controls=False)
    check = checks_of(report)["grad/w", "close"]
    assert "blunt" in check["message"]
    assert (check["blame"], check["diagnosis"]) == (None, None)


def test_a_tolerance_for_no_item_is_a_mistyped_one(tanh_layer, tmp_path):
    with pytest.raises(RequestError, match="'gard/w' matches no item; did you mean grad/w"):
        go(tanh_layer, tmp_path, changes=("tolerances={gard/w: {atol: 1e-8, reason: x}}",))


def test_a_wrong_forward_formula_is_not_laid_on_the_torch_side(tanh_layer, tmp_path):
    change(tanh_layer, "reference.py", "config.scale *", "1.5 * config.scale *")
    report, _ = go(tanh_layer, tmp_path)
    found = checks_of(report)
    assert found["output", "close"]["status"] == "failed"
    assert {c["blame"]["side"] for c in found.values() if c["blame"]} <= {"reference"}


def test_a_stopped_run_leaves_a_bundle_that_verifies(tanh_layer, tmp_path):
    change(tanh_layer, "torch_impl.py", "loss.backward()", "import time; time.sleep(600)")
    report, bundle = go(tanh_layer, tmp_path, controls=False, timeout=20)
    assert report["run"]["status"] == "error"
    assert verify(bundle).problems == ()


def test_a_fault_beside_a_good_run_that_fails_proves_nothing(tanh_layer, tmp_path):
    """A wrong line that only another config reaches: the control's config is the one that shows it."""
    change(tanh_layer, "controls.py", 'lie={"scale": 1.0},', 'lie={"scale": 1.0},\n        at={"rows": 5},')
    change(tanh_layer, "torch_impl.py", "y = config.scale", "y = (1 + (config.rows == 5)) * config.scale")
    report, _ = go(tanh_layer, tmp_path)
    control = report["labs"][0]["controls"][1]
    assert report["run"]["exit_code"] == 1
    assert {c["status"] for c in report["labs"][0]["checks"]} == {"passed"}
    assert control["status"] == "missed"
    assert control["message"] == "the good run beside it fails at output, loss, grad/w, grad/x"


def test_a_run_that_fails_leaves_nothing_though_its_stages_go_on_writing(tanh_layer, tmp_path):
    head = "def layer(config, inputs, parts, place):"
    endless = "while True:\n        with contextlib.suppress(OSError):\n            place.scratch.mkdir(parents=True)"
    change(tanh_layer, "torch_impl.py", head, f"{head}\n    import contextlib\n    {endless}")
    out = tmp_path / "out"

    def interrupt(text):
        if text == "waiting for torch":
            until = time.monotonic() + 60
            while not list(out.glob(".*/.scratch/*/main")) and time.monotonic() < until:
                time.sleep(0.01)
            raise KeyboardInterrupt

    with Framework(None, tmp_path / "framework") as framework, pytest.raises(KeyboardInterrupt):
        run(Request(names=(str(tanh_layer),), out=out, controls=False), framework, interrupt)
    assert list(out.iterdir()) == []


def test_large_inputs_are_mapped_and_nobody_writes_into_the_file(tmp_path):
    arrays = {"w": np.linspace(1.0, 2.0, MAPPED // 8 + 1), "x": np.ones(3)}
    save_all(tmp_path, arrays)
    found = mapped(tmp_path, arrays)
    assert type(found["w"]) is np.ndarray
    assert found["x"] is arrays["x"]
    np.testing.assert_array_equal(found["w"], arrays["w"])
    found["w"][0] = 5.0
    assert np.load(tmp_path / "w.npy")[0] == 1.0


def test_progress_says_which_lab_and_what(tanh_layer, tmp_path):
    change(tanh_layer, "torch_impl.py", "y = config.scale", "y = 2 * config.scale")
    steps = []
    with Framework(None, tmp_path / "framework") as framework:
        run(Request(names=(str(tanh_layer),), out=tmp_path / "out"), framework, steps.append)
    assert steps[1:] == [
        "waiting for torch",
        "tanh_layer: running",
        "tanh_layer: running 2 known faults",
        "tanh_layer: red, looking for the cause",
    ]


def test_what_the_ranks_of_a_crashed_stage_had_written_is_not_looked_for_again(tmp_path, monkeypatch):
    lab = load("lora")
    case = Case("main", lab.config(), *[tmp_path / name for name in ("inputs", "observed", "scratch", "checkpoints")])
    told = JobResult("run", (), "rank 1 was killed by SIGKILL", 0, 0.0, "")
    half = [Ran(case, stage, (), told) for stage in lab.stages[:2]]
    half[0] = replace(half[0], outcomes=(Outcome(0, 0, "ok", items=("rank0/x",)),))
    monkeypatch.setattr(Ran, "_ranks", 2)
    raised = [Ran(r.case, r.stage, (Outcome(0, 0, "raised"), Outcome(0, 1, "raised")), told) for r in half]
    monkeypatch.setattr(trial, "start", lambda *_: None)
    monkeypatch.setattr(trial, "finish", lambda *_: tuple(raised))
    settings = SimpleNamespace(lab=lab, threads=1)
    one = trial.Trial(settings, (), tmp_path, {}, case, (), ())
    ran = trial._singly(one, tuple(half), None, float("inf"))
    assert [r.crashed for r in ran] == [True, False]
    assert trial.items_of(case, ran) == {}
