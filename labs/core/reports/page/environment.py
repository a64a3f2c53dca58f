"""What a run depended on, as rows of a table: both processes side by side, long lists folded."""

from collections.abc import Mapping
from typing import NamedTuple

from labs.core.reports.summary import Record, flat, plain

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
    sides = [_texts(environment.get(side)) for side in TWO]
    rows = [_fact(name, *(side.get(name, "") for side in sides)) for name in dict.fromkeys([*sides[0], *sides[1]])]
    rest = {key: value for key, value in environment.items() if key not in TWO}
    return [_fact(name, value, "") for name, value in _texts(rest).items()] + rows


def _texts(facts: object) -> dict[str, str]:
    """Facts by dotted names, without those that are not known."""
    return {name: plain(v) for name, v in flat(facts) if v is not None} if isinstance(facts, Mapping) else {}


def _fact(name: str, referee: str, framework: str) -> Fact:
    differs = bool(referee and framework) and referee != framework
    return Fact(name, referee, framework, differs, max(len(referee), len(framework)) > LONG)
