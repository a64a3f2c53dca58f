"""Two bundles, check by check: what moved between two versions, machines or implementations, and in which class.

Verdicts and margins are compared, not absolute values that rot. A is what was, B is what is now.
"""

from collections.abc import Iterator
from pathlib import Path

from labs.core.difference.checks import check_change
from labs.core.difference.classes import Change, Difference, Pair, rank
from labs.core.difference.complaints import (
    before_added,
    caught_in_both,
    complaint_changes,
    control_changes,
    fact_changes,
    verdict_change,
)
from labs.core.difference.environments import RUN_KEYS, cause, implementations, run_settings, settings
from labs.core.difference.opened import Opened, open_bundle
from labs.core.difference.values import Values
from labs.core.patterns import picks
from labs.core.reports.summary import Record, some, torch_version


def diff(a: Path, b: Path) -> Difference:
    """Compare two bundles. Raises RequestError (DamagedBundle) for what is no bundle, or no whole one."""
    return difference(open_bundle(a), open_bundle(b))


def difference(a: Opened, b: Opened) -> Difference:
    """Compare two opened bundles; arrays are streamed, so that memory does not grow with them."""
    every = list(dict.fromkeys([*a.labs, *b.labs]))
    shared = [name for name in every if name in a.labs and name in b.labs]
    obstacles = {name: obstacle(name, a, b) for name in shared}
    changes = [c for name in every for c in _changes(name, a, b, obstacles.get(name, ""))]
    found = (
        *implementations({name: (a.labs[name], b.labs[name]) for name in shared}),
        *settings(a.report["environment"], b.report["environment"]),
        *run_settings({name: (a.configs[name], b.configs[name]) for name in shared}),
    )
    facts = [f for name in shared for f in fact_changes(name, a.labs[name], b.labs[name])]
    return Difference(
        _about(a),
        _about(b),
        found,
        cause(found, changes),
        tuple(_pair(name, a, b, obstacles.get(name, "")) for name in every),
        tuple(sorted(changes, key=rank)),
        tuple(facts),
    )


def obstacle(name: str, a: Opened, b: Opened) -> str:
    """Why no value of this config can be compared: another lab, precision, config or inputs; empty when all can."""
    if a.labs[name]["lab"] != b.labs[name]["lab"]:
        return f"another lab: {a.labs[name]['lab']} and {b.labs[name]['lab']}"
    precisions = [precision_of(bundle.labs[name]) for bundle in (a, b)]
    if precisions[0] != precisions[1]:
        return f"another precision: {precisions[0]} and {precisions[1]}"
    differing = config_obstacle(a.configs[name], b.configs[name])
    if differing:
        return differing
    inputs = [dict(bundle.inputs.get(name, {})) for bundle in (a, b)]
    if not all(inputs):  # `save` left them out; the same config draws the same ones
        return ""
    other = [key for key in inputs[0] | inputs[1] if inputs[0].get(key) != inputs[1].get(key)]
    return f"the inputs differ: {some(other)}" if other else ""


def precision_of(lab: Record) -> str:
    """The precision that the torch side of a lab's entry ran at."""
    return str(lab.get("precision", "float64"))


def config_obstacle(a: Record, b: Record) -> str:
    """The keys in which two resolved configs differ, those that change no input and no formula left out."""
    sides = [_flat_config(config) for config in (a, b)]
    keys = [key for key in sides[0] | sides[1] if sides[0].get(key, "absent") != sides[1].get(key, "absent")]
    told = [f"{key} ({sides[0].get(key, 'absent')} and {sides[1].get(key, 'absent')})" for key in keys]
    return f"the configs differ in {some(told)}" if told else ""


def _flat_config(values: Record, prefix: str = "") -> dict[str, object]:
    """A config as dotted keys, without those that change no input and no formula."""
    found: dict[str, object] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= {} if not prefix and key in RUN_KEYS else _flat_config(value, f"{prefix}{key}.")
        elif prefix or (key not in RUN_KEYS and key != "lab"):
            found[f"{prefix}{key}"] = value
    return found


def _changes(name: str, a: Opened, b: Opened, reason: str) -> list[Change]:
    """Every check, fault and complaint that either bundle has for the config `name`."""
    if name not in a.labs or name not in b.labs:
        where = "A" if name in a.labs else "B"
        other, change = ("B", "removed") if where == "A" else ("A", "added")
        lab = (a if where == "A" else b).labs[name]
        return [_alone(name, check, change, f"config {name} is not in {other}") for check in lab["checks"]]
    old, new = a.labs[name], b.labs[name]
    found = list(_check_changes(name, a, b, reason))
    if old["lab"] == new["lab"]:  # faults are tried at the lab's default config, whatever the run's own is
        found += control_changes(name, old, new)
    if reason:
        return found
    found += complaint_changes(name, old, new)
    return [*found, *verdict_change(name, old, new, found)]


def _check_changes(name: str, a: Opened, b: Opened, reason: str) -> Iterator[Change]:
    old, new = ({(c["name"], c["kind"]): c for c in side.labs[name]["checks"]} for side in (a, b))
    values = Values(name, a, b)
    for key in old | new:
        if key not in new:
            yield _lost(name, old[key], b.labs[name]["narrowed"])
        elif key not in old:
            yield _alone(name, new[key], "added", before_added(a.labs[name]))
        else:
            yield check_change(name, old[key], new[key], reason, values)


def _lost(config: str, check: Record, narrowed: list[str]) -> Change:
    """A check that B does not have: removed, unless B was asked for other items only."""
    only = tuple(n.removeprefix("--only ") for n in narrowed if n.startswith("--only "))
    if not only or picks(check["name"], check["kind"], only):
        return _alone(config, check, "removed", "")
    return _alone(config, check, "not-comparable", f"B was narrowed by {' '.join(narrowed)}")


def _alone(config: str, check: Record, change: str, why: str) -> Change:
    status = ("", check["status"]) if change == "added" else (check["status"], "")
    return Change(config, check["name"], check["kind"], change, status, why=why)


def _pair(name: str, a: Opened, b: Opened, reason: str) -> Pair:
    old, new = a.labs.get(name), b.labs.get(name)
    status = tuple(lab["status"] if lab else "" for lab in (old, new))
    return Pair(name, (status[0], status[1]), reason, caught_in_both(old, new) if old and new else 0)


def _about(opened: Opened) -> dict[str, str]:
    run, version = opened.report["run"], torch_version(opened.report)
    bundle = str(run.get("bundle") or opened.path.name)
    return {"id": run["id"], "bundle": bundle, "status": run["status"], "created": run["created"], "torch": version}
