import sys
from types import SimpleNamespace

import pytest

from cli.early import Early, asked
from labs.core.errors import CannotComplete


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What happened to framework processes: ("start", python) and ("close", python)."""
    events = []

    class Framework:
        def __init__(self, python, _scratch):
            self.python = python

        def __enter__(self):
            if self.python == "/nowhere":
                raise CannotComplete("/nowhere can't be started")
            events.append(("start", self.python))

        def close(self):
            events.append(("close", self.python))

    monkeypatch.setitem(sys.modules, "labs.core.launch", SimpleNamespace(Framework=Framework))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return events


@pytest.mark.parametrize(
    ("words", "python"),
    [
        ("run", None),
        ("run lora --python a/python", "a/python"),
        ("run --python=./python lora", "./python"),
        ("run --python a --python b", "b"),
        ("run -- --python a", None),
        ("run lora --python", None),
    ],
)
def test_the_last_python_that_is_asked_for_counts(words, python):
    assert asked(words.split(), "--python") == python


def test_the_process_that_was_started_early_is_the_one_that_runs(started):
    early = Early(["run", "lora", "--python", "other"])
    early.framework("other")
    early.close()
    assert started == [("start", "other"), ("close", "other")]


def test_another_interpreter_than_was_read_early_replaces_it(started):
    early = Early(["run", "lora"])
    early.framework("other")
    early.close()
    assert started == [("start", None), ("close", None), ("start", "other"), ("close", "other")]


@pytest.mark.parametrize("words", ["", "list", "run --help", "run lora -h", "show run"])
def test_what_is_no_run_starts_nothing(started, words):
    Early(words.split()).close()
    assert started == []


def test_an_interpreter_that_can_not_be_started_is_an_error_when_it_is_wanted(started, tmp_path):
    early = Early(["run", "--python", "/nowhere"])
    with pytest.raises(CannotComplete):
        early.framework("/nowhere")
    early.close()
    assert started == []
    assert list(tmp_path.iterdir()) == []


def test_the_scratch_folder_is_removed(started, tmp_path):
    early = Early(["run"])
    assert len(list(tmp_path.iterdir())) == 1
    early.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("started")
def test_a_folder_for_temporary_files_that_is_not_there_is_no_reason_to_fail(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    early = Early(["run"])
    early.framework(None)
    early.close()
