"""Known faults that every run has to catch, so that a green verdict is known to be falsifiable.

Controls run with the lab's own parts at the lab's default config (plus what the control's `at` changes), never with
the user's. Controls that share a config share a bench: its inputs, its reference and its good run. Benches stand in
lanes: the cases of a lane run in one process, lanes side by side.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from labs.core import items
from labs.core.compare import DECADES
from labs.core.config import changed, default
from labs.core.inputs import Draw
from labs.core.items import Tolerance
from labs.core.judge import Check, judge_all
from labs.core.lab import Array, Arrays, Control, Lab, Rule
from labs.core.observed import Observed
from labs.core.patterns import matches, picks
from labs.core.schedule import Case, Ran, items_of

HEAD_START = 4  # controls that run while the stages of the run itself hold another CPU

NOT_EXERCISED = "not exercised"
Tolerances = Sequence[tuple[str, Tolerance]]


@dataclass(frozen=True)
class Bench:
    """The controls that run at one config, and the good run beside them."""

    config: Any
    inputs: Arrays
    good: Case
    faulty: tuple[tuple[Control, Case], ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        """The good run first: what the faulty ones share with it is not written twice."""
        return (self.good, *(case for _, case in self.faulty))


@dataclass(frozen=True)
class Verdict:
    """What became of one control: caught, missed (a check of `must` passed) or leaked (another check failed).

    In a narrow precision also unseen: its effect stays inside the limits of every item.
    """

    control: Control
    status: str
    failed: tuple[str, ...]
    missed: tuple[str, ...]
    leaked: tuple[str, ...]
    good: float
    fault: float
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """The control's entry in report.json."""
        return {
            "name": self.control.name,
            "why": self.control.why,
            "status": self.status,
            "must": list(self.control.must),
            "may": list(self.control.may),
            "failed": list(self.failed),
            "missed": list(self.missed),
            "leaked": list(self.leaked),
            "separation": {"good": self.good, "fault": self.fault},
            "message": self.message,
        }


def benches(lab: Lab, scratch: Path, out: Path, lanes: int = 1, seed: int = 0) -> tuple[tuple[Bench, ...], ...]:
    """The benches of a lab's controls in at most `lanes` lanes, inputs drawn; nothing is run yet."""
    made = []
    for number, lane in enumerate(_lanes(lab, lanes)):
        stands = []
        for at, controls in enumerate(lane):
            config = default(lab, controls[0].at)
            place = scratch / f"{number}-{at}"
            stands.append(bench(controls, config, lab.inputs(config, Draw(seed)), place, out))
        made.append(tuple(stands))
    return tuple(made)


def _lanes(lab: Lab, lanes: int) -> list[list[list[Control]]]:
    """The controls of each lane, by the config that they ask for. The first lane begins beside the run, so has more."""
    grouped = sorted(lab.controls, key=_asks_for)
    first = min(len(grouped), -(-(len(grouped) + HEAD_START * (lanes - 1)) // lanes))
    share = -(-(len(grouped) - first) // (lanes - 1)) if lanes > 1 else 0
    starts = [0, *range(first, len(grouped), share or 1)]
    cut = [grouped[start:end] for start, end in pairwise([*starts, len(grouped)])]
    return [[list(group) for _, group in groupby(lane, _asks_for)] for lane in cut if lane]


def _asks_for(control: Control) -> str:
    return json.dumps(dict(control.at), sort_keys=True)


def bench(controls: Sequence[Control], config: Any, inputs: Arrays, scratch: Path, out: Path) -> Bench:
    """The good run at `config` and these controls beside it; a control's lies reach the torch side only."""
    good = _case("good", config, scratch, scratch / "good")
    faulty = [(c, _case(c.name, changed(config, c.lie), scratch, out / c.name, _faults(c), good.out)) for c in controls]
    return Bench(config, inputs, good, tuple(faulty))


def _faults(control: Control) -> dict[str, str]:
    return {part: f"fault:{fault}" for part, fault in control.swap.items()}


def _case(
    name: str, config: Any, scratch: Path, out: Path, swap: Mapping[str, str] | None = None, good: Path | None = None
) -> Case:
    own = scratch / "places" / name
    return Case(name, config, scratch / "inputs", out, own, own / "checkpoints", swap or {}, packed=True, good=good)


def verdicts(
    bench: Bench,
    rules: tuple[Rule, ...],
    reference: Mapping[str, Array],
    facts: Collection[str],
    ran: Sequence[Ran],
    tolerances: Tolerances,
    *,
    narrow: bool = False,
) -> tuple[Verdict, ...]:
    """Judge the good run once, then each control where its items have other bits than the good run's.

    `facts` are items that nobody judges; `narrow`: a precision in which a fault can be smaller than the limits.
    """
    paths, packs = _judged(items_of(bench.good, ran), facts), dict[Path, Mapping[str, Array]]()
    good = {
        (c.name, c.kind): c for c in judge_all(rules, reference, Observed(paths, packs), tolerances, recorded=False)
    }
    wrong = [label(c) for c in good.values() if c.status != "passed"]
    doubt = f"the good run beside it fails at {', '.join(wrong[:4])}" if wrong else _doubled(bench.good, ran)
    found = []
    for control, case in bench.faulty:
        broken = next((r.failure for r in ran if r.case is case and r.failure), "") or _doubled(case, ran)
        own = _judged(items_of(case, ran), facts)
        observed = Observed(own, dict(packs))
        checks = _judge_changed(own, observed, paths, rules, reference, good, tolerances)
        found.append(verdict(control, tuple(good.values()), checks, f"{NOT_EXERCISED}: {broken}" if broken else doubt))
    return tuple(map(_where_seen, found)) if narrow else tuple(found)


def _where_seen(verdict: Verdict) -> Verdict:
    """In a narrow precision a fault counts as caught where one item shows it, and as unseen where none can."""
    if verdict.message.startswith(NOT_EXERCISED):  # such as one that casts what it loads to float64
        return replace(verdict, status="unseen")
    if verdict.status != "missed" or verdict.message or verdict.leaked:
        return verdict
    must = verdict.control.must
    seen = [name for name in verdict.failed if matches(name, must) or matches(name.partition(":")[0], must)]
    return replace(verdict, status="caught", missed=()) if seen else replace(verdict, status="unseen")


def _doubled(case: Case, ran: Sequence[Ran]) -> str:
    """Say what several stages or ranks yield, each into a file of its own, so that only one of them would be judged."""
    names = [n for r in ran if r.case is case for o in r.outcomes for n in (*o.items, *o.same)]
    if len(names) == len(set(names)):
        return ""
    return f"item {next(n for n in names if names.count(n) > 1)} is yielded more than once"


def _judged(paths: Mapping[str, Path], facts: Collection[str]) -> dict[str, Path]:
    return {name: path for name, path in paths.items() if name not in facts}


def _judge_changed(
    paths: Mapping[str, Path],
    observed: Observed,
    good_paths: Mapping[str, Path],
    rules: tuple[Rule, ...],
    reference: Mapping[str, Array],
    good: Mapping[tuple[str, str], Check],
    tolerances: Tolerances,
) -> tuple[Check, ...]:
    same = {name for name, path in paths.items() if good_paths.get(name) == path}
    affected = tuple(r for r in rules if not reads(r) <= same)
    owed = {name for rule in affected for name in reads(rule)} | (paths.keys() - same)
    shown = {name: observed[name] for name in paths if name in owed}
    again = judge_all(affected, reference, shown, tolerances, recorded=False)
    return tuple({**good, **{(c.name, c.kind): c for c in again}}.values())


def reads(rule: Rule) -> set[str]:
    """The observed items that a check reads."""
    return {rule.item, rule.other} if rule.kind == "identical" else {rule.item}


def verdict(control: Control, good: Sequence[Check], checks: Sequence[Check], broken: str = "") -> Verdict:
    """Compare what failed with what has to fail and what may; a `broken` fault proves nothing."""
    owed = {key for key in {*map(_key, (*good, *checks))} if picks(*key, control.must)}
    must = [c for c in checks if _key(c) in owed]
    failed = [c for c in checks if c.status != "passed"]
    unmatched = [p for p in control.must if not any(picks(*key, (p,)) for key in map(_key, must))]
    missed = [label(c) for c in must if c.status == "passed"] + unmatched
    leaked = [label(c) for c in failed if _key(c) not in owed and not picks(*_key(c), control.may)]
    status = "missed" if missed or broken else "leaked" if leaked else "caught"
    return Verdict(
        control=control,
        status=status,
        failed=tuple(label(c) for c in failed),
        missed=tuple(missed),
        leaked=tuple(leaked),
        good=min((_decades(c) for c in good if _key(c) in owed), default=0.0),
        fault=min((-_decades(c) for c in must), default=0.0),
        message=broken,
    )


def _decades(check: Check) -> float:
    """A check's headroom; one that failed before its values were compared is as wrong as can be."""
    return check.headroom if check.headroom is not None else -DECADES


def label(check: Check) -> str:
    """A check's name where items can have several."""
    return items.label(check.name, check.kind)


def _key(check: Check) -> tuple[str, str]:
    return check.name, check.kind
