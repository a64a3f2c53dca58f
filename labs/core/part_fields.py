"""The parts of a lab as its parts.py declares them; importing that file imports no torch."""

import dataclasses
from importlib import import_module
from types import ModuleType
from typing import Any

from labs.core.errors import RequestError
from labs.core.lab import Lab
from labs.core.process.sentence import sentence


def part_fields(lab: Lab) -> tuple["dataclasses.Field[Any]", ...]:
    """The swappable callables, in order; none when the lab has no parts.py. Raises RequestError."""
    return dataclasses.fields(_record(lab)) if (lab.path / "parts.py").is_file() else ()


def conventions(lab: Lab) -> str:
    """What the docstring of parts.py says of shapes and names, without its first line."""
    if not (lab.path / "parts.py").is_file():
        return ""
    doc: str = _module(lab).__doc__ or ""
    return doc.partition("\n")[2].strip()


def described(field: "dataclasses.Field[Any]") -> tuple[str, str]:
    """A part's sentence (may be empty) and its type as the file writes it."""
    written = field.type if isinstance(field.type, str) else str(field.type)
    return str(field.metadata.get("doc", "")), written.replace("typing.", "").replace("collections.abc.", "")


def _module(lab: Lab) -> ModuleType:
    try:
        return import_module(f"{lab.package}.parts")
    except Exception as error:
        raise RequestError(f"{lab.path / 'parts.py'}: {sentence(error)}") from error


def _record(lab: Lab) -> type[Any]:
    module = _module(lab)
    for value in vars(module).values():
        if isinstance(value, type) and dataclasses.is_dataclass(value) and value.__module__ == module.__name__:
            return value
    raise RequestError(f"{lab.path / 'parts.py'}: no dataclass of parts in it")
