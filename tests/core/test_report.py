from types import SimpleNamespace

import pytest

from labs.core.report import _cut_short, _stages_failed, _status

LATE = "not exercised: stage pass: was stopped after 2.5 s, in stage resume"
KILLED = "not exercised: stage direct: rank 1 was killed by SIGKILL, in stage direct"


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


def status(*verdicts, check="passed", failures=()):
    """What a lab comes to whose controls came to this (status, message)."""
    told = [SimpleNamespace(status=status, message=message) for status, message in verdicts]
    judged = SimpleNamespace(ran=(), verdicts=told)
    expected = SimpleNamespace(wiring=SimpleNamespace(problems=()))
    own = SimpleNamespace(failure="", complete=False)
    said = [*failures, *_cut_short(judged)]
    return _status([SimpleNamespace(status=check)], judged, expected, said, own)


def test_faults_that_had_no_time_to_run_leave_a_run_not_completed():
    assert status(("caught", ""), ("missed", LATE)) == "error"
    assert status(("missed", LATE.replace("stopped", "not begun").replace("after", "within"))) == "error"
    assert status(("caught", ""), ("missed", KILLED)) == "error"
    assert status(("caught", ""), ("missed", KILLED.replace("KILL", "SEGV"))) == "failed"
    assert status(("caught", "")) == "passed"


@pytest.mark.parametrize(
    "wrong",
    [{"check": "failed"}, {"failures": ("fact: not stated",)}],
    ids=["a check", "a failure"],
)
def test_what_failed_in_time_stays_failed(wrong):
    assert status(("missed", LATE), **wrong) == "failed"


@pytest.mark.parametrize("message", ["", "not exercised: stage pass raised ValueError: was it stopped after 2 s"])
def test_a_fault_that_was_missed_in_time_stays_missed(message):
    assert status(("missed", LATE), ("missed", message)) == ("failed")


def test_how_many_faults_had_no_time_is_said():
    late = SimpleNamespace(status="missed", message=LATE)
    killed = SimpleNamespace(status="missed", message=KILLED)
    assert _cut_short(SimpleNamespace(verdicts=[late, killed, late])) == [
        "the time limit came before 2 known faults had run",
        "a process was killed from outside, as for want of memory, before 1 known fault had run",
    ]
