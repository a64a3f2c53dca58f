"""A mark on disk: inside which swapped-in part a process is, for when it dies there or never comes back.

Standard library only, Python 3.10 syntax. The framework process writes it, the referee reads it.
"""

import os

_CALLED = ".called."  # before the part in the name of an empty file


class Mark:
    """A file that holds the name of the part that is being called, and nothing between calls."""

    def __init__(self, file: str) -> None:
        os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120 - pathlib is slow
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._calls, self._called = file + _CALLED, set[str]()

    def enter(self, part: str) -> None:
        """A call of the part begins."""
        os.pwrite(self._file, part.encode(), 0)
        if part not in self._called:
            self._called.add(part)
            os.close(os.open(self._calls + part, os.O_WRONLY | os.O_CREAT, 0o644))

    def leave(self) -> None:
        """It is over, however it ended."""
        os.ftruncate(self._file, 0)


def mark_file(scratch: str, stage: str, rank: int) -> str:
    """Where a rank of a stage leaves its mark: beside its scratch folder, which belongs to the stages."""
    return f"{scratch}.inside/{stage.replace('/', '.')}.{rank}"


def called(scratch: str) -> set[str]:
    """The parts that any stage of this scratch folder called at all."""
    try:
        return {name.split(_CALLED)[1] for name in os.listdir(f"{scratch}.inside") if _CALLED in name}  # noqa: PTH208
    except OSError:
        return set()


def marked(scratch: str, stage: str, ranks: int) -> str:
    """The part inside which any rank of a stage stopped; empty when none did."""
    for rank in range(ranks):
        try:
            with open(mark_file(scratch, stage, rank), encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow
                part = file.read()
        except OSError:
            continue
        if part:
            return part
    return ""
