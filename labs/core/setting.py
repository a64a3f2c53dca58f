"""How a lab describes one config value (default, bounds, unit, a sentence) and one part (a sentence).

Standard library only, Python 3.10 syntax: both the referee and the framework process import it. The referee checks the
bounds (`labs.core.config`); the framework process only rebuilds the dataclass from the resolved values.
"""

import dataclasses
import functools
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def setting(
    default: Any,
    doc: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    unit: str = "",
) -> Any:
    """A dataclass field with a default, a sentence for `lab show`, and the bounds that the referee enforces."""
    bounds = {"ge": ge, "gt": gt, "le": le, "lt": lt}
    metadata = {"doc": doc, "unit": unit, "bounds": {k: v for k, v in bounds.items() if v is not None}}
    return dataclasses.field(default=default, metadata=metadata)


def part(doc: str) -> Any:
    """A field of a lab's Parts: a callable that people swap, described in a line for `lab show`."""
    return dataclasses.field(metadata={"doc": doc})


def rebuild(cls: type[T], values: Mapping[str, Any]) -> T:
    """The config that `dataclasses.asdict` took apart, after a trip through JSON: records and tuples restored."""
    hints = _hints(cls)  # type: ignore[arg-type]  # mypy takes a class with a type variable for unhashable
    return cls(**{name: _restore(hints[name], value) for name, value in values.items()})


@functools.cache  # the tasks of a job have configs of one class
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _restore(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return rebuild(hint, value)
    if isinstance(value, list):
        inner = typing.get_args(hint)
        return tuple(_restore(inner[0], v) if inner else v for v in value)
    return value
