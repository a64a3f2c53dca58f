"""A run held against a bundle that passed: what got worse since then belongs to the run's verdict.

The baseline is read and checked before anything is computed, and never written.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labs.core.config import Settings, to_yaml
from labs.core.diff import config_obstacle, difference, precision_of
from labs.core.difference.opened import Opened, open_bundle, open_draft
from labs.core.difference.record import record
from labs.core.errors import RequestError
from labs.core.loading.strict_yaml import parse
from labs.core.reports.diff_summary import QUIET
from labs.core.reports.summary import Record
from labs.core.verify import damage

FAIL_ON = "regression"  # what is no longer checked counts as well


def open_baseline(path: Path, settings: Sequence[Settings], precision: str = "float64") -> Opened:
    """Open a bundle as the baseline of a run, every byte of it checked. Raises RequestError.

    It has to have passed, and to have been asked the same as this run for one config at least; it may hold others.
    """
    opened, problems = _read(path)
    status = opened.report["run"]["status"]
    if status != "passed" or any(lab["status"] != "passed" for lab in opened.labs.values()):
        raise RequestError(f"--baseline {path}: its run {status}; a baseline is a bundle that passed")
    if problems:
        raise RequestError(f"--baseline {path}: damaged: {problems[0]}")
    _require_common(path, opened, settings, precision)
    return replace(opened, labs={s.name: opened.labs[s.name] for s in settings if s.name in opened.labs})


def _read(path: Path) -> tuple[Opened, Sequence[str]]:
    """The bundle itself, because a link like `latest` is going to point elsewhere, and what is wrong with its files."""
    try:
        return open_bundle(path.resolve()), damage(path.resolve())
    except RequestError as error:
        raise RequestError(f"--baseline {error}") from error


def _require_common(path: Path, opened: Opened, settings: Sequence[Settings], precision: str) -> None:
    obstacles = []
    for asked in settings:
        if asked.name in opened.labs:
            config = parse(to_yaml(asked), asked.name).value
            had = precision_of(opened.labs[asked.name])
            other = f"another precision: {had} and {precision}" if had != precision else ""
            obstacle = other or config_obstacle(opened.configs[asked.name], config)
            if not obstacle:
                return
            obstacles.append(f"{asked.name}: {obstacle}")
    found = "; ".join(obstacles) or f"it holds {', '.join(opened.labs) or 'nothing'}, not {settings[0].name}"
    raise RequestError(f"--baseline {path}: nothing in it can be compared with this run: {found}")


def held_against(baseline: Opened, draft: Path, report: Record) -> dict[str, Any]:
    """The report with `baseline`, the difference since then, and the run's verdict with what got worse in it."""
    found = record(difference(baseline, open_draft(draft, report)), FAIL_ON)
    loud = [change for change in found["changes"] if change["class"] not in QUIET]
    run, code = dict(report["run"]), found["run"]["exit_code"]
    if run["exit_code"] == 0 and code:
        run |= {"status": "failed", "exit_code": code}
    return {**report, "run": run, "baseline": {**found, "changes": loud}}
