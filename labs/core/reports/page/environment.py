"""What a run depended on, as rows of a table: both processes side by side, long lists folded."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from labs.core.reports.summary import Record

LONG = 60  # characters that need no fold
TWO = ("referee", "framework")


class Fact(NamedTuple):
    """A fact of both processes (of the run alone: `framework` is ""); `differs` when both state it differently."""

    name: str
    referee: str
    framework: str
    differs: bool
    long: bool


def facts(report: Record) -> list[Fact]:
    """Every fact of the environment."""
    environment = report.get("environment") or {}
    sides = [dict(_flat(_mapping(environment.get(side)))) for side in TWO]
    rows = [_fact(name, *(side.get(name, "") for side in sides)) for name in dict.fromkeys([*sides[0], *sides[1]])]
    rest = {key: value for key, value in environment.items() if key not in TWO}
    return [_fact(name, value, "") for name, value in _flat(rest)] + rows


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _fact(name: str, referee: str, framework: str) -> Fact:
    differs = bool(referee and framework) and referee != framework
    return Fact(name, referee, framework, differs, max(len(referee), len(framework)) > LONG)


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif value is not None:
            yield name, " ".join(map(str, value)) if isinstance(value, list) else str(value)
