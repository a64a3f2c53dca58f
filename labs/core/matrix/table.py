"""Items by variants: the worst class of each item against the first variant that ran, and its headroom in each.

The document (schema "framework-lab/matrix/1") from which every form of a matrix is made.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from labs.core.diff import difference
from labs.core.difference.classes import CLASSES
from labs.core.difference.opened import open_bundle
from labs.core.difference.record import record
from labs.core.matrix.running import Row
from labs.core.reports.summary import Record, number, tightest, torch_version

SCHEMA = "framework-lab/matrix/1"
BOUNDED = ("witness", "within")  # near their limits when all is well: their headroom stands in for no item's


def table(rows: Sequence[Row], fail_on: str) -> dict[str, Any]:
    """The whole matrix and its verdict. Bundles are read again from the disk, one pair at a time."""
    base = next((row for row in rows if row.bundle), None)
    differences = [_difference(base, row, fail_on) for row in rows]
    variants = [_variant(row, found) for row, found in zip(rows, differences, strict=True)]
    code = _exit_code(variants)
    return {
        "schema": SCHEMA,
        "run": {"status": {0: "passed", 1: "failed"}.get(code, "error"), "exit_code": code, "fail_on": fail_on},
        "base": base.variant.name if base else "",
        "variants": variants,
        "configs": [_config(name, rows, differences) for name in _names(rows)],
        "facts": _facts(rows),
    }


def _difference(base: Row | None, row: Row, fail_on: str) -> dict[str, Any] | None:
    if base is None or base.bundle is None or row.bundle is None or row is base:
        return None
    return record(difference(open_bundle(base.bundle), open_bundle(row.bundle)), fail_on)


def _variant(row: Row, found: Record | None) -> dict[str, Any]:
    """One run: what it ran on, what it said, how it differs from the first one."""
    report = row.report
    run: Record = report["run"] if report else {}
    framework: Record = report["environment"].get("framework", {}) if report else {}
    torch = framework.get("torch", {})
    least = [(lab["name"], check) for lab in (report["labs"] if report else ()) if (check := tightest(lab))]
    config, worst = min(least, key=lambda found: number(found[1]["headroom"]), default=("", None))
    return {
        "name": row.variant.name,
        "variables": dict(row.variant.variables),
        "threads": row.variant.threads,
        "torch": torch_version(report) if report else "",
        "numpy": str(framework.get("numpy", "")),
        "python": str(framework.get("python", "")),
        "cpu_capability": str(torch.get("cpu_capability", "")) if isinstance(torch, Mapping) else "",
        "status": run.get("status", "can't run"),
        "exit_code": run.get("exit_code", 3),
        "seconds": run.get("seconds"),
        "bundle": str(row.bundle or ""),
        "error": row.error,
        "least": {"config": config, "name": worst["name"], "headroom": worst["headroom"]} if worst else None,
        "counts": found["counts"] if found else {},
        "fails": bool(found and found["run"]["exit_code"]),
        "cause": found["cause"] if found else "",
        "environment": found["environment"] if found else [],
    }


def _exit_code(variants: Sequence[Record]) -> int:
    """1 an honest no of any variant that ran, 3 when one could not be completed, 0 otherwise."""
    if any(v["exit_code"] == 1 or v["fails"] for v in variants):
        return 1
    return 3 if any(v["exit_code"] for v in variants) else 0


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(lab["name"] for row in rows if row.report for lab in row.report["labs"]))


def _lab(row: Row, name: str) -> Record | None:
    return next((lab for lab in row.report["labs"] if lab["name"] == name), None) if row.report else None


def _config(name: str, rows: Sequence[Row], differences: Sequence[Record | None]) -> dict[str, Any]:
    """Every item of a config with a cell for each variant, those that differ most first."""
    labs = [_lab(row, name) for row in rows]
    changes = [_changes(name, found) for found in differences]
    measured = [_headrooms(lab) for lab in labs]
    items = list(dict.fromkeys(item for cells in (*measured, *changes) for item in cells))
    lines = [
        {"name": item, "cells": [_cell(*cells, item) for cells in zip(labs, changes, measured, strict=True)]}
        for item in items
    ]
    return {"name": name, "items": sorted(lines, key=lambda line: min(_rank(c) for c in line["cells"]))}


def _rank(cell: Record) -> int:
    return CLASSES.index(cell["class"]) if cell["class"] in CLASSES else len(CLASSES)


def _cell(lab: Record | None, changes: Mapping[str, Record], headrooms: Mapping[str, Any], item: str) -> dict[str, Any]:
    """Class "": the first variant itself, or one that did not run."""
    change = changes.get(item)
    return {
        "class": change["class"] if change else "",
        "ulp": change["ulp"] if change and change["moved"] else None,
        "there": item in headrooms,
        "headroom": headrooms.get(item),
        "failed": item in _failed(lab),
    }


def _failed(lab: Record | None) -> set[str]:
    return {check["name"] for check in lab["checks"] if check["status"] != "passed"} if lab else set()


def _changes(name: str, found: Record | None) -> dict[str, Record]:
    """The worst change of each item; known faults and complaints stand under their kind and name."""
    worst: dict[str, Record] = {}
    for change in found["changes"] if found else ():  # worst first
        if change["config"] == name:
            own = change["kind"] in ("control", "failure", "wiring", "verdict")
            worst.setdefault(f"{change['kind']}: {change['name']}" if own else change["name"], change)
    return worst


def _headrooms(lab: Record | None) -> dict[str, Any]:
    """The least headroom of each item over its checks; None where only a witness or a bound measures it."""
    found: dict[str, Any] = {}
    for check in lab["checks"] if lab else ():
        stated = None if check["kind"] in BOUNDED else check["headroom"]
        known = found.setdefault(check["name"], stated)
        if stated is not None and (known is None or number(stated) < number(known)):
            found[check["name"]] = stated
    return found


def _facts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Facts that are not the same in every variant that ran."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for position, row in enumerate(rows):
        for lab in row.report["labs"] if row.report else ():
            for fact in lab.get("facts", ()):
                line = {"config": lab["name"], "name": fact["name"], "what": fact["what"], "values": [""] * len(rows)}
                found.setdefault((lab["name"], fact["name"]), line)["values"][position] = str(fact["value"])
    return [line for line in found.values() if len(set(line["values"]) - {""}) > 1]
