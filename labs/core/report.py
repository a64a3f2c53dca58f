"""report.json as a value: what a run found, in the words of the schema, and the status that follows from it."""

import re
import resource
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from labs.core.controls import NOT_EXERCISED, Verdict
from labs.core.items import Tolerance, promised
from labs.core.judge import Check
from labs.core.lab import Array
from labs.core.own_parts import OwnParts
from labs.core.patterns import matches
from labs.core.reports.json_text import writable
from labs.core.reports.summary import count, listed, some
from labs.core.schedule import Ran
from labs.core.trial import Expected, Judged, Trial

if TYPE_CHECKING:
    from labs.core.run import Request

SCHEMA = "framework-lab/report/1"
SECONDS = re.compile(r"was stopped after [\d.e+]+ s")
ENDED = rf"{NOT_EXERCISED}: stage \S+: [\w, ]*(was|were) "
CUT_SHORT = {  # what ended a process from outside, by how it is told
    "the time limit came": re.compile(ENDED + r"(stopped after|not begun within) [\d.e+]+ s"),
    "a process was killed from outside, as for want of memory,": re.compile(ENDED + "killed by SIGKILL"),
}
NOT_ASKED = OwnParts()
EXIT = {"passed": 0, "failed": 1, "error": 3}


def lab_report(
    trial: Trial,
    expected: Expected,
    judged: Judged,
    checks: Sequence[Check],
    request: "Request",
    own: OwnParts = NOT_ASKED,
) -> dict[str, Any]:
    """One entry of `labs`: checks, controls and everything else that decides the lab's status."""
    settings = trial.settings
    failures = [
        *_stage_failures(judged.ran),
        *_own(own),
        *_absent_facts(trial, judged),
        *_moved(trial, expected),
        *_cut_short(judged),
    ]
    failures += [] if any(r.failure for r in judged.ran) else _uncalled(trial)
    entry: dict[str, Any] = {
        "name": settings.name,
        "lab": settings.lab.name,
        "title": settings.lab.title,
        "seed": settings.seed,
        "status": _status(checks, judged, expected, failures, own),
        "promised": len(promised(expected.rules)),
        "narrowed": _narrowed(request),
        "precision": request.precision,
        "device": request.device,
        "unjudged": [{"name": name, "why": why} for name, why in expected.unjudged.items()],
        "swaps": _swaps(trial, judged),
        "loosened": _loosened(settings.tolerances),
        "seconds": {**expected.seconds, **judged.seconds},
        "peak_rss_bytes": {
            "referee": _peak_rss(),
            "framework": max((r.result.peak_rss_bytes for r in judged.ran), default=0),
        },
        "stages": [_stage(r) for r in judged.ran],
        "failures": failures,
        "wiring": {"spoils": expected.wiring.spoils, "problems": list(expected.wiring.problems)},
        "checks": [c.to_json() for c in checks],
        "controls": [v.to_json() for v in judged.verdicts],
        "facts": [_fact(n, array, settings.lab.facts[n]) for n, array in judged.facts.items()],
        "tables": [asdict(t) for t in settings.lab.tables(settings.config, expected.reference)],
        "walk": [asdict(node) for node in settings.lab.walk(settings.config)],
        "trajectories": _trajectories(settings.lab.trajectories, checks),
    }
    plain: dict[str, Any] = writable(entry)
    return plain


def run_report(
    began: datetime, name: str, command: Sequence[str], entries: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The whole report but for its environment; the run's status is the worst of its labs'."""
    status = max((e["status"] for e in entries), key=lambda s: EXIT[s], default="error")
    head = {
        "id": name.removeprefix("framework-lab-"),
        "bundle": name,
        "created": began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": list(command),
        "status": status,
        "exit_code": EXIT[status],
        "seconds": round((datetime.now(UTC) - began).total_seconds(), 3),
    }
    return {"schema": SCHEMA, "run": writable(head), "environment": {}, "labs": list(entries)}


def _status(checks: Sequence[Check], judged: Judged, expected: Expected, failures: Sequence[str], own: OwnParts) -> str:
    if any(r.unequipped for r in judged.ran) or own.failure:
        return "error"
    if any(r.crashed for r in judged.ran) and not own.complete:
        return "error"
    lost = [v for v in judged.verdicts if _lost_to(v)]
    others = [v for v in judged.verdicts if v not in lost]
    good = (
        bool(checks)
        and all(c.status == "passed" for c in checks)
        and all(v.status in ("caught", "unseen") for v in others)
        and (not others or any(v.status == "caught" for v in others))
        and len(failures) == len(_cut_short(judged))
        and not expected.wiring.problems
    )
    return "failed" if not good else "error" if lost else "passed"


def _lost_to(verdict: Verdict) -> str:
    """What ended the process of a fault before it had run, which says nothing of any check; "" when nothing did."""
    caught = verdict.status == "caught"
    return "" if caught else next((what for what, told in CUT_SHORT.items() if told.match(verdict.message)), "")


def _cut_short(judged: Judged) -> list[str]:
    lost = Counter(filter(None, map(_lost_to, judged.verdicts)))
    return [f"{what} before {count(number, 'known fault')} had run" for what, number in lost.items()]


def _stage_failures(ran: Sequence[Ran]) -> list[str]:
    """What went wrong in the stages; an error that many share, such as one while importing, is said once."""
    stages: dict[str, list[str]] = {}
    failed = {r.stage.name for r in ran if r.failure}
    for r in ran:
        before = [name for name in r.stage.after if name in failed]
        if before:  # its own error is only that what it reads is not there
            leave = "leave" if len(before) > 1 else "leaves"
            stages.setdefault(f": what {listed(before)} {leave} is not there", []).append(r.stage.name)
        elif r.failure:
            what = r.failure.removeprefix(f"stage {r.stage.name}").replace(f", in stage {r.stage.name}", "")
            what = SECONDS.sub("was stopped at the time limit", what)  # a moment apart is no difference
            stages.setdefault(what, []).append(r.stage.name)
    return [_stages_failed(names, what) for what, names in stages.items()]


def _stages_failed(names: Sequence[str], what: str) -> str:
    if len(names) == 1:
        return f"stage {names[0]}{what}"
    theirs = what.replace(": was ", ": were ", 1) if what.startswith(": was ") else what
    return f"stages {listed(names)}{theirs.replace('before it had answered', 'before they had answered')}"


def _own(own: OwnParts) -> list[str]:
    if own.complete:
        return ["the lab's own parts complete all of this, so what was swapped in is to blame"]
    return [f"the lab's own parts fail as well: {own.failure}"] if own.failure else []


def _uncalled(trial: Trial) -> list[str]:
    """A swapped-in part that nothing called is not judged, whatever else passed."""
    from labs.core.process.mark import called  # noqa: PLC0415 - few runs need it

    guarded = {part for part, source in trial.case.swap.items() if not source.startswith("fault:")}
    idle = sorted(guarded - called(str(trial.case.scratch))) if guarded else []
    return [f"part {part} was swapped in and never called in this run, so nothing is known of it" for part in idle]


def _swaps(trial: Trial, judged: Judged) -> list[dict[str, Any]]:
    """Whose implementation was judged, part by part."""
    if not trial.case.swap:
        return []
    from labs.core.swaps import completed, looked_up  # noqa: PLC0415 - few runs need it

    known = looked_up(trial.settings.lab, trial.case.swap)
    return [s.to_json() for s in completed(known, (outcome for ran in judged.ran for outcome in ran.outcomes))]


def _moved(trial: Trial, expected: Expected) -> list[str]:
    if not expected.moved:
        return []
    moved, again = some(sorted(expected.moved)), f"python -m labs.core.pinned {trial.settings.lab.name}"
    return [f"the reference no longer has its pinned values at {moved}; when that is meant, pin them again: {again}"]


def _absent_facts(trial: Trial, judged: Judged) -> list[str]:
    owed = [n for n in trial.settings.lab.facts if not trial.only or matches(n, trial.only)]
    return [f"fact {n}: the torch side did not state it" for n in owed if n not in judged.facts]


def _fact(name: str, array: Array, what: str) -> dict[str, Any]:
    return {"name": name, "what": what, "value": array.tolist()}


def _trajectories(patterns: Sequence[str], checks: Sequence[Check]) -> list[str]:
    return list(dict.fromkeys(c.name for c in checks if patterns and matches(c.name, patterns)))


def _narrowed(request: "Request") -> list[str]:
    precision = [] if request.precision == "float64" else [f"--precision {request.precision}"]
    return [f"--only {p}" for p in request.only] + ([] if request.controls else ["--no-controls"]) + precision


def _loosened(tolerances: Sequence[tuple[str, Tolerance]]) -> list[dict[str, Any]]:
    usual = Tolerance()
    return [
        {"pattern": pattern, "atol": t.atol, "rtol": t.rtol, "reason": t.reason}
        for pattern, t in tolerances
        if t.atol > usual.atol or t.rtol > usual.rtol
    ]


def _stage(ran: Ran) -> dict[str, Any]:
    return {
        "name": ran.stage.name,
        "status": "crashed" if ran.crashed else "raised" if ran.failure else "ok",
        "seconds": round(max((o.seconds for o in ran.outcomes), default=ran.result.seconds), 4),
        "traceback": next((o.traceback for o in ran.outcomes if o.status != "ok"), ""),
    }


def _peak_rss() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
