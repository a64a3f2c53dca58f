"""Parts of a lab replaced by other callables, and whose fault an error is.

Standard library only, Python 3.10 syntax: used in the framework process; the referee never runs a user's code.
"""

import dataclasses
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from labs.core.process.origin import described


class StageError(Exception):
    """A stage, a part or an item that is not what a lab promises; its text is the whole sentence."""


@dataclasses.dataclass(frozen=True)
class Swap:
    """A callable that stands in for the part called `part`, and the file it was taken from."""

    part: str
    callable: Any
    file: str
    place: str = ""  # file:line as the user wrote it, for a sentence
    fault: bool = False  # one of the lab's own known faults
    found: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # for the report


def lab_module(package: str, path: str, name: str) -> ModuleType:
    """The module `name` of a lab; a lab that does not ship with us is registered by its folder first."""
    if not package.startswith("labs.") and package not in sys.modules:
        start = Path(path, "__init__.py")
        spec = importlib.util.spec_from_file_location(package, start, submodule_search_locations=[path])
        if spec is None or spec.loader is None:
            raise StageError(f"{path} can't be imported as a lab")
        sys.modules[package] = importlib.util.module_from_spec(spec)
        if start.exists():
            spec.loader.exec_module(sys.modules[package])
    return importlib.import_module(f"{package}.{name}")


def load_swap(part: str, source: str, package: str, path: str, opened: dict[str, ModuleType]) -> Swap:
    """Import what `source` names: "fault:NAME" of the lab's torch_faults, "file.py:name" or "module:name".

    opened: the files that were run already, so that parts of one file share what it holds.
    """
    origin, _, name = source.rpartition(":")
    if not origin or not name:
        raise StageError(f"part {part}: {source!r} is not FILE.py:NAME or MODULE:NAME")
    if origin == "fault":
        module = lab_module(package, path, "torch_faults")
    elif origin.endswith(".py"):
        file = os.path.abspath(origin)  # noqa: PTH100 - links kept
        if file not in opened:
            opened[file] = _from_file(part, origin)
        module = opened[file]
    else:
        if os.getcwd() not in sys.path:  # noqa: PTH109 - as a string, last: the user's folder must not shadow torch
            sys.path.append(os.getcwd())  # noqa: PTH109
        module = importlib.import_module(origin)
    made = getattr(module, name, None)
    if not callable(made):
        raise StageError(f"part {part}: {origin} has no callable {name!r}")
    if origin == "fault":
        return Swap(part, made, os.path.abspath(module.__file__ or ""), fault=True)  # noqa: PTH100
    found = described(part, source, module, made, _code(made))
    place = f"{found['file']}:{found['line']}" if found["line"] else source
    return Swap(part, made, found.pop("path"), place, found=found)


def _from_file(part: str, file: str) -> ModuleType:
    if not Path(file).is_file():
        raise StageError(f"part {part}: there is no file {file}")
    spec = importlib.util.spec_from_file_location(f"swapped_{part}", os.path.abspath(file))  # noqa: PTH100
    if spec is None or spec.loader is None:
        raise StageError(f"part {part}: {file} can't be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickling look their module up
    spec.loader.exec_module(module)
    return module


def with_swaps(parts: Any, swaps: Mapping[str, Any]) -> Any:
    """The lab's parts with some replaced. Raises StageError when there is no part of that name."""
    known = [field.name for field in dataclasses.fields(parts)]
    for name in swaps:
        if name not in known:
            raise StageError(f"there is no part {name!r}; the parts are {', '.join(known)}")
    return dataclasses.replace(parts, **swaps)


def guilty(error: BaseException, swaps: list[Swap]) -> str:
    """The swapped-in part through which `error` passed: by its own code first, else by the file it came from."""
    if getattr(error, "part", "") in {swap.part for swap in swaps}:
        return str(error.part)  # type: ignore[attr-defined]
    frames = list(_code_of(error))[::-1]  # innermost first
    for code in frames:
        for swap in swaps:
            if code is _code(swap.callable):
                return swap.part
    for code in frames:
        for swap in swaps:
            if code.co_filename == swap.file:
                return swap.part
    return ""


def _code_of(error: BaseException) -> Iterator[CodeType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next


def _code(value: Any) -> CodeType | None:
    while hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    return code if isinstance(code, CodeType) else None
