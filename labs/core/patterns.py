"""Name patterns as users write them: `trained/grad/*` against item names, and pattern against pattern."""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cache

_SPECIAL = set("*?[")
_NEVER = re.compile(r"(?!)")


def matches(name: str, patterns: Iterable[str]) -> bool:
    """True when any of the fnmatch patterns matches the whole name."""
    names, wild = _compiled(tuple(patterns))
    return name in names or wild.match(name) is not None


def picks(item: str, kind: str, patterns: Iterable[str]) -> bool:
    """True when any of the patterns names this check: by its item, or as `item:kind`."""
    return matches(item, patterns) or matches(f"{item}:{kind}", patterns)


@cache
def _compiled(patterns: tuple[str, ...]) -> tuple[frozenset[str], re.Pattern[str]]:
    """The patterns that are plain names, and one expression for the others: a run asks tens of thousands of times."""
    wild = [pattern for pattern in patterns if _SPECIAL & set(pattern)]
    return frozenset(patterns).difference(wild), re.compile("|".join(map(translate, wild))) if wild else _NEVER


@cache
def overlap(a: str, b: str) -> bool:
    """True when some name could match both patterns (a `[…]` set is taken to match anything that long or longer)."""
    if "[" in a or "[" in b:
        return True
    if not a or not b:
        return not (a + b).strip("*")
    if "*" in (a[0], b[0]):
        return (a[0] == "*" and (overlap(a[1:], b) or overlap(a, b[1:]))) or (
            b[0] == "*" and (overlap(a, b[1:]) or overlap(a[1:], b))
        )
    return (a[0] == b[0] or "?" in (a[0], b[0])) and overlap(a[1:], b[1:])
