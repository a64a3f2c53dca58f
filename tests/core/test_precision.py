"""Precision lanes: limits from dtype and magnitude, faults that can't be seen, a device that is not there."""

from dataclasses import replace

import numpy as np
import pytest

from labs.core.controls import Verdict, _where_seen
from labs.core.errors import RequestError
from labs.core.items import Tolerance, plan
from labs.core.lab import Control, Rule
from labs.core.launch import Framework
from labs.core.precision import PRECISIONS, USUAL, Target, rounded, tolerances, unjudged
from labs.core.registry import load
from labs.core.run import Request, run
from labs.core.verify import verify

FLOAT32, BFLOAT16 = PRECISIONS["float32"], PRECISIONS["bfloat16"]


def test_rounded_inputs_are_numbers_of_the_narrower_dtype():
    torch = pytest.importorskip("torch")
    arrays = {"x": np.random.default_rng(1).normal(size=1000), "one": np.array(1 / 3), "ids": np.arange(3)}
    for precision, dtype in ((FLOAT32, torch.float32), (BFLOAT16, torch.bfloat16)):
        found = rounded(precision, arrays)
        for name in ("x", "one"):
            assert found[name].tobytes() == torch.tensor(arrays[name]).to(dtype).double().numpy().tobytes()
        assert found["ids"] is arrays["ids"]
    assert rounded(PRECISIONS["float64"], arrays) is arrays


@pytest.mark.parametrize(("precision", "eps"), [(FLOAT32, 2**-23), (BFLOAT16, 2**-7)])
def test_a_limit_is_some_eps_of_the_largest_magnitude(precision, eps):
    reference = {"grad/x": np.array([0.5, -4.0]), "train/loss": np.array([2.0]), "count": np.array([1])}
    found = dict(tolerances(precision, load("block"), reference, ()))
    assert set(found) == {"grad/x", "train/loss"}
    assert found["grad/x"] == Tolerance(precision.factor * eps * 4.0, 0.0, found["grad/x"].reason)
    assert found["train/loss"].atol == precision.accumulated * eps * 2.0
    assert "every step starts from the last" in found["train/loss"].reason


def test_what_the_config_states_comes_first():
    stated = (("grad/*", Tolerance(1.0, 0.0, "mine")),)
    assert tolerances(FLOAT32, load("block"), {"grad/x": np.ones(1)}, stated)[0] == stated[0]
    assert tolerances(PRECISIONS["float64"], load("block"), {"grad/x": np.ones(1)}, stated) == stated


def test_what_float64_alone_means_is_not_judged_and_has_a_reason():
    lab = load("lora")
    rules = (Rule("within", "merge/residual", "bound"), Rule("exact", "order/saved_bytes/product"), Rule("close", "x"))
    assert unjudged(PRECISIONS["float64"], lab, rules) == {}
    assert set(unjudged(FLOAT32, lab, rules)) == {"merge/residual", "order/saved_bytes/product"}
    assert all(unjudged(BFLOAT16, lab, rules).values())


def test_every_pattern_of_a_lab_has_an_item():
    for name in ("lora", "block", "packing", "contrastive", "rules"):
        lab = load(name)
        config = lab.config()
        items = [r.item for r in plan(lab.rules(config), lab.reference(config, lab.inputs(config, _draw())))]
        stated = [*lab.accumulates, *(p for patterns in lab.unjudged.values() for p in patterns)]
        fitting = {p for p in stated for item in items if _matches(item, p)}
        assert fitting == set(stated), name


def _draw():
    from labs.core.inputs import Draw  # noqa: PLC0415

    return Draw(0)


def _matches(item, pattern):
    from fnmatch import fnmatchcase  # noqa: PLC0415

    return fnmatchcase(item, pattern)


CONTROL = Control("c", "why", ("a", "b"), swap={"x": "y"})
MISSED = Verdict(CONTROL, "missed", (), ("a", "b"), (), 5.0, -1.0)


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        (MISSED, "unseen"),
        (replace(MISSED, failed=("a",), missed=("b",)), "caught"),
        (replace(MISSED, failed=("a:identical",), missed=("b",)), "caught"),
        (replace(MISSED, failed=("other",), leaked=("other",)), "missed"),
        (replace(MISSED, message="the good run beside it fails at a"), "missed"),
        (replace(MISSED, message="not exercised: stage s raised"), "unseen"),
        (replace(MISSED, status="leaked", leaked=("other",)), "leaked"),
    ],
)
def test_a_fault_is_caught_where_one_item_shows_it_and_unseen_where_none_can(verdict, status):
    assert _where_seen(verdict).status == status


MINE = """
import torch
def inside(z):
    return z.float().tanh().to(z.dtype)
def wrong(z):
    return z.tanh() * 1.001
"""


@pytest.fixture(scope="module")
def framework(tmp_path_factory):
    with Framework(None, tmp_path_factory.mktemp("framework")) as started:
        yield started


@pytest.fixture
def go(tanh_layer, tmp_path, framework):
    (tmp_path / "mine.py").write_text(MINE)

    def runs(folder, name="", **asked):
        swap = {"activation": f"{tmp_path}/mine.py:{name}"} if name else {}
        lab = tanh_layer.rename(tmp_path / folder)
        return run(Request(names=(str(lab),), out=tmp_path / "out", swap=swap, **asked), framework)

    return runs


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_right_lab_passes_in_a_narrower_precision_and_its_bundle_verifies(go, precision):
    finished = go(f"lab_{precision}", precision=precision)
    (lab,) = finished.report["labs"]
    assert (lab["status"], lab["narrowed"], lab["precision"]) == ("passed", [f"--precision {precision}"], precision)
    assert {c["status"] for c in lab["controls"]} == {"caught"}
    assert all(c["tolerance"]["reason"] for c in lab["checks"] if c["kind"] == "close")
    assert verify(finished.bundle).problems == ()


def test_float32_inside_is_told_from_a_wrong_answer_by_both_lanes(go):
    report = go("inside_64", "inside", controls=False).report["labs"][0]
    failed = [c for c in report["checks"] if c["status"] == "failed"]
    assert failed
    assert all("agrees to float32 precision, not to float64" in c["diagnosis"] for c in failed)


def test_what_is_float32_inside_passes_in_float32(go):
    assert go("inside_32", "inside", controls=False, precision="float32").report["run"]["exit_code"] == 0


def test_a_wrong_answer_fails_in_float32_too(go):
    assert go("wrong_32", "wrong", controls=False, precision="float32").report["run"]["exit_code"] == 1


def test_a_device_that_is_not_there_is_refused(go):
    with pytest.raises(RequestError, match="--device cuda:7: there is no such device"):
        go("device", controls=False, device="cuda:7")


def test_the_usual_target_changes_nothing():
    arrays = {"x": np.ones(2)}
    assert USUAL.inputs(arrays) is arrays
    assert Target() == USUAL
