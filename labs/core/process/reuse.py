"""Stages that a control's fault can't reach: their result is the good run's, and need not be computed again.

The good run of a stage is given parts that note which of them the stage reads. A control that swaps none of these, at
the same config, would run the very same code on the same inputs. Never reused: a stage that resumes from what another
one left on disk, one that leaves files itself, and a stage of several ranks (all of them must take part).
Standard library only, Python 3.10 syntax.
"""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from labs.core.process.jobs import Task


@dataclasses.dataclass(frozen=True)
class Seen:
    """What the good run of a stage read and yielded."""

    config: dict[str, Any]
    parts: frozenset[str]
    items: tuple[str, ...]


@dataclasses.dataclass
class Memory:
    """The good runs that one process has seen, by their folder and stage."""

    seen: dict[tuple[str, str], Seen] = dataclasses.field(default_factory=dict)

    def same(self, task: Task) -> tuple[str, ...] | None:
        """The items in which this task can't differ from its good run, or None when it has to be run."""
        good = self.seen.get((task.good, task.stage))
        if good is None or task.resumes or good.config != task.config or good.parts & set(task.swap):
            return None
        return good.items

    def wants(self, task: Task) -> bool:
        """Whether others may be held against this run: it is nobody's control."""
        return not task.good and not task.swap and not task.resumes

    def note(self, task: Task, read: set[str], items: tuple[str, ...], before: tuple[str, ...]) -> None:
        """Remember a run that `wants` named; `before` is what `left` was when it began."""
        if left(task) == before:
            self.seen[task.out, task.stage] = Seen(task.config, frozenset(read), items)


def left(task: Task) -> tuple[str, ...]:
    """The files in the folders that a stage may leave something in."""
    return tuple(sorted(_files(task.scratch))) + tuple(sorted(_files(task.checkpoints)))


def _files(folder: str) -> Iterator[str]:
    for root, _, names in os.walk(folder):
        yield from (os.path.join(root, name) for name in names)  # noqa: PTH118 - pathlib is slow, and this is often


def noting(parts: Any) -> tuple[Any, set[str]]:
    """The same parts, and the set of the names that have been read of them."""
    names = {field.name for field in dataclasses.fields(parts)}
    read: set[str] = set()

    class Noted(type(parts)):  # type: ignore[misc]
        """The lab's own parts; copies by `dataclasses.replace` note as well, and read every name."""

        def __getattribute__(self, name: str) -> Any:
            if name in names:
                read.add(name)
            return super().__getattribute__(name)

    noted = object.__new__(Noted)
    noted.__dict__.update(vars(parts))
    return noted, read
