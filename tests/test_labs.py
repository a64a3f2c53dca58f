"""What every lab owes, whoever wrote it."""

import json
from fnmatch import fnmatchcase

import numpy as np

import labs
from labs.core import pinned
from labs.core.config import default, resolve
from labs.core.inputs import Draw
from labs.core.items import plan, promised
from labs.core.lab import is_float
from labs.core.registry import load, shipped
from labs.core.wiring import wiring


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", labs.NAMES)


def drawn(name, seed=0):
    lab = load(name)
    config = lab.config()
    return lab, config, lab.inputs(config, Draw(seed))


def test_the_lab_is_named_for_its_folder(name):
    assert load(name).name == name == load(name).path.name


def test_the_shipped_config_is_the_default_one(name):
    settings = resolve(name)
    assert settings.config == settings.lab.config()
    assert (settings.seed, settings.save, settings.tolerances) == (0, "all", ())
    assert shipped()[name].lab == name


def test_every_item_is_explained_and_every_explanation_has_an_item(name):
    lab, config, inputs = drawn(name)
    items = promised(plan(lab.rules(config), lab.reference(config, inputs)))
    assert [i for i in items if not any(fnmatchcase(i, p) for p in lab.items)] == []
    assert [p for p in lab.items if not any(fnmatchcase(i, p) for i in items)] == []


def test_every_item_comes_from_one_stage(name):
    lab, config, inputs = drawn(name)
    for item in promised(plan(lab.rules(config), lab.reference(config, inputs))):
        assert len([s.name for s in lab.stages if any(fnmatchcase(item, p) for p in s.items)]) == 1, item


def test_inputs_are_contiguous_finite_and_the_same_for_the_same_seed(name):
    _, _, first = drawn(name)
    _, _, second = drawn(name)
    _, _, other = drawn(name, seed=1)
    assert first.keys() == second.keys() == other.keys()
    for key, array in first.items():
        assert array.flags.c_contiguous
        assert not is_float(array) or np.isfinite(array).all()
        assert array.tobytes() == second[key].tobytes()
    assert any(first[key].tobytes() != other[key].tobytes() for key in first) or name == "rules"


def test_the_reference_reads_its_inputs_and_leaves_them_alone(name):
    lab, config, inputs = drawn(name)
    before = {k: v.tobytes() for k, v in inputs.items()}
    lab.reference(config, inputs)
    assert {k: v.tobytes() for k, v in inputs.items()} == before


def test_items_are_float64_integers_or_booleans(name):
    lab, config, inputs = drawn(name)
    for item, array in lab.reference(config, inputs).items():
        assert isinstance(array, np.ndarray), item
        assert array.dtype == np.float64 or array.dtype.kind in "ib", item


def test_extended_precision_agrees_and_stays_extended(name):
    lab, config, inputs = drawn(name)
    usual = lab.reference(config, inputs)
    wide = lab.reference(config, {k: v.astype(np.longdouble) if is_float(v) else v for k, v in inputs.items()})
    assert usual.keys() == wide.keys()
    bounds = {rule.other for rule in lab.rules(config) if rule.kind == "within"}
    for item, array in usual.items():
        if is_float(array) and item not in bounds:
            np.testing.assert_allclose(wide[item].astype(float), array, rtol=1e-10, atol=1e-11, err_msg=item)


def test_every_check_reads_its_item(name):
    lab, config, inputs = drawn(name)
    reference = lab.reference(config, inputs)
    found = wiring(plan(lab.rules(config), reference), reference, ())
    assert found.problems == ()
    assert found.spoils > 0


def test_every_witness_has_its_item_and_input(name):
    lab, config, inputs = drawn(name)
    reference = lab.reference(config, inputs)
    for witness in lab.witnesses:
        assert reference[witness.item].shape == inputs[witness.input].shape, witness.item


def test_every_gradient_of_an_input_has_a_witness(name):
    """What a complex step can prove is proved: a gradient item of the shape and the name of an input."""
    lab, config, inputs = drawn(name)
    proved = {w.item for w in lab.witnesses}
    items = lab.reference(config, inputs)
    owed = [i for i in items if "/grad/" in i and i.split("/")[-1] in inputs and i.startswith(("trained/", "init/"))]
    assert [i for i in owed if i not in proved] == []


def test_every_control_can_be_posed_and_says_why(name):
    lab = load(name)
    names = [c.name for c in lab.controls]
    assert len(names) == len(set(names))
    for control in lab.controls:
        at = default(lab, control.at)
        rules = plan(lab.rules(at), lab.reference(at, lab.inputs(at, Draw(0))))
        labels = {label for r in rules for label in (r.item, f"{r.item}:{r.kind}")}
        assert control.why, control.name
        assert control.must, control.name
        assert control.swap or control.lie, control.name
        for pattern in (*control.must, *control.may):
            assert any(fnmatchcase(label, pattern) for label in labels), f"{control.name}: {pattern}"


def test_the_pinned_values_are_current(name):
    """When this fails the mechanics changed: if on purpose, run `python -m labs.core.pinned LAB`."""
    lab, config, inputs = drawn(name)
    assert pinned.read(lab).keys() == lab.reference(config, inputs).keys()
    assert pinned.moved(pinned.read(lab), lab.reference(config, inputs)) == frozenset()


def test_the_footprint_is_an_estimate_of_the_right_size(name):
    lab, config, inputs = drawn(name)
    arrays = [*inputs.values(), *lab.reference(config, inputs).values()]
    assert 0.5 * sum(a.nbytes for a in arrays) < lab.footprint(config) < 1 << 30


def test_the_record_survives_json(name):
    lab, _, _ = drawn(name)
    assert json.loads(json.dumps(dict(lab.items))) == dict(lab.items)
