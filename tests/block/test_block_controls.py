import dataclasses

import pytest

from labs.block import torch_faults, torch_impl
from labs.block.controls import CONTROLS
from labs.block.lab import LAB
from labs.block.parts import Parts
from labs.core.config import default

BY_NAME = {control.name: control for control in CONTROLS}
NOT_FAULTY = {"causality/last_changes"}  # that the change is one; without it, equal bits before it would say nothing
OF_THE_FAULTS_TABLE = {
    "rms_constant_r",
    "rms_weight_gradient_missing",
    "rms_offset",
    "scale_missing",
    "causal_off",
    "softmax_backward_no_sum",
    "silu_derivative",
    "residual_dropped",
    "residual_gradient_dropped",
    "upstream_ignored",
    "rows_from_first_axis",
    "masked_row_nan",
    "adam_eps_scaled",
    "adam_l2",
    "adam_bias_correction_missing",
    "adam_step_stuck",
    "resume_weights_only",
    "resume_without_second_moment",
    "resume_step_zero",
    "resume_moments_cast",
    "resume_rng_lost",
}


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("seed", [0, 1])
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


def test_every_fault_has_a_control():
    used = {fault for control in CONTROLS for fault in control.swap.values()}
    written = {n for n, f in vars(torch_faults).items() if getattr(f, "__module__", "") == torch_faults.__name__}
    assert {name for name in written if not name.startswith("_")} == used


def test_no_known_fault_is_left_out():
    assert set(BY_NAME) >= OF_THE_FAULTS_TABLE


def test_every_part_has_a_description_and_an_implementation():
    for field in dataclasses.fields(Parts):
        assert field.metadata["doc"]
        assert callable(getattr(torch_impl.PARTS, field.name))
