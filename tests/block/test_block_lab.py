import dataclasses
from fnmatch import fnmatchcase

import numpy as np
import pytest

from labs.block import lab
from labs.block.config import Config
from labs.block.inputs import UNSUPERVISED
from labs.block.lab import LAB
from labs.block.reference import PARAMETERS
from labs.core.config import resolve
from labs.core.inputs import Draw
from labs.core.items import plan, promised
from labs.core.wiring import wiring
from labs.core.witness import witness_checks

WIKI = {
    "batch": 1,
    "positions": 2,
    "hidden": 2,
    "heads": 1,
    "ffn": 3,
    "vocabulary": 3,
    "x": ((0.5, -0.2), (0.1, 0.7)),
    "rope": False,
    "supervised": "last",
    "loss_scale": 1.0,
    "dropout": 0.0,
}
GREEN = [
    {},
    WIKI,
    {"rope": False},
    {"supervised": "last"},
    {"steps": 0},
    {"steps": 0, "extras": False},
    {"steps": 2, "checkpoint_after": 1},
    {"steps": 12, "checkpoint_after": 11},
    {"heads": 4, "kv_heads": 4},
    {"heads": 4, "kv_heads": 2},
    {"heads": 8, "kv_heads": 1, "rope": False},
    {"heads": 1, "hidden": 6},
    {"positions": 2},
    {"positions": 2, "supervised": "last", "batch": 1},
    {"batch": 1, "samples": 1},
    {"batch": 4, "samples": 3},
    {"ffn": 1, "vocabulary": 2},
    {"loss_scale": 1e-2},
    {"loss_scale": 100.0},
    {"steps_done": 300},
    {"beta1": 0.0, "beta2": 0.0},
    {"weight_decay": 0.0, "adam_epsilon": 1e-8},
    {"epsilon": 1e-12},
    {"batch": 3, "positions": 17, "hidden": 24, "heads": 6, "kv_heads": 3, "ffn": 40, "vocabulary": 50},
]


def prepared(changes=(), seed=0):
    config = dataclasses.replace(Config(), **dict(changes))
    inputs = LAB.inputs(config, Draw(seed))
    return config, inputs, LAB.reference(config, inputs)


@pytest.mark.parametrize("changes", GREEN, ids=str)
def test_both_sides_agree(checks, failing, changes):
    for seed in (0, 1):
        assert failing(checks(changes, seed)) == set()


def test_both_sides_agree_for_many_seeds(checks, failing):
    for seed in range(11):
        assert failing(checks(seed=seed)) == set()


def test_decades_are_left_at_the_default_config(checks):
    assert min(c.headroom for c in checks() if c.kind == "close") > 6


@pytest.mark.parametrize("changes", [{}, WIKI, {"heads": 4, "kv_heads": 2, "rope": False}], ids=str)
def test_the_gradients_of_x_and_of_every_parameter_are_witnessed(changes):
    config, inputs, reference = prepared(changes)
    proofs = witness_checks(LAB.witnesses, config, inputs, reference, 0)
    assert [c.message for c in proofs if c.status != "passed"] == []
    assert {c.name for c in proofs} == {f"grad/{name}" for name in ("x", *PARAMETERS)}


@pytest.mark.parametrize("changes", [{}, WIKI, {"steps": 0}], ids=str)
def test_the_checks_are_wired(changes):
    config, _, reference = prepared(changes)
    assert wiring(plan(LAB.rules(config), reference), reference, ()).problems == ()


def test_every_item_has_one_line_in_the_table():
    config, _, reference = prepared()
    names = promised(plan(LAB.rules(config), reference))
    lines = {name: [p for p in LAB.items if fnmatchcase(name, p)] for name in names}
    assert {name: found for name, found in lines.items() if len(found) != 1} == {}


def test_without_steps_nothing_of_training_is_drawn_promised_or_run():
    config, inputs, reference = prepared({"steps": 0})
    names = promised(plan(LAB.rules(config), reference))
    sections = {name.split("/")[0] for name in names}
    assert sections == {"forward", "grad", "fused", "grouped", "padded", "causality", "first"}
    assert not [name for name in inputs if name.startswith("data/")]
    assert [stage.name for stage in LAB.stages if stage.ranks(config)] == ["pass"]


def test_without_extras_one_pass_is_all_there_is():
    _, _, reference = prepared({"steps": 0, "extras": False})
    assert {name.split("/")[0] for name in reference} == {"forward", "grad", "first"}


def test_every_forward_value_but_the_loss_has_a_gradient():
    _, _, reference = prepared()
    forward = {name.removeprefix("forward/") for name in reference if name.startswith("forward/")}
    backward = {name.removeprefix("grad/") for name in reference if name.startswith("grad/")}
    assert forward - backward == {"loss"}
    assert backward - forward == {"x", *PARAMETERS}


def test_inputs_are_not_degenerate():
    _, inputs, _ = prepared()
    assert len(np.unique(inputs["weights"])) == inputs["weights"].size
    assert np.all(inputs["labels"][:, 0] == UNSUPERVISED)
    assert len(np.unique(inputs["labels"][:, 1:])) > 2
    shapes = {inputs[name].shape for name in PARAMETERS}
    assert {(8, 8), (8, 4), (8, 12), (12, 8), (8, 7), (8,)} == shapes


def test_given_rows_are_the_sequence():
    _, inputs, _ = prepared(WIKI)
    np.testing.assert_array_equal(inputs["x"], [[[0.5, -0.2], [0.1, 0.7]]])


PROBLEMS = [
    ({"heads": 3}, "heads"),
    ({"heads": 4, "kv_heads": 3}, "kv_heads"),
    ({"heads": 8}, "rope"),
    ({"x": ((1.0, 2.0),)}, "x"),
    ({"steps": 3}, "checkpoint_after"),
]


@pytest.mark.parametrize(("changes", "key"), PROBLEMS, ids=str)
def test_what_single_bounds_cannot_say_is_a_problem(changes, key):
    assert lab.problems(Config()) == ()
    assert [found for found, _ in lab.problems(dataclasses.replace(Config(), **changes))] == [key]


def test_the_tables_follow_the_gradient_from_the_loss_to_x():
    config, _, reference = prepared()
    values, parameters = LAB.tables(config, reference)
    assert [row[0] for row in values.rows][:3] == ["logits", "residual_2", "down"]
    assert values.rows[-1][0] == "x"
    assert {row[0] for row in parameters.rows} == set(PARAMETERS)
    for above, below in zip(values.rows, values.rows[1:], strict=False):
        assert below[3] == pytest.approx(below[2] / above[2])
    assert values.rows[0][2] == pytest.approx(np.linalg.norm(reference["grad/logits"]))
    assert values.rows[0][1] == pytest.approx(np.linalg.norm(reference["forward/logits"]))


@pytest.mark.parametrize("name", ["block", "block-wiki", "block-84m"])
def test_the_shipped_configs_are_valid(name):
    settings = resolve(name)
    assert settings.lab.name == "block"
    assert name != "block" or settings.config == Config()


def test_the_small_config_is_the_hand_sized_one():
    assert resolve("block-wiki").config == dataclasses.replace(Config(), **WIKI)


def test_the_large_config_has_84_million_parameters_and_is_known_to_be_large():
    config = resolve("block-84m").config
    d, f, v = config.hidden, config.ffn, config.vocabulary
    assert (d, f, config.heads, config.positions, v) == (2048, 5504, 16, 512, 16384)
    assert round((4 * d * d + 3 * d * f + d * v) / 1e6) == 84
    assert 4e9 < LAB.footprint(config) < 7e9
    assert LAB.footprint(Config()) < 1 << 20
