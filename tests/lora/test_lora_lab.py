import dataclasses
from fnmatch import fnmatchcase

import numpy as np
import pytest

from labs.core.config import resolve
from labs.core.inputs import Draw
from labs.core.items import plan, promised
from labs.core.precision import PRECISIONS, rounded
from labs.core.wiring import wiring
from labs.core.witness import witness_checks
from labs.lora import lab
from labs.lora.config import Config
from labs.lora.inputs import ties
from labs.lora.lab import LAB

GREEN = [
    {},
    {"scaling": "rslora"},
    {"loss": "squared_error"},
    {"loss": "squared_error", "scaling": "rslora", "init": "gaussian", "bits": 8},
    {"bits": 8},
    {"init": "gaussian"},
    {"rank": 1},
    {"rank": 20},
    {"alpha": 64.0},
    {"alpha": 1e-2},
    {"d_in": 8, "d_out": 8},
    {"d_in": 12, "d_out": 3},
    {"batch": 1, "positions": 1},
    {"batch": 1, "positions": 1, "loss": "squared_error"},
    {"d_in": 2, "d_out": 2, "group": 2, "rank": 1},
    {"group": 8},
    {"steps": 2},
    {"classes": 2},
    {"batch": 3, "positions": 20, "d_in": 32, "d_out": 48, "rank": 8},
]


def prepared(changes=(), seed=0):
    config = dataclasses.replace(Config(), **dict(changes))
    inputs = LAB.inputs(config, Draw(seed))
    return config, inputs, LAB.reference(config, inputs)


@pytest.mark.parametrize("changes", GREEN, ids=str)
def test_both_sides_agree(checks, failing, changes):
    for seed in (0, 1, 2):
        assert failing(checks(changes, seed)) == set()


def test_both_sides_agree_for_many_seeds(checks, failing):
    for seed in range(21):
        assert failing(checks(seed=seed)) == set()


def test_decades_are_left_at_the_default_config(checks):
    assert min(c.headroom for c in checks() if c.kind == "close") > 6


@pytest.mark.parametrize("changes", [{}, {"loss": "squared_error", "scaling": "rslora", "rank": 1}], ids=str)
def test_every_gradient_is_witnessed(changes):
    config, inputs, reference = prepared(changes)
    proofs = witness_checks(LAB.witnesses, config, inputs, reference, 0)
    assert [c.message for c in proofs if c.status != "passed"] == []
    gradients = {name for name in reference if "/grad/" in name and not name.startswith("sgd/")}
    assert {c.name for c in proofs} == gradients


def test_the_checks_are_wired():
    config, _, reference = prepared()
    assert wiring(plan(LAB.rules(config), reference), reference, ()).problems == ()


def test_every_item_has_one_line_in_the_table_and_every_line_an_item():
    config, _, reference = prepared()
    names = promised(plan(LAB.rules(config), reference))
    lines = {name: [p for p in LAB.items if fnmatchcase(name, p)] for name in names}
    assert {name: found for name, found in lines.items() if len(found) != 1} == {}
    assert {p for found in lines.values() for p in found} == set(LAB.items)


def test_every_promised_item_belongs_to_one_stage():
    config, _, reference = prepared()
    for name in promised(plan(LAB.rules(config), reference)):
        assert [s.name for s in LAB.stages if any(fnmatchcase(name, p) for p in s.items)] == [name.split("/")[0]]


def test_inputs_are_not_degenerate():
    _, inputs, _ = prepared()
    assert np.count_nonzero(inputs["base"] == 0) == Config().group
    assert len(np.unique(inputs["weights"])) == inputs["weights"].size
    assert len(np.unique(inputs["labels"])) > 1
    assert all(np.all(inputs[name] != 0) for name in inputs if name not in {"base", "labels"})


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [2, 3, 4, 32, 256])
def test_the_ties_are_every_tie_by_a_scale_of_one(bits, group):
    found, qmax = ties(bits, group), 2 ** (bits - 1) - 1
    halves = found[found != qmax]
    assert len(found) == group
    assert found.shape[1] % group == 0
    assert np.all(np.abs(found).max(axis=0) == qmax)
    assert sorted(halves) == sorted(sign * (k + 0.5) for k in range(qmax) for sign in (1, -1))
    np.testing.assert_array_equal(rounded(PRECISIONS["bfloat16"], {"ties": found})["ties"], found)


def test_the_scale_is_no_coincidence():
    alpha, rank = Config().alpha, Config().rank
    values = [alpha / rank, alpha / rank**0.5, alpha, 1.0, 1 / rank, rank, (alpha / rank) ** 2, (alpha / rank) ** 0.5]
    assert len({round(v, 6) for v in values}) == len(values)


def test_a_group_that_does_not_divide_d_in_is_a_problem():
    assert lab.problems(Config()) == ()
    assert lab.problems(dataclasses.replace(Config(), group=3)) == (("group", "3 does not divide d_in 8"),)


@pytest.mark.parametrize("name", ["lora", "lora-7b"])
def test_the_shipped_config_is_valid(name):
    settings = resolve(name)
    assert settings.lab.name == "lora"
    assert name != "lora" or settings.config == Config()


def test_the_large_config_is_known_to_be_large():
    assert 4 << 30 < LAB.footprint(resolve("lora-7b").config) < 12 << 30
    assert LAB.footprint(Config()) < 1 << 20
