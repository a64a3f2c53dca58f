import pytest

from labs.core import controls
from labs.core.controls import HEAD_START, benches, label, verdict
from labs.core.judge import Check
from labs.core.lab import Control
from labs.core.process.jobs import Outcome
from labs.core.registry import load
from labs.core.schedule import Ran

CONTROL = Control("fault", "why", must=("grad/*",), may=("norm",))


def checks(**failed):
    """Checks of four items; those in `failed` are over by that many decades."""
    names = ("output", "grad/w", "grad/x", "norm")
    over = {name.replace("_", "/"): decades for name, decades in failed.items()}
    return tuple(
        Check(name, "close", "failed" if name in over else "passed", headroom=-over.get(name, -7.0)) for name in names
    )


@pytest.mark.parametrize(
    ("failed", "status"),
    [
        ({"grad_w": 5, "grad_x": 6}, "caught"),
        ({"grad_w": 5, "grad_x": 6, "norm": 1}, "caught"),
        ({"grad_w": 5}, "missed"),
        ({}, "missed"),
        ({"norm": 5}, "missed"),
        ({"grad_w": 5, "grad_x": 6, "output": 2}, "leaked"),
        ({"grad_w": 5, "output": 2}, "missed"),
    ],
)
def test_a_fault_is_caught_when_all_of_must_and_nothing_beyond_may_fails(failed, status):
    assert verdict(CONTROL, checks(), checks(**failed)).status == status


def test_what_was_missed_and_what_leaked_is_named():
    found = verdict(CONTROL, checks(), checks(grad_w=5, output=2))
    assert (found.missed, found.leaked) == (("grad/x",), ("output",))


def test_a_pattern_that_matches_no_check_is_missed():
    assert verdict(Control("f", "", must=("nothing/*",)), checks(), checks()).missed == ("nothing/*",)


def test_a_control_that_could_not_run_is_never_caught():
    found = verdict(CONTROL, checks(), checks(grad_w=5, grad_x=6), "not exercised: SIGSEGV")
    assert (found.status, found.message) == ("missed", "not exercised: SIGSEGV")


def test_separation_is_the_least_room_on_either_side():
    found = verdict(CONTROL, checks(), checks(grad_w=5, grad_x=6))
    assert (found.good, found.fault) == (7.0, 5)


def test_a_missing_item_is_as_far_over_as_can_be():
    absent = (*checks()[:1], Check("grad/w", "close", "failed"), Check("grad/x", "close", "failed"), *checks()[3:])
    assert verdict(CONTROL, checks(), absent).fault == 16.0


def test_a_kind_behind_a_colon_narrows_a_pattern():
    bits = Check("output", "identical", "failed", headroom=-16.0)
    control = Control("f", "", must=("output:identical",))
    assert label(bits) == "output:identical"
    assert verdict(control, checks(), (*checks(), bits)).status == "caught"
    assert verdict(control, checks(), (*checks(output=1), bits)).status == "leaked"


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_controls_that_share_a_config_share_benches_and_the_first_lane_has_a_head_start(tmp_path, lanes):
    lab = load("lora")
    spread = benches(lab, tmp_path / "scratch", tmp_path / "out", lanes)
    sizes = [sum(len(b.faulty) for b in lane) for lane in spread]
    assert len(sizes) == lanes
    assert all(abs(sizes[0] - HEAD_START - size) <= 2 for size in sizes[1:])
    made = [b for lane in spread for b in lane]
    assert sorted(c.name for b in made for c, _ in b.faulty) == sorted(c.name for c in lab.controls)
    for bench in made:
        assert all(case.good == bench.good.out and case.inputs == bench.good.inputs for _, case in bench.faulty)
    everything = [case.out for b in made for case in b.cases]
    assert len(everything) == len(set(everything))


@pytest.mark.parametrize("yielded", [[("x", "y"), ("y",)], [("x", "y"), ("z",)]], ids=["twice", "once"])
def test_an_item_that_two_stages_yield_proves_nothing(tmp_path, yielded):
    lab = load("lora")
    bench = benches(lab, tmp_path / "scratch", tmp_path / "out")[0][0]
    case = bench.faulty[0][1]
    ran = [Ran(case, lab.stages[0], (Outcome(0, 0, "ok", same=names),), None) for names in yielded]
    assert controls._doubled(case, ran) == ("item y is yielded more than once" if "y" in yielded[1] else "")
    assert controls._doubled(bench.good, ran) == ""
