"""What can become of a check between two runs, worst first, and which of it counts as a no.

`Difference` is what `lab diff`, a baseline and a matrix all speak of; it holds facts and writes nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CLASSES = (  # worst first
    "regression",
    "removed",
    "still-failing",
    "not-comparable",
    "drift",
    "added",
    "fixed",
    "last-bits",
    "bit-identical",
)
FAILS = {  # what each --fail-on takes for a no
    "never": frozenset[str](),
    "regression": frozenset({"regression", "removed"}),
    "drift": frozenset({"regression", "removed", "drift"}),
    "any": frozenset(CLASSES[:-1]),
}
UNCOMPARED = frozenset({"removed", "added", "not-comparable"})


@dataclass(frozen=True)
class Change:
    """One check, known fault or complaint in A and in B.

    kind: of the check, or `control`, `failure`, `wiring`, `verdict`. status: in A and in B, "" where it is not there.
    ulp: how far its values are apart, in ULP of the largest magnitude in A; `at_most` when that is a bound, because
    the values were not kept. headroom: decades in A and in B. moved: which sides changed bits.
    """

    config: str
    name: str
    kind: str
    change: str
    status: tuple[str, str] = ("", "")
    ulp: float | None = None
    at_most: bool = False
    headroom: tuple[float | None, float | None] = (None, None)
    moved: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Setting:
    """One thing that differs between two environments; `group` says what kind of thing, "" when it moves no value."""

    what: str
    a: str
    b: str
    group: str


@dataclass(frozen=True)
class Fact:
    """A fact of a lab (not judged) that differs."""

    config: str
    name: str
    a: str
    b: str
    what: str


@dataclass(frozen=True)
class Pair:
    """One config: its status in A and in B ("" where it is not there), and how many faults both runs caught."""

    name: str
    status: tuple[str, str]
    obstacle: str
    caught: int


@dataclass(frozen=True)
class Difference:
    """All that differs between bundle A and bundle B; `changes` are sorted, worst first, bit-identical ones included.

    a, b: id, folder name, status, creation time and torch version of each. cause: what the environments suggest, ""
    where nothing moved.
    """

    a: Mapping[str, str]
    b: Mapping[str, str]
    environment: tuple[Setting, ...]
    cause: str
    configs: tuple[Pair, ...]
    changes: tuple[Change, ...]
    facts: tuple[Fact, ...]

    @property
    def compared(self) -> int:
        """How many checks could be held against each other."""
        return sum(c.change not in UNCOMPARED for c in self.changes)

    def fails(self, fail_on: str) -> bool:
        """Whether `fail_on` takes anything for a no; with `any` a fact that differs counts too."""
        return any(c.change in FAILS[fail_on] for c in self.changes) or (fail_on == "any" and bool(self.facts))


def counts(changes: Iterable[Change]) -> dict[str, int]:
    """How many changes of each class, worst class first, without those that did not happen."""
    found = Counter(c.change for c in changes)
    return {name: found[name] for name in CLASSES if found[name]}


def rank(change: Change) -> tuple[int, float]:
    """Sort key: the worst class first, in it the largest distance."""
    return CLASSES.index(change.change), -(change.ulp or 0.0)


def exit_code(difference: Difference, fail_on: str) -> int:
    """5 nothing could be compared, 1 what `fail_on` names was found, 0 otherwise."""
    if not difference.compared:
        return 5
    return int(difference.fails(fail_on))
