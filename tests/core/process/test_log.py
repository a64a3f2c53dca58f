import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from labs.core.process import log
from labs.core.process.jobs import Job
from labs.core.process.log import KEPT, LAST, LIMIT, bound, log_size
from labs.core.process.running import Running


@pytest.fixture
def printed(tmp_path):
    """A log of a given size, and the descriptor that its writer goes on with."""
    path = str(tmp_path / "log.txt")
    writer = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def grown(size, last=b""):
        os.write(writer, b"first" + bytes(size - len(last) - 5) + last)
        return path, writer

    yield grown
    os.close(writer)


def test_a_short_log_is_left_alone(printed):
    path, _ = printed(LIMIT)
    bound(path)
    assert log_size(path) == LIMIT


def test_of_a_long_log_the_beginning_and_the_end_are_kept(printed):
    path, writer = printed(LIMIT + 1, b"last words")
    bound(path)
    os.write(writer, b", and more")
    text = Path(path).read_bytes()
    assert len(text) < KEPT + LAST + 200
    assert text.startswith(b"first")
    assert b"[cut here: what was printed first and last is kept, because a log has at most 16 MiB]" in text
    assert text.endswith(b"last words, and more")


def test_a_log_that_grows_again_is_cut_again(printed):
    path, writer = printed(LIMIT + 1)
    for _ in range(3):
        bound(path)
        os.write(writer, bytes(LIMIT))
    bound(path)
    assert log_size(path) < KEPT + LAST + 200


def test_no_log_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "LIMIT", -1)
    for path in ("", str(tmp_path / "none"), str(tmp_path)):
        bound(path)


def test_what_several_ranks_printed_is_one_log_within_bounds(tmp_path):
    logs = [str(tmp_path / f"{rank}.log") for rank in range(3)]
    for log_of_rank in logs:
        Path(log_of_rank).write_bytes(bytes(LIMIT))
    whole = str(tmp_path / "log.txt")
    crew = SimpleNamespace(outcomes=[], peak=0, logs=logs)
    Running(Job("job", "package", "path", (), ranks=3, log=whole), crew, 0).collect()
    assert log_size(whole) <= LIMIT
