"""The one place where the steps meet: config, inputs, both sides, judgement, bundle, reports.

The caller starts the framework process before it imports this module (NumPy, pydantic and yaml come with it), so that
torch is being imported all the while.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import labs
from labs.core.config import Settings, resolve, to_yaml
from labs.core.environment import environment
from labs.core.errors import NothingCompared, RequestError
from labs.core.investigate import investigate
from labs.core.launch import Framework
from labs.core.own_parts import own_parts
from labs.core.precision import PRECISIONS, Target
from labs.core.process.jobs import NO_DEVICE
from labs.core.registry import user_code
from labs.core.report import lab_report, run_report
from labs.core.reports.json_text import json_text, writable
from labs.core.reports.markdown import markdown
from labs.core.reports.summary import count
from labs.core.storage.draft import Draft, open_draft
from labs.core.trial import Expected, Judged, Trial, begin, conclude, expect, hand_over, length, prove, save_arrays

LANES = 2  # processes that the controls of a single lab may fill; of several labs, each has one

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What the user asked for; the defaults are those of `lab run`."""

    names: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    seed: int | None = None
    out: Path = Path("artifacts")
    threads: int | None = None
    only: tuple[str, ...] = ()
    controls: bool = True
    timeout: float = 600.0
    command: tuple[str, ...] = ()
    swap: Mapping[str, str] = field(default_factory=dict)
    precision: str = "float64"
    device: str = "cpu"
    baseline: Path | None = None


@dataclass(frozen=True)
class Finished:
    """The contents of report.json, and the folder of the published bundle."""

    report: dict[str, Any]
    bundle: Path


def run(request: Request, framework: Framework, progress: Progress = lambda _text: None) -> Finished:
    """Run the labs that were asked for, judge every value, publish the bundle.

    Raises RequestError, CannotComplete or NothingCompared. A check that fails raises nothing: it is the report's news.
    """
    began = datetime.now(UTC)
    deadline = time.monotonic() + request.timeout
    settings = _settings(request)
    held = _baseline(request, settings)
    _look_up(request, settings)
    with open_draft(request.out, began) as draft, _ended_before_it_is_removed(framework):
        scratch = draft.path / ".scratch"  # no config can have this name
        lanes = (LANES if len(settings) == 1 else 1) if request.controls else 0
        trials = [_begin(s, request, lanes, draft, scratch) for s in settings]
        trials.sort(key=length, reverse=True)
        hand_over(trials, framework)
        progress("computing the reference while torch is being imported")
        expected = [_expect(trial) for trial in trials]
        if not any(e.rules or e.witnesses for e in expected):
            asked = f"--only {' '.join(request.only)}: matches no check of {_names(settings)}"
            raise NothingCompared(f"{asked}; lab show NAME lists the items")
        progress("waiting for torch")
        framework.ready(deadline)
        course = _Course(request, framework, deadline, progress, scratch)
        judged = [_judge(course, t, e) for t, e in zip(trials, expected, strict=True)]
        told = [_report(course, t, e, j) for t, e, j in zip(trials, expected, judged, strict=True)]
        entries = {entry["name"]: entry for entry in told}
        report = run_report(began, draft.name, request.command, [entries[s.name] for s in settings])
        report["environment"] = writable(environment(request.command, framework.ready()))
        shutil.rmtree(scratch, ignore_errors=True)
        report = held(draft.path, report)
        _write(draft, report)
        return Finished(report, draft.publish())


@dataclass(frozen=True)
class _Course:
    """What the labs of a run have in common once their jobs are with the framework process."""

    request: Request
    framework: Framework
    deadline: float
    progress: Progress
    scratch: Path


def _judge(course: _Course, trial: Trial, expected: Expected) -> Judged:
    """Judge the run itself; the controls go on meanwhile."""
    course.progress(f"{trial.settings.name}: running")
    with user_code(trial.settings.lab):
        judged = conclude(trial, expected, course.framework, course.deadline)
    _refuse_device(course.request, judged)
    return judged


def _report(course: _Course, trial: Trial, expected: Expected, judged: Judged) -> dict[str, Any]:
    """A lab's entry in the report: also what became of the known faults, and why a check failed if one did."""
    name, faults = trial.settings.name, sum(len(bench.faulty) for lane, _ in trial.beside for bench in lane)
    framework, deadline, place = course.framework, course.deadline, course.scratch / name
    if faults:
        course.progress(f"{name}: running {count(faults, 'known fault')}")
    with user_code(trial.settings.lab):
        judged = prove(trial, expected, judged, framework, deadline)
        if any(c.status != "passed" for c in judged.checks):
            course.progress(f"{name}: red, looking for the cause")
        own = own_parts(trial, judged.ran, framework, place, course.request.timeout)
        checks = investigate(trial, expected, judged, framework, place, deadline)
    save_arrays(trial, expected, judged, checks)
    return lab_report(trial, expected, judged, checks, course.request, own)


def _look_up(request: Request, settings: Sequence[Settings]) -> None:
    """Refuse a part, file or name that is not there before anything is written."""
    if request.swap:
        from labs.core.swaps import looked_up  # noqa: PLC0415 - few runs need it

        for asked in settings:
            looked_up(asked.lab, request.swap)


@contextmanager
def _ended_before_it_is_removed(framework: Framework) -> Iterator[None]:
    """When the run fails, end its processes while its draft still stands: they would write on after it is removed."""
    try:
        yield
    except BaseException:
        framework.close()
        raise


def _baseline(request: Request, settings: Sequence[Settings]) -> Callable[[Path, dict[str, Any]], dict[str, Any]]:
    """What makes the final report of a draft and its report: against the baseline, when there is one."""
    if request.baseline is None:
        return lambda _draft, report: report
    from labs.core.baseline import held_against, open_baseline  # noqa: PLC0415 - 30 ms that few runs need

    return partial(held_against, open_baseline(request.baseline, settings, request.precision))


def _settings(request: Request) -> list[Settings]:
    settings = [resolve(n, request.changes, request.seed, request.threads) for n in request.names or labs.NAMES]
    names = [s.name for s in settings]
    doubled = sorted({n for n in names if names.count(n) > 1})
    if doubled:
        raise RequestError(f"{doubled[0]}: asked for twice; a bundle has one folder for each name")
    return settings


def _begin(settings: Settings, request: Request, lanes: int, draft: Draft, scratch: Path) -> Trial:
    draft.write(f"{settings.name}/config.yaml", to_yaml(settings))
    place = scratch / settings.name
    with user_code(settings.lab):
        target = Target(PRECISIONS[request.precision], request.device)
        return begin(settings, request.only, lanes, request.swap, draft.path / settings.name, place, target)


def _refuse_device(request: Request, judged: Judged) -> None:
    errors = [o.error for ran in judged.ran for o in ran.outcomes if o.error.startswith(NO_DEVICE)]
    if errors:
        raise RequestError(f"--device {request.device}: {errors[0]}")


def _expect(trial: Trial) -> Expected:
    with user_code(trial.settings.lab):
        return expect(trial)


def _names(settings: Sequence[Settings]) -> str:
    return ", ".join(s.name for s in settings)


def _write(draft: Draft, report: dict[str, Any]) -> None:
    draft.write("environment.json", json_text(report["environment"]))
    draft.write("report.json", json_text(report))
    draft.write("report.md", markdown(report))
