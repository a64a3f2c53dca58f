import dataclasses

import pytest

from labs.core.config import default
from labs.lora import torch_faults, torch_impl
from labs.lora.config import Config
from labs.lora.controls import CONTROLS
from labs.lora.lab import LAB
from labs.lora.parts import Parts

BY_NAME = {control.name: control for control in CONTROLS}
NOT_FAULTY = {"init/base_output"}  # no known fault is in the base's own product; test_lora_swaps.py has a made-up one


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_fault_fails_what_it_must_and_nothing_else(checks, failing, matching, name, seed):
    control = BY_NAME[name]
    found = checks(control.at, seed, control.swap, control.lie)
    failed, must, may = failing(found), matching(found, control.must), matching(found, control.may)
    assert must - failed == set(), "missed"
    assert failed - must - may == set(), "leaked"


@pytest.mark.parametrize("name", BY_NAME)
def test_every_pattern_of_a_control_matches_a_check(checks, matching, name):
    found = checks(BY_NAME[name].at)
    assert [p for p in (*BY_NAME[name].must, *BY_NAME[name].may) if not matching(found, (p,))] == []


def test_every_check_is_failed_by_some_control(checks, matching):
    found = checks()
    covered = set().union(*(matching(found, control.must) for control in CONTROLS))
    assert {name for name, kind in {(c.name, c.kind) for c in found} - covered} == NOT_FAULTY


def test_every_control_is_a_valid_request():
    parts = {field.name for field in dataclasses.fields(Parts)}
    for control in CONTROLS:
        config = default(LAB, control.at)
        assert set(control.swap) <= parts
        assert all(hasattr(torch_faults, fault) for fault in control.swap.values())
        assert all(getattr(config, key) != value for key, value in control.lie.items())
        assert control.swap or control.lie


def test_every_fault_has_a_control():
    used = {fault for control in CONTROLS for fault in control.swap.values()}
    written = {n for n, f in vars(torch_faults).items() if getattr(f, "__module__", "") == torch_faults.__name__}
    assert {name for name in written if not name.startswith("_")} == used


def test_one_learning_rate_lies_with_the_other_ones_value():
    assert BY_NAME["one_learning_rate"].lie == {"lr_b": Config().lr_a}


def test_every_part_has_a_description_and_an_implementation():
    for field in dataclasses.fields(Parts):
        assert field.metadata["doc"]
        assert callable(getattr(torch_impl.PARTS, field.name))
