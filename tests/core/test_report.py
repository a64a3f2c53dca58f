import pytest

from labs.core.report import _stages_failed


@pytest.mark.parametrize(
    ("names", "what", "sentence"),
    [
        (["init"], ": was killed by SIGSEGV", "stage init: was killed by SIGSEGV"),
        (["init", "sgd"], ": was killed by SIGSEGV", "stages init and sgd: were killed by SIGSEGV"),
        (["a", "b", "c"], ": was stopped at the time limit", "stages a, b and c: were stopped at the time limit"),
        (
            ["a", "b"],
            ": exited with 0 before it had answered",
            "stages a and b: exited with 0 before they had answered",
        ),
        (["a", "b"], " raised ValueError: it was: was", "stages a and b raised ValueError: it was: was"),
        (["a", "b"], ": rank 1 was killed by SIGSEGV", "stages a and b: rank 1 was killed by SIGSEGV"),
    ],
)
def test_one_stage_or_several_fail_in_a_sentence(names, what, sentence):
    assert _stages_failed(names, what) == sentence
