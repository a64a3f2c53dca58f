import itertools
import json

import pytest

from labs.contrastive.controls import CONTROLS
from labs.contrastive.torch_impl import PARTS

BENCHES = [
    tuple(group)
    for _, group in itertools.groupby(CONTROLS, key=lambda control: json.dumps(control.at))  # they stand together
]


@pytest.mark.parametrize("controls", BENCHES, ids=lambda controls: str(dict(controls[0].at)))
@pytest.mark.parametrize("seed", [0, 1])
def test_a_control_spoils_exactly_what_it_says(spoiled, failing, matching, controls, seed):
    found = spoiled(controls, controls[0].at, seed)
    for control in controls:
        assert failing(found[control.name]) == matching(found[control.name], control.must), control.name


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_a_control_swaps_parts_that_exist(control):
    assert control.swap
    assert all(hasattr(PARTS, part) for part in control.swap)


def test_a_rank_alone_has_none_of_the_faults_between_ranks(spoiled, failing):
    between = tuple(c for c in CONTROLS if c.name.startswith(("gather", "loss_times", "labels", "ranks", "uneven")))
    for name, found in spoiled(between, {"world_size": 1}).items():
        assert {check for check, _ in failing(found)} <= {"rank0/alone/updated/w_b"}, name
