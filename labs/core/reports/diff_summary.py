"""What every form of a difference says in the same words: verdict, tally, distance, change of headroom.

Pure functions over the document of `labs.core.difference.record`, standard library only.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from labs.core.reports.summary import Record, count, number, short

QUIET = ("last-bits", "bit-identical")  # classes that are counted and listed on request
PASSED = {"regression": "regression", "drift": "regression or drift", "any": "difference"}
MANY = 3  # changes that share a reason and are told in one line


def listed(diff: Record, *, everything: bool = False) -> list[Record]:
    """The changes worth a line of their own, worst first."""
    return [c for c in diff["changes"] if everything or c["class"] not in QUIET]


def told_together(changes: Sequence[Record]) -> Iterator[list[Record]]:
    """Changes in their order; more than a few that share class, config and reason come as one list."""
    for (_, _, why), group in groupby(changes, key=lambda c: (c["class"], c["config"], c["why"])):
        members = list(group)
        if why and len(members) > MANY and all(c["class"] in ("removed", "added", "not-comparable") for c in members):
            yield members
        else:
            yield from ([c] for c in members)


def label(changes: Sequence[Record]) -> str:
    """The name and kind of a change, or how many there are that share a reason."""
    first = changes[0]
    return f"{first['name']} ({first['kind']})" if len(changes) == 1 else count(len(changes), "check")


def distance(change: Record) -> str:
    """`3.5 ULP`, `≤ 60 ULP` when that is a bound, "" where it is not known or nothing moved."""
    if change["ulp"] is None or not change["moved"]:
        return ""
    return f"{'≤ ' if change['at_most'] else ''}{short(change['ulp'])} ULP"


def headroom(change: Record) -> str:
    """`7.4 → 7.1 (-0.3)` in decades, "" where neither side has one; unchanged ones once."""
    sides = [decades(value) for value in change["headroom"]]
    if sides == ["-", "-"]:
        return ""
    if sides[0] == sides[1]:
        return sides[0]
    before, after = (number(value) for value in change["headroom"])
    moved = f" ({after - before:+.1f})" if math.isfinite(after - before) else ""
    return f"{sides[0]} → {sides[1]}{moved}"


def decades(value: object) -> str:
    """A headroom to a tenth, "-" where nothing measures it."""
    found = number(value)
    return "-" if math.isnan(found) else f"{found:.1f}"


def status(change: Record) -> str:
    """`passed → failed`, one word when it is the same, what is there when one side has nothing."""
    before, after = change["status"]
    return before if before == after else f"{before or 'absent'} → {after or 'absent'}"


def moved(change: Record) -> str:
    """Which side has other bits: the torch side, the reference or both."""
    return {(): "", ("observed",): "torch side", ("reference",): "reference"}.get(tuple(change["moved"]), "both sides")


def tally(counts: Record) -> str:
    """`2 regression, 40 last-bits, 39 bit-identical`."""
    return ", ".join(f"{n} {name}" for name, n in counts.items()) or "nothing"


def config_line(config: Record) -> list[str]:
    """The parts of a config's line: statuses, its tally, faults that both caught, what made it incomparable."""
    parts = [f"{config['name']} {status(config)}", tally(config["counts"])]
    if config["caught"]:
        parts.append(f"{count(config['caught'], 'fault')} caught in both")
    return [*parts, config["obstacle"]] if config["obstacle"] else parts


def verdict(diff: Record) -> list[str]:
    """The parts of the last line: what `--fail-on` names and was found, the tally, the largest distance."""
    parts = [_head(diff), tally(diff["counts"])]
    moved_at_all = [c for c in diff["changes"] if c["moved"] and c["ulp"] is not None]
    if moved_at_all:
        worst = max(moved_at_all, key=lambda c: number(c["ulp"]))
        parts.append(f"at most {short(worst['ulp'])} ULP ({worst['config']}: {worst['name']})")
    if diff["facts"]:
        parts.append(f"{count(len(diff['facts']), 'fact')} differ{'s' * (len(diff['facts']) == 1)}")
    return parts


def _head(diff: Record) -> str:
    wanted = diff["run"]["fail_on"]
    if diff["run"]["status"] == "nothing compared":
        return "nothing was compared"
    if diff["run"]["status"] == "passed":
        return "compared" if wanted == "never" else f"no {PASSED[wanted]}"
    found = [name for name in diff["counts"] if name in diff["run"]["fails"]]
    return f"failed on {', '.join(found) or 'facts'}"


def side_line(side: Record) -> str:
    """One bundle: id, status, torch version."""
    return f"{side['id']} {side['status']} · torch {side['torch']} · {side['bundle']}"


def setting_value(text: str, most: int = 60) -> str:
    """A value of an environment, cut where it is long; the whole one is in the JSON form."""
    return text if len(text) <= most else text[: most - 1] + "…"
