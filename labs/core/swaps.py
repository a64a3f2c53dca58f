"""What `--swap PART=SOURCE` names: checked before anything runs, read as bytes, never executed in this process.

A SOURCE is `FILE.py:NAME` or `module:NAME`. A file is looked into here; a module belongs to the framework's
interpreter, which says what it found there.
"""

import ast
import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labs.core.errors import RequestError
from labs.core.lab import Lab
from labs.core.loading.nearest import nearest
from labs.core.part_fields import part_fields
from labs.core.process.jobs import Outcome


@dataclass(frozen=True)
class Swapped:
    """One part that is not the lab's own: where it was taken from, and with which bytes.

    line is 0 and sha256 empty where they are not known (a module that could not be imported, a compiled one).
    libraries: what the file imports besides torch and NumPy, such as "peft 0.17.1".
    """

    part: str
    source: str
    file: str = ""
    line: int = 0
    sha256: str = ""
    libraries: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The part's entry in report.json."""
        return {**dataclasses.asdict(self), "libraries": list(self.libraries)}


def parsed(words: Sequence[str]) -> dict[str, str]:
    """`PART=SOURCE` words as {part: source}. Raises RequestError."""
    found: dict[str, str] = {}
    for word in words:
        part, equals, source = word.partition("=")
        origin, colon, name = source.rpartition(":")
        if not (part and equals and origin and colon and name.isidentifier()):
            raise RequestError(f"--swap {word}: expected PART=FILE.py:NAME or PART=MODULE:NAME")
        if part in found:
            raise RequestError(f"--swap {word}: part {part} is swapped twice")
        found[part] = source
    return found


def looked_up(lab: Lab, swap: Mapping[str, str]) -> tuple[Swapped, ...]:
    """What is known of the swapped parts before they run. Raises RequestError: no such part, file or name."""
    if not swap:
        return ()
    known = [field.name for field in part_fields(lab)]
    for part, source in swap.items():
        if part not in known:
            raise RequestError(f"--swap {part}={source}: lab {lab.name} has no part {part!r}{nearest(part, known)}")
    return tuple(_looked_up(part, source) for part, source in swap.items())


def _looked_up(part: str, source: str) -> Swapped:
    origin, _, name = source.rpartition(":")
    if not origin.endswith(".py"):
        return Swapped(part, source)
    try:
        content = Path(origin).read_bytes()
    except OSError as error:
        raise RequestError(f"--swap {part}={source}: {origin}: {error.strerror}") from error
    line = _line(content, name, f"--swap {part}={source}")
    return Swapped(part, source, origin, line, hashlib.sha256(content).hexdigest())


def _line(content: bytes, name: str, option: str) -> int:
    """Where the file binds `name`; 0 when that can't be told without running it."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # the framework's interpreter may be a newer Python: it has the word
        return 0
    bound = dict(_bindings(tree))
    if name in bound:
        return bound[name]
    if "*" in bound or any(map(_binds_unseen, ast.walk(tree))):
        return 0
    raise RequestError(f"{option}: the file has no {name!r}{nearest(name, bound)}")


def _binds_unseen(node: ast.AST) -> bool:
    return isinstance(node, ast.Global) or (isinstance(node, ast.Name) and node.id in ("globals", "vars", "exec"))


def _bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names that a module binds, with the line; what functions and classes bind inside is their own."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name.split(".")[0], node.lineno) for alias in node.names)
        yield from _bindings(node)


def completed(swapped: Iterable[Swapped], outcomes: Iterable[Outcome]) -> tuple[Swapped, ...]:
    """The same with what the framework process found: the bytes it really ran, a module's file, the libraries."""
    found = {entry["part"]: entry for outcome in outcomes for entry in outcome.swaps}
    return tuple(_completed(entry, found.get(entry.part)) for entry in swapped)


def _completed(entry: Swapped, found: Mapping[str, Any] | None) -> Swapped:
    if found is None:
        return entry
    return dataclasses.replace(
        entry,
        file=entry.file or found["file"],
        line=found["line"] or entry.line,
        sha256=found["sha256"] or entry.sha256,
        libraries=tuple(found["libraries"]),
    )
