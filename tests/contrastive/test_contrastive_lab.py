import dataclasses
from pathlib import Path

import pytest

from labs.contrastive.config import Config
from labs.contrastive.lab import LAB
from labs.core.config import resolve
from labs.core.errors import RequestError
from labs.core.inputs import Draw
from labs.core.items import plan
from labs.core.wiring import wiring
from labs.core.witness import witness_checks

LAB_FOLDER = Path(__file__).resolve().parents[2] / "labs/contrastive"
UNEVEN = {"shares": (5, 3)}
GREEN = [
    {},
    UNEVEN,
    {"world_size": 1},
    {"world_size": 3},
    {"world_size": 4},
    {"world_size": 3, "shares": (1, 5, 2)},
    {"world_size": 4, "batch": 4},
    {"batch": 2},
    {"batch": 9, "micro_batches": ()},
    {"batch": 24, "shares": (1, 23), "d_a": 3, "d_b": 30, "d": 16, "micro_batches": (5, 100)},
    {"d_a": 1, "d_b": 1, "d": 2, "lr": 10.0},
    {"log_scale": 0.0},
    {"log_scale": 4.6},
]


def prepared(changes=(), seed=0):
    config = dataclasses.replace(Config(), **dict(changes))
    inputs = LAB.inputs(config, Draw(seed))
    return config, inputs, LAB.reference(config, inputs)


@pytest.mark.parametrize("changes", GREEN, ids=str)
def test_both_sides_agree(checks, failing, changes):
    for seed in (0, 1):
        assert failing(checks(changes, seed)) == set()


def test_decades_are_left_at_the_default_config(checks):
    assert min(c.headroom for c in checks() if c.kind == "close") > 5


@pytest.mark.parametrize("changes", [{}, UNEVEN, {"world_size": 1}], ids=str)
def test_every_gradient_is_the_derivative_of_its_loss(changes):
    config, inputs, reference = prepared(changes)
    found = witness_checks(LAB.witnesses, config, inputs, reference, 0)
    assert {c.name for c in found if c.status != "passed"} == set()


@pytest.mark.parametrize("changes", [UNEVEN, {"world_size": 3}, {"log_scale": 0.0}], ids=str)
def test_every_check_notices_a_spoiled_element(changes):
    config, _, reference = prepared(changes)
    assert wiring(plan(LAB.rules(config), reference), reference, ()).problems == ()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["shares=[5, 3]", "world_size=3"], "2 numbers for world_size 3"),
        (["shares=[5, 4]"], "[5, 4]: expected positive numbers with sum batch 8"),
        (["shares=[8, 0]"], "[8, 0]: expected positive numbers with sum batch 8"),
        (["world_size=9"], "8 pairs for world_size 9: a rank would have none"),
        (["micro_batches=[2, 2]"], "[2, 2]: expected different positive numbers"),
        (["micro_batches=[0]"], "[0]: expected different positive numbers"),
        (["world_size=0"], "got 0"),
        (["d=1"], "got 1"),
    ],
)
def test_a_config_that_means_nothing_is_refused(tmp_path, changes, sentence):
    path = tmp_path / "mine.yaml"
    path.write_text(f"lab: {LAB_FOLDER}\n")
    with pytest.raises(RequestError) as error:
        resolve(str(path), changes)
    assert sentence in str(error.value)
