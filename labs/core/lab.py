"""What a lab is: one frozen record of plain functions and tables, `LAB` in its lab.py.

The engine knows labs by this record alone. `package` and `path` are filled in by `labs.core.registry.load`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from labs.core.inputs import Draw

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = dict[str, Array]
Kind: TypeAlias = Literal["close", "zero", "exact", "identical", "within", "witness"]


@dataclass(frozen=True)
class Rule:
    """How an item is judged when it is not the default (`close` for floats, `exact` for integers and booleans).

    `zero` replaces the default check of `item`. `identical` and `within` stand beside it: `other` names the observed
    item that must have the same bits, or the reference item that holds the bound on abs(item) (reference side only).
    An item named by `identical` or `within` that the reference lacks is promised by the observed side alone.
    """

    kind: Kind
    item: str
    other: str = ""


def zero(item: str) -> Rule:
    """Every element of `item` is exactly 0 on the observed side."""
    return Rule("zero", item)


def identical(item: str, other: str) -> Rule:
    """The observed items `item` and `other` have the same bits."""
    return Rule("identical", item, other)


def within(item: str, bound: str) -> Rule:
    """Element by element, abs(observed `item`) <= reference `bound` (same shape, or a scalar)."""
    return Rule("within", item, bound)


@dataclass(frozen=True)
class Witness:
    """A derivative that knows no formula: d loss / d input must equal the hand-derived reference `item`.

    `loss(config, arrays, held) -> scalar` composes forward kernels only. `arrays` holds the inputs with `input`
    perturbed (complex128 for the complex step, float64 for differences), `held` the same inputs unperturbed, for
    paths that the gradient does not take.
    """

    item: str
    loss: Callable[[Any, Arrays, Arrays], Any]
    input: str


@dataclass(frozen=True)
class Stage:
    """One process of the framework side: a function of the lab's torch_impl.STAGES, and the items that it yields.

    `items` are fnmatch patterns; `after` names stages that have to be complete before (what they left in
    `place.scratch` and `place.checkpoints` is there); `ranks` is the number of processes that run it together.
    """

    name: str
    items: tuple[str, ...]
    after: tuple[str, ...] = ()
    ranks: Callable[[Any], int] = lambda config: 1


@dataclass(frozen=True)
class Control:
    """A known fault that a run has to catch.

    `swap` replaces parts by functions of the lab's torch_faults.py, `lie` changes config values for the torch side
    only, `at` changes them for both sides so that the fault can show. `must` and `may` are fnmatch patterns over check
    names: every check that matches `must` has to fail, one that matches `may` can, every other one has to pass.
    """

    name: str
    why: str
    must: tuple[str, ...]
    may: tuple[str, ...] = ()
    swap: Mapping[str, str] = field(default_factory=dict)
    lie: Mapping[str, Any] = field(default_factory=dict)
    at: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table for the reports that judges nothing, such as the norms of a layer's gradients."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]


@dataclass(frozen=True)
class Node:
    """A stop on the walk from the loss back to the inputs, for readers of report.html.

    `value` names the reference item that holds it, or else the input; `gradient` the item that holds the loss's
    derivative by it, "" where that is 1. `forward` and `backward` are the local rules in words or signs, `read_by` the
    nodes that its gradient comes from: they stand before it.
    """

    name: str
    value: str
    gradient: str
    forward: str
    backward: str
    read_by: tuple[str, ...] = ()


def _no_walk(config: Any) -> tuple[Node, ...]:
    return ()


def _no_problems(config: Any) -> Sequence[tuple[str, str]]:
    return ()


def _no_tables(config: Any, reference: Mapping[str, Array]) -> Sequence[Table]:
    return ()


@dataclass(frozen=True)
class Lab:
    """One lab. Everything the engine needs to draw, compute, run, judge and explain it.

    items: fnmatch pattern -> formula or sentence; every promised item matches one, every pattern matches an item.
    inputs(config, draw) -> arrays;  reference(config, inputs) -> {item: array}, dtype-generic.
    rules(config) -> the checks that are not the default ones.
    footprint(config) -> bytes that both processes together take at their peak, roughly.
    problems(config) -> (key, sentence) pairs for what single bounds can't say: "group: 3 does not divide d_in 8".
    facts: item -> sentence, for what torch versions do differently: the torch side has to yield these scalars, the
    report states them and a diff shows them, but no side is right, so they are not judged.
    tables(config, reference) -> tables for the reports.
    accumulates: fnmatch pattern -> why rounding adds up in such items: a wider limit in a narrower precision.
    unjudged: precision -> {fnmatch pattern: why such items mean nothing there} (`--precision`).
    walk(config) -> the nodes that report.html steps through, the loss first.
    trajectories: patterns of items whose leading axis is the training step; report.html draws them as curves.
    """

    name: str
    title: str
    equations: str
    items: Mapping[str, str]
    config: type[Any]
    inputs: Callable[[Any, Draw], Arrays]
    reference: Callable[[Any, Arrays], Arrays]
    rules: Callable[[Any], tuple[Rule, ...]]
    witnesses: tuple[Witness, ...]
    stages: tuple[Stage, ...]
    controls: tuple[Control, ...]
    footprint: Callable[[Any], int]
    problems: Callable[[Any], Sequence[tuple[str, str]]] = _no_problems
    facts: Mapping[str, str] = field(default_factory=dict)
    tables: Callable[[Any, Mapping[str, Array]], Sequence[Table]] = _no_tables
    accumulates: Mapping[str, str] = field(default_factory=dict)
    unjudged: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    walk: Callable[[Any], tuple[Node, ...]] = _no_walk
    trajectories: tuple[str, ...] = ()
    package: str = ""
    path: Path = Path()


def is_float(array: Array) -> bool:
    """True where `close` is the default check, False where `exact` is."""
    return bool(np.issubdtype(array.dtype, np.floating))
