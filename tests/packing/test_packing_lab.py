import dataclasses
from fnmatch import fnmatchcase

import numpy as np
import pytest

from labs.core.config import default
from labs.core.errors import RequestError
from labs.core.inputs import Draw
from labs.core.items import plan, promised
from labs.core.wiring import wiring
from labs.core.witness import witness_checks
from labs.packing.config import Config
from labs.packing.lab import LAB

TWO = {"lengths": (1, 4), "micro_batches": (2,), "ranks": (1, 1)}
ALIKE = {"lengths": (3, 3, 3), "micro_batches": (1, 2), "ranks": (1, 1, 1)}  # no padding anywhere
LONG = {"lengths": (20, 35, 3, 45), "limit": 32, "d_model": 16, "heads": 4, "head_dim": 8, "vocabulary": 50}
GREEN = [
    {},
    {"truncation": "left"},
    TWO,
    ALIKE,
    LONG,
    {"lengths": (5, 1, 1, 12), "limit": 4},  # documents without a target of their own
    {"limit": 3},
    {"vocabulary": 3, "d_model": 1},
    {"heads": 1, "head_dim": 2},
    {"pad_id": 3},
    {"pad_id": 6, "truncation": "left"},
    {"shards": 1},
    {"shards": 40},
    {"window": 1},
    {"micro_batches": (1, 1, 1, 1), "window": 3},
    {"micro_batches": (4,), "window": 5},
    {"ranks": (1, 1, 1, 1)},
    {"ranks": (4,)},
    {"completion": 9},
    {"roles": "ua"},
    {"roles": "aauta"},
    {"eps": 1e-8, "weight_decay": 0.0},
]


def prepared(changes=(), seed=0):
    config = dataclasses.replace(Config(), **dict(changes))
    inputs = LAB.inputs(config, Draw(seed))
    return config, inputs, LAB.reference(config, inputs)


@pytest.mark.parametrize("changes", GREEN, ids=str)
def test_both_sides_agree(checks, failing, changes):
    default(LAB, changes)  # a valid request
    assert failing(checks(changes, seed=1)) == set()


def test_both_sides_agree_for_many_seeds(checks, failing):
    for seed in range(6):
        assert failing(checks(seed=seed)) == set()


def test_decades_are_left_at_the_default_config(checks):
    assert min(c.headroom for c in checks() if c.kind == "close") > 6


@pytest.mark.parametrize("changes", [{}, TWO], ids=str)
def test_every_gradient_of_an_input_is_witnessed(changes):
    config, inputs, reference = prepared(changes)
    proofs = witness_checks(LAB.witnesses, config, inputs, reference, 0)
    assert [c.message for c in proofs if c.status != "passed"] == []
    gradients = {n for n in reference if "/grad/" in n and not n.startswith(("zero/", "windows/"))}  # zeros; stacks
    assert {c.name for c in proofs} == gradients | {"isolation/inside"}


@pytest.mark.parametrize("changes", [{}, ALIKE], ids=str)
def test_the_checks_are_wired(changes):
    config, _, reference = prepared(changes)
    assert wiring(plan(LAB.rules(config), reference), reference, ()).problems == ()


def test_every_item_has_one_line_in_the_table_and_every_line_an_item():
    config, _, reference = prepared()
    names = promised(plan(LAB.rules(config), reference))
    lines = {name: [p for p in LAB.items if fnmatchcase(name, p)] for name in names}
    assert {name: found for name, found in lines.items() if len(found) != 1} == {}
    assert {p for found in lines.values() for p in found} == set(LAB.items)


def test_every_promised_item_belongs_to_one_stage():
    config, _, reference = prepared()
    for name in (*promised(plan(LAB.rules(config), reference)), *LAB.facts):
        assert len([s.name for s in LAB.stages if any(fnmatchcase(name, p) for p in s.items)]) == 1, name


def test_no_two_neighbours_are_alike_and_every_document_ends_in_the_padding_id():
    config, inputs, _ = prepared({"pad_id": 2, "vocabulary": 3})
    for name in ("conversation", "prompted"):
        assert np.all(np.diff(inputs[name]) != 0)
        assert set(inputs[name]) == {0, 1}
    ends = np.cumsum(config.lengths) - 1
    assert set(inputs["tokens"][ends]) == {2}
    assert np.count_nonzero(inputs["tokens"] == 2) == len(ends)


def test_both_shard_edges_fall_inside_a_document():
    _, _, reference = prepared()
    assert np.all(reference["shards/targets"][:-1, -1] >= 0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lengths": (5,)}, "lengths: 1 document, expected at least 2"),
        ({"lengths": (2, 1)}, "lengths: no document of 3 tokens, so no score has a gradient"),
        ({"lengths": (3, 3)}, "micro_batches: 4 documents, expected 2, as lengths has"),
        ({"ranks": (1, 1)}, "ranks: 2 documents, expected 4, as lengths has"),
        ({"head_dim": 3}, "head_dim: 3 is odd, expected pairs of halves"),
        ({"pad_id": 7}, "pad_id: 7, expected an id below 7"),
        ({"roles": "uab"}, "roles: 'uab', expected letters u, a and t"),
        ({"roles": "auu"}, "roles: 'auu': no assistant token has a predictor"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_a_sentence(changes, sentence):
    with pytest.raises(RequestError) as caught:
        default(LAB, changes)
    assert sentence in str(caught.value)


def test_the_table_shows_what_each_mistake_costs():
    config, _, reference = prepared()
    (table,) = LAB.tables(config, reference)
    costs = {name: off for name, _, off in table.rows}
    assert costs["none"] == 0
    assert abs(costs["positions not restarted"]) < 1e-12
    others = costs.keys() - {"none", "positions not restarted"}
    assert all(abs(costs[name]) > 1e-2 for name in others)


def test_the_footprint_grows_with_the_square_of_the_row():
    short, long = (LAB.footprint(dataclasses.replace(Config(), lengths=(n, n), limit=n)) for n in (1000, 2000))
    assert 3.5 < long / short < 4.1
    assert LAB.footprint(Config()) < 1 << 20
