import dataclasses

import pytest

from labs.core.config import default
from labs.packing import torch_faults, torch_impl
from labs.packing.controls import CONTROLS
from labs.packing.lab import LAB
from labs.packing.parts import Parts

BY_NAME = {control.name: control for control in CONTROLS}
NOT_FAULTY = {"zero/framework_mean_is_nan"}  # the framework's own function: no part could get it wrong


@pytest.mark.parametrize("name", BY_NAME)
def test_every_fault_fails_what_it_must_and_nothing_else(checks, failing, matching, name):
    control = BY_NAME[name]
    found = checks(control.at, 1, control.swap, control.lie)
    failed, must, may = failing(found), matching(found, control.must), matching(found, control.may)
    assert must - failed == set(), "missed"
    assert failed - must - may == set(), "leaked"


def test_every_pattern_of_a_control_matches_a_check(checks, matching):
    found = checks()
    patterns = {p for control in CONTROLS for p in (*control.must, *control.may)}
    assert [p for p in patterns if not matching(found, (p,))] == []


def test_every_check_is_failed_by_some_control(checks, matching):
    found = checks()
    covered = set().union(*(matching(found, control.must) for control in CONTROLS))
    assert {name for name, kind in {(c.name, c.kind) for c in found} - covered} == NOT_FAULTY


def test_every_control_is_a_valid_request():
    parts = {field.name for field in dataclasses.fields(Parts)}
    for control in CONTROLS:
        default(LAB, control.at)
        assert set(control.swap) <= parts
        assert all(hasattr(torch_faults, fault) for fault in control.swap.values())


def test_every_fault_has_a_control():
    used = {fault for control in CONTROLS for fault in control.swap.values()}
    written = {n for n, f in vars(torch_faults).items() if getattr(f, "__module__", "") == torch_faults.__name__}
    assert written | set(torch_faults.__all__) == used


def test_every_part_has_a_fault():
    swapped = {part for control in CONTROLS for part in control.swap}
    assert {field.name for field in dataclasses.fields(Parts)} - swapped == {"sgd"}  # its items fail with the gradients


def test_every_part_has_a_description_and_an_implementation():
    for field in dataclasses.fields(Parts):
        assert field.metadata["doc"]
        assert callable(getattr(torch_impl.PARTS, field.name))
