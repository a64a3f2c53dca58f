import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from labs.core.process.jobs import Task
from labs.core.process.reuse import LARGEST, Memory, added, files, noting

GOOD = Task("stage", {"rank": 2}, {}, "inputs", "good", "nowhere", "nowhere/checkpoints")


@dataclass(frozen=True)
class Parts:
    merge: object = max
    loss: object = min


@dataclass(frozen=True, slots=True)
class Slotted:
    merge: object = max
    loss: object = min


def control(**changes):
    return dataclasses.replace(GOOD, **{"out": "fault", "good": "good", "swap": {"loss": "fault:x"}, **changes})


def memory(read=("merge",)):
    kept = Memory()
    kept.note(GOOD, set(read), ("item",), {}, {})
    return kept


def place(task, root, **texts):
    """The task at a place of its own, in which these files stand by now."""
    for name, text in texts.items():
        file = Path(root, "checkpoints", name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return dataclasses.replace(task, scratch=str(root), checkpoints=f"{root}/checkpoints")


def trained(tmp_path):
    """The memory of a good run that trained, leaving a file, and then resumed from it."""
    kept, root = Memory(), tmp_path / "good"
    left = files(place(GOOD, root, state="good"))
    kept.note(place(GOOD, root), {"merge"}, ("loss",), {}, left)
    kept.note(place(dataclasses.replace(GOOD, stage="resume", resumes=True), root), {"merge"}, ("end",), left, {})
    return kept


def test_a_fault_in_a_part_that_the_stage_never_read_changes_nothing():
    assert memory().same(control()) == ("item",)


@pytest.mark.parametrize(
    "changes",
    [{"swap": {"merge": "fault:x"}}, {"config": {"rank": 3}}, {"stage": "other"}, {"good": "else"}],
    ids=["a part that was read", "a lie", "another stage", "another good run"],
)
def test_everything_else_has_to_run(changes):
    assert memory().same(control(**changes)) is None


def test_nothing_is_known_before_the_good_run():
    assert Memory().same(control()) is None


def test_what_the_good_run_left_is_left_again(tmp_path):
    again = place(control(), tmp_path / "fault")
    assert trained(tmp_path).same(again) == ("loss",)
    assert files(again) == {"checkpoints/state": b"good"}


def test_a_stage_that_resumes_from_the_good_run_s_files_is_the_good_run_s(tmp_path):
    kept, root = trained(tmp_path), tmp_path / "fault"
    kept.same(place(control(), root))
    assert kept.same(place(control(stage="resume", resumes=True), root)) == ("end",)


@pytest.mark.parametrize("found", [{"state": "bad"}, {}, {"state": "good", "more": "x"}], ids=["other", "none", "more"])
def test_a_stage_that_resumes_from_anything_else_has_to_run(tmp_path, found):
    task = place(control(stage="resume", resumes=True), tmp_path / "fault", **found)
    assert trained(tmp_path).same(task) is None


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ({"a": b"1", "b": b"1"}, {"a": b"1", "b": b"2", "c": b"3"}, {"b": b"2", "c": b"3"}),
        ({"a": b"1"}, {}, None),
        (None, {"a": b"1"}, None),
        ({}, None, None),
    ],
    ids=["new and other ones", "one is gone", "too many before", "too many after"],
)
def test_what_a_stage_added(before, after, new):
    assert added(before, after) == new


def test_large_files_are_not_kept(tmp_path):
    assert files(place(GOOD, tmp_path, state="x" * (LARGEST + 1))) is None


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert files(place(GOOD, tmp_path)) is None


def test_only_what_controls_are_held_against_is_noted():
    assert Memory().wants(GOOD, [GOOD, control()])
    assert not Memory().wants(GOOD, [GOOD])
    assert not Memory().wants(control(), [GOOD, control()])
    assert not Memory().wants(dataclasses.replace(GOOD, swap={"merge": "fault:x"}), [GOOD, control()])


def test_parts_note_what_is_read_and_stay_what_they_are():
    parts, read = noting(Parts())
    assert read == set()
    assert parts.merge is max
    assert read == {"merge"}
    assert isinstance(parts, Parts)


def test_a_copy_of_the_parts_has_read_them_all():
    parts, read = noting(Parts())
    assert dataclasses.replace(parts, loss=len).loss is len
    assert read == {"merge", "loss"}


def test_who_looks_at_all_parts_has_read_them_all():
    parts, read = noting(Parts())
    assert vars(parts) == {"merge": max, "loss": min}
    assert read == {"merge", "loss"}


def test_parts_with_slots_note_as_well():
    parts, read = noting(Slotted())
    assert parts.loss is min
    assert read == {"loss"}
