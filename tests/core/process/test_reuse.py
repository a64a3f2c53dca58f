import dataclasses
from dataclasses import dataclass

import pytest

from labs.core.process.jobs import Task
from labs.core.process.reuse import Memory, left, noting

GOOD = Task("stage", {"rank": 2}, {}, "inputs", "good", "", "")


@dataclass(frozen=True)
class Parts:
    merge: object = max
    loss: object = min


def control(**changes):
    return dataclasses.replace(GOOD, **{"out": "fault", "good": "good", "swap": {"loss": "fault:x"}, **changes})


def memory(read=("merge",)):
    kept = Memory()
    kept.note(GOOD, set(read), ("item",), ())
    return kept


def test_a_fault_in_a_part_that_the_stage_never_read_changes_nothing():
    assert memory().same(control()) == ("item",)


@pytest.mark.parametrize(
    "changes",
    [{"swap": {"merge": "fault:x"}}, {"config": {"rank": 3}}, {"stage": "other"}, {"good": "else"}, {"resumes": True}],
    ids=["a part that was read", "a lie", "another stage", "another good run", "from disk"],
)
def test_everything_else_has_to_run(changes):
    assert memory().same(control(**changes)) is None


def test_nothing_is_known_before_the_good_run():
    assert Memory().same(control()) is None


def test_a_stage_that_leaves_a_file_is_not_remembered(tmp_path):
    task = dataclasses.replace(GOOD, scratch=str(tmp_path), checkpoints=str(tmp_path))
    before = left(task)
    (tmp_path / "state.pt").touch()
    kept = Memory()
    kept.note(task, set(), ("item",), before)
    assert kept.seen == {}


def test_a_faulty_run_is_not_remembered_as_good():
    assert Memory().wants(GOOD)
    assert not Memory().wants(control())
    assert not Memory().wants(dataclasses.replace(GOOD, swap={"merge": "fault:x"}))


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
