"""Stages that a control's fault can't reach: their result is the good run's, and need not be computed again.

What a stage yields and leaves on disk follows from its config, its inputs, the parts that it reads and, where it
resumes, the files that it finds. The good run of a stage is given parts that note which of them it reads, and its files
are kept. A control that swaps none of these parts, at the same config and with the same files before it, would run the
very same code on the same data: it is given the good run's items, and the files that the good run left.
Of several ranks each has to come to the same decision, or the others wait for it in a collective: what one of them read
counts for all, and a stage in which they resume from files is always run.
Standard library only, Python 3.10 syntax.
"""

import dataclasses
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from labs.core.process.jobs import Task

Files: TypeAlias = Mapping[str, bytes]  # by their paths below the folder that a stage may leave something in

LARGEST = 1 << 20  # bytes of a place's files that are kept in memory; a stage beside more than that is always run


@dataclasses.dataclass(frozen=True)
class Seen:
    """What the good run of a stage read, yielded, found in its place and left there."""

    config: dict[str, Any]
    parts: frozenset[str]
    items: tuple[str, ...]
    found: Files
    left: Files


@dataclasses.dataclass
class Memory:
    """The good runs that one process has seen, by their folder and stage."""

    seen: dict[tuple[str, str], Seen] = dataclasses.field(default_factory=dict)

    def same(self, task: Task) -> tuple[str, ...] | None:
        """The items in which this task can't differ from its good run, or None when it has to be run.

        The files that it would have left are there when this returns items.
        """
        good = self.seen.get((task.good, task.stage))
        if good is None or good.config != task.config or good.parts & set(task.swap):
            return None
        if task.resumes and files(task) != good.found:
            return None
        _leave(task, good.left)
        return good.items

    def wants(self, task: Task, tasks: Sequence[Task]) -> bool:
        """Whether this is the good run that others of these tasks are held against."""
        return not task.good and not task.swap and any(other.good == task.out for other in tasks)

    def note(self, task: Task, read: set[str], items: tuple[str, ...], found: Files, left: Files) -> None:
        """Remember a run that `wants` named; `found` are the files before it, `left` those that it `added`."""
        self.seen[task.out, task.stage] = Seen(task.config, frozenset(read), items, found, left)


def added(before: Files | None, after: Files | None) -> Files | None:
    """The files that are new or other ones; None where that is not known, or some are gone."""
    if before is None or after is None or not before.keys() <= after.keys():
        return None
    return {name: data for name, data in after.items() if before.get(name) != data}


def files(task: Task) -> Files | None:
    """All that stages left in the place of this task by now; None when it is too much to keep, or no plain file."""
    try:
        paths = dict(_paths(task))
        stats = [os.stat(path) for path in paths.values()]  # noqa: PTH116
        if sum(s.st_size for s in stats) > LARGEST or not all(stat.S_ISREG(s.st_mode) for s in stats):
            return None
        return {name: _read(path) for name, path in paths.items()}
    except OSError:  # another rank is just at it
        return None


def _paths(task: Task) -> Iterator[tuple[str, str]]:
    """The files of both folders under names that are the same in every place; one folder may lie in the other."""
    inner = task.checkpoints + os.sep
    for kind, folder in _folders(task).items():
        for root, _, names in os.walk(folder):
            for path in (os.path.join(root, name) for name in names):  # noqa: PTH118 - pathlib is slow
                if kind == "checkpoints" or not path.startswith(inner):
                    yield f"{kind}/{os.path.relpath(path, folder)}", path


def _folders(task: Task) -> dict[str, str]:
    return {"scratch": task.scratch, "checkpoints": task.checkpoints}


def _read(path: str) -> bytes:
    with open(path, "rb") as source:  # noqa: PTH123
        return source.read()


def _leave(task: Task, left: Files) -> None:
    """Write what the good run left where this task would have left it."""
    for name, data in left.items():
        kind, _, below = name.partition("/")
        path = f"{_folders(task)[kind]}/{below}"
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(path, "wb") as target:  # noqa: PTH123
            target.write(data)


def noting(parts: Any) -> tuple[Any, set[str]]:
    """The same parts, and the set of the names that have been read of them."""
    names = {field.name for field in dataclasses.fields(parts)}
    read: set[str] = set()

    class Noted(type(parts)):  # type: ignore[misc]
        """The lab's own parts; copies by `dataclasses.replace` note as well, and read every name, as `vars` does."""

        def __getattribute__(self, name: str) -> Any:
            read.update(names if name == "__dict__" else {name} & names)
            return super().__getattribute__(name)

    noted = object.__new__(Noted)
    for name in names:
        object.__setattr__(noted, name, getattr(parts, name))  # they may be frozen, and have slots
    return noted, read
