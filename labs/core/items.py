"""Items and the checks they owe: which rule judges which item, and with what tolerance.

An item is a named array that both sides compute. The plan is made from the reference and the lab's rules before torch
has answered, so an item that the torch side leaves out is missed by name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from labs.core.errors import RequestError
from labs.core.lab import Array, Rule, is_float

REPLACING = ("close", "exact", "zero")  # one of these judges an item; `identical` and `within` stand beside it


@dataclass(frozen=True)
class Tolerance:
    """An element passes `close` when abs(observed - reference) <= atol + rtol * abs(reference)."""

    atol: float = 1e-9
    rtol: float = 1e-8
    reason: str = ""


def plan(lab_rules: Sequence[Rule], reference: Mapping[str, Array]) -> tuple[Rule, ...]:
    """Every check of a run, in order: each item's own, those that stand beside it, then the observed-only ones.

    The bound of a `within` is reference-only and gets no check. Raises RequestError when two rules would share a name
    and kind, because a report could not tell them apart.
    """
    _refuse_doubles(lab_rules)
    replaced = {rule.item: rule for rule in lab_rules if rule.kind in REPLACING}
    bounds = {rule.other for rule in lab_rules if rule.kind == "within"}
    ordered: list[Rule] = []
    for name, array in reference.items():
        if name not in bounds:
            ordered.append(replaced.get(name) or default_rule(name, array))
        ordered += [rule for rule in lab_rules if rule.item == name and rule.kind not in REPLACING]
    ordered += [rule for rule in lab_rules if rule.item not in reference]
    return tuple(ordered)


def default_rule(name: str, array: Array) -> Rule:
    """`close` for floats, `exact` for integers and booleans."""
    return Rule("close" if is_float(array) else "exact", name)


def label(item: str, kind: str) -> str:
    """A check's name where an item can have several: `init/output` by default, `init/output:identical` beside it."""
    return item if kind in REPLACING else f"{item}:{kind}"


def promised(plan: Sequence[Rule]) -> tuple[str, ...]:
    """List the names that the observed side owes, each once, in the order of the plan."""
    names: dict[str, None] = {}
    for rule in plan:
        names[rule.item] = None
        if rule.kind == "identical":
            names[rule.other] = None
    return tuple(names)


def tolerance_for(item: str, tolerances: Sequence[tuple[str, Tolerance]]) -> Tolerance:
    """Find the tolerance of the first pattern (fnmatch, case kept) that matches the item, else the default."""
    return next((tolerance for pattern, tolerance in tolerances if fnmatchcase(item, pattern)), Tolerance())


def _refuse_doubles(rules: Sequence[Rule]) -> None:
    slots = Counter((rule.item, "own" if rule.kind in REPLACING else rule.kind) for rule in rules)
    for (item, kind), times in slots.items():
        if times > 1:
            raise RequestError(f"rules: {item}: got {times} rules of kind {kind}, expected at most one")
