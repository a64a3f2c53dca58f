import copy

import pytest

from labs.core.difference.classes import Change, Setting
from labs.core.difference.environments import cause, implementations, run_settings, settings
from tests.core.sample_bundle import BUILD, environment

MOVED = (Change("lora", "w", "close", "last-bits", ulp=1.0, moved=("observed",)),)
REFERENCE_MOVED = (Change("lora", "w", "close", "last-bits", ulp=1.0, moved=("reference",)),)


def changed(*paths_and_values):
    found = environment()
    for path, value in paths_and_values:
        place = found
        *parts, last = path.split("/")
        for part in parts:
            place = place[part]
        place[last] = value
    return found


ISA = ("framework/torch/cpu_capability", "DEFAULT")
TORCH = ("framework/torch/version", "2.9.0")
THREADS = ("framework/variables", {"MKL_CBWR": None, "OMP_NUM_THREADS": "2"})
MKL = ("framework/variables", {"MKL_CBWR": "COMPATIBLE"})
NUMPY = ("framework/numpy", "1.26.0")
REFEREE = ("referee/numpy", "1.26.0")
TOOL = ("tool/commit", "c0ffee-dirty")
PATH = ("framework/executable", "/elsewhere")


@pytest.mark.parametrize(
    ("differs", "what", "group"),
    [
        (ISA, "framework.torch.cpu_capability", "instruction set"),
        (TORCH, "framework.torch.version", "torch"),
        (THREADS, "framework.variables.OMP_NUM_THREADS", "threads"),
        (MKL, "framework.variables.MKL_CBWR", "BLAS"),
        (NUMPY, "framework.numpy", "NumPy"),
        (TOOL, "tool.commit", "this tool"),
        (PATH, "framework.executable", ""),
    ],
)
def test_each_difference_has_its_group(differs, what, group):
    assert [(s.what, s.group) for s in settings(environment(), changed(differs))] == [(what, group)]


def test_the_likeliest_cause_comes_first():
    found = settings(environment(), changed(TOOL, TORCH, MKL, ISA))
    assert [s.group for s in found] == ["instruction set", "BLAS", "torch", "this tool"]


def test_the_command_line_is_no_environment():
    assert settings(environment(), changed(("command", ["lab", "run", "-q"]))) == ()


def test_what_differs_on_both_sides_is_told_once():
    both = changed(("referee/numpy", "1.26.0"), NUMPY)
    assert [s.what for s in settings(environment(), both)] == ["numpy"]


def test_of_two_lists_what_came_and_went_is_told():
    (found,) = settings(environment(), changed(("framework/cpu/flags", ["avx", "avx512f"])))
    assert (found.a, found.b) == ("avx2", "avx512f")


def test_of_two_builds_the_lines_that_differ_are_told():
    text = BUILD.replace("GCC 13.3", "GCC 11").replace("mkl", "openblas").replace("X=1", "X=2").replace("AVX2", "X")
    found = settings(environment(), changed(("framework/torch/build", text)))
    assert [(s.what.split(": ")[1], s.a, s.b) for s in found] == [
        ("BLAS_INFO", "mkl", "openblas"),
        ("GCC", "GCC 13.3", "GCC 11"),
    ]


def test_run_keys_of_several_configs_are_told_together():
    pair = ({"threads": 1, "rank": 4}, {"threads": 2, "rank": 5})
    assert run_settings({"lora": pair, "block": pair}) == (Setting("threads of lora, block", "1", "2", "threads"),)


@pytest.mark.parametrize(
    ("differs", "starts"),
    [
        ([ISA, TORCH], "likely cause: instruction set (framework.torch.cpu_capability: AVX2 → DEFAULT); it moves more"),
        ([TORCH], "likely cause: torch (framework.torch.version: 2.13.0 → 2.9.0)"),
        ([TOOL], "likely cause: this tool (tool.commit: c0ffee → c0ffee-dirty)"),
        ([PATH], "the environments do not differ in what moves values"),
        ([REFEREE], "the environments do not differ in what moves values"),
    ],
)
def test_a_cause_is_suggested_for_what_moved(differs, starts):
    assert cause(settings(environment(), changed(*differs)), MOVED).startswith(starts)


def test_a_version_is_not_blamed_before_what_moves_more():
    text = cause(settings(environment(), changed(ISA, TORCH)), MOVED)
    assert text.endswith("so compare with the same before blaming torch")


def test_the_referee_is_blamed_for_the_reference_alone():
    assert cause(settings(environment(), changed(REFEREE)), REFERENCE_MOVED).startswith("likely cause: NumPy")
    assert not cause(settings(environment(), changed(TORCH)), REFERENCE_MOVED).startswith("likely cause")


def test_nothing_moved_and_nothing_is_blamed():
    assert cause(settings(environment(), changed(ISA)), ()) == ""


HUGE = (Change("lora", "w", "close", "regression", ulp=1e15, moved=("observed",)),)


@pytest.mark.parametrize(
    ("differs", "ends"),
    [
        ([], "look at what changed in the code"),
        ([ISA], "look at what changed in the code"),
        ([ISA, TORCH], "look at what changed in the code and in torch (2.13.0 → 2.9.0)"),
    ],
)
def test_what_moves_last_bits_is_not_blamed_for_a_gross_failure(differs, ends):
    text = cause(settings(environment(), changed(*differs)), HUGE)
    assert text == f"a check fails by 1.0e+15 ULP, which no instruction set, threads or BLAS explain: {ends}"


def test_another_version_of_this_tool_can_be_to_blame_for_anything():
    assert cause(settings(environment(), changed(TOOL)), HUGE).startswith("likely cause: this tool")


def test_another_implementation_is_the_first_suspect():
    swaps = [{"part": "linear", "source": "mine.py:fused", "sha256": "0123456789abcdef"}]
    found = implementations({"lora": ({}, {"swaps": swaps}), "block": ({"swaps": swaps}, {"swaps": swaps})})
    assert found == (
        Setting("linear of lora", "the lab's own", "mine.py:fused (sha256 0123456789ab)", "implementation"),
    )
    assert cause((*found, *settings(environment(), changed(ISA))), HUGE).startswith("likely cause: implementation (lin")


def test_environments_are_left_as_they_are():
    first, second = environment(), changed(ISA)
    kept = copy.deepcopy((first, second))
    settings(first, second)
    assert (first, second) == kept
